package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/schedule"
	"github.com/noetl/noetl-go/internal/store"
)

// Filter selects schedules; zero fields do not restrict.
type Filter struct {
	Path  string
	State string // active, paused, ended
}

// Bounds of what is shown.
const (
	maxNext  = 1000
	maxRuns  = 1000
	usualRun = 50
	maxText  = 500 // bytes of a reason
)

// List returns schedules by name.
func (s *Service) List(ctx context.Context, f Filter) ([]event.ScheduleView, error) {
	rows, err := s.o.Store.ListSchedules(ctx, store.ScheduleFilter{Path: f.Path})
	if err != nil {
		return nil, err
	}
	views := make([]event.ScheduleView, 0, len(rows))
	for i := range rows {
		rec, _ := read(rows[i]) // one that cannot be read is shown with what there is
		if v := rec.view(); f.State == "" || v.State == f.State {
			views = append(views, v)
		}
	}
	slices.SortFunc(views, func(a, b event.ScheduleView) int { return strings.Compare(a.Name, b.Name) })
	return views, nil
}

// find returns a schedule by id or name.
func (s *Service) find(ctx context.Context, ref string) (store.Schedule, error) {
	var row store.Schedule
	var err error
	if id, bad := event.ParseID(ref); bad == nil && id > 0 {
		row, err = s.o.Store.Schedule(ctx, id)
	} else {
		row, err = s.o.Store.ScheduleByName(ctx, ref)
	}
	if errors.Is(err, store.ErrNotFound) {
		return row, &event.Error{Code: event.NotFound, Message: fmt.Sprintf("there is no schedule %q", ref), Remedy: "noetl schedule list shows them all"}
	}
	return row, err
}

// Get returns one schedule.
func (s *Service) Get(ctx context.Context, ref string) (event.ScheduleView, error) {
	row, err := s.find(ctx, ref)
	if err != nil {
		return event.ScheduleView{}, err
	}
	rec, _ := read(row)
	return rec.view(), nil
}

// compile checks all of a schedule.
func compile(spec event.ScheduleSpec) (*schedule.Plan, error) {
	spec.Path, spec.Name = strings.Trim(spec.Path, "/ "), strings.TrimSpace(spec.Name) // paths as the catalog has them
	plan, faults := schedule.Compile(spec)
	if spec.Path == "" {
		faults = append(faults, &schedule.Fault{Field: "path", Message: "the path of a playbook is needed"})
	}
	if strings.ContainsFunc(spec.Path, unicode.IsControl) {
		faults = append(faults, &schedule.Fault{Field: "path", Message: fmt.Sprintf("%q holds a control character, which no path does", spec.Path)})
	}
	if f := schedule.CheckName(spec.Name); f != nil {
		faults = append(faults, f)
	}
	return plan, schedule.Err(faults)
}

// Check tells what is wrong with a schedule, as Create would.
func Check(spec event.ScheduleSpec) error {
	_, err := compile(withName(spec))
	return err
}

// withName gives a schedule without a name that of its playbook.
func withName(spec event.ScheduleSpec) event.ScheduleSpec {
	if strings.TrimSpace(spec.Name) == "" {
		spec.Name = strings.Trim(spec.Path, "/ ")
	}
	return spec
}

// Create stores a schedule; without a name it gets that of its playbook.
func (s *Service) Create(ctx context.Context, spec event.ScheduleSpec) (event.ScheduleView, error) {
	return s.create(ctx, withName(spec), "")
}

func (s *Service) create(ctx context.Context, spec event.ScheduleSpec, owner string) (event.ScheduleView, error) {
	plan, err := compile(spec)
	if err != nil {
		return event.ScheduleView{}, err
	}
	now := s.now()
	rec := &record{plan: plan, row: store.Schedule{ScheduleID: s.o.IDs(), Revision: 1, Enabled: true, Owner: owner, CreatedAt: now}}
	rec.By = starter(ctx)
	rec.follow(now)
	rec.row = rec.write(now)
	rec.row.WakeAt = plan.FireAt(rec.row.ScheduleID, rec.row.NextAt)
	if err := s.o.Store.AddSchedule(ctx, rec.row); err != nil {
		return event.ScheduleView{}, named(err, plan.Spec.Name)
	}
	s.Wake()
	return rec.view(), nil
}

func named(err error, name string) error {
	if errors.Is(err, store.ErrNameTaken) {
		return &event.Error{Code: event.Conflict, Reason: "name_taken", Message: fmt.Sprintf("there is a schedule %q already", name), Remedy: "give another name, or change that one"}
	}
	return err
}

// change changes a schedule as it is stored by then.
func (s *Service) change(ctx context.Context, ref string, f func(*record) error) (event.ScheduleView, error) {
	rec, err := s.changeWith(ctx, ref, func(rec *record) ([]store.ScheduleRun, error) { return nil, f(rec) })
	if err != nil {
		return event.ScheduleView{}, err
	}
	return rec.view(), nil
}

func (s *Service) changeWith(ctx context.Context, ref string, f func(*record) ([]store.ScheduleRun, error)) (*record, error) {
	for range casTries {
		row, err := s.find(ctx, ref)
		if err != nil {
			return nil, err
		}
		rec, err := read(row)
		if err != nil {
			return nil, err
		}
		runs, err := f(rec)
		if err != nil {
			return nil, err
		}
		row = rec.write(s.now())
		err = s.o.Store.SaveSchedule(ctx, row, runs)
		if errors.Is(err, store.ErrConflict) {
			ref = row.ScheduleID.String() // its name may be another's by now
			continue
		}
		if err != nil {
			return nil, named(err, row.Name)
		}
		row.Revision++
		rec.row = row
		s.Wake()
		return rec, nil
	}
	return nil, event.Errorf(event.Unavailable, "schedule %s changes all the time: try again", ref)
}

// Update replaces what a schedule says. Ticks that were decided stay; its next
// tick is found anew when its times changed, from now on.
func (s *Service) Update(ctx context.Context, ref string, spec event.ScheduleSpec) (event.ScheduleView, error) {
	return s.change(ctx, ref, func(rec *record) error {
		if err := rec.byHand("changed"); err != nil {
			return err
		}
		if strings.TrimSpace(spec.Name) == "" {
			spec.Name = rec.row.Name
		}
		return s.replace(ctx, rec, spec)
	})
}

func (s *Service) replace(ctx context.Context, rec *record, spec event.ScheduleSpec) error {
	plan, err := compile(spec)
	if err != nil {
		return err
	}
	old := rec.plan
	rec.plan = plan
	if by := starter(ctx); by != nil {
		rec.By = by
	}
	if !plan.SameTimes(old) {
		rec.Backfill = nil
		rec.follow(s.now())
	}
	rec.row.WakeAt = s.now() // the next look finds what it waits for
	return nil
}

func (r *record) byHand(done string) error {
	if r.row.Owner == "" {
		return nil
	}
	return &event.Error{
		Code: event.Conflict, Reason: "declared", Message: fmt.Sprintf("schedule %s is declared by the playbook %s and cannot be %s here", r.row.Name, r.row.Owner, done),
		Remedy: "change metadata.schedule of the playbook and register it, or pause the schedule",
	}
}

// Delete removes a schedule and what is known of its runs. Executions go on.
func (s *Service) Delete(ctx context.Context, ref string) (event.ScheduleView, error) {
	row, err := s.find(ctx, ref)
	if err != nil {
		return event.ScheduleView{}, err
	}
	rec, _ := read(row)
	if err := rec.byHand("removed"); err != nil {
		return event.ScheduleView{}, err
	}
	_, err = s.o.Store.DeleteSchedule(ctx, row.ScheduleID)
	return rec.view(), err
}

// Pause stops a schedule from firing. What it started goes on.
func (s *Service) Pause(ctx context.Context, ref, reason, by string) (event.ScheduleView, error) {
	if len(reason) > maxText {
		return event.ScheduleView{}, event.Errorf(event.Invalid, "reason: at most %d bytes are kept", maxText)
	}
	return s.change(ctx, ref, func(rec *record) error {
		if !rec.row.Enabled && rec.Pause != nil && reason == "" {
			return nil
		}
		rec.row.Enabled, rec.Pause = false, &pause{Reason: reason, By: by, At: s.now()}
		return nil
	})
}

// Resume has a schedule fire again, from its first tick after now; those in
// between can be backfilled.
func (s *Service) Resume(ctx context.Context, ref string) (event.ScheduleView, error) {
	return s.change(ctx, ref, func(rec *record) error {
		if rec.row.Enabled {
			return nil
		}
		rec.row.Enabled, rec.Pause, rec.Failures = true, nil, 0
		rec.follow(s.now())
		rec.row.WakeAt = s.now()
		return nil
	})
}

// RunNow starts a run beside the ticks, whatever else runs.
func (s *Service) RunNow(ctx context.Context, ref string) (event.ScheduleRunView, error) {
	tick := s.now()
	rec, err := s.changeWith(ctx, ref, func(rec *record) ([]store.ScheduleRun, error) {
		var err error
		if tick, err = s.free(ctx, rec, tick); err != nil {
			return nil, err
		}
		rec.row.WakeAt = tick.Add(retry)
		if !rec.row.NextAt.IsZero() && rec.row.Enabled {
			rec.row.WakeAt = earlier(rec.row.WakeAt, rec.plan.FireAt(rec.row.ScheduleID, rec.row.NextAt))
		}
		return []store.ScheduleRun{{
			ScheduleID: rec.row.ScheduleID, Tick: tick, Kind: kindManual, State: runDue, Path: rec.row.Path, Version: rec.row.Version,
			DecidedAt: s.now(), Previous: rec.Previous, Ticks: 1,
		}}, nil
	})
	if err != nil {
		return event.ScheduleRunView{}, err
	}
	run, err := s.begun(ctx, rec.row, tick)
	if err != nil {
		return event.ScheduleRunView{}, err
	}
	if run.State == runFailed && run.ExecutionID == 0 {
		return event.ScheduleRunView{}, event.Errorf(event.Invalid, "%s", run.Note)
	}
	return viewRun(run), nil
}

// free is the first moment from t on that is no tick and has no run yet.
func (s *Service) free(ctx context.Context, rec *record, t time.Time) (time.Time, error) {
	for ; ; t = t.Add(time.Microsecond) {
		if rec.plan.Next(t.Add(-1)).Equal(t) {
			continue // it belongs to the schedule
		}
		known, err := s.o.Store.ScheduleRuns(ctx, store.ScheduleRunFilter{ScheduleID: rec.row.ScheduleID, From: t, Before: t.Add(time.Microsecond), Limit: 1})
		if err != nil || len(known) == 0 {
			return t, err
		}
	}
}

// begun has the run of a tick started, unless another replica is at it: then it
// may come back before that is done.
func (s *Service) begun(ctx context.Context, row store.Schedule, tick time.Time) (store.ScheduleRun, error) {
	for try := 0; ; try++ {
		if err := s.look(ctx, row); err != nil {
			s.complain(ctx, "a run is started later", row.ScheduleID, err)
		}
		runs, err := s.o.Store.ScheduleRuns(ctx, store.ScheduleRunFilter{ScheduleID: row.ScheduleID, From: tick, Before: tick.Add(time.Microsecond), Limit: 1})
		switch {
		case err != nil:
			return store.ScheduleRun{}, err
		case len(runs) == 0:
			return store.ScheduleRun{}, event.Errorf(event.NotFound, "schedule %s was removed", row.Name)
		case runs[0].State != runDue || try == 3:
			return runs[0], nil
		}
		if row, err = s.o.Store.Schedule(ctx, row.ScheduleID); err != nil {
			return store.ScheduleRun{}, err
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Runs lists what became of ticks, the latest first, those before a time.
func (s *Service) Runs(ctx context.Context, ref string, before time.Time, limit int) ([]event.ScheduleRunView, error) {
	if limit < 0 || limit > maxRuns {
		return nil, event.Errorf(event.Invalid, "limit: want a number from 1 to %d", maxRuns)
	}
	if limit == 0 {
		limit = usualRun
	}
	row, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	runs, err := s.o.Store.ScheduleRuns(ctx, store.ScheduleRunFilter{ScheduleID: row.ScheduleID, Before: before, Limit: limit})
	if err != nil {
		return nil, err
	}
	views := make([]event.ScheduleRunView, len(runs))
	for i := range runs {
		views[i] = viewRun(runs[i])
	}
	return views, nil
}

// Next lists the coming times of a schedule with their jitter, as if it were
// not paused.
func (s *Service) Next(ctx context.Context, ref string, count int) ([]time.Time, error) {
	row, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	rec, err := read(row)
	if err != nil {
		return nil, err
	}
	return upcoming(rec.plan, row.ScheduleID, s.now(), count)
}

// Preview lists the coming times of a schedule that is not stored.
func (s *Service) Preview(spec event.ScheduleSpec, count int) ([]time.Time, error) {
	plan, faults := schedule.Compile(spec)
	if err := schedule.Err(faults); err != nil {
		return nil, err
	}
	plan.Jitter = 0 // it depends on an id
	return upcoming(plan, 0, s.now(), count)
}

// farYear is where what is shown ends: later times have no form in JSON.
const farYear = 9999

func upcoming(plan *schedule.Plan, id event.ID, now time.Time, count int) ([]time.Time, error) {
	if count < 1 || count > maxNext {
		return nil, event.Errorf(event.Invalid, "count: want a number from 1 to %d", maxNext)
	}
	times := make([]time.Time, 0, count)
	for t := plan.Next(now); !t.IsZero() && t.Year() < farYear && len(times) < count; t = plan.Next(t) {
		times = append(times, plan.FireAt(id, t))
	}
	return times, nil
}

// Declare makes the schedules of a playbook what it declares: new ones are
// made, others changed, and those it does not name any more removed. A pause
// and the times that were decided stay.
func (s *Service) Declare(ctx context.Context, owner string, specs []event.ScheduleSpec) error {
	rows, err := s.o.Store.ListSchedules(ctx, store.ScheduleFilter{Owner: owner})
	if err != nil {
		return err
	}
	for _, row := range rows {
		if !slices.ContainsFunc(specs, func(spec event.ScheduleSpec) bool { return spec.Name == row.Name }) {
			if _, err := s.o.Store.DeleteSchedule(ctx, row.ScheduleID); err != nil {
				return err
			}
		}
	}
	for _, spec := range specs {
		place := slices.IndexFunc(rows, func(row store.Schedule) bool { return row.Name == spec.Name })
		if place < 0 {
			_, err = s.create(ctx, spec, owner)
		} else {
			_, err = s.change(ctx, rows[place].ScheduleID.String(), func(rec *record) error { return s.replace(ctx, rec, spec) })
		}
		if err != nil {
			return fmt.Errorf("schedule %s: %w", spec.Name, err)
		}
	}
	return nil
}

// Moment reads a time; without an offset it is one of the zone.
func Moment(text, zone string) (time.Time, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return time.Time{}, err
	}
	return schedule.Moment(text, loc)
}
