package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/store"
)

// inlineResult is how many bytes of a child's result the parent's log holds
// itself.
const inlineResult = 100 << 10

// followUp sends the errands that follow from a durable pass, and tells workers
// to stop when the execution ended over their heads.
func (ps *pass) followUp() {
	if slices.ContainsFunc(ps.plan.Events, func(e event.Event) bool { return e.Type == event.CommandCancelled }) {
		ps.p.out.offer(announcement{cancelled: ps.id})
	}
	for _, c := range ps.plan.Children {
		ps.p.send(ps.id, ps.p.startChild(ps.id, ps.origin(), c))
	}
	for _, id := range ps.plan.Abandoned {
		ps.p.send(ps.id, ps.p.abandon(id))
	}
	if parent := ps.state.Parent(); ps.state.Final() && parent.Command != "" && parent.Request.Wait {
		ps.p.send(ps.id, ps.childEnded(parent))
	}
	ps.forgetSecrets()
}

// origin is what a child has from the execution that asks for it: its trace,
// and who is behind it.
type origin struct {
	trace json.RawMessage
	actor *event.Actor
}

func (ps *pass) origin() origin { return origin{ps.state.Trace(), ps.state.Actor()} }

// notAllowed refuses a child that whoever is behind its parent could not have
// started either.
func notAllowed() error {
	return &event.Error{
		Code: event.Forbidden, Reason: "role", Message: "whoever started this execution may not start it",
		Remedy: "ask an admin for a token that covers it, or have somebody start it whose token does",
	}
}

// startChild starts an execution that a parked command asked for, under the id
// the parent's log gives it. One that is there already was started before.
func (p *Plane) startChild(parent event.ID, from origin, c engine.Child) errand {
	return func(ctx context.Context) error {
		if waits, err := p.waits(ctx, parent, c.Command); err != nil || !waits {
			return err
		}
		_ = failpoint.Hit(failpoint.ChildBefore)
		path, err := p.begin(ctx, parent, from, c)
		if err == nil && c.Request.Wait {
			// Whoever stopped waiting meanwhile found nothing to cancel.
			waits, err := p.waits(ctx, parent, c.Command)
			if err != nil {
				return err
			}
			if !waits {
				return p.abandon(c.ID)(ctx)
			}
		}
		switch {
		case err != nil && event.CodeOf(err) == event.Unavailable:
			return err
		case err != nil:
			return p.news(ctx, parent, c, nil, childRefused(c, err))
		case !c.Request.Wait:
			return p.news(ctx, parent, c, c.Started(path), nil)
		}
		return nil
	}
}

// waits tells whether a command is still parked.
func (p *Plane) waits(ctx context.Context, execution event.ID, command string) (bool, error) {
	row, err := p.store.Command(ctx, execution, issuedBy(command))
	if err != nil {
		return false, storeError("find command", err)
	}
	return row.Status == event.StatusWaiting, nil
}

func (p *Plane) begin(ctx context.Context, parent event.ID, from origin, c engine.Child) (string, error) {
	row, err := p.store.Execution(ctx, c.ID)
	if err == nil { // it was started before, maybe by another version of its playbook
		return row.Path, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return "", storeError("read execution", err)
	}
	req := c.Request
	if req.Pool != "" {
		if err := event.CheckPool(req.Pool); err != nil {
			return "", err
		}
	}
	if req.CatalogID == 0 && !from.actor.MayStart(cleanPath(req.Path)) {
		return "", notAllowed() // whether there is such a playbook stays unknown
	}
	what, err := p.runnable(ctx, EntryRef{CatalogID: event.ID(req.CatalogID), Path: req.Path, Version: req.Version})
	if err != nil {
		return "", err
	}
	if !from.actor.MayStart(what.path) {
		return "", notAllowed()
	}
	_, err = p.start(ctx, what.program, &startInput{actor: from.actor}, engine.StartInput{
		ExecutionID: c.ID, CatalogID: what.catalogID, ParentExecutionID: parent, Path: what.path, Version: what.version,
		Pool: req.Pool, Payload: req.Payload, Trace: p.commandTrace(from.trace, issuedBy(c.Command)), Child: &c,
	})
	if errors.Is(err, errTaken) {
		err = nil
	}
	return what.path, err
}

func childRefused(c engine.Child, err error) json.RawMessage {
	b, _ := json.Marshal(map[string]any{
		"kind": "child", "code": "CHILD_REFUSED", "retryable": false,
		"message": "playbook " + named(c.Request) + " cannot be started: " + err.Error(),
	})
	return b
}

// named is what a request asked for, in words.
func named(r event.ChildRequest) string {
	name := r.Path
	if name == "" {
		name = "with catalog id " + event.ID(r.CatalogID).String()
	}
	if r.Version != 0 {
		name += " version " + strconv.Itoa(r.Version)
	}
	return name
}

// childEnded brings an ended child's result to its parent. It is taken from
// the state at once, while the pass owns it; when part of it cannot be read now,
// the log is read again later.
func (ps *pass) childEnded(parent engine.Parent) errand {
	child := engine.Child{ID: ps.id, Command: parent.Command, Request: parent.Request}
	ps.unread = nil
	data, failure := engine.Returned(ps.state, parent.Request)
	if ps.unread != nil {
		return ps.p.checkChild(parent.Execution, ps.origin(), child)
	}
	return func(ctx context.Context) error { return ps.p.news(ctx, parent.Execution, child, data, failure) }
}

// abandon cancels a child nobody waits for any more.
func (p *Plane) abandon(id event.ID) errand {
	return func(ctx context.Context) error {
		_, err := p.Cancel(ctx, id, CancelRequest{Reason: "its parent does not wait for it any more", By: "control_plane"})
		if errors.Is(err, errEnded) || event.CodeOf(err) == event.NotFound {
			return nil
		}
		return err
	}
}

// news tells a parent's command of its child.
func (p *Plane) news(ctx context.Context, parent event.ID, c engine.Child, data, failure json.RawMessage) error {
	return p.ask(ctx, parent, &newsInput{ticket: newTicket(), child: c, data: data, failure: failure})
}

type newsInput struct {
	ticket
	child         engine.Child
	data, failure json.RawMessage
}

func (in *newsInput) apply(_ context.Context, ps *pass) error {
	data, ref := in.data, json.RawMessage(nil)
	if len(data) > inlineResult {
		data, ref = ps.aside("child", data)
	}
	e, waits := engine.ChildNews(ps.state, in.child, data, in.failure, ref, ps.env)
	if !waits {
		if !ps.fresh {
			return errStale
		}
		return nil
	}
	ps.add(e)
	ps.decide = true
	return nil
}

// aside puts a large value beside the log, together with the pass. It returns
// what stands in the value's place, and the reference to it.
func (ps *pass) aside(name string, data json.RawMessage) (inPlace, ref json.RawMessage) {
	at := event.ResultRef{Execution: ps.id, Name: name, ID: ps.env.NewID()}.String()
	r := newResult(ps.id, at, name, data, ps.env.Now)
	ps.stored = append(ps.stored, r)
	inPlace, _ = json.Marshal(map[string]string{"_ref": at})
	return inPlace, engine.Reference(whereabouts(&r), scope.Summarise(data, nil))
}

// tend makes up for errands that were lost: it looks at the children that
// commands of a silent execution wait for, and whether a silent child is still
// waited for.
func (ps *pass) tend() {
	if ps.state.Final() {
		return
	}
	from := ps.origin()
	ps.unread = nil
	children := ps.state.Children()
	if ps.unread != nil {
		return // the next look may know more
	}
	for _, c := range children {
		ps.p.send(ps.id, ps.p.checkChild(ps.id, from, c))
	}
	if parent := ps.state.Parent(); parent.Command != "" && parent.Request.Wait {
		ps.p.send(ps.id, ps.p.checkParent(ps.id, parent))
	}
}

// checkChild does for a child what its parent's log says must be done.
func (p *Plane) checkChild(parent event.ID, from origin, c engine.Child) errand {
	return func(ctx context.Context) error {
		row, err := p.store.Execution(ctx, c.ID)
		switch {
		case errors.Is(err, store.ErrNotFound) || err == nil && !c.Request.Wait:
			return p.startChild(parent, from, c)(ctx)
		case err != nil:
			return storeError("read execution", err)
		case !event.IsFinal(row.Status):
			return nil
		}
		state := engine.NewState(c.ID)
		var unread error
		state.Lend(p.fetch(ctx, func(err error) { unread = err }))
		if err := p.catchUp(ctx, c.ID, state); err != nil {
			return err
		}
		data, failure := engine.Returned(state, c.Request)
		if unread != nil {
			return storeError("read result", unread)
		}
		return p.news(ctx, parent, c, data, failure)
	}
}

// checkParent cancels a child whose parent has stopped waiting.
func (p *Plane) checkParent(id event.ID, parent engine.Parent) errand {
	return func(ctx context.Context) error {
		waits, err := p.waits(ctx, parent.Execution, parent.Command)
		if err == nil && !waits {
			err = p.abandon(id)(ctx)
		}
		return err
	}
}
