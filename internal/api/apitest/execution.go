package apitest

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Claim answers OnClaim, or a noop command for whoever asks.
func (p *Plane) Claim(ctx context.Context, r event.ClaimRequest) (*event.Command, error) {
	if p.OnClaim != nil {
		return p.OnClaim(ctx, r)
	}
	return p.Command(ctx, r.ExecutionID, r.EventID)
}

// Command answers OnCommand, or a noop command.
func (p *Plane) Command(_ context.Context, execution, id event.ID) (*event.Command, error) {
	if p.OnCommand != nil {
		return p.OnCommand(execution, id)
	}
	object := json.RawMessage(`{}`)
	return &event.Command{
		EventID: id, ExecutionID: execution, NodeID: "start", NodeName: "start", Action: "noop",
		Context: event.CommandContext{ToolConfig: object, Args: object, RenderContext: object},
		Meta:    event.CommandMeta{CommandID: "c", Step: "start", ToolKind: "noop", Attempt: 1, MaxAttempts: 3},
	}, nil
}

// Report appends the events to the log.
func (p *Plane) Report(_ context.Context, r event.Report) (event.ReportAnswer, error) {
	if p.OnReport != nil {
		return p.OnReport(r)
	}
	p.mu.Lock()
	_, known := p.rows[r.ExecutionID]
	p.mu.Unlock()
	if !known {
		return event.ReportAnswer{}, missing("not found")
	}
	a := event.ReportAnswer{Status: "ok"}
	for _, in := range r.Events {
		p.Append(r.ExecutionID, event.Event{
			EventID: in.EventID, Type: in.Type, NodeName: in.Step, Status: in.Status, Context: in.Payload, Meta: in.Meta, WorkerID: r.WorkerID,
		})
		a.EventIDs = append(a.EventIDs, in.EventID)
	}
	return a, nil
}

// Heartbeat answers OnHeartbeat, or renews everything.
func (p *Plane) Heartbeat(_ context.Context, beats []event.Heartbeat) ([]event.HeartbeatAnswer, error) {
	if p.OnHeartbeat != nil {
		return p.OnHeartbeat(beats)
	}
	return slices.Repeat([]event.HeartbeatAnswer{{LeaseUntil: Epoch}}, len(beats)), nil
}

// Release answers OnRelease, or agrees.
func (p *Plane) Release(_ context.Context, h event.Heartbeat) error {
	if p.OnRelease != nil {
		return p.OnRelease(h)
	}
	return nil
}

// Cancel ends a running execution.
func (p *Plane) Cancel(ctx context.Context, id event.ID, r control.CancelRequest) (control.CancelAnswer, error) {
	if p.OnCancel != nil {
		return p.OnCancel(id, r)
	}
	row, err := p.Execution(ctx, id)
	if err != nil {
		return control.CancelAnswer{}, err
	}
	if event.IsFinal(row.Status) {
		return control.CancelAnswer{}, event.Errorf(event.Invalid, "Cannot cancel execution in %s state", row.Status)
	}
	p.Append(id, event.Event{Type: event.PlaybookCancelled, Status: event.StatusCancelled})
	return control.CancelAnswer{ExecutionID: id, Status: "cancelled", Message: "Execution cancelled", Cancelled: []event.ID{id}}, nil
}

// Finalize answers OnFinalize, or agrees.
func (p *Plane) Finalize(_ context.Context, id event.ID, r control.FinalizeRequest) (control.FinalizeAnswer, error) {
	if p.OnFinalize != nil {
		return p.OnFinalize(id, r)
	}
	return control.FinalizeAnswer{Status: r.Status}, nil
}

// Cleanup answers OnCleanup, or finds nothing.
func (p *Plane) Cleanup(_ context.Context, r control.CleanupRequest) (control.CleanupAnswer, error) {
	if p.OnCleanup != nil {
		return p.OnCleanup(r)
	}
	return control.CleanupAnswer{}, nil
}

// Execution finds a row.
func (p *Plane) Execution(_ context.Context, id event.ID) (store.Execution, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	row, ok := p.rows[id]
	if !ok {
		return row, missing("not found")
	}
	return row, nil
}

// Executions answers OnList, or all rows, newest first.
func (p *Plane) Executions(_ context.Context, f store.ExecutionFilter) ([]store.Execution, error) {
	if p.OnList != nil {
		return p.OnList(f)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []store.Execution
	for _, row := range p.rows {
		if f.Status == "" || f.Status == row.Status {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b store.Execution) int { return int(b.ExecutionID - a.ExecutionID) })
	return list, nil
}

// Events reads a log.
func (p *Plane) Events(ctx context.Context, id event.ID, after int64, limit int) ([]event.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.logs[id]
	log = log[min(after, int64(len(log))):]
	if limit > 0 {
		log = log[:min(limit, len(log))]
	}
	return slices.Clone(log), nil
}

// Workload is what was put.
func (p *Plane) Workload(_ context.Context, id event.ID) (json.RawMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.workload[id], nil
}

// Outcome is what was put.
func (p *Plane) Outcome(_ context.Context, id event.ID) ([]engine.StepOutcome, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.steps[id], nil
}

// Watch is woken by Append.
func (p *Plane) Watch(id event.ID) (wake <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watchers == nil {
		p.watchers = map[event.ID][]chan struct{}{}
	}
	p.watchers[id] = append(p.watchers[id], ch)
	return ch, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watchers[id] = slices.DeleteFunc(p.watchers[id], func(c chan struct{}) bool { return c == ch })
	}
}
