package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/tool"
)

const (
	minReplayPause = time.Second
	maxReplayPause = 15 * time.Second
	// rescan is how often reports of other processes, which may have died, are
	// looked for.
	rescan = time.Minute
)

// keep puts a report aside that the plane could not be given. It is false when
// that was not possible; the command is run again then.
func (w *Worker) keep(t *task, ev event.Incoming) bool {
	s := w.options.Spool
	if s == nil {
		return false
	}
	ev.Meta = withAttempt(ev.Meta, t.cmd.Meta.Attempt)
	err := s.put(spoolRecord{
		EventID: t.cmd.EventID, CommandID: t.cmd.Meta.CommandID, Attempt: t.cmd.Meta.Attempt,
		Report: event.Report{ExecutionID: t.cmd.ExecutionID, WorkerID: w.options.ID, Events: []event.Incoming{ev}},
	})
	if err != nil {
		w.log.Error("a report could not be kept for later", about(t.cmd, "error", err)...)
		return false
	}
	w.log.Warn("a report is kept until the server is back", about(t.cmd, "event_type", ev.Type)...)
	return true
}

// withAttempt names the attempt, so that a report that comes late is told from
// one of a later attempt of the same worker.
func withAttempt(meta json.RawMessage, attempt int) json.RawMessage {
	if attempt == 0 {
		return meta
	}
	return withMember(meta, "attempt", attempt)
}

// replayUntil delivers what the spool holds, whoever put it there, until ctx
// ends.
func (w *Worker) replayUntil(ctx context.Context) {
	s := w.options.Spool
	if s == nil {
		return
	}
	pause := minReplayPause
	for ctx.Err() == nil {
		wait := rescan
		if w.replay(ctx) {
			pause = minReplayPause
		} else {
			wait = jitter(pause)
			pause = min(2*pause, maxReplayPause)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-s.wake:
			rest(ctx, minReplayPause) // the server was away a moment ago
		}
		timer.Stop()
		if err := s.scan(); err != nil {
			w.log.Warn("the spool cannot be read", "error", err)
		}
	}
}

// replay delivers all reports, the oldest first. It is false when the plane
// could not be reached, and stops there to keep the order.
func (w *Worker) replay(ctx context.Context) bool {
	s := w.options.Spool
	w.replaying.Lock()
	defer w.replaying.Unlock()
	for _, name := range s.names() {
		r, err := s.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			w.log.Error("a report in the spool is not readable", "file", name, "error", err)
			continue
		}
		if !w.redeliver(ctx, r) {
			return false
		}
		if err := s.remove(name); err != nil {
			w.log.Error("a delivered report stays in the spool", "execution_id", r.Report.ExecutionID, "command_id", r.CommandID, "file", name, "error", err)
			return false
		}
	}
	return true
}

// redeliver gives one report to the plane. It is true when nothing is left to
// do: the plane has taken it, or will never do.
func (w *Worker) redeliver(ctx context.Context, r spoolRecord) bool {
	call, cancel := context.WithTimeout(ctx, maxRedelivery)
	defer cancel()
	log := w.log.With("execution_id", r.Report.ExecutionID, "step", r.Report.Events[0].Step, "command_id", r.CommandID)
	_, err := w.options.Plane.Report(call, r.Report)
	if err != nil && refused(err) {
		log.Error("the result of a command was refused", "error", err)
		cmd := &event.Command{NodeName: r.Report.Events[0].Step, Meta: event.CommandMeta{CommandID: r.CommandID}}
		ev := failed(cmd, &tool.Error{Kind: tool.KindResourceLimit, Message: "the result was refused: " + err.Error()})
		ev.EventID, ev.Meta = w.options.IDs(), withAttempt(ev.Meta, r.Attempt)
		again := r.Report
		again.Events = []event.Incoming{ev}
		_, err = w.options.Plane.Report(call, again)
	}
	switch {
	case err == nil:
		log.Info("a kept report was delivered")
		w.options.Metrics.SpoolReplayed.Inc(obs.OK)
		return true
	case keepable(err):
		log.Debug("a kept report waits for the server", "error", err)
		return false
	}
	log.Warn("a kept report was refused; it is dropped", "error", err)
	w.options.Metrics.SpoolReplayed.Inc(obs.Refused)
	return true
}

// maxRedelivery bounds one attempt to deliver a kept report.
const maxRedelivery = 30 * time.Second

// keepable tells whether a report may be taken later although it was not now.
// A server that does not know us may do so again when its settings are mended.
func keepable(err error) bool {
	code := event.CodeOf(err)
	return transient(err) || code == event.Unauthorized || code == event.Forbidden
}
