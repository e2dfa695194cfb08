package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/schedule"
	"github.com/noetl/noetl-go/internal/store"
)

// startDue starts the runs that are due. They are stored as such already: what
// is not started now, or whose outcome is not known, is started by the next
// look, wherever that is.
func (s *Service) startDue(ctx context.Context, l *look) error {
	var results []store.ScheduleRun
	var failed error
	for _, r := range l.open {
		if r.State != runDue {
			continue
		}
		if err := s.makeWay(ctx, l, r); err != nil {
			failed = err
			break
		}
		result, err := s.start(ctx, l, *r)
		if err != nil {
			failed = err
			break
		}
		*r = result
		results = append(results, result)
	}
	if len(results) == 0 {
		return failed
	}
	return errors.Join(failed, s.note(ctx, l.rec.row.ScheduleID, results))
}

// makeWay cancels the earlier runs where that is wanted.
func (s *Service) makeWay(ctx context.Context, l *look, next *store.ScheduleRun) error {
	if l.rec.plan.Spec.Overlap != schedule.OverlapCancelOld || next.Kind != kindTick {
		return nil
	}
	for _, r := range l.open {
		if r.State != runStarted || r.Kind == kindBackfill || !r.Tick.Before(next.Tick) {
			continue
		}
		reason := fmt.Sprintf("schedule %s: the run of %s begins", l.rec.row.Name, next.Tick.Format(time.RFC3339))
		if err := s.o.Executions.Cancel(ctx, r.ExecutionID, reason); err != nil {
			return fmt.Errorf("cancel execution %s: %w", r.ExecutionID, err)
		}
	}
	return nil
}

// start starts one run. The error is Unavailable-like when trying again may help;
// what cannot be started for good is a failed run.
func (s *Service) start(ctx context.Context, l *look, r store.ScheduleRun) (store.ScheduleRun, error) {
	payload, err := l.rec.payload(r)
	if err != nil {
		return r, err
	}
	id, started, err := s.o.Executions.Start(ctx, Start{
		Schedule: r.ScheduleID, Key: strconv.FormatInt(r.Tick.UnixMicro(), 10), Window: claimWindow, Path: r.Path, Version: r.Version,
		Pool: l.rec.plan.Spec.Pool, Payload: payload, By: l.rec.By,
	})
	now := s.now()
	switch {
	case err == nil:
		r.State, r.ExecutionID, r.StartedAt = runStarted, id, now
		if started {
			s.o.Metrics.Fired.Inc("started")
			if r.Kind == kindTick {
				s.o.Metrics.Lag.Observe(max(now.Sub(l.rec.plan.FireAt(r.ScheduleID, r.Tick)), 0).Seconds())
			}
		}
		return r, nil
	case forGood(err):
		r.State, r.EndedAt, r.Note = runFailed, now, "it could not be started: "+err.Error()
		s.o.Metrics.Fired.Inc("failed")
		return r, nil
	}
	return r, fmt.Errorf("start the run of %s: %w", r.Tick.Format(time.RFC3339), err)
}

// forGood tells that asking again does not help.
func forGood(err error) bool {
	switch event.CodeOf(err) {
	case event.Invalid, event.NotFound, event.BadRequest, event.Forbidden:
		return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return false
}

// payload is the input of a run: that of the schedule, and its tick.
func (r *record) payload(run store.ScheduleRun) ([]byte, error) {
	members := map[string]json.RawMessage{}
	if len(r.row.Payload) > 0 {
		if err := json.Unmarshal(r.row.Payload, &members); err != nil {
			return nil, fmt.Errorf("read the payload of the schedule: %w", err)
		}
	}
	tick := map[string]any{
		"id": r.row.ScheduleID.String(), "name": r.row.Name, "kind": run.Kind, "tick": run.Tick.UTC().Format(time.RFC3339Nano),
		"local": run.Tick.In(r.plan.Location).Format(time.RFC3339Nano), "timezone": r.plan.Spec.Timezone, "previous": nil,
	}
	if !run.Previous.IsZero() {
		tick["previous"] = run.Previous.UTC().Format(time.RFC3339Nano)
	}
	var err error
	if members[schedule.TickKey], err = json.Marshal(tick); err != nil {
		return nil, err
	}
	return json.Marshal(members)
}

// note stores how starts went, onto the schedule as it is by then. What another
// replica has noted already stays.
func (s *Service) note(ctx context.Context, id event.ID, results []store.ScheduleRun) error {
	for range casTries {
		row, err := s.o.Store.Schedule(ctx, id)
		if err != nil {
			return gone(err)
		}
		l, err := s.open(ctx, row)
		if err != nil || l.rec.plan == nil {
			return err
		}
		for _, r := range l.open {
			for i := range results {
				if r.State == runDue && r.Tick.Equal(results[i].Tick) {
					l.noted(r, &results[i])
				}
			}
		}
		if len(l.changed) == 0 {
			return nil
		}
		l.promoteAfterNote()
		l.wakeAt()
		if err := l.save(ctx); !errors.Is(err, store.ErrConflict) {
			return gone(err)
		}
	}
	return store.ErrConflict
}

func (l *look) noted(r, result *store.ScheduleRun) {
	*r = *result
	l.change(r)
	if r.Kind == kindTick && !r.Tick.Before(l.rec.row.LastAt) {
		l.rec.row.LastAt, l.rec.row.LastStatus, l.rec.LastExecution = r.Tick, r.State, event.StringID(r.ExecutionID)
	}
	if r.State == runFailed {
		l.outcome(r)
	}
}

// promoteAfterNote lets the next run begin when one could not be started.
func (l *look) promoteAfterNote() {
	if l.rec.row.Enabled {
		l.promote()
	}
}

func failedTooOften(n int) string {
	if n == 1 {
		return "a run failed"
	}
	return fmt.Sprintf("%d runs in a row failed", n)
}

func stillRuns(r *store.ScheduleRun) string {
	if r.ExecutionID == 0 {
		return "the run of " + r.Tick.Format(time.RFC3339) + " is about to begin"
	}
	return fmt.Sprintf("execution %s of the tick %s was still running", r.ExecutionID, r.Tick.Format(time.RFC3339))
}

func missedNote(first, last time.Time, n int) string {
	if n == 1 {
		return "nobody was there for it in time"
	}
	more := ""
	if n >= countMost {
		more = " or more"
	}
	return fmt.Sprintf("%d%s ticks from %s to %s: nobody was there for them in time", n, more, first.Format(time.RFC3339), last.Format(time.RFC3339))
}
