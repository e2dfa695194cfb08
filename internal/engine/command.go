package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// ErrHeld is returned by Claim when the same worker already holds the command
// under a live lease: there is nothing to append, the answer is the same.
var ErrHeld = errors.New("command is held by this worker already")

// Pool is the worker pool of an execution: the one it asked for, or the one
// its path implies.
func Pool(explicit, path string) string {
	switch {
	case explicit != "":
		return explicit
	case strings.HasPrefix(path, "system/"):
		return "system"
	case strings.HasPrefix(path, "subscription/"):
		return "subscription"
	}
	return "shared"
}

// Handover gives a command issued in this very plan to a worker. The claim is
// recorded in the command.issued event itself, which is not appended yet.
func (pl *Plan) Handover(s *State, c *Command, worker string, lease, now time.Time) {
	for i := range pl.Events {
		e := &pl.Events[i]
		if e.EventID != c.EventID {
			continue
		}
		d := e.Detail.(*issueDetail)
		claimed := *d
		claimed.Attempt, claimed.LeaseUntil = 1, lease
		e.WorkerID, e.Detail, e.Meta = worker, &claimed, encode(&claimed)
	}
	for i, is := range pl.Issued {
		if is == c {
			pl.Issued = append(pl.Issued[:i:i], pl.Issued[i+1:]...)
			break
		}
	}
	s.touchCommand(c)
	c.Status, c.Worker, c.Attempt = event.StatusClaimed, worker, 1
	c.LeaseUntil, c.ClaimedAt = lease, now
	s.trimPending()
}

// Claim makes the event that gives a command to a worker. It refuses with a
// Conflict when the command or the execution has ended or another worker holds
// a live lease, and returns ErrHeld when this worker does.
func Claim(s *State, c *Command, worker string, lease time.Time, env Env) (event.Event, error) {
	switch {
	case s.status == event.StatusCancelled:
		return event.Event{}, Ended(event.StatusCancelled)
	case s.Final():
		return event.Event{}, refuse("execution_ended", "Execution has ended")
	case event.IsFinal(c.Status):
		return event.Event{}, Ended(event.StatusCompleted)
	case c.wait != nil:
		return event.Event{}, refuse("waiting", "Command waits and needs no worker now")
	}
	d := &claimDetail{Attempt: c.Attempt + 1, LeaseUntil: lease}
	if c.Status != event.StatusPending {
		if env.Now.Before(c.LeaseUntil) {
			if c.Worker == worker {
				return event.Event{}, ErrHeld
			}
			return event.Event{}, refuse("active_claim", "Command already claimed by "+c.Worker)
		}
		if c.Attempt >= c.MaxAttempts {
			return event.Event{}, refuse("attempts_exhausted", fmt.Sprintf("Command was given up after %d attempts", c.Attempt))
		}
		d.Reclaimed, d.ReclaimedFrom, d.ReclaimedCause = true, c.Worker, firstOf(env.Lost, "lease_expired")
	}
	e := s.commandEvent(c, event.CommandClaimed, event.StatusRunning, env)
	e.WorkerID, e.Detail, e.Meta = worker, d, encode(d)
	return e, nil
}

// Ended is the refusal of a claim on a command in a final status.
func Ended(status string) error {
	if status == event.StatusCancelled {
		return refuse("execution_cancelled", "Execution has been cancelled")
	}
	return refuse("already_terminal", "Command already reached terminal state")
}

func refuse(reason, message string) error {
	return &event.Error{Code: event.Conflict, Reason: reason, Message: message}
}

// Release makes the event by which a worker gives a command back unfinished.
func Release(s *State, c *Command, env Env) event.Event {
	return s.commandEvent(c, event.CommandReleased, event.StatusPending, env)
}

// Lost makes the event that ends a command whose last attempt's lease expired.
func Lost(s *State, c *Command, reason string, env Env) event.Event {
	text := fmt.Sprintf("worker %s was lost while running attempt %d of %d (%s)", c.Worker, c.Attempt, c.MaxAttempts, reason)
	return s.failedCommand(c, "connection", "LEASE_EXPIRED", text, env)
}

// Spoiled makes the event that ends a command which cannot be run by anybody.
func Spoiled(s *State, c *Command, why string, env Env) event.Event {
	return s.failedCommand(c, "not_found", "REFERENCE_NOT_AVAILABLE", why, env)
}

// failedCommand is the event by which the control plane itself ends a command.
func (s *State) failedCommand(c *Command, kind, code, text string, env Env) event.Event {
	e := s.commandEvent(c, event.CommandFailed, event.StatusFailed, env)
	e.Error = text
	e.Result = envelope(event.StatusFailed, encode(map[string]any{
		"command_id": c.ID,
		"error":      map[string]any{"kind": kind, "code": code, "message": text, "retryable": false},
	}))
	return e
}

// Cancel makes the events that end an execution on request: its open commands
// first, then the execution.
func Cancel(s *State, reason, by string, env Env) []event.Event {
	out := cancelOpen(s, env)
	text := firstOf(reason, "cancelled on request")
	return append(out, event.Event{
		ExecutionID: s.id, CatalogID: s.catalogID, EventID: env.NewID(), CreatedAt: env.Now,
		Type: event.PlaybookCancelled, NodeName: "playbook", NodeType: "execution", Status: event.StatusCancelled,
		Result: envelope(event.StatusCancelled, nil),
		Meta:   encode(&terminalMeta{Status: event.StatusCancelled, Reason: text, By: by}),
	})
}

// cancelOpen makes the events that end all open commands.
func cancelOpen(s *State, env Env) []event.Event {
	var out []event.Event
	for _, c := range s.OpenCommands() {
		e := s.commandEvent(c, event.CommandCancelled, event.StatusCancelled, env)
		e.Result = envelope(event.StatusCancelled, nil)
		out = append(out, e)
	}
	return out
}

// commandEvent is an event of the control plane about a command.
func (s *State) commandEvent(c *Command, t event.Type, status string, env Env) event.Event {
	return event.Event{
		ExecutionID: s.id, CatalogID: s.catalogID, EventID: env.NewID(), CreatedAt: env.Now,
		ParentEventID: c.EventID, Type: t, NodeName: c.Step, NodeType: c.Kind, Status: status, CommandID: c.ID,
	}
}

// Dispatch puts a command into the shape workers receive: the tool as written
// in the playbook, and the plain values its templates mention.
func Dispatch(p *Program, s *State, c *Command) (*event.Command, error) {
	n, ok := p.byName[c.Step]
	if !ok {
		return nil, event.Errorf(event.Internal, "step %q of command %s is not in the playbook", c.Step, c.ID)
	}
	s.missing = ""
	cmd := &event.Command{
		Status: "ok", EventID: c.EventID, ExecutionID: s.id, NodeID: c.Step, NodeName: c.Step, Action: c.Kind,
		LeaseUntil: c.LeaseUntil,
		Context:    event.CommandContext{ToolConfig: n.toolConfig, Args: n.args, RenderContext: nonEmpty(s.resolved(c.vars))},
		Meta: event.CommandMeta{
			CommandID: c.ID, Step: c.Step, ToolKind: c.Kind, Attempt: max(c.Attempt, 1), MaxAttempts: c.MaxAttempts,
			ExecutionID: event.StringID(s.id), CatalogID: event.StringID(s.catalogID),
			Actionable: true, Single: n.step.Single, Trace: s.trace, TimeoutSeconds: p.bound(n).Seconds(),
			ParkAfter: p.limits.ParkAfter.Seconds(), Resume: s.resumption(c), Cursor: c.place, Output: n.output,
		},
	}
	if r := s.currentRun(c.Step, c.Gen); c.Index >= 0 && r != nil && r.loop != nil {
		iterate(s, cmd, r.loop, c)
	} else if c.place != nil && r != nil && r.cursor != nil {
		row(s, n, cmd, r.cursor, c)
	} else if len(s.parentIter) > 0 {
		ctx := newObject()
		ctx.merge(cmd.Context.RenderContext)
		ctx.raw("iter", s.withParent(nil))
		cmd.Context.RenderContext = ctx.bytes()
	}
	if err := s.missingValue(); err != nil {
		return nil, event.Errorf(event.Internal, "command %s: %w", c.ID, err)
	}
	return cmd, nil
}

// resumption is what a worker needs to go on with a command that was parked.
func (s *State) resumption(c *Command) *event.Resume {
	if c.resume == nil || c.resume.Wake.Ref == "" {
		return c.resume
	}
	r := *c.resume
	r.Wake.Data, r.Wake.Ref = s.whole(r.Wake.Ref), ""
	return &r
}

// iterate binds the names of one iteration.
func iterate(s *State, cmd *event.Command, l *loopRun, c *Command) {
	index, total := c.Index, l.total
	cmd.Meta.IterationIndex, cmd.Meta.IterationTotal = &index, &total
	cmd.Meta.IteratorStep, cmd.Meta.ItemVar = c.Step, l.iterator
	bound := l.iter(s, index)
	ctx := newObject()
	ctx.merge(s.resolved(l.shared))
	ctx.merge(s.resolved(c.vars))
	ctx.merge(bound)
	ctx.raw("iter", s.withParent(bound))
	cmd.Context.RenderContext = ctx.bytes()
}

// iter is what an iteration knows of itself.
func (l *loopRun) iter(s *State, index int) json.RawMessage {
	o := newObject()
	o.raw(l.iterator, l.item(s, index))
	o.int("_index", index)
	o.int("_total", l.total)
	return o.bytes()
}

// withParent adds the iteration of the parent in which this execution started.
func (s *State) withParent(iter json.RawMessage) json.RawMessage {
	if len(s.parentIter) == 0 {
		return iter
	}
	o := newObject()
	o.merge(iter)
	o.raw("parent", s.parentIter)
	return o.bytes()
}

func nonEmpty(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}
