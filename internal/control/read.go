package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Execution returns the row of an execution. NotFound when there is none.
func (p *Plane) Execution(ctx context.Context, id event.ID) (store.Execution, error) {
	row, err := p.store.Execution(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return store.Execution{}, p.missing(ctx, id)
	}
	if err != nil {
		return store.Execution{}, storeError("read execution", err)
	}
	return row, nil
}

// missing tells why an execution is not there: it never was, or was removed.
func (p *Plane) missing(ctx context.Context, id event.ID) error {
	at, err := p.store.RemovedAt(ctx, id)
	switch {
	case err == nil:
		return removedExecution(id, at)
	case !errors.Is(err, store.ErrNotFound):
		return storeError("look for a removed execution", err)
	}
	return noExecution(id)
}

func removedExecution(id event.ID, at time.Time) error {
	return &event.Error{
		Code: event.NotFound, Reason: "removed", Err: store.ErrRemoved,
		Message: fmt.Sprintf("Execution not found: %s was removed on %s because its time to be kept was over", id, at.Format(time.DateOnly)),
	}
}

func noExecution(id event.ID) error {
	return event.Errorf(event.NotFound, "Execution not found: %s", id)
}

// Executions lists executions, newest first.
func (p *Plane) Executions(ctx context.Context, f store.ExecutionFilter) ([]store.Execution, error) {
	rows, err := p.store.ListExecutions(ctx, f)
	if err != nil {
		return nil, storeError("list executions", err)
	}
	return rows, nil
}

// Events returns events of an execution with a sequence above after, in order,
// at most limit (0 = all). An unknown execution has none.
func (p *Plane) Events(ctx context.Context, id event.ID, after int64, limit int) ([]event.Event, error) {
	events, err := p.store.Events(ctx, id, after, limit)
	if err != nil {
		return nil, storeError("read events", err)
	}
	return events, nil
}

// Workload is what the execution was started with: the playbook's defaults
// with the payload over them. NotFound when it never started.
func (p *Plane) Workload(ctx context.Context, id event.ID) (json.RawMessage, error) {
	start, err := p.startOf(ctx, id)
	if err != nil {
		return nil, err
	}
	var c struct {
		Workload json.RawMessage `json:"workload"`
	}
	if err := json.Unmarshal(start.Context, &c); err != nil {
		return nil, event.Errorf(event.Internal, "read start of execution %s: %w", id, err)
	}
	return c.Workload, nil
}

// startOf is the first event of an execution.
func (p *Plane) startOf(ctx context.Context, id event.ID) (event.Event, error) {
	first, err := p.store.Events(ctx, id, 0, 1)
	if err != nil {
		return event.Event{}, storeError("read events", err)
	}
	if len(first) == 0 || first[0].Type.Canonical() != event.PlaybookStarted {
		return event.Event{}, noExecution(id)
	}
	return first[0], nil
}

// Outcome tells per step what it came to.
func (p *Plane) Outcome(ctx context.Context, id event.ID) ([]engine.StepOutcome, error) {
	var out []engine.StepOutcome
	err := p.look(ctx, id, func(ps *pass) error {
		out = ps.state.Outcome()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// look calls f with the state of an execution as the log has it now. The state
// belongs to the mailbox, so readers pass through it like everybody else.
func (p *Plane) look(ctx context.Context, id event.ID, f func(ps *pass) error) error {
	in := &lookInput{ticket: newTicket(), f: f}
	return p.ask(ctx, id, in)
}

type lookInput struct {
	ticket
	f func(ps *pass) error
}

func (in *lookInput) apply(_ context.Context, ps *pass) error {
	if !ps.fresh {
		return errStale
	}
	return in.f(ps)
}

// Health tells which dependencies answer.
type Health struct {
	Database bool
	NATS     bool
	Uptime   time.Duration
}

// Health asks the store and the bus.
func (p *Plane) Health(ctx context.Context) Health {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return Health{
		Database: p.store.Ping(ctx) == nil,
		NATS:     p.bus.Connected(),
		Uptime:   p.o.Clock().Sub(p.began),
	}
}
