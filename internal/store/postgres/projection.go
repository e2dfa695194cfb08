package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	putSnapshotSQL = standing + `INSERT INTO noetl.projection_snapshot AS old (execution_id, aggregate_type, aggregate_id, version, seq,
	snapshot, checksum, meta, updated_at) SELECT $1, $2, $3, $4, $5, $6::json, $7, $8::json, $9 WHERE ` + unlessRemoved + `
	ON CONFLICT (execution_id, aggregate_type, aggregate_id) DO UPDATE SET version = excluded.version, seq = excluded.seq,
	snapshot = excluded.snapshot, checksum = excluded.checksum, meta = excluded.meta, updated_at = excluded.updated_at
	WHERE old.seq <= excluded.seq`
	snapshotSQL = `SELECT execution_id, aggregate_type, aggregate_id, version, seq, snapshot, coalesce(checksum, ''), meta, updated_at
	FROM noetl.projection_snapshot WHERE execution_id = $1 AND aggregate_type = $2 AND aggregate_id = $3`

	// One look-up per execution: its events are passed over, not read.
	loggedSQL = `WITH RECURSIVE ids(id) AS (
	SELECT (SELECT execution_id FROM noetl.event WHERE execution_id > $1 ORDER BY execution_id LIMIT 1)
	UNION ALL SELECT (SELECT execution_id FROM noetl.event WHERE execution_id > ids.id ORDER BY execution_id LIMIT 1)
	FROM ids WHERE ids.id IS NOT NULL
) SELECT id FROM ids WHERE id IS NOT NULL LIMIT $2`
	projectedSQL  = selectExecution + `WHERE execution_id > $1 ORDER BY execution_id LIMIT $2`
	commandsOfSQL = selectCommand + `WHERE execution_id = $1 ORDER BY event_id`

	lockExecutionSQL  = `SELECT last_seq FROM noetl.execution WHERE execution_id = $1 FOR UPDATE`
	lastSeqSQL        = `SELECT coalesce(max(seq), 0) FROM noetl.event WHERE execution_id = $1`
	dropExecutionSQL  = `DELETE FROM noetl.execution WHERE execution_id = $1`
	dropCommandsSQL   = `DELETE FROM noetl.command WHERE execution_id = $1 AND event_id <> ALL($2::int8[])`
	writeExecutionSQL = `INSERT INTO noetl.execution (` + executionColumns + `)
	SELECT ` + executionColumns + ` FROM unnest($1::noetl.append_execution_2[])`
	writeCommandsSQL = `INSERT INTO noetl.command (` + commandColumns + `)
	SELECT ` + commandColumns + ` FROM unnest($1::noetl.append_command[]) ` + commandUpsert

	// The oldest ids come first, and what was removed is not met again. A
	// command has its id before it ends; $3 allows for clocks that disagree.
	purgeCommandsSQL = `DELETE FROM noetl.command WHERE ctid = ANY (ARRAY(
	SELECT c.ctid FROM noetl.command c WHERE c.completed_at < $1 AND c.event_id < $3
	AND (SELECT x.status FROM noetl.execution x WHERE x.execution_id = c.execution_id) IN ('COMPLETED', 'FAILED', 'CANCELLED')
	ORDER BY c.event_id LIMIT $2 FOR UPDATE OF c SKIP LOCKED))`
)

// PutSnapshot implements store.Snapshots.
func (s *Store) PutSnapshot(ctx context.Context, n store.Snapshot) error {
	return s.putBeside(ctx, "store snapshot", putSnapshotSQL, n.ExecutionID, cleanText(n.Type), cleanText(n.ID), n.Version, n.Seq,
		string(n.State), cleanText(n.Checksum), nullJSON(n.Meta), nullTime(n.UpdatedAt))
}

// Snapshot implements store.Snapshots.
func (s *Store) Snapshot(ctx context.Context, execution event.ID, typ, id string) (store.Snapshot, error) {
	return one(ctx, s.shard(execution).pool, "snapshot "+typ, scanSnapshot, snapshotSQL, execution, cleanText(typ), cleanText(id))
}

func scanSnapshot(row scanner, n *store.Snapshot) error {
	return row.Scan(&n.ExecutionID, &n.Type, &n.ID, &n.Version, &n.Seq, &n.State, &n.Checksum, &n.Meta, stamp{&n.UpdatedAt})
}

// LoggedExecutions implements store.Projections.
func (s *Store) LoggedExecutions(ctx context.Context, after event.ID, limit int) ([]event.ID, error) {
	return merged(ctx, s, 0, limit, cmp.Compare[event.ID], func(ctx context.Context, sh *shard, _, limit int) ([]event.ID, error) {
		return many(ctx, sh.pool, "find logged executions", scanID, loggedSQL, after, rowLimit(limit))
	})
}

// ProjectedExecutions implements store.Projections.
func (s *Store) ProjectedExecutions(ctx context.Context, after event.ID, limit int) ([]store.Execution, error) {
	oldest := func(a, b store.Execution) int { return cmp.Compare(a.ExecutionID, b.ExecutionID) }
	return merged(ctx, s, 0, limit, oldest, func(ctx context.Context, sh *shard, _, limit int) ([]store.Execution, error) {
		return many(ctx, sh.pool, "read execution rows", scanExecution, projectedSQL, after, rowLimit(limit))
	})
}

// CommandsOf implements store.Projections.
func (s *Store) CommandsOf(ctx context.Context, execution event.ID) ([]store.Command, error) {
	return many(ctx, s.shard(execution).pool, "read commands", scanCommand, commandsOfSQL, execution)
}

// Reproject implements store.Projections. The locked row keeps appends out
// between the look at the log and the end.
func (s *Store) Reproject(ctx context.Context, x store.Execution, commands []store.Command) error {
	if err := store.CheckProjection(&x, commands); err != nil {
		return err
	}
	sh := s.shard(x.ExecutionID)
	err := repeated(func() error {
		return pgx.BeginFunc(ctx, sh.pool, func(tx pgx.Tx) error { return sh.reproject(ctx, tx, x, commands) })
	})
	if errors.Is(err, store.ErrConflict) {
		return err
	}
	return coded("write projections", err)
}

func (sh *shard) reproject(ctx context.Context, tx pgx.Tx, x store.Execution, commands []store.Command) error {
	var stored, last int64
	if err := tx.QueryRow(ctx, lockExecutionSQL, x.ExecutionID).Scan(&stored); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if err := tx.QueryRow(ctx, lastSeqSQL, x.ExecutionID).Scan(&last); err != nil {
		return err
	}
	if last == 0 || last != x.LastSeq {
		return store.ErrConflict
	}
	if _, err := tx.Exec(ctx, dropExecutionSQL, x.ExecutionID); err != nil {
		return err
	}
	// Rows of commands that stay are changed where they are: a heartbeat that
	// waits for one meanwhile must find it.
	kept := make([]event.ID, len(commands))
	for i := range commands {
		kept[i] = commands[i].EventID
	}
	if _, err := tx.Exec(ctx, dropCommandsSQL, x.ExecutionID, kept); err != nil {
		return err
	}
	row := newRecords(sh.types.execution, fields(executionColumns)+1)
	encodeExecution(&row, &x, 0)
	rows := newRecords(sh.types.command, fields(commandColumns))
	for _, c := range slices.SortedFunc(slices.Values(commands), func(a, b store.Command) int { return cmp.Compare(a.EventID, b.EventID) }) {
		encodeCommand(&rows, &c)
	}
	for text, param := range map[string][]byte{writeExecutionSQL: row.bytes(), writeCommandsSQL: rows.bytes()} {
		res := tx.Conn().PgConn().ExecParams(ctx, text, [][]byte{param}, nil, binaryFormat, nil).Read()
		if res.Err != nil {
			return res.Err
		}
	}
	return nil
}

// PurgeCommands implements store.Projections.
func (s *Store) PurgeCommands(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.purge(ctx, "purge commands", purgeCommandsSQL, before, limit, store.IDAt(before.Add(time.Hour)))
}
