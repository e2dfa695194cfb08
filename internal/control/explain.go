package control

import (
	"context"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// Explain says how a step of an execution stands and why, or all of them when
// step is empty. NotFound when there is no such execution or step.
func (p *Plane) Explain(ctx context.Context, id event.ID, step string) ([]event.Explanation, error) {
	in := &explainInput{ticket: newTicket(), step: step}
	if err := p.ask(ctx, id, in); err != nil {
		return nil, err
	}
	return in.found, nil
}

// explainInput looks at a state and changes nothing.
type explainInput struct {
	ticket
	step  string
	found []event.Explanation
}

func (in *explainInput) apply(_ context.Context, ps *pass) (err error) {
	switch {
	case !ps.fresh:
		return errStale
	case ps.live.program == nil:
		return ps.live.broken
	}
	in.found, err = engine.Explain(ps.live.program, ps.state, in.step)
	return err
}
