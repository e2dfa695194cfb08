package simulation

import (
	"context"
	"fmt"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// sendClients starts the executions of the scenario, and cancels some.
func (w *world) sendClients(ctx context.Context) {
	for i, v := range w.clients {
		c := &worker{w: w, name: fmt.Sprintf("client%d", i), ctx: ctx}
		c.employ("execution", func(j *job) {
			if v.after > 0 && !j.pause(v.after) {
				return
			}
			id, ok := j.start()
			if ok && v.cancel >= 0 && j.pause(v.cancel) {
				err := j.insist("cancel", func(ctx context.Context, p *control.Plane) error {
					_, err := p.Cancel(ctx, id, control.CancelRequest{Reason: "simulated", Cascade: v.cascade})
					return err
				})
				j.expect("cancel", err, event.Invalid)
			}
			if ok && v.waits && !w.book.waitsFor(neverCalled) {
				j.awaitEnd(id)
			}
		})
	}
}

func (j *job) start() (id event.ID, ok bool) {
	err := j.insist("execute", func(ctx context.Context, p *control.Plane) error {
		a, err := p.Execute(ctx, control.ExecuteRequest{Path: playbookPath})
		id = a.ExecutionID
		return err
	})
	j.expect("execute", err)
	return id, err == nil
}

// awaitEnd waits as a person does, and asks for the outcome.
func (j *job) awaitEnd(id event.ID) {
	err := j.insist("wait", func(ctx context.Context, p *control.Plane) error {
		row, err := p.Wait(ctx, id)
		if err == nil && !event.IsFinal(row.Status) {
			j.w.problem(answers, "execution %s: the wait for its end ended with %s", id, row.Status)
		}
		return err
	})
	j.expect("wait", err)
	if err != nil {
		return
	}
	var steps []engine.StepOutcome
	err = j.insist("outcome", func(ctx context.Context, p *control.Plane) error {
		steps, err = p.Outcome(ctx, id)
		return err
	})
	j.expect("outcome", err)
	if err == nil {
		j.w.mu.Lock()
		defer j.w.mu.Unlock()
		j.w.seen[id] = steps
	}
}
