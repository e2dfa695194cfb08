package storetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
)

// Copies makes a past out of one execution that has ended: copies of it, each
// of its own time, complete and true to the last row beside the log.
type Copies struct {
	Of    event.ID
	Count int
	Now   time.Time
	// The copies are as old as this, evenly.
	Newest, Oldest time.Duration
}

// Age is how old a copy is.
func (c Copies) Age(i int) time.Duration {
	return c.Newest + (c.Oldest-c.Newest)/time.Duration(c.Count)*time.Duration(i)
}

// ID is the id of a copy.
func (c Copies) ID(i int) event.ID {
	return event.ID((c.Now.Add(-c.Age(i)).UnixMilli()-epochMS)<<22 + int64(i)%(1<<22))
}

const (
	copiedEvent   = "seq, event_id, catalog_id, parent_event_id, parent_execution_id, event_type, node_name, node_type, status, worker_id, error"
	copiedRow     = "last_seq, catalog_id, parent_execution_id, version, steps_total, steps_completed, steps_running, steps_failed, last_event_id, status, path, pool, last_event_type, last_node_name, current_step, error"
	copiedCommand = "event_id, catalog_id, attempt, max_attempts, iter_index, status, step_name, tool_kind, pool, worker_id, error"
)

// Postgres writes the copies into a migrated database.
func (c Copies) Postgres(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off; CREATE TEMP TABLE copies (id BIGINT, us BIGINT)"); err != nil {
		return err
	}
	_, err = conn.CopyFrom(ctx, pgx.Identifier{"copies"}, []string{"id", "us"}, pgx.CopyFromSlice(c.Count, func(i int) ([]any, error) {
		return []any{int64(c.ID(i)), c.Age(i).Microseconds()}, nil
	}))
	if err != nil {
		return err
	}
	text := func(column string) string { return fmt.Sprintf("replace(o.%s::text, '%d', n.id::text)", column, c.Of) }
	at := func(column string) string { return "o." + column + " - n.us * interval '1 microsecond'" }
	for _, statement := range []string{
		"INSERT INTO noetl.event (execution_id, " + copiedEvent + ", duration, created_at, command_key, meta, result, context) SELECT n.id, " + of(copiedEvent) + ", o.duration, " +
			at("created_at") + ", " + text("command_key") + ", " + text("meta") + "::json, " + text("result") + "::json, " + text("context") + "::json FROM noetl.event o, copies n",
		"INSERT INTO noetl.execution (execution_id, " + copiedRow + ", start_time, end_time, updated_at) SELECT n.id, " + of(copiedRow) + ", " +
			at("start_time") + ", " + at("end_time") + ", " + at("updated_at") + " FROM noetl.execution o, copies n",
		"INSERT INTO noetl.command (execution_id, " + copiedCommand + ", command_key, created_at, claimed_at, completed_at) SELECT n.id, " + of(copiedCommand) + ", " +
			text("command_key") + ", " + at("created_at") + ", " + at("claimed_at") + ", " + at("completed_at") + " FROM noetl.command o, copies n",
	} {
		if _, err := conn.Exec(ctx, statement+fmt.Sprintf(" WHERE o.execution_id = %d", c.Of)); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	_, err = conn.Exec(ctx, "ANALYZE noetl.execution, noetl.event, noetl.command")
	return err
}

// SQLite does the same to a closed database file.
func (c Copies) SQLite(ctx context.Context, path string) (err error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)&_pragma=cache_size(-500000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "CREATE TEMP TABLE copies (id INTEGER, us INTEGER)"); err != nil {
		return err
	}
	for i := range c.Count {
		if _, err := tx.ExecContext(ctx, "INSERT INTO copies VALUES (?, ?)", int64(c.ID(i)), c.Age(i).Microseconds()); err != nil {
			return err
		}
	}
	text := func(column string) string {
		return fmt.Sprintf("replace(o.%s, '%d', cast(n.id AS TEXT))", column, c.Of)
	}
	at := func(column string) string { return "o." + column + " - n.us" }
	for _, statement := range []string{
		"INSERT INTO event (execution_id, " + copiedEvent + ", duration_ns, created_at, command_key, meta, result, context) SELECT n.id, " + of(copiedEvent) + ", o.duration_ns, " +
			at("created_at") + ", " + text("command_key") + ", " + text("meta") + ", " + text("result") + ", " + text("context") + " FROM copies n, event o",
		"INSERT INTO execution (execution_id, " + copiedRow + ", start_time, end_time, updated_at) SELECT n.id, " + of(copiedRow) + ", " +
			at("start_time") + ", " + at("end_time") + ", " + at("updated_at") + " FROM copies n, execution o",
		"INSERT INTO command (execution_id, " + copiedCommand + ", command_key, created_at, claimed_at, completed_at) SELECT n.id, " + of(copiedCommand) + ", " +
			text("command_key") + ", " + at("created_at") + ", " + at("claimed_at") + ", " + at("completed_at") + " FROM copies n, command o",
	} {
		if _, err := tx.ExecContext(ctx, statement+fmt.Sprintf(" WHERE o.execution_id = %d", c.Of)); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// of prefixes a list of columns with the original.
func of(columns string) string { return "o." + strings.ReplaceAll(columns, ", ", ", o.") }
