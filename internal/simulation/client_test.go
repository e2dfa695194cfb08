package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

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
			id, ok := j.start(v.keyed)
			if ok && v.ends >= 0 && j.pause(v.ends) {
				j.finalize(id)
			}
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

func (j *job) start(keyed bool) (id event.ID, ok bool) {
	q := control.ExecuteRequest{Path: playbookPath}
	if keyed {
		q.Dedup = &control.Dedup{Key: j.name, Window: time.Hour}
	}
	execute := func() error {
		return j.insist("execute", func(ctx context.Context, p *control.Plane) error {
			a, err := p.Execute(ctx, q)
			id = a.ExecutionID
			return err
		})
	}
	err := execute()
	j.expect("execute", err)
	if err != nil || !keyed {
		return id, err == nil
	}
	first := id
	if err = execute(); err == nil && id != first {
		j.w.problem(keys, "%s: was told of execution %s and then of execution %s", j.name, first, id)
	}
	j.expect("execute again", err)
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	j.w.granted[j.name] = first
	return first, true
}

func (j *job) finalize(id event.ID) {
	status := []string{event.StatusCompleted, event.StatusFailed}[j.r.IntN(2)]
	var answer control.FinalizeAnswer
	err := j.insist("finalize", func(ctx context.Context, p *control.Plane) (err error) {
		answer, err = p.Finalize(ctx, id, control.FinalizeRequest{Status: status, Reason: byHand})
		return err
	})
	j.expect("finalize", err)
	if err == nil && !answer.Before && answer.Status != status {
		j.w.problem(answers, "%s: ended by hand as %s, answered %+v", j.name, status, answer)
	}
	row, err := j.w.store.Execution(context.Background(), id)
	if err == nil && answer.Status != "" && row.Status != answer.Status {
		j.w.problem(durable, "%s: execution %s was ended by hand, the answer says %s, the row %s", j.name, id, answer.Status, row.Status)
	}
}

// byHand is why clients end executions.
const byHand = "simulated end"

func endedByHand(events []event.Event) bool {
	return slices.ContainsFunc(events, func(e event.Event) bool { return e.Type.IsTerminal() && reasonOf(&e) == byHand })
}

// reasonOf is why an execution ended, where its last event says so.
func reasonOf(e *event.Event) string {
	var m struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal(e.Meta, &m)
	return m.Reason
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
