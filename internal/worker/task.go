package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/tool"
)

// task is a claimed command, from the claim to the end of its report.
type task struct {
	cmd      *event.Command
	delivery bus.Delivery // nil when it was handed over without the bus
	cancel   context.CancelCauseFunc
	class    class
	lease    time.Time // guarded by Worker.mu: until when the claim is ours
}

// begin makes the worker responsible for a claimed command. The task is nil
// when it has begun with it before: a command may be handed over in an answer
// while the notification of it is on its way, and claiming what one holds
// succeeds.
func (w *Worker) begin(cmd *event.Command, d bus.Delivery) (context.Context, *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if cmd.Meta.Attempt > 0 && !w.begun.add(try{cmd.EventID, cmd.Meta.Attempt}) {
		return nil, nil
	}
	about := &obs.About{ExecutionID: cmd.ExecutionID.String(), Step: cmd.NodeName, Trace: cmd.Meta.Trace}
	ctx, cancel := context.WithCancelCause(about.With(w.runs))
	t := &task{cmd: cmd, delivery: d, cancel: cancel}
	t.lease = w.leaseLocked(cmd.LeaseUntil)
	w.paceLocked(cmd.LeaseUntil)
	w.tasks[t] = struct{}{}
	w.options.Metrics.Concurrent.Set(float64(len(w.tasks)))
	return ctx, t
}

// leaseLocked is when a claim that was just renewed ends. Clocks of two machines
// differ, and stopping too early is worse than a report that is refused, so
// the later of what we were told and what we expect counts.
func (w *Worker) leaseLocked(told time.Time) time.Time {
	expected := w.options.Clock().Add(w.options.Lease)
	if told.After(expected) {
		return told
	}
	return expected
}

// end forgets a command, whatever became of it.
func (w *Worker) end(t *task) {
	t.cancel(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tasks, t)
	w.options.Metrics.Concurrent.Set(float64(len(w.tasks)))
}

// work runs a command and then those the plane hands over in its answers. It
// gives back the places of class c, which were taken for the command.
func (w *Worker) work(cmd *event.Command, d bus.Delivery, c class) {
	defer func() { w.leaveClass(c) }()
	ctx, t := w.begin(cmd, d)
	if t == nil && d != nil {
		w.settle(d.Ack())
	}
	for t != nil {
		if own := classOfCommand(t.cmd); w.change(c, own) {
			c = own
		}
		t.class = c
		more := w.handle(ctx, t)
		w.end(t)
		if len(more) == 0 {
			return
		}
		// One was asked for. Should there be more, they go back rather than
		// wait here with nobody to run them.
		for _, surplus := range more[1:] {
			w.release(surplus)
		}
		next := classOf(more[0].Action)
		if w.isDraining() || !w.change(c, next) {
			w.release(more[0])
			return
		}
		c = next
		ctx, t = w.begin(more[0], nil)
	}
}

// handle runs one command, to its end or until it is parked, and returns the commands that follow it.
func (w *Worker) handle(ctx context.Context, t *task) []*event.Command {
	if context.Cause(ctx) != nil {
		w.interrupted(t)
		return nil
	}
	_ = failpoint.Hit(failpoint.WorkerClaimed)
	began := w.options.Clock()
	ev := w.execute(ctx, t.cmd)
	w.dispatched(t.cmd, ev, w.options.Clock().Sub(began))
	_ = failpoint.Hit(failpoint.WorkerRan)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrClaimLost):
		w.log.WarnContext(ctx, "claim lost while the command ran", about(t.cmd)...)
		t.ack(w)
		return nil
	case cause != nil && succeeded(ev):
		// It finished before it noticed; what it did has happened.
	case errors.Is(cause, ErrShutdown) && ev.Type == event.CommandParked:
		// It waits elsewhere from now on; nothing is left to interrupt.
	case errors.Is(cause, ErrShutdown):
		w.interrupted(t)
		return nil
	case errors.Is(cause, ErrCancelled) && ev.Type != event.CommandCancelled:
		ev = cancelled(t.cmd)
	}
	if ev.Type == "" {
		w.postponed(t)
		return nil
	}
	answer, ok := w.report(ctx, t, ev)
	if !ok {
		return nil
	}
	_ = failpoint.Hit(failpoint.WorkerReported)
	t.ack(w)
	return answer.Commands
}

// dispatched counts a run.
func (w *Worker) dispatched(cmd *event.Command, ev event.Incoming, took time.Duration) {
	w.options.Metrics.DispatchDuration.Observe(took.Seconds(), cmd.Action)
	switch {
	case ev.Type == event.CommandParked:
		w.options.Metrics.Parked.Inc(cmd.Action)
	case ev.Type == event.CommandFailed:
		w.options.Metrics.ToolResultErrors.Inc()
	}
	if ev.Type != "" && ev.Type != event.CommandParked && !succeeded(ev) {
		w.options.Metrics.DispatchErrors.Inc(cmd.Action)
	}
}

func succeeded(ev event.Incoming) bool {
	return ev.Type == event.CommandCompleted &&
		ev.Status != event.ToolError && ev.Status != event.ToolTimeout && ev.Status != event.StatusFailed
}

func (t *task) ack(w *Worker) {
	if t.delivery != nil {
		w.settle(t.delivery.Ack())
	}
}

// execute calls the runner. A panic is the failure of this command only.
func (w *Worker) execute(ctx context.Context, cmd *event.Command) (ev event.Incoming) {
	defer func() {
		if p := recover(); p != nil {
			w.log.ErrorContext(ctx, "a tool panicked", about(cmd, "tool", cmd.Action,
				"panic", p, "stack", string(debug.Stack()))...)
			ev = failed(cmd, &tool.Error{Kind: tool.KindInternal, Message: fmt.Sprintf("tool %s panicked: %v", cmd.Action, p)})
		}
	}()
	out := io.Discard
	if w.options.Output != nil {
		live := w.options.Output(cmd)
		defer func() { live.Finish(ev.Type != event.CommandParked && ev.Type != "") }()
		out = live
	}
	return w.options.Runner.Run(ctx, cmd, out)
}

// interrupted gives back a command that did not finish, so that another worker
// takes it without waiting for the lease to expire.
func (w *Worker) interrupted(t *task) {
	w.log.Warn("command interrupted", about(t.cmd)...)
	w.release(t.cmd)
	if t.delivery != nil {
		w.settle(t.delivery.Nak(0))
	}
}

// postponed gives back a command that could not begin for a reason that will
// pass.
func (w *Worker) postponed(t *task) {
	w.log.Warn("command postponed", about(t.cmd)...)
	w.release(t.cmd)
	if t.delivery != nil {
		w.settle(t.delivery.Nak(retryDelays[min(t.cmd.Meta.Attempt, len(retryDelays)-1)]))
	}
}

func (w *Worker) release(cmd *event.Command) {
	if err := w.options.Plane.Release(w.calls, w.heartbeat(cmd)); err != nil {
		w.log.Warn("claim not given back; its lease will expire", about(cmd, "error", err)...)
	}
}

// about names a command in a line of the log, with what else there is to say.
func about(cmd *event.Command, more ...any) []any {
	return append([]any{"execution_id", cmd.ExecutionID, "step", cmd.NodeName, "command_id", cmd.Meta.CommandID}, more...)
}

// failed is the terminal event of a command that ended in e.
func failed(cmd *event.Command, e *tool.Error) event.Incoming {
	return terminal(cmd, event.CommandFailed, event.StatusFailed, map[string]any{"error": e})
}

func cancelled(cmd *event.Command) event.Incoming {
	return terminal(cmd, event.CommandCancelled, event.StatusCancelled, map[string]any{
		"error": &tool.Error{Kind: tool.KindCancelled, Message: ErrCancelled.Error()},
	})
}

func terminal(cmd *event.Command, kind event.Type, status string, payload map[string]any) event.Incoming {
	id := cmd.Meta.CommandID
	payload["command_id"], payload["call_index"], payload["status"] = id, 0, status
	return event.Incoming{
		Step: cmd.NodeName, Type: kind, Status: status,
		Payload: encode(payload), Meta: encode(map[string]any{"command_id": id}),
	}
}

// encode is for values made here, which are always encodable.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("worker: " + err.Error())
	}
	return b
}
