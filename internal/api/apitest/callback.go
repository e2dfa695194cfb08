package apitest

import (
	"context"

	"github.com/noetl/noetl-go/internal/event"
)

// CallBack reports the event; an unknown execution has nobody who waits.
func (p *Plane) CallBack(ctx context.Context, execution event.ID, in event.Incoming, _ string) (event.ID, error) {
	a, err := p.Report(ctx, event.Report{ExecutionID: execution, Events: []event.Incoming{in}})
	switch {
	case err != nil && event.CodeOf(err) == event.NotFound:
		return 0, nil
	case err != nil:
		return 0, err
	}
	return a.EventIDs[0], nil
}
