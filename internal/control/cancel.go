package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	cascadeDepth = 64 // more than executions can be within each other
	cascadePage  = 100
)

// CancelRequest says why an execution is to stop, who asked, and whether the
// executions it started stop too.
type CancelRequest struct {
	Reason  string
	By      string
	Cascade bool
	Actor   *event.Actor // nil where nobody is known
}

// CancelAnswer lists what was cancelled, the execution itself first.
type CancelAnswer struct {
	ExecutionID event.ID
	Status      string // "cancelled"
	Message     string
	Cancelled   []event.ID
}

// Cancel ends an execution: commands nobody runs end at once, workers are told
// to stop the others. Invalid when it has ended already, NotFound when unknown.
func (p *Plane) Cancel(ctx context.Context, id event.ID, r CancelRequest) (CancelAnswer, error) {
	c := cascade{p: p, r: r, since: p.now(), seen: make(map[event.ID]bool)}
	ended := p.cancelOne(ctx, id, r)
	switch {
	case ended == nil:
		c.cancelled = append(c.cancelled, id)
	case !r.Cascade || !errors.Is(ended, errEnded):
		return CancelAnswer{}, ended
	}
	// The children of an execution that ended are looked at too: an earlier
	// cancellation may have been interrupted before it reached them.
	if r.Cascade {
		if err := c.children(ctx, id, 1); err != nil {
			return CancelAnswer{}, err
		}
	}
	if len(c.cancelled) == 0 {
		return CancelAnswer{}, ended
	}
	return CancelAnswer{
		ExecutionID: id, Status: "cancelled", Cancelled: c.cancelled,
		Message: fmt.Sprintf("Execution %s cancelled", id),
	}, nil
}

// errEnded is the cause of a refusal to cancel what has ended.
var errEnded = errors.New("the execution has ended")

func (p *Plane) cancelOne(ctx context.Context, id event.ID, r CancelRequest) error {
	return p.ask(ctx, id, &cancelInput{ticket: newTicket(), r: r})
}

type cancelInput struct {
	ticket
	r           CancelRequest
	silentSince time.Time      // when set, only if nothing was written since
	children    []engine.Child // that were waited for
}

func (in *cancelInput) apply(_ context.Context, ps *pass) error {
	if ps.state.Final() {
		return &event.Error{
			Code: event.Invalid, Reason: "already_ended", Err: errEnded,
			Message: "Cannot cancel execution in " + ps.state.Summary().Status + " state",
		}
	}
	if !in.silentSince.IsZero() && !ps.state.Summary().UpdatedAt.Before(in.silentSince) {
		return errAwake
	}
	in.children = ps.state.Children()
	for _, e := range engine.Cancel(ps.state, in.r.Reason, in.r.By, ps.env) {
		ps.add(actedBy(e, in.r.Actor))
	}
	return nil
}

func (in *cancelInput) settle(ps *pass) {
	ps.p.out.offer(announcement{cancelled: ps.id})
	for _, c := range in.children {
		if c.Request.Wait {
			ps.p.send(ps.id, ps.p.abandon(c.ID))
		}
	}
}

// cascade cancels the descendants of an execution.
type cascade struct {
	p         *Plane
	r         CancelRequest
	since     time.Time // when it began
	seen      map[event.ID]bool
	cancelled []event.ID
}

func (c *cascade) children(ctx context.Context, parent event.ID, depth int) error {
	if depth > cascadeDepth || c.seen[parent] {
		return nil
	}
	c.seen[parent] = true
	for offset := 0; ; offset += cascadePage {
		rows, err := c.p.Executions(ctx, store.ExecutionFilter{ParentID: parent, Limit: cascadePage, Offset: offset})
		if err != nil {
			return err
		}
		for i := range rows {
			if err := c.child(ctx, &rows[i], depth); err != nil {
				return err
			}
		}
		if len(rows) < cascadePage {
			return nil
		}
	}
}

// child cancels one execution and what it started. One that ended may still
// have children that run.
func (c *cascade) child(ctx context.Context, row *store.Execution, depth int) error {
	id, ended := row.ExecutionID, *row
	stopped := false
	if !event.IsFinal(row.Status) {
		err := c.p.cancelOne(ctx, id, c.r)
		switch stopped = err == nil; {
		case errors.Is(err, errEnded):
			if ended, err = c.p.Execution(ctx, id); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("cancel child execution %s: %w", id, err)
		}
	}
	// One that its parent's end cancelled before we came is part of it too.
	if stopped || ended.Status == event.StatusCancelled && ended.EndedAt.After(c.since) {
		c.cancelled = append(c.cancelled, id)
	}
	return c.children(ctx, id, depth+1)
}
