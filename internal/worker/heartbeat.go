package worker

import (
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// maxBeat bounds one heartbeat call: a plane that hangs must not keep the
// other tick of the loop from happening.
const maxBeat = 10 * time.Second

// shortestBeat bounds how often leases are renewed, however short they are or
// seem: clocks of two machines differ.
const shortestBeat = 500 * time.Millisecond

// paceLocked makes sure that a lease is renewed three times before it ends,
// also when the plane's leases are shorter than the worker was told.
func (w *Worker) paceLocked(until time.Time) {
	if until.IsZero() {
		return
	}
	if d := max(until.Sub(w.options.Clock())/3, shortestBeat); d < w.pace {
		w.pace = d
		select {
		case w.paced <- struct{}{}:
		default:
		}
	}
}

// beatUntil renews the leases of all running commands, and keeps the bus from
// delivering their notifications again, until ctx ends.
func (w *Worker) beatUntil(ctx context.Context) {
	beat := time.NewTicker(w.options.Heartbeat)
	defer beat.Stop()
	progress := time.NewTicker(progressInterval)
	defer progress.Stop()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.paced:
			w.mu.Lock()
			beat.Reset(w.pace)
			w.mu.Unlock()
		case <-beat.C:
			w.beat(ctx)
		case <-progress.C:
			w.progress()
		case <-second.C:
			w.Observe()
			if w.options.Bus != nil && !w.options.Bus.Connected() {
				w.beat(ctx) // cancellations come no other way now
			}
		}
	}
}

func (w *Worker) beat(ctx context.Context) {
	tasks := w.running()
	if len(tasks) == 0 {
		return
	}
	beats := make([]event.Heartbeat, len(tasks))
	for i, t := range tasks {
		beats[i] = w.heartbeat(t.cmd)
	}
	w.mu.Lock()
	limit := min(w.pace, maxBeat)
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answers, err := w.options.Plane.Heartbeat(ctx, beats)
	if err == nil && len(answers) != len(beats) {
		err = event.Errorf(event.Internal, "%d answers to %d heartbeats", len(answers), len(beats))
	}
	if err != nil {
		w.log.Warn("heartbeat failed", "running", len(tasks), "execution_ids", executionsOf(tasks), "error", err)
		return
	}
	for i, a := range answers {
		w.heard(tasks[i], a)
	}
}

// executionsOf are the executions that commands belong to, the first few.
func executionsOf(tasks []*task) []event.ID {
	var ids []event.ID
	for _, t := range tasks {
		if !slices.Contains(ids, t.cmd.ExecutionID) && len(ids) < 16 {
			ids = append(ids, t.cmd.ExecutionID)
		}
	}
	return ids
}

// heard acts on the answer to one heartbeat.
func (w *Worker) heard(t *task, a event.HeartbeatAnswer) {
	switch {
	case a.Cancel && a.LeaseUntil.IsZero():
		t.cancel(ErrClaimLost)
	case a.Cancel:
		t.cancel(ErrCancelled)
	default:
		w.mu.Lock()
		t.lease = w.leaseLocked(a.LeaseUntil)
		w.paceLocked(a.LeaseUntil)
		w.mu.Unlock()
	}
}

func (w *Worker) progress() {
	for _, t := range w.running() {
		if t.delivery != nil {
			if err := t.delivery.InProgress(); err != nil {
				w.log.Debug("bus not told of progress", "command_id", t.cmd.Meta.CommandID, "error", err)
			}
		}
	}
}

// cancelExecution stops the running commands of an execution at once.
func (w *Worker) cancelExecution(id event.ID) {
	for _, t := range w.running() {
		if t.cmd.ExecutionID == id {
			t.cancel(ErrCancelled)
		}
	}
}

func (w *Worker) running() []*task {
	w.mu.Lock()
	defer w.mu.Unlock()
	tasks := make([]*task, 0, len(w.tasks))
	for t := range w.tasks {
		tasks = append(tasks, t)
	}
	return tasks
}

func (w *Worker) heartbeat(cmd *event.Command) event.Heartbeat {
	return event.Heartbeat{
		EventID: cmd.EventID, ExecutionID: cmd.ExecutionID, WorkerID: w.options.ID, Attempt: cmd.Meta.Attempt,
	}
}
