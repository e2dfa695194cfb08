package sqlite

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	putSnapshotSQL = `INSERT INTO projection_snapshot (execution_id, aggregate_type, aggregate_id, version, seq, snapshot, checksum, meta, updated_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (execution_id, aggregate_type, aggregate_id) DO UPDATE
	SET version = excluded.version, seq = excluded.seq, snapshot = excluded.snapshot, checksum = excluded.checksum,
	meta = excluded.meta, updated_at = excluded.updated_at WHERE seq <= excluded.seq`
	snapshotSQL = `SELECT execution_id, aggregate_type, aggregate_id, version, seq, snapshot, checksum, meta, updated_at
	FROM projection_snapshot WHERE execution_id = ? AND aggregate_type = ? AND aggregate_id = ?`
)

// PutSnapshot implements store.Snapshots.
func (s *Store) PutSnapshot(ctx context.Context, snap store.Snapshot) error {
	return s.write(ctx, len(snap.State), func(w *writer) error {
		if err := w.notRemoved(snap.ExecutionID); err != nil {
			return err
		}
		_, err := w.change(putSnapshotSQL, func(st *statement) {
			st.id(snap.ExecutionID).str(snap.Type).str(snap.ID).id(snap.Version).int(snap.Seq).json(snap.State)
			st.str(snap.Checksum).json(snap.Meta).time(snap.UpdatedAt)
		})
		return coded("store snapshot", err)
	})
}

// Snapshot implements store.Snapshots.
func (s *Store) Snapshot(ctx context.Context, execution event.ID, typ, id string) (store.Snapshot, error) {
	return one("snapshot "+id, s.reader.QueryRowContext(ctx, snapshotSQL, execution, typ, id), scanSnapshot)
}

func scanSnapshot(row scanner, snap *store.Snapshot) error {
	return row.Scan(&snap.ExecutionID, &snap.Type, &snap.ID, &snap.Version, &snap.Seq, &snap.State, &snap.Checksum, &snap.Meta,
		micros{&snap.UpdatedAt})
}

const (
	// One look-up per execution, however many events it has.
	loggedExecutionsSQL = `WITH RECURSIVE logged(id) AS (
		SELECT min(execution_id) FROM event WHERE execution_id > ?1
		UNION ALL SELECT (SELECT min(execution_id) FROM event WHERE execution_id > logged.id) FROM logged WHERE logged.id IS NOT NULL)
	SELECT id FROM logged WHERE id IS NOT NULL LIMIT ?2`
	projectedExecutionsSQL = selectExecution + `WHERE execution_id > ? ORDER BY execution_id LIMIT ?`
	commandsOfSQL          = selectCommand + `WHERE execution_id = ? ORDER BY event_id`

	lastSeqSQL         = `SELECT max(seq) FROM event WHERE execution_id = ?`
	deleteExecutionSQL = `DELETE FROM execution WHERE execution_id = ?`
	deleteCommandsSQL  = `DELETE FROM command WHERE execution_id = ?`
	// Ids ascend with time: commands that ended before a time were issued before
	// it. What is younger is not even looked at.
	purgeCommandsSQL = `DELETE FROM command WHERE (event_id, execution_id) IN (SELECT c.event_id, c.execution_id
	FROM command c NOT INDEXED CROSS JOIN execution x ON x.execution_id = c.execution_id
	WHERE c.event_id < ? AND c.completed_at < ? AND +x.status IN ('COMPLETED', 'FAILED', 'CANCELLED') ORDER BY c.event_id LIMIT ?)`
)

// LoggedExecutions implements store.Projections.
func (s *Store) LoggedExecutions(ctx context.Context, after event.ID, limit int) ([]event.ID, error) {
	rows, err := s.reader.QueryContext(ctx, loggedExecutionsSQL, after, rowLimit(limit))
	return collect("walk the log", rows, err, scanID)
}

// ProjectedExecutions implements store.Projections.
func (s *Store) ProjectedExecutions(ctx context.Context, after event.ID, limit int) ([]store.Execution, error) {
	rows, err := s.reader.QueryContext(ctx, projectedExecutionsSQL, after, rowLimit(limit))
	return collect("walk executions", rows, err, scanExecution)
}

// CommandsOf implements store.Projections.
func (s *Store) CommandsOf(ctx context.Context, execution event.ID) ([]store.Command, error) {
	rows, err := s.reader.QueryContext(ctx, commandsOfSQL, execution)
	return collect("list commands", rows, err, scanCommand)
}

// Reproject implements store.Projections.
func (s *Store) Reproject(ctx context.Context, x store.Execution, commands []store.Command) error {
	if err := store.CheckProjection(&x, commands); err != nil {
		return err
	}
	return s.write(ctx, 256*len(commands), func(w *writer) error { return w.reproject(&x, commands) })
}

func (w *writer) reproject(x *store.Execution, commands []store.Command) error {
	byID := func(st *statement) { st.id(x.ExecutionID) }
	last, err := returning(w, lastSeqSQL, byID, func(row scanner, n *int64) error { return row.Scan(n) })
	if err != nil {
		return coded("look up sequence", err)
	}
	if last[0] == 0 || last[0] != x.LastSeq {
		return store.ErrConflict
	}
	for _, text := range []string{deleteExecutionSQL, deleteCommandsSQL} {
		if _, err := w.change(text, byID); err != nil {
			return coded("replace rows", err)
		}
	}
	if err := w.putExecution(x, 0); err != nil {
		return err
	}
	for i := range commands {
		w.newCommands = append(w.newCommands, &commands[i])
	}
	return w.flush()
}

// PurgeCommands implements store.Projections.
func (s *Store) PurgeCommands(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.change(ctx, "purge commands", purgeCommandsSQL, func(st *statement) {
		st.id(store.IDAt(before.Add(time.Hour))).int(before.UnixMicro()).int(int64(rowLimit(limit)))
	})
}
