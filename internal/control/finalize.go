package control

import (
	"cmp"
	"context"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// FinalizeRequest says how an execution is to be ended by hand.
type FinalizeRequest struct {
	Status string       // COMPLETED or FAILED
	Error  string       // why it failed
	Reason string       // why it is ended by hand
	Actor  *event.Actor // nil where nobody is known
}

// FinalizeAnswer tells how the execution stands.
type FinalizeAnswer struct {
	Status  string
	Before  bool // it had ended before and was left as it is
	Message string
}

// Finalize ends an execution by hand. One that has ended stays as it is, and
// the answer says so. Invalid for a status that is no such end, NotFound when
// the execution is unknown.
func (p *Plane) Finalize(ctx context.Context, id event.ID, r FinalizeRequest) (FinalizeAnswer, error) {
	if r.Status != event.StatusCompleted && r.Status != event.StatusFailed {
		return FinalizeAnswer{}, &event.Error{
			Code: event.Invalid, Message: "Invalid finalization status: " + r.Status, Remedy: "use COMPLETED or FAILED",
		}
	}
	in := &finalizeInput{cancelInput: cancelInput{ticket: newTicket()}, end: r}
	if err := p.ask(ctx, id, in); err != nil {
		return FinalizeAnswer{}, err
	}
	if in.before {
		return FinalizeAnswer{Status: in.status, Before: true, Message: "Execution " + id.String() + " had ended before: " + in.status}, nil
	}
	return FinalizeAnswer{Status: in.status, Message: "Execution " + id.String() + " finalized as " + in.status}, nil
}

// finalizeInput ends an execution. What follows for its workers and children
// is the same as after a cancellation.
type finalizeInput struct {
	cancelInput
	end    FinalizeRequest
	status string
	before bool
}

func (in *finalizeInput) apply(_ context.Context, ps *pass) error {
	in.before, in.status = ps.state.Final(), ps.state.Summary().Status
	switch {
	case !ps.fresh:
		return errStale
	case in.before:
		return nil
	}
	in.status, in.children = in.end.Status, ps.state.Children()
	text := ""
	if in.end.Status == event.StatusFailed {
		text = cmp.Or(in.end.Error, in.end.Reason, "ended by hand")
	}
	for _, e := range engine.Finalize(ps.state, in.end.Status, text, cmp.Or(in.end.Reason, "finalized"), ps.env) {
		ps.add(actedBy(e, in.end.Actor))
	}
	return nil
}

func (in *finalizeInput) settle(ps *pass) {
	if !in.before {
		in.cancelInput.settle(ps)
	}
}
