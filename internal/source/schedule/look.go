package schedule

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/schedule"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// claimWindow is how long the claim of a tick keeps others from starting it.
	// A tick that could not be started for nearly as long is given up: whether it
	// was is not known for sure any more.
	claimWindow = 30 * 24 * time.Hour
	startWithin = 29 * 24 * time.Hour

	grace      = 30 * time.Second // a tick found within it is in time
	retry      = 2 * time.Second  // for a start whose outcome is not known
	maxActive  = 100              // runs at once where overlap is allowed
	countMost  = 10_000           // missed ticks that are counted
	checkLeast = 500 * time.Millisecond
	checkMost  = 5 * time.Second
)

// look is one look at a schedule: what it finds, and what it changes.
type look struct {
	s    *Service
	now  time.Time
	rec  *record
	open []*store.ScheduleRun // by tick
	// changed are the runs to be written.
	changed map[int64]*store.ScheduleRun
}

// look settles what has ended, decides what is due, has that stored, and then
// starts what was decided. When another replica was first it leaves it to it.
func (s *Service) look(ctx context.Context, row store.Schedule) error {
	l, err := s.open(ctx, row)
	if err != nil {
		return err
	}
	if l.rec.plan == nil {
		return gone(l.save(ctx))
	}
	l.settle(ctx)
	l.decide()
	if err := l.fill(ctx); err != nil {
		return err
	}
	l.wakeAt()
	if err := l.save(ctx); err != nil {
		return gone(err)
	}
	s.count(l.changed)
	return s.startDue(ctx, l)
}

// gone makes nothing of a change that another was faster with, or that is of no
// use because the schedule was removed.
func gone(err error) error {
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// open reads the runs that have not ended. A schedule that cannot be understood
// is paused with the reason.
func (s *Service) open(ctx context.Context, row store.Schedule) (*look, error) {
	l := &look{s: s, now: s.now(), changed: map[int64]*store.ScheduleRun{}}
	var err error
	if l.rec, err = read(row); err != nil {
		l.rec.plan = nil
		l.pause("it cannot be understood any more: "+err.Error(), "noetl")
		l.rec.row.WakeAt = time.Time{}
		return l, nil
	}
	runs, err := s.o.Store.ScheduleRuns(ctx, store.ScheduleRunFilter{ScheduleID: row.ScheduleID, Open: true})
	if err != nil {
		return nil, err
	}
	for i := range slices.Backward(runs) {
		l.open = append(l.open, &runs[i])
	}
	return l, nil
}

func (l *look) change(r *store.ScheduleRun) { l.changed[r.Tick.UnixMicro()] = r }

func (l *look) end(r *store.ScheduleRun, state, note string) {
	r.State, r.EndedAt, r.Note = state, l.now, note
	l.change(r)
}

func (l *look) pause(reason, by string) {
	l.rec.row.Enabled, l.rec.Pause = false, &pause{Reason: reason, By: by, At: l.now}
}

// settle looks how the executions of runs stand.
func (l *look) settle(ctx context.Context) {
	for _, r := range l.open {
		switch {
		case r.State == runDue && l.now.Sub(r.DecidedAt) > startWithin:
			l.end(r, runMissed, "it could not be started for 29 days")
		case r.State == runStarted:
			status, ended, err := l.s.o.Executions.Status(ctx, r.ExecutionID)
			switch {
			case event.CodeOf(err) == event.NotFound && err != nil:
				l.end(r, runCompleted, "its execution is not kept any more")
			case err == nil && event.IsFinal(status):
				l.ended(r, status, ended)
			}
		}
	}
	l.open = slices.DeleteFunc(l.open, func(r *store.ScheduleRun) bool { return !r.EndedAt.IsZero() })
}

// ended notes the end of a run's execution.
func (l *look) ended(r *store.ScheduleRun, status string, at time.Time) {
	state := map[string]string{event.StatusFailed: runFailed, event.StatusCancelled: runCancelled}[status]
	if state == "" {
		state = runCompleted
	}
	l.end(r, state, r.Note)
	if !at.IsZero() {
		r.EndedAt = at
	}
	l.outcome(r)
}

// outcome counts failures in a row, and pauses a schedule that has too many.
func (l *look) outcome(r *store.ScheduleRun) {
	rec := l.rec
	if r.Tick.Equal(rec.row.LastAt) {
		rec.row.LastStatus = r.State
	}
	if r.Kind != kindTick {
		return
	}
	switch r.State {
	case runCompleted:
		rec.Failures = 0
	case runFailed:
		rec.Failures++
	}
	if most := rec.plan.Spec.MaxFailures; most > 0 && rec.Failures >= most && rec.row.Enabled && r.State == runFailed {
		l.pause(failedTooOften(rec.Failures), "noetl")
	}
}

// decide says what becomes of the ticks whose time has come, and which of those
// that wait is next.
func (l *look) decide() {
	if !l.rec.row.Enabled {
		return
	}
	l.promote()
	for _, tick := range l.ticks() {
		r := l.decided(tick, kindTick)
		l.admit(r)
		l.open = append(l.open, r)
		l.promote()
	}
}

// decided is the run of a tick that was not there before.
func (l *look) decided(tick time.Time, kind string) *store.ScheduleRun {
	r := &store.ScheduleRun{
		ScheduleID: l.rec.row.ScheduleID, Tick: tick, Kind: kind, State: runDue, Path: l.rec.row.Path, Version: l.rec.row.Version,
		DecidedAt: l.now, Previous: l.rec.Previous, Ticks: 1,
	}
	if kind == kindTick {
		l.rec.Previous = tick
	}
	l.change(r)
	return r
}

// ticks are those to be run now; the schedule moves on behind them.
func (l *look) ticks() []time.Time {
	rec, plan := l.rec, l.rec.plan
	var out []time.Time
	if first := rec.row.NextAt; !first.IsZero() && plan.FireAt(rec.row.ScheduleID, first).Before(l.now.Add(-grace)) {
		out = l.late(first)
	}
	intime := false
	for t := rec.row.NextAt; !t.IsZero() && !plan.FireAt(rec.row.ScheduleID, t).After(l.now); t = rec.row.NextAt {
		if !intime && plan.Spec.CatchUp == schedule.CatchUpLatest && len(out) > 0 {
			l.missed(out[0], out[len(out)-1], len(out)) // there is a later one
			out = nil
		}
		intime = true
		out = append(out, t)
		rec.follow(t)
	}
	return out
}

// late are the ticks nobody was there for that are run all the same, from the
// first on; the others are noted as missed.
func (l *look) late(first time.Time) []time.Time {
	rec, plan := l.rec, l.rec.plan
	bound := l.now.Add(-grace) // ticks before it are late
	if last := lastTicks(plan, first.Add(-1), bound, 1); len(last) > 0 && !plan.FireAt(rec.row.ScheduleID, last[0]).Before(bound) {
		bound = last[0] // its jitter has it run later
	}
	floor := first.Add(-1) // ticks behind it are caught up with
	if oldest := l.now.Add(-plan.CatchUpWindow).Add(-1); oldest.After(floor) {
		floor = oldest
	}
	var keep []time.Time
	switch plan.Spec.CatchUp {
	case schedule.CatchUpLatest:
		keep = lastTicks(plan, floor, bound, 1)
	case schedule.CatchUpAll:
		keep = lastTicks(plan, floor, bound, plan.Spec.CatchUpLimit)
	}
	upTo := bound.Add(-1)
	if len(keep) > 0 {
		upTo = keep[0].Add(-1)
	}
	if n := plan.Count(first.Add(-1), upTo, countMost); n > 0 {
		last := lastTicks(plan, first.Add(-1), upTo.Add(1), 1)
		l.missed(first, last[0], n)
	}
	rec.follow(bound.Add(-1))
	return keep
}

// missed notes ticks that are not run, as one.
func (l *look) missed(first, last time.Time, n int) {
	r := l.decided(last, kindTick)
	r.Ticks = n
	l.end(r, runMissed, missedNote(first, last, n))
}

// lastTicks are the last n ticks after floor and before bound, in order.
func lastTicks(plan *schedule.Plan, floor, bound time.Time, n int) []time.Time {
	from := floor
	for span := time.Minute; ; span *= 2 {
		if start := bound.Add(-span); !start.After(floor) || plan.Count(start, bound.Add(-1), n) >= n {
			if start.After(floor) {
				from = start
			}
			break
		}
	}
	var out []time.Time
	for t := plan.Next(from); !t.IsZero() && t.Before(bound); t = plan.Next(t) {
		if out = append(out, t); len(out) > n {
			out = out[1:]
		}
	}
	return out
}

// active are the runs that a new one would overlap with.
func (l *look) active() []*store.ScheduleRun {
	var out []*store.ScheduleRun
	for _, r := range l.open {
		if r.Kind != kindBackfill && (r.State == runDue || r.State == runStarted) {
			out = append(out, r)
		}
	}
	return out
}

func (l *look) queued() []*store.ScheduleRun {
	var out []*store.ScheduleRun
	for _, r := range l.open {
		if r.State == runQueued {
			out = append(out, r)
		}
	}
	return out
}

// admit decides by the overlap policy what becomes of a tick that is due.
func (l *look) admit(r *store.ScheduleRun) {
	spec, active, queued := &l.rec.plan.Spec, l.active(), l.queued()
	room := 1
	switch spec.Overlap {
	case schedule.OverlapCancelOld:
		room = len(active) + 1
		queued = nil
	case schedule.OverlapAllow:
		room = maxActive
	}
	if len(active) < room && len(queued) == 0 {
		return
	}
	most := spec.QueueLimit
	if spec.Overlap == schedule.OverlapAllow {
		most = schedule.MaxQueue
	}
	switch {
	case spec.Overlap == schedule.OverlapSkip && len(active) > 0:
		l.end(r, runSkipped, stillRuns(active[0]))
	case spec.Overlap != schedule.OverlapSkip && len(queued) >= most:
		l.end(r, runSkipped, "the queue is full")
	default:
		r.State = runQueued
	}
}

// promote has runs that wait start when there is room for them.
func (l *look) promote() {
	l.open = slices.DeleteFunc(l.open, func(r *store.ScheduleRun) bool { return !r.EndedAt.IsZero() })
	room := 1
	if l.rec.plan.Spec.Overlap == schedule.OverlapAllow {
		room = maxActive
	}
	room -= len(l.active())
	for _, r := range l.queued() {
		if room <= 0 {
			return
		}
		room--
		r.State, r.DecidedAt = runDue, l.now
		l.change(r)
	}
}

// wakeAt is when the schedule has to be looked at next.
func (l *look) wakeAt() {
	rec := l.rec
	var at time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	if rec.row.Enabled {
		sooner(rec.plan.FireAt(rec.row.ScheduleID, rec.row.NextAt))
	}
	for _, r := range l.open {
		switch r.State {
		case runDue:
			sooner(l.now.Add(retry))
		case runStarted:
			age := l.now.Sub(r.StartedAt)
			sooner(l.now.Add(min(max(age/10, checkLeast), checkMost)))
		}
	}
	if rec.Backfill != nil && l.filling() < rec.Backfill.Concurrency {
		sooner(l.now)
	}
	rec.row.WakeAt = at
}

// save stores what was decided, if nobody else was faster.
func (l *look) save(ctx context.Context) error {
	runs := make([]store.ScheduleRun, 0, len(l.changed))
	for _, r := range l.changed {
		runs = append(runs, *r)
	}
	row := l.rec.write(l.now)
	if err := l.s.o.Store.SaveSchedule(ctx, row, runs); err != nil {
		return err
	}
	row.Revision++
	l.rec.row = row
	return nil
}

// count notes what became of ticks that are not started.
func (s *Service) count(changed map[int64]*store.ScheduleRun) {
	for _, r := range changed {
		switch r.State {
		case runQueued, runSkipped, runMissed:
			s.o.Metrics.Fired.Add(float64(max(r.Ticks, 1)), r.State)
		}
	}
}
