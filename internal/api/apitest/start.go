package apitest

import (
	"context"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// ExecuteBatch executes one request after the other.
func (p *Plane) ExecuteBatch(ctx context.Context, requests []control.ExecuteRequest) []control.BatchResult {
	out := make([]control.BatchResult, len(requests))
	for i, r := range requests {
		out[i].ExecuteAnswer, out[i].Err = p.Execute(ctx, r)
	}
	return out
}

// Rerun answers OnRerun, or executes.
func (p *Plane) Rerun(ctx context.Context, id event.ID, r control.RerunRequest) (control.ExecuteAnswer, error) {
	if p.OnRerun != nil {
		return p.OnRerun(id, r)
	}
	row, err := p.Execution(ctx, id)
	if err != nil {
		return control.ExecuteAnswer{}, err
	}
	return p.Execute(ctx, control.ExecuteRequest{Path: row.Path, Payload: r.Payload, Trace: r.Trace})
}
