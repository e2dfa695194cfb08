package sqlite

import (
	"context"
	"strconv"
	"time"

	code "modernc.org/sqlite/lib"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	scheduleColumns = `schedule_id, name, revision, playbook_path, coalesce(playbook_version, ''), coalesce(cron, ''), coalesce(interval_seconds, 0),
	enabled, coalesce(timezone, ''), coalesce(owner, ''), next_run_at, last_run_at, coalesce(last_status, ''), input_payload, meta, state, wake_at,
	created_at, updated_at`
	runColumns = `schedule_id, tick, kind, state, playbook_path, playbook_version, coalesce(execution_id, 0), decided_at, started_at, ended_at, previous,
	ticks, coalesce(note, '')`
)

const (
	addScheduleSQL = `INSERT INTO schedule (name, playbook_path, playbook_version, cron, interval_seconds, enabled, timezone, owner,
	next_run_at, last_run_at, last_status, input_payload, meta, state, wake_at, updated_at, created_at, revision, schedule_id)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?)`
	saveScheduleSQL = `UPDATE schedule SET name = ?, playbook_path = ?, playbook_version = ?, cron = ?, interval_seconds = ?, enabled = ?,
	timezone = ?, owner = ?, next_run_at = ?, last_run_at = ?, last_status = ?, input_payload = ?, meta = ?, state = ?, wake_at = ?, updated_at = ?,
	revision = revision + 1 WHERE schedule_id = ? AND revision = ?`
	putRunSQL = `INSERT INTO schedule_run (schedule_id, tick, kind, state, playbook_path, playbook_version, execution_id, decided_at,
	started_at, ended_at, previous, ticks, note) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (schedule_id, tick) DO UPDATE
	SET kind = excluded.kind, state = excluded.state, playbook_path = excluded.playbook_path, playbook_version = excluded.playbook_version,
	execution_id = excluded.execution_id, decided_at = excluded.decided_at, started_at = excluded.started_at, ended_at = excluded.ended_at,
	previous = excluded.previous, ticks = excluded.ticks, note = excluded.note`
	scheduleSQL       = `SELECT ` + scheduleColumns + ` FROM schedule WHERE schedule_id = ?`
	scheduleByNameSQL = `SELECT ` + scheduleColumns + ` FROM schedule WHERE name = ?`
	listSchedulesSQL  = `SELECT ` + scheduleColumns + ` FROM schedule WHERE schedule_id > ?1 AND (?2 = '' OR playbook_path = ?2)
	AND (?3 = '' OR owner = ?3) ORDER BY schedule_id LIMIT ?4`
	dueSchedulesSQL         = `SELECT ` + scheduleColumns + ` FROM schedule WHERE wake_at <= ? ORDER BY wake_at, schedule_id LIMIT ?`
	deleteScheduleSQL       = `DELETE FROM schedule WHERE schedule_id = ?`
	deleteRunsSQL           = `DELETE FROM schedule_run WHERE schedule_id = ?`
	openRunsSQL             = `SELECT ` + runColumns + ` FROM schedule_run WHERE schedule_id = ? AND ended_at IS NULL AND tick >= ? AND tick < ? ORDER BY tick DESC LIMIT ?`
	runsSQL                 = `SELECT ` + runColumns + ` FROM schedule_run WHERE schedule_id = ? AND tick >= ? AND tick < ? ORDER BY tick DESC LIMIT ?`
	countSchedulesSQL       = `SELECT CASE WHEN NOT enabled THEN 'paused' WHEN next_run_at IS NULL THEN 'ended' ELSE 'active' END, count(*) FROM schedule GROUP BY 1`
	purgeRunsSQL            = `DELETE FROM schedule_run WHERE (schedule_id, tick) IN (SELECT schedule_id, tick FROM schedule_run WHERE ended_at < ? ORDER BY ended_at LIMIT ?)`
	endOfTime         int64 = 1<<63 - 1
)

func scanSchedule(row scanner, c *store.Schedule) error {
	var version string
	var seconds, enabled int64
	err := row.Scan(&c.ScheduleID, &c.Name, &c.Revision, &c.Path, &version, &c.Cron, &seconds, &enabled, &c.Timezone, &c.Owner,
		micros{&c.NextAt}, micros{&c.LastAt}, &c.LastStatus, &c.Payload, &c.Policy, &c.State, micros{&c.WakeAt}, micros{&c.CreatedAt}, micros{&c.UpdatedAt})
	c.Version, _ = strconv.Atoi(version) // what is no number is no version of ours
	c.Every, c.Enabled = time.Duration(seconds)*time.Second, enabled != 0
	return err
}

func scanRun(row scanner, r *store.ScheduleRun) error {
	return row.Scan(&r.ScheduleID, micros{&r.Tick}, &r.Kind, &r.State, &r.Path, &r.Version, &r.ExecutionID, micros{&r.DecidedAt}, micros{&r.StartedAt},
		micros{&r.EndedAt}, micros{&r.Previous}, &r.Ticks, &r.Note)
}

func bindSchedule(st *statement, c *store.Schedule) {
	version, enabled := "", int64(0)
	if c.Version > 0 {
		version = strconv.Itoa(c.Version)
	}
	if c.Enabled {
		enabled = 1
	}
	st.str(c.Name).str(c.Path).text(version).text(c.Cron).int(int64(c.Every / time.Second)).int(enabled).text(c.Timezone).text(c.Owner)
	st.time(c.NextAt).time(c.LastAt).text(c.LastStatus).json(c.Payload).json(c.Policy).json(c.State).time(c.WakeAt).time(c.UpdatedAt)
}

// takenSchedule makes the refusal of a row that exists one of the contract.
func takenSchedule(err error, id event.ID) error {
	switch resultCode(err) {
	case code.SQLITE_CONSTRAINT_UNIQUE:
		return store.ErrNameTaken
	case code.SQLITE_CONSTRAINT_PRIMARYKEY, code.SQLITE_CONSTRAINT_ROWID:
		return event.Errorf(event.Conflict, "schedule id %d is already stored", id)
	}
	return err
}

// AddSchedule implements store.Schedules.
func (s *Store) AddSchedule(ctx context.Context, c store.Schedule) error {
	_, err := s.change(ctx, "store schedule", addScheduleSQL, func(st *statement) {
		bindSchedule(st, &c)
		st.time(c.CreatedAt).id(c.ScheduleID)
	})
	return takenSchedule(err, c.ScheduleID)
}

// SaveSchedule implements store.Schedules.
func (s *Store) SaveSchedule(ctx context.Context, c store.Schedule, runs []store.ScheduleRun) error {
	err := s.write(ctx, len(c.Payload)+len(c.State)+128*len(runs), func(w *writer) error {
		n, err := w.change(saveScheduleSQL, func(st *statement) {
			bindSchedule(st, &c)
			st.id(c.ScheduleID).int(c.Revision)
		})
		if err != nil || n == 0 {
			if err == nil {
				err = w.notSaved(c.ScheduleID)
			}
			return coded("save schedule", err)
		}
		for i := range runs {
			if _, err := w.change(putRunSQL, func(st *statement) { bindRun(st, c.ScheduleID, &runs[i]) }); err != nil {
				return coded("store run of schedule", err)
			}
		}
		return nil
	})
	return takenSchedule(err, c.ScheduleID)
}

// notSaved tells why no row had the expected revision.
func (w *writer) notSaved(id event.ID) error {
	found, err := returning(w, scheduleSQL, func(st *statement) { st.id(id) }, scanSchedule)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return store.ErrNotFound
	}
	return store.ErrConflict
}

func bindRun(st *statement, schedule event.ID, r *store.ScheduleRun) {
	st.id(schedule).time(r.Tick).str(r.Kind).str(r.State).str(r.Path).int(int64(r.Version)).nullID(r.ExecutionID).time(r.DecidedAt)
	st.time(r.StartedAt).time(r.EndedAt).time(r.Previous).int(int64(r.Ticks)).text(r.Note)
}

// Schedule implements store.Schedules.
func (s *Store) Schedule(ctx context.Context, id event.ID) (store.Schedule, error) {
	return one("schedule "+id.String(), s.reader.QueryRowContext(ctx, scheduleSQL, id), scanSchedule)
}

// ScheduleByName implements store.Schedules.
func (s *Store) ScheduleByName(ctx context.Context, name string) (store.Schedule, error) {
	return one("schedule "+name, s.reader.QueryRowContext(ctx, scheduleByNameSQL, name), scanSchedule)
}

// ListSchedules implements store.Schedules.
func (s *Store) ListSchedules(ctx context.Context, f store.ScheduleFilter) ([]store.Schedule, error) {
	rows, err := s.reader.QueryContext(ctx, listSchedulesSQL, f.After, f.Path, f.Owner, rowLimit(f.Limit))
	return collect("list schedules", rows, err, scanSchedule)
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, until time.Time, limit int) ([]store.Schedule, error) {
	rows, err := s.reader.QueryContext(ctx, dueSchedulesSQL, until.UnixMicro(), rowLimit(limit))
	return collect("list due schedules", rows, err, scanSchedule)
}

// DeleteSchedule implements store.Schedules.
func (s *Store) DeleteSchedule(ctx context.Context, id event.ID) (bool, error) {
	var n int64
	err := s.write(ctx, 0, func(w *writer) error {
		if _, err := w.change(deleteRunsSQL, func(st *statement) { st.id(id) }); err != nil {
			return coded("delete runs of schedule", err)
		}
		var err error
		n, err = w.change(deleteScheduleSQL, func(st *statement) { st.id(id) })
		return coded("delete schedule", err)
	})
	return n == 1 && err == nil, err
}

// ScheduleRuns implements store.Schedules.
func (s *Store) ScheduleRuns(ctx context.Context, f store.ScheduleRunFilter) ([]store.ScheduleRun, error) {
	text, from, before := runsSQL, -endOfTime, endOfTime
	if f.Open {
		text = openRunsSQL
	}
	if !f.From.IsZero() {
		from = f.From.UnixMicro()
	}
	if !f.Before.IsZero() {
		before = f.Before.UnixMicro()
	}
	rows, err := s.reader.QueryContext(ctx, text, f.ScheduleID, from, before, rowLimit(f.Limit))
	return collect("list runs of schedule", rows, err, scanRun)
}

// CountSchedules implements store.Schedules.
func (s *Store) CountSchedules(ctx context.Context) (map[string]int64, error) {
	type count struct {
		state string
		n     int64
	}
	rows, err := s.reader.QueryContext(ctx, countSchedulesSQL)
	found, err := collect("count schedules", rows, err, func(row scanner, c *count) error { return row.Scan(&c.state, &c.n) })
	counts := make(map[string]int64, len(found))
	for _, c := range found {
		counts[c.state] = c.n
	}
	return counts, err
}

// PurgeScheduleRuns implements store.Schedules.
func (s *Store) PurgeScheduleRuns(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.change(ctx, "purge runs of schedules", purgeRunsSQL, func(st *statement) {
		st.int(before.UnixMicro()).int(int64(rowLimit(limit)))
	})
}
