package apitest

import (
	"context"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// Signal answers OnSignal, or keeps it for nobody.
func (p *Plane) Signal(_ context.Context, id event.ID, r control.SignalRequest) (control.SignalAnswer, error) {
	if p.OnSignal != nil {
		return p.OnSignal(id, r)
	}
	return control.SignalAnswer{Status: "buffered", EventID: 1}, nil
}

// Waits answers OnWaits, or nothing.
func (p *Plane) Waits(_ context.Context, id event.ID) ([]event.SignalWait, error) {
	if p.OnWaits != nil {
		return p.OnWaits(id)
	}
	return []event.SignalWait{}, nil
}
