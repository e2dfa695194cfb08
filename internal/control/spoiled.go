package control

import (
	"context"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// undelivered deals with a claimed command that could not be put together. For
// a moment's trouble it is given back; when a value it needs is gone for good,
// it fails with that reason.
func (ps *pass) undelivered(c *engine.Command, err error) {
	p, id := ps.p, ps.id
	p.log.Error("command not delivered", "execution_id", id, "step", c.Step, "command_id", c.ID, "error", err)
	if event.CodeOf(err) == event.Unavailable {
		beat := event.Heartbeat{EventID: c.EventID, ExecutionID: id, WorkerID: c.Worker, Attempt: c.Attempt}
		p.send(id, func(ctx context.Context) error { return p.Release(ctx, beat) })
		return
	}
	in := &spoiledInput{eventID: c.EventID, attempt: c.Attempt, why: err.Error()}
	p.send(id, func(ctx context.Context) error {
		in.ticket = newTicket()
		return p.ask(ctx, id, in)
	})
}

// spoiledInput ends a command that nobody can run.
type spoiledInput struct {
	ticket
	eventID event.ID
	attempt int
	why     string
}

func (in *spoiledInput) apply(_ context.Context, ps *pass) error {
	c := ps.state.CommandByEvent(in.eventID)
	if c == nil || event.IsFinal(c.Status) || c.Attempt != in.attempt {
		return nil
	}
	ps.add(engine.Spoiled(ps.state, c, in.why, ps.env))
	ps.decide = true
	return nil
}
