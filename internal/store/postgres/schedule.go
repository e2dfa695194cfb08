package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

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
	addScheduleSQL = `INSERT INTO noetl.schedule (name, playbook_path, playbook_version, cron, interval_seconds, enabled, timezone, owner,
	next_run_at, last_run_at, last_status, input_payload, meta, state, wake_at, updated_at, created_at, schedule_id, revision)
	VALUES ($1, $2, nullif($3, ''), nullif($4, ''), nullif($5, 0), $6, nullif($7, ''), nullif($8, ''), $9, $10, nullif($11, ''), $12::json, $13::json,
	$14::json, $15, $16, $17, $18, 1)`
	saveScheduleSQL = `WITH changed AS (UPDATE noetl.schedule SET name = $1, playbook_path = $2, playbook_version = nullif($3, ''), cron = nullif($4, ''),
	interval_seconds = nullif($5, 0), enabled = $6, timezone = nullif($7, ''), owner = nullif($8, ''), next_run_at = $9, last_run_at = $10,
	last_status = nullif($11, ''), input_payload = $12::json, meta = $13::json, state = $14::json, wake_at = $15, updated_at = $16, revision = revision + 1
	WHERE schedule_id = $17 AND revision = $18 RETURNING schedule_id),
	written AS (INSERT INTO noetl.schedule_run (schedule_id, tick, kind, state, playbook_path, playbook_version, execution_id, decided_at,
	started_at, ended_at, previous, ticks, note) SELECT c.schedule_id, r.tick, r.kind, r.state, r.path, r.version, nullif(r.execution, 0), r.decided, r.started,
	r.ended, r.previous, r.ticks, nullif(r.note, '') FROM changed c, unnest($19::timestamptz[], $20::text[], $21::text[], $22::text[], $23::int4[], $24::int8[],
	$25::timestamptz[], $26::timestamptz[], $27::timestamptz[], $28::timestamptz[], $29::int4[], $30::text[])
	AS r(tick, kind, state, path, version, execution, decided, started, ended, previous, ticks, note)
	ON CONFLICT (schedule_id, tick) DO UPDATE SET kind = excluded.kind, state = excluded.state, playbook_path = excluded.playbook_path,
	playbook_version = excluded.playbook_version, execution_id = excluded.execution_id, decided_at = excluded.decided_at, started_at = excluded.started_at,
	ended_at = excluded.ended_at, previous = excluded.previous, ticks = excluded.ticks, note = excluded.note)
	SELECT count(*) FROM changed`
	scheduleSQL       = `SELECT ` + scheduleColumns + ` FROM noetl.schedule WHERE schedule_id = $1`
	scheduleByNameSQL = `SELECT ` + scheduleColumns + ` FROM noetl.schedule WHERE name = $1`
	dueSchedulesSQL   = `SELECT ` + scheduleColumns + ` FROM noetl.schedule WHERE wake_at <= $1 ORDER BY wake_at, schedule_id LIMIT $2`
	deleteScheduleSQL = `DELETE FROM noetl.schedule WHERE schedule_id = $1`
	openRunsSQL       = `SELECT ` + runColumns + ` FROM noetl.schedule_run WHERE schedule_id = $1 AND ended_at IS NULL AND tick >= $2 AND tick < $3
	ORDER BY tick DESC LIMIT $4`
	runsSQL           = `SELECT ` + runColumns + ` FROM noetl.schedule_run WHERE schedule_id = $1 AND tick >= $2 AND tick < $3 ORDER BY tick DESC LIMIT $4`
	countSchedulesSQL = `SELECT CASE WHEN NOT enabled THEN 'paused' WHEN next_run_at IS NULL THEN 'ended' ELSE 'active' END, count(*)
	FROM noetl.schedule GROUP BY 1`
	purgeRunsSQL = `DELETE FROM noetl.schedule_run WHERE ctid = ANY (ARRAY(SELECT ctid FROM noetl.schedule_run WHERE ended_at < $1
	ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED))`
)

func scanSchedule(row scanner, c *store.Schedule) error {
	var version string
	var seconds int64
	err := row.Scan(&c.ScheduleID, &c.Name, &c.Revision, &c.Path, &version, &c.Cron, &seconds, &c.Enabled, &c.Timezone, &c.Owner,
		stamp{&c.NextAt}, stamp{&c.LastAt}, &c.LastStatus, &c.Payload, &c.Policy, &c.State, stamp{&c.WakeAt}, stamp{&c.CreatedAt}, stamp{&c.UpdatedAt})
	c.Version, _ = strconv.Atoi(version) // what is no number is no version of ours
	c.Every = time.Duration(seconds) * time.Second
	return err
}

func scanRun(row scanner, r *store.ScheduleRun) error {
	return row.Scan(&r.ScheduleID, stamp{&r.Tick}, &r.Kind, &r.State, &r.Path, &r.Version, &r.ExecutionID, stamp{&r.DecidedAt}, stamp{&r.StartedAt},
		stamp{&r.EndedAt}, stamp{&r.Previous}, &r.Ticks, &r.Note)
}

// scheduleValues are the parameters of a schedule that adding and saving share.
func scheduleValues(c *store.Schedule) []any {
	version := ""
	if c.Version > 0 {
		version = strconv.Itoa(c.Version)
	}
	return []any{
		cleanText(c.Name), cleanText(c.Path), version, cleanText(c.Cron), int32(c.Every / time.Second), c.Enabled, cleanText(c.Timezone), cleanText(c.Owner),
		nullTime(c.NextAt), nullTime(c.LastAt), cleanText(c.LastStatus), nullJSON(c.Payload), nullJSON(c.Policy), nullJSON(c.State),
		nullTime(c.WakeAt), nullTime(c.UpdatedAt),
	}
}

// takenSchedule makes the refusal of a row that exists one of the contract.
func takenSchedule(err error, id event.ID) error {
	if sqlState(err) != uniqueViolation {
		return err
	}
	if strings.Contains(err.Error(), "schedule_by_name") {
		return store.ErrNameTaken
	}
	return event.Errorf(event.Conflict, "schedule id %d is already stored", id)
}

// AddSchedule implements store.Schedules.
func (s *Store) AddSchedule(ctx context.Context, c store.Schedule) error {
	_, err := s.cluster.Exec(ctx, addScheduleSQL, append(scheduleValues(&c), nullTime(c.CreatedAt), c.ScheduleID)...)
	return takenSchedule(coded("store schedule", err), c.ScheduleID)
}

// SaveSchedule implements store.Schedules.
func (s *Store) SaveSchedule(ctx context.Context, c store.Schedule, runs []store.ScheduleRun) error {
	args := append(append(scheduleValues(&c), c.ScheduleID, c.Revision), runValues(runs)...)
	changed := 0
	err := repeated(func() error {
		return coded("save schedule", s.cluster.QueryRow(ctx, saveScheduleSQL, args...).Scan(&changed))
	})
	if err != nil || changed == 1 {
		return takenSchedule(err, c.ScheduleID)
	}
	if _, err := s.Schedule(ctx, c.ScheduleID); err != nil {
		return err
	}
	return store.ErrConflict
}

// runValues are runs as arrays, one for each column. Of two with one tick the
// last counts.
func runValues(runs []store.ScheduleRun) []any {
	last := make(map[int64]int, len(runs))
	for i := range runs {
		last[runs[i].Tick.UnixMicro()] = i
	}
	var (
		ticks, decided, started, ended, previous []*time.Time
		kinds, states, paths, notes              []string
		versions, counts                         []int32
		executions                               []int64
	)
	for i, r := range runs {
		if last[r.Tick.UnixMicro()] != i {
			continue
		}
		ticks, kinds, states = append(ticks, nullTime(r.Tick)), append(kinds, r.Kind), append(states, r.State)
		paths, versions, executions = append(paths, cleanText(r.Path)), append(versions, int32(r.Version)), append(executions, int64(r.ExecutionID))
		decided, started, ended = append(decided, nullTime(r.DecidedAt)), append(started, nullTime(r.StartedAt)), append(ended, nullTime(r.EndedAt))
		previous, counts, notes = append(previous, nullTime(r.Previous)), append(counts, int32(r.Ticks)), append(notes, cleanText(r.Note))
	}
	return []any{ticks, kinds, states, paths, versions, executions, decided, started, ended, previous, counts, notes}
}

// Schedule implements store.Schedules.
func (s *Store) Schedule(ctx context.Context, id event.ID) (store.Schedule, error) {
	return one(ctx, s.cluster, "schedule "+id.String(), scanSchedule, scheduleSQL, id)
}

// ScheduleByName implements store.Schedules.
func (s *Store) ScheduleByName(ctx context.Context, name string) (store.Schedule, error) {
	return one(ctx, s.cluster, "schedule "+name, scanSchedule, scheduleByNameSQL, cleanText(name))
}

// listSchedulesSQL names only what restricts, so that each question finds its index.
func listSchedulesSQL(f store.ScheduleFilter) (string, []any) {
	text, args := `SELECT `+scheduleColumns+` FROM noetl.schedule WHERE schedule_id > $1`, []any{f.After, rowLimit(f.Limit)}
	if f.Path != "" {
		args = append(args, cleanText(f.Path))
		text += " AND playbook_path = $" + strconv.Itoa(len(args))
	}
	if f.Owner != "" {
		args = append(args, cleanText(f.Owner))
		text += " AND owner = $" + strconv.Itoa(len(args))
	}
	return text + " ORDER BY schedule_id LIMIT $2", args
}

// ListSchedules implements store.Schedules.
func (s *Store) ListSchedules(ctx context.Context, f store.ScheduleFilter) ([]store.Schedule, error) {
	text, args := listSchedulesSQL(f)
	return many(ctx, s.cluster, "list schedules", scanSchedule, text, args...)
}

// DueSchedules implements store.Schedules.
func (s *Store) DueSchedules(ctx context.Context, until time.Time, limit int) ([]store.Schedule, error) {
	return many(ctx, s.cluster, "list due schedules", scanSchedule, dueSchedulesSQL, until, rowLimit(limit))
}

// DeleteSchedule implements store.Schedules.
func (s *Store) DeleteSchedule(ctx context.Context, id event.ID) (bool, error) {
	tag, err := s.cluster.Exec(ctx, deleteScheduleSQL, id)
	return tag.RowsAffected() == 1, coded("delete schedule", err)
}

// The first and the last time PostgreSQL can hold.
var (
	beginOfTime = time.Date(-4712, 1, 1, 0, 0, 0, 0, time.UTC)
	endOfTime   = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// ScheduleRuns implements store.Schedules.
func (s *Store) ScheduleRuns(ctx context.Context, f store.ScheduleRunFilter) ([]store.ScheduleRun, error) {
	text, from, before := runsSQL, beginOfTime, endOfTime
	if f.Open {
		text = openRunsSQL
	}
	if !f.From.IsZero() {
		from = f.From
	}
	if !f.Before.IsZero() {
		before = f.Before
	}
	return many(ctx, s.cluster, "list runs of schedule", scanRun, text, f.ScheduleID, from, before, rowLimit(f.Limit))
}

// CountSchedules implements store.Schedules.
func (s *Store) CountSchedules(ctx context.Context) (map[string]int64, error) {
	type count struct {
		state string
		n     int64
	}
	found, err := many(ctx, s.cluster, "count schedules", func(row scanner, c *count) error { return row.Scan(&c.state, &c.n) }, countSchedulesSQL)
	counts := make(map[string]int64, len(found))
	for _, c := range found {
		counts[c.state] = c.n
	}
	return counts, err
}

// PurgeScheduleRuns implements store.Schedules.
func (s *Store) PurgeScheduleRuns(ctx context.Context, before time.Time, limit int) (int, error) {
	tag, err := s.cluster.Exec(ctx, purgeRunsSQL, before, rowLimit(limit))
	return int(tag.RowsAffected()), coded("purge runs of schedules", err)
}
