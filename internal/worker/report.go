package worker

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

const (
	minReportPause = 100 * time.Millisecond
	maxReportPause = 10 * time.Second
)

// report delivers the terminal event of a command and asks for the next one of
// its execution. A report the plane refuses for what it contains becomes the
// failure of the command, else the command would be run again for nothing.
// ok is false when the plane has not taken any report.
func (w *Worker) report(ctx context.Context, t *task, ev event.Incoming) (answer event.ReportAnswer, ok bool) {
	answer, sent, err := w.send(ctx, t, ev)
	if err != nil && refused(err) {
		w.log.ErrorContext(ctx, "the result of a command was refused", about(t.cmd, "error", err)...)
		ev = failed(t.cmd, &tool.Error{Kind: tool.KindResourceLimit, Message: "the result was refused: " + err.Error()})
		answer, sent, err = w.send(ctx, t, ev)
	}
	if err == nil {
		return answer, true
	}
	w.options.Metrics.EmitFailed.Inc(string(ev.Type))
	if keepable(err) && !errors.Is(context.Cause(ctx), ErrClaimLost) && w.keep(t, sent) {
		if t.delivery != nil {
			// It is looked at once more, in case the report is lost with this disk.
			w.settle(t.delivery.Nak(w.options.Lease))
		}
		return answer, false
	}
	w.log.ErrorContext(ctx, "report dropped", about(t.cmd, "event_type", ev.Type, "error", err)...)
	if t.delivery == nil {
		return answer, false
	}
	if transient(err) {
		// The lease ends unheard; this reminds the pool of the command.
		w.settle(t.delivery.Nak(w.options.Lease))
	} else {
		w.settle(t.delivery.Ack())
	}
	return answer, false
}

// refused tells whether the plane understood a report and will never take it.
func refused(err error) bool {
	switch event.CodeOf(err) {
	case event.Invalid, event.BadRequest, event.Limit:
		return true
	}
	return false
}

// send reports one event until the plane takes it, refuses it, or the claim is
// no longer ours. The event id is made once, so that a report which arrived
// although its answer did not is recognised; sent is the event with it.
func (w *Worker) send(ctx context.Context, t *task, ev event.Incoming) (answer event.ReportAnswer, sent event.Incoming, err error) {
	if ev.EventID == 0 {
		ev.EventID = w.options.IDs()
	}
	r := event.Report{ExecutionID: t.cmd.ExecutionID, WorkerID: w.options.ID, Events: []event.Incoming{ev}, Eager: 1}
	for pause := minReportPause; ; pause = min(2*pause, maxReportPause) {
		if w.isDraining() {
			r.Eager = 0
		} else {
			r.EagerNot = w.unwanted(t.class)
		}
		began := w.options.Clock()
		answer, err := w.options.Plane.Report(w.calls, r)
		if err == nil {
			w.options.Metrics.EmitDuration.Observe(w.options.Clock().Sub(began).Seconds(), string(ev.Type))
		}
		if err == nil || !transient(err) || w.calls.Err() != nil {
			return answer, ev, err
		}
		wait := jitter(pause)
		if w.options.Clock().Add(wait).After(w.leaseOf(t)) || errors.Is(context.Cause(ctx), ErrClaimLost) {
			return answer, ev, err
		}
		w.log.WarnContext(ctx, "report failed", about(t.cmd, "retry_in", wait, "error", err)...)
		w.options.Metrics.EmitRetries.Inc(string(ev.Type))
		if !rest(w.calls, wait) {
			return answer, ev, err
		}
	}
}

func (w *Worker) leaseOf(t *task) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return t.lease
}
