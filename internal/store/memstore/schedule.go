package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// schedules are the schedules and what became of their ticks, by the ticks'
// microseconds.
type schedules struct {
	rows map[event.ID]*store.Schedule
	runs map[event.ID]map[int64]store.ScheduleRun
}

func newSchedules() schedules {
	return schedules{map[event.ID]*store.Schedule{}, map[event.ID]map[int64]store.ScheduleRun{}}
}

func cloneSchedule(c *store.Schedule) store.Schedule {
	out := *c
	out.Payload, out.Policy, out.State = clip(c.Payload), clip(c.Policy), clip(c.State)
	out.NextAt, out.LastAt, out.WakeAt = normalTime(c.NextAt), normalTime(c.LastAt), normalTime(c.WakeAt)
	out.CreatedAt, out.UpdatedAt = normalTime(c.CreatedAt), normalTime(c.UpdatedAt)
	return out
}

func normalRun(r store.ScheduleRun) store.ScheduleRun {
	r.Tick, r.DecidedAt, r.StartedAt = normalTime(r.Tick), normalTime(r.DecidedAt), normalTime(r.StartedAt)
	r.EndedAt, r.Previous = normalTime(r.EndedAt), normalTime(r.Previous)
	return r
}

func (d *schedules) named(name string) *store.Schedule {
	for _, row := range d.rows {
		if row.Name == name {
			return row
		}
	}
	return nil
}

// AddSchedule implements store.Schedules.
func (s *Store) AddSchedule(ctx context.Context, c store.Schedule) error {
	return s.do(ctx, "AddSchedule", func() error {
		if s.schedules.named(c.Name) != nil {
			return store.ErrNameTaken
		}
		if s.schedules.rows[c.ScheduleID] != nil {
			return event.Errorf(event.Conflict, "schedule id %d is already stored", c.ScheduleID)
		}
		row := cloneSchedule(&c)
		row.Revision = 1
		s.schedules.rows[c.ScheduleID] = &row
		s.schedules.runs[c.ScheduleID] = map[int64]store.ScheduleRun{}
		return nil
	})
}

// SaveSchedule implements store.Schedules.
func (s *Store) SaveSchedule(ctx context.Context, c store.Schedule, runs []store.ScheduleRun) error {
	return s.do(ctx, "SaveSchedule", func() error {
		old := s.schedules.rows[c.ScheduleID]
		switch {
		case old == nil:
			return store.ErrNotFound
		case old.Revision != c.Revision:
			return store.ErrConflict
		}
		if other := s.schedules.named(c.Name); other != nil && other.ScheduleID != c.ScheduleID {
			return store.ErrNameTaken
		}
		row := cloneSchedule(&c)
		row.Revision, row.CreatedAt = c.Revision+1, old.CreatedAt
		s.schedules.rows[c.ScheduleID] = &row
		for _, r := range runs {
			r.ScheduleID = c.ScheduleID
			r = normalRun(r)
			s.schedules.runs[c.ScheduleID][r.Tick.UnixMicro()] = r
		}
		return nil
	})
}

func (s *Store) findSchedule(ctx context.Context, op string, find func() *store.Schedule) (store.Schedule, error) {
	var out store.Schedule
	err := s.do(ctx, op, func() error {
		row := find()
		if row == nil {
			return store.ErrNotFound
		}
		out = cloneSchedule(row)
		return nil
	})
	return out, err
}

// Schedule implements store.Schedules.
func (s *Store) Schedule(ctx context.Context, id event.ID) (store.Schedule, error) {
	return s.findSchedule(ctx, "Schedule", func() *store.Schedule { return s.schedules.rows[id] })
}

// ScheduleByName implements store.Schedules.
func (s *Store) ScheduleByName(ctx context.Context, name string) (store.Schedule, error) {
	return s.findSchedule(ctx, "ScheduleByName", func() *store.Schedule { return s.schedules.named(name) })
}

func (s *Store) selectSchedules(ctx context.Context, op string, limit int, want func(*store.Schedule) bool, order func(a, b store.Schedule) int) ([]store.Schedule, error) {
	var out []store.Schedule
	err := s.do(ctx, op, func() error {
		for _, row := range s.schedules.rows {
			if want(row) {
				out = append(out, cloneSchedule(row))
			}
		}
		slices.SortFunc(out, order)
		out = first(out, limit)
		return nil
	})
	return out, err
}

// first is the first rows of a list; a limit of 0 means all.
func first[T any](rows []T, limit int) []T {
	if limit > 0 && len(rows) > limit {
		return rows[:limit]
	}
	return rows
}

// ListSchedules implements store.Schedules.
func (s *Store) ListSchedules(ctx context.Context, f store.ScheduleFilter) ([]store.Schedule, error) {
	return s.selectSchedules(ctx, "ListSchedules", f.Limit, func(c *store.Schedule) bool {
		return c.ScheduleID > f.After && (f.Path == "" || c.Path == f.Path) && (f.Owner == "" || c.Owner == f.Owner)
	}, func(a, b store.Schedule) int { return cmp.Compare(a.ScheduleID, b.ScheduleID) })
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, until time.Time, limit int) ([]store.Schedule, error) {
	return s.selectSchedules(ctx, "DueSchedules", limit, func(c *store.Schedule) bool {
		return !c.WakeAt.IsZero() && !c.WakeAt.After(normalTime(until))
	}, func(a, b store.Schedule) int {
		return cmp.Or(a.WakeAt.Compare(b.WakeAt), cmp.Compare(a.ScheduleID, b.ScheduleID))
	})
}

// DeleteSchedule implements store.Schedules.
func (s *Store) DeleteSchedule(ctx context.Context, id event.ID) (bool, error) {
	n, err := s.count(ctx, "DeleteSchedule", func() int {
		before := len(s.schedules.rows)
		delete(s.schedules.rows, id)
		delete(s.schedules.runs, id)
		return before - len(s.schedules.rows)
	})
	return n == 1, err
}

// ScheduleRuns implements store.Schedules.
func (s *Store) ScheduleRuns(ctx context.Context, f store.ScheduleRunFilter) ([]store.ScheduleRun, error) {
	var out []store.ScheduleRun
	err := s.do(ctx, "ScheduleRuns", func() error {
		for _, r := range s.schedules.runs[f.ScheduleID] {
			if (!f.Open || r.EndedAt.IsZero()) && (f.From.IsZero() || !r.Tick.Before(normalTime(f.From))) && (f.Before.IsZero() || r.Tick.Before(normalTime(f.Before))) {
				out = append(out, r)
			}
		}
		slices.SortFunc(out, func(a, b store.ScheduleRun) int { return b.Tick.Compare(a.Tick) })
		out = first(out, f.Limit)
		return nil
	})
	return out, err
}

// CountSchedules implements store.Schedules.
func (s *Store) CountSchedules(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	err := s.do(ctx, "CountSchedules", func() error {
		for _, c := range s.schedules.rows {
			switch {
			case !c.Enabled:
				counts["paused"]++
			case c.NextAt.IsZero():
				counts["ended"]++
			default:
				counts["active"]++
			}
		}
		return nil
	})
	return counts, err
}

// PurgeScheduleRuns implements store.Schedules.
func (s *Store) PurgeScheduleRuns(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.count(ctx, "PurgeScheduleRuns", func() (n int) {
		for _, runs := range s.schedules.runs {
			for tick, r := range runs {
				if n < limit && !r.EndedAt.IsZero() && r.EndedAt.Before(normalTime(before)) {
					delete(runs, tick)
					n++
				}
			}
		}
		return n
	})
}
