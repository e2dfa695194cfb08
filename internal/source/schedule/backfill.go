package schedule

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	fillMost        = 10_000 // ticks of one backfill
	fillConcurrency = 50     // of its runs at once
	fillLook        = 50     // ticks one look goes through
)

// filling are the runs of the backfill that go on.
func (l *look) filling() int {
	n := 0
	for _, r := range l.open {
		if r.Kind == kindBackfill && r.EndedAt.IsZero() {
			n++
		}
	}
	return n
}

// fill decides the next ticks of a backfill. What was run already, regularly or
// by an earlier backfill, is left out. How far it got is stored with the
// decision, so it goes on wherever it was interrupted.
func (l *look) fill(ctx context.Context) error {
	b := l.rec.Backfill
	if b == nil {
		return nil
	}
	for range fillLook {
		if b.Next == nil || !b.Next.Before(b.To) {
			l.rec.Backfill = nil
			return nil
		}
		if l.filling() >= b.Concurrency {
			return nil
		}
		tick := *b.Next
		known, err := l.s.o.Store.ScheduleRuns(ctx, store.ScheduleRunFilter{
			ScheduleID: l.rec.row.ScheduleID, From: tick, Before: tick.Add(time.Microsecond), Limit: 1,
		})
		if err != nil {
			return err
		}
		if !ran(known) {
			r := l.decided(tick, kindBackfill)
			r.Previous = time.Time{}
			if before := lastTicks(l.rec.plan, b.From.Add(-1), tick, 1); len(before) > 0 {
				r.Previous = before[0]
			}
			l.open = append(l.open, r)
		}
		b.Next = shownTime(l.rec.plan.Next(tick))
	}
	return nil
}

// ran tells that a tick has, or will have, an execution.
func ran(known []store.ScheduleRun) bool {
	return len(known) > 0 && (known[0].ExecutionID != 0 || known[0].EndedAt.IsZero())
}

// Backfill runs the ticks from b.From on and before b.To that were not run, in
// order. Ticks that are still to come are left to the schedule.
func (s *Service) Backfill(ctx context.Context, ref string, b event.ScheduleBackfill) (event.ScheduleView, error) {
	return s.change(ctx, ref, func(rec *record) error {
		if rec.Backfill != nil {
			return event.Errorf(event.Conflict, "schedule %s is being backfilled from %s to %s: wait for its end, or change the schedule to end it",
				rec.row.Name, rec.Backfill.From.Format(time.RFC3339), rec.Backfill.To.Format(time.RFC3339))
		}
		fill, err := rec.backfill(b, s.now())
		if err != nil {
			return err
		}
		rec.Backfill, rec.row.WakeAt = fill, s.now()
		return nil
	})
}

func (r *record) backfill(b event.ScheduleBackfill, now time.Time) (*event.ScheduleBackfill, error) {
	if b.Concurrency == 0 {
		b.Concurrency = 1
	}
	bound := now
	if r.row.Enabled && !r.row.NextAt.IsZero() && r.row.NextAt.Before(bound) {
		bound = r.row.NextAt
	}
	if b.To.IsZero() || b.To.After(bound) {
		b.To = bound
	}
	b.From, b.To = b.From.UTC(), b.To.UTC()
	switch {
	case b.From.IsZero():
		return nil, event.Errorf(event.Invalid, "from: the begin of the range is needed")
	case !b.From.Before(b.To):
		return nil, event.Errorf(event.Invalid, "from: the range is empty: it has to begin before %s", b.To.Format(time.RFC3339))
	case b.Concurrency < 1 || b.Concurrency > fillConcurrency:
		return nil, event.Errorf(event.Invalid, "concurrency: want a number from 1 to %d", fillConcurrency)
	}
	b.Ticks = r.plan.Count(b.From.Add(-1), b.To.Add(-1), fillMost+1)
	switch {
	case b.Ticks == 0:
		return nil, event.Errorf(event.Invalid, "schedule %s has no tick from %s to %s", r.row.Name, b.From.Format(time.RFC3339), b.To.Format(time.RFC3339))
	case b.Ticks > fillMost:
		return nil, event.Errorf(event.Invalid, "the range has more than %d ticks: give a shorter one", fillMost)
	}
	b.Next = shownTime(r.plan.Next(b.From.Add(-1)))
	return &b, nil
}
