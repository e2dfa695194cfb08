package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Fill says how much past to invent: executions that ended within the last 30
// days, each with the same number of events and two commands, spread evenly
// over 50 playbooks fill/p0 … fill/p49. Every 33rd has failed.
type Fill struct {
	Executions int
	Events     int       // per execution
	Now        time.Time // the newest execution is this old
}

// epochMS is the beginning of time in ids.
const epochMS = 1704067200000

// span is the first id and the distance between two.
func (f Fill) span() (first, step int64) {
	const month = 30 * 24 * time.Hour
	start := (f.Now.Add(-month).UnixMilli() - epochMS) << 22
	return start, (month.Milliseconds() << 22) / int64(f.Executions)
}

// Postgres writes the rows with SQL of its own into a migrated database: going
// through the store would take hours.
func (f Fill) Postgres(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	first, step := f.span()
	numbers := fmt.Sprintf("generate_series(0, %d) AS n(i)", f.Executions-1)
	times := "to_timestamp(((%[1]d + i * %[2]d::bigint) / 4194304 + 1704067200000) / 1000.0)"
	for _, text := range []string{
		`SET synchronous_commit = off`,
		`INSERT INTO noetl.execution (execution_id, last_seq, catalog_id, version, steps_total, steps_completed, steps_running, steps_failed,
			last_event_id, start_time, end_time, updated_at, status, path, pool, last_event_type, current_step)
		SELECT %[1]d + i * %[2]d::bigint, %[3]d, 1 + i %% 50, 1, 2, 2, 0, 0, %[1]d + i * %[2]d::bigint + %[3]d, ` + times + `, ` + times + `, ` + times + `,
			CASE WHEN i %% 33 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 'fill/p' || i %% 50, 'shared', 'playbook.completed', 's'
		FROM ` + numbers,
		`INSERT INTO noetl.event (execution_id, seq, event_id, catalog_id, created_at, event_type, node_name, status, meta)
		SELECT %[1]d + i * %[2]d::bigint, s, %[1]d + i * %[2]d::bigint + s, 1 + i %% 50, ` + times + `,
			CASE s WHEN 1 THEN 'playbook_started' WHEN %[3]d THEN 'playbook.completed' ELSE 'step.exit' END, 's', 'COMPLETED', '{"emitted_by":"fill"}'
		FROM ` + numbers + `, generate_series(1, %[3]d) AS e(s)`,
		`INSERT INTO noetl.command (event_id, execution_id, catalog_id, attempt, max_attempts, iter_index, created_at, completed_at, status, command_key, step_name, tool_kind, pool)
		SELECT %[1]d + i * %[2]d::bigint + c, %[1]d + i * %[2]d::bigint, 1 + i %% 50, 1, 3, -1, ` + times + `, ` + times + `, 'COMPLETED', i || ':s:' || c, 's', 'noop', 'shared'
		FROM ` + numbers + `, generate_series(2, 3) AS k(c)`,
		`ANALYZE noetl.execution, noetl.event, noetl.command`,
	} {
		if _, err := conn.Exec(ctx, formatted(text, first, step, f.Events)); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}

// SQLite does the same to a closed database file with the present schema.
func (f Fill) SQLite(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-500000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	first, step := f.span()
	numbers := fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d)", f.Executions-1)
	times := "((%[1]d + i * %[2]d) / 4194304 + 1704067200000) * 1000"
	for _, text := range []string{
		`INSERT INTO execution (execution_id, last_seq, catalog_id, version, steps_total, steps_completed, steps_running, steps_failed,
			last_event_id, start_time, end_time, updated_at, status, path, pool, last_event_type, current_step) ` + numbers + `
		SELECT %[1]d + i * %[2]d, %[3]d, 1 + i %% 50, 1, 2, 2, 0, 0, %[1]d + i * %[2]d + %[3]d, ` + times + `, ` + times + `, ` + times + `,
			CASE WHEN i %% 33 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 'fill/p' || (i %% 50), 'shared', 'playbook.completed', 's' FROM n`,
		`INSERT INTO event (execution_id, seq, event_id, catalog_id, created_at, event_type, node_name, status, meta) ` + numbers + `,
			e(s) AS (SELECT 1 UNION ALL SELECT s + 1 FROM e WHERE s < %[3]d)
		SELECT %[1]d + i * %[2]d, s, %[1]d + i * %[2]d + s, 1 + i %% 50, ` + times + `,
			CASE s WHEN 1 THEN 'playbook_started' WHEN %[3]d THEN 'playbook.completed' ELSE 'step.exit' END, 's', 'COMPLETED', '{"emitted_by":"fill"}'
		FROM n CROSS JOIN e`,
		`INSERT INTO command (event_id, execution_id, catalog_id, attempt, max_attempts, iter_index, created_at, completed_at, status, command_key, step_name, tool_kind, pool) ` + numbers + `,
			k(c) AS (SELECT 2 UNION ALL SELECT 3)
		SELECT %[1]d + i * %[2]d + c, %[1]d + i * %[2]d, 1 + i %% 50, 1, 3, -1, ` + times + `, ` + times + `, 'COMPLETED', i || ':s:' || c, 's', 'noop', 'shared'
		FROM n CROSS JOIN k`,
		`PRAGMA wal_checkpoint(TRUNCATE)`,
	} {
		if _, err := db.ExecContext(ctx, formatted(text, first, step, f.Events)); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
	}
	return nil
}

// formatted is text with its numbers, if it has any.
func formatted(text string, first, step int64, events int) string {
	return fmt.Sprintf(text+"%.0[4]s", first, step, events, "")
}
