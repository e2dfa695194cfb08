package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// The plus sign keeps the planner on the primary key.
	endedExecutionsSQL = selectExecution + `WHERE execution_id > ? AND execution_id < ? AND +status IN ('COMPLETED', 'FAILED', 'CANCELLED')
	AND end_time < ? ORDER BY execution_id LIMIT ?`
	// Each status yields its newest from the index; only these are sorted.
	newestOf       = `SELECT execution_id FROM execution INDEXED BY execution_by_path WHERE path = ?1 AND status = `
	newestFirst    = ` ORDER BY execution_id DESC LIMIT ?2`
	newestEndedSQL = `SELECT execution_id FROM (
	SELECT * FROM (` + newestOf + `'COMPLETED'` + newestFirst + `) UNION ALL
	SELECT * FROM (` + newestOf + `'FAILED'` + newestFirst + `) UNION ALL
	SELECT * FROM (` + newestOf + `'CANCELLED'` + newestFirst + `))
	ORDER BY execution_id DESC LIMIT 1 OFFSET ?2 - 1`
	valuesOfSQL = `SELECT ` + resultColumns + ` FROM result_store r WHERE execution_id IN (SELECT value FROM json_each(?))
	AND key IS NOT NULL AND store <> 'db' ORDER BY execution_id, ref`
	removedAtSQL  = `SELECT removed_at FROM execution_removed WHERE execution_id = ?`
	holdSQL       = `INSERT INTO execution_hold (execution_id, until) VALUES (?, ?) ON CONFLICT DO UPDATE SET until = max(until, excluded.until)`
	purgeHoldsSQL = `DELETE FROM execution_hold WHERE until < ?`
	purgeGoneSQL  = `DELETE FROM execution_removed WHERE execution_id IN (
	SELECT execution_id FROM execution_removed WHERE removed_at < ? ORDER BY removed_at, execution_id LIMIT ?)`
	takeLeaseSQL = `INSERT INTO work_lease (name, holder, until) VALUES (?, ?, ?) ON CONFLICT DO UPDATE
	SET holder = excluded.holder, until = excluded.until WHERE work_lease.holder = excluded.holder OR work_lease.until <= ?`

	stillEndedSQL = `SELECT 1 FROM execution WHERE execution_id = ? AND last_seq = ? AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')`
	heldSQL       = `SELECT 1 FROM execution_hold WHERE execution_id = ? AND until > ?`
	openChildSQL  = `SELECT 1 FROM execution WHERE parent_execution_id = ? AND status <> 'COMPLETED' AND status <> 'FAILED'
	AND status <> 'CANCELLED' LIMIT 1`
	valuesSQL      = `SELECT ` + resultColumns + ` FROM result_store r WHERE execution_id = ?`
	unpublishedSQL = `SELECT 1 FROM outbox WHERE execution_id = ? AND status <> 'PUBLISHED' LIMIT 1`
	noteRemovedSQL = `INSERT INTO execution_removed (execution_id, removed_at) VALUES (?, ?) ON CONFLICT DO UPDATE SET removed_at = excluded.removed_at`
)

// ownedTables are what an execution is made of, the log first.
var ownedTables = []string{
	"event", "command", "result_store", "result_chunk", "outbox", "transient", "projection_snapshot", "execution_hold", "execution",
}

// deleteOf is the statement that deletes the rows of an execution.
func deleteOf(table string) string { return "DELETE FROM " + table + " WHERE execution_id = ?" }

const removeKeychainSQL = `DELETE FROM keychain WHERE execution_id = ? AND scope_type <> 'global'`

// EndedExecutions implements store.Retention.
func (s *Store) EndedExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]store.Execution, error) {
	rows, err := s.reader.QueryContext(ctx, endedExecutionsSQL, after, store.EndedBelow(before), before.UnixMicro(), rowLimit(limit))
	return collect("find ended executions", rows, err, scanExecution)
}

// NewestEnded implements store.Retention.
func (s *Store) NewestEnded(ctx context.Context, path string, nth int) (event.ID, error) {
	if nth <= 0 {
		return 0, coded("find newest execution", ctx.Err())
	}
	id, err := one("newest execution", s.reader.QueryRowContext(ctx, newestEndedSQL, path, nth), scanID)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	return id, err
}

// ValuesOf implements store.Retention.
func (s *Store) ValuesOf(ctx context.Context, executions []event.ID) ([]store.Result, error) {
	ids := make([]int64, len(executions))
	for i, id := range executions {
		ids[i] = int64(id)
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.reader.QueryContext(ctx, valuesOfSQL, string(list))
	return collect("find values of executions", rows, err, scanResultMeta)
}

// RemoveExecutions implements store.Retention. The writer is alone: what it
// finds stays so until it has removed.
func (s *Store) RemoveExecutions(ctx context.Context, list []store.Removal, o store.RemovalOptions) (store.RemovalReport, error) {
	var report store.RemovalReport
	err := s.write(ctx, len(list)*removalSize, func(w *writer) error {
		report = store.RemovalReport{Kept: make([]string, len(list)), Rows: map[string]int{}}
		for i, r := range list {
			why, err := w.keeps(r, o)
			if err != nil {
				return coded("remove executions", err)
			}
			report.Kept[i] = why
		}
		if o.DryRun {
			return nil
		}
		for i, r := range list {
			if report.Kept[i] == "" {
				if err := w.remove(r.ExecutionID, o.Now, report.Rows); err != nil {
					return coded("remove executions", err)
				}
			}
		}
		return nil
	})
	if err != nil {
		return store.RemovalReport{Kept: make([]string, len(list)), Rows: map[string]int{}}, err
	}
	return report, nil
}

// removalSize stands for the work of removing one execution when groups are
// bounded.
const removalSize = 4096

// found tells whether a query yields a row.
func (w *writer) found(text string, bind func(*statement)) (bool, error) {
	rows, err := returning(w, text, bind, func(scanner, *struct{}) error { return nil })
	return len(rows) > 0, err
}

// keeps tells what speaks against removing an execution; "" when nothing does.
func (w *writer) keeps(r store.Removal, o store.RemovalOptions) (string, error) {
	id := func(st *statement) { st.id(r.ExecutionID) }
	checks := []struct {
		text string
		bind func(*statement)
		want bool
		why  string
	}{
		{stillEndedSQL, func(st *statement) { st.id(r.ExecutionID).int(r.LastSeq) }, true, store.KeptChanged},
		{executionExistsSQL, func(st *statement) { st.id(r.Parent) }, false, store.KeptParent},
		{heldSQL, func(st *statement) { st.id(r.ExecutionID).int(o.Now.UnixMicro()) }, false, store.KeptHeld},
		{openChildSQL, id, false, store.KeptChild},
	}
	for _, c := range checks {
		if found, err := w.found(c.text, c.bind); err != nil || found != c.want {
			return c.why, err
		}
	}
	values, err := returning(w, valuesSQL, id, scanResultMeta)
	why := ""
	for i := 0; err == nil && i < len(values); i++ {
		why = store.MoreImportant(why, store.ValueKeeps(&values[i], o, func(holder event.ID) bool {
			var known bool
			known, err = w.found(executionExistsSQL, func(st *statement) { st.id(holder) })
			return known
		}))
	}
	if err != nil || why != "" || o.Unpublished {
		return why, err
	}
	waits, err := w.found(unpublishedSQL, id)
	if waits {
		why = store.KeptUnpublished
	}
	return why, err
}

// remove deletes everything of an execution.
func (w *writer) remove(execution event.ID, now time.Time, rows map[string]int) error {
	id := func(st *statement) { st.id(execution) }
	for _, table := range ownedTables {
		n, err := w.change(deleteOf(table), id)
		if err != nil {
			return err
		}
		if n > 0 && table != "execution_hold" {
			rows[table] += int(n)
		}
	}
	n, err := w.change(removeKeychainSQL, id)
	if err != nil {
		return err
	}
	if n > 0 {
		rows["keychain"] += int(n)
	}
	_, err = w.change(noteRemovedSQL, func(st *statement) { st.id(execution).int(now.UnixMicro()) })
	return err
}

// notRemoved refuses to start an execution that was removed, or to leave
// something of it behind.
func (w *writer) notRemoved(execution event.ID) error {
	removed, err := w.found(removedAtSQL, func(st *statement) { st.id(execution) })
	if err == nil && removed {
		return store.ErrRemoved
	}
	return coded("look up removed execution", err)
}

// HoldExecution implements store.Retention.
func (s *Store) HoldExecution(ctx context.Context, id event.ID, until time.Time) error {
	var verdict error
	err := s.write(ctx, 0, func(w *writer) error {
		verdict = nil
		there, err := w.found(executionExistsSQL, func(st *statement) { st.id(id) })
		if err != nil {
			return coded("hold execution", err)
		}
		if !there {
			verdict = store.ErrNotFound
			if err := w.notRemoved(id); err != nil {
				verdict = err
			}
			return nil
		}
		_, err = w.change(holdSQL, func(st *statement) { st.id(id).int(until.UnixMicro()) })
		return coded("hold execution", err)
	})
	return errors.Join(err, verdict)
}

// RemovedAt implements store.Retention.
func (s *Store) RemovedAt(ctx context.Context, id event.ID) (time.Time, error) {
	return one("removed execution", s.reader.QueryRowContext(ctx, removedAtSQL, id), func(row scanner, t *time.Time) error { return row.Scan(micros{t}) })
}

// PurgeRemoved implements store.Retention.
func (s *Store) PurgeRemoved(ctx context.Context, before time.Time, limit int) (int, error) {
	purged := 0
	err := s.write(ctx, 0, func(w *writer) error {
		if _, err := w.change(purgeHoldsSQL, func(st *statement) { st.int(before.UnixMicro()) }); err != nil {
			return coded("purge holds", err)
		}
		n, err := w.change(purgeGoneSQL, func(st *statement) { st.int(before.UnixMicro()).int(int64(rowLimit(limit))) })
		purged = int(n)
		return coded("purge removed executions", err)
	})
	return purged, err
}

// LogState implements store.Retention: the log is one table.
func (s *Store) LogState(ctx context.Context) (store.LogState, error) {
	return store.LogState{}, s.Ping(ctx)
}

// RemoveRange implements store.Retention: there are no parts.
func (s *Store) RemoveRange(ctx context.Context, _ store.RangeRemoval) (map[string]int, bool, error) {
	return nil, false, s.Ping(ctx)
}

// compactPages is how many pages one Compact gives back: the writer is busy for
// some milliseconds.
const compactPages = "2000"

// Compact implements store.Retention. A file that was made before pages could be
// given back keeps them for what comes next.
func (s *Store) Compact(ctx context.Context) (more bool, err error) {
	err = s.write(ctx, 0, func(w *writer) error {
		number := func(text string) (int64, error) {
			rows, err := returning(w, text, func(*statement) {}, func(row scanner, n *int64) error { return row.Scan(n) })
			if err != nil || len(rows) == 0 {
				return 0, err
			}
			return rows[0], nil
		}
		const incremental = 2
		if mode, err := number("PRAGMA auto_vacuum"); err != nil || mode != incremental {
			return coded("compact", err)
		}
		// The pragma works while its rows are read.
		if _, err := returning(w, "PRAGMA incremental_vacuum("+compactPages+")", func(*statement) {}, func(scanner, *struct{}) error { return nil }); err != nil {
			return coded("compact", err)
		}
		free, err := number("PRAGMA freelist_count")
		more = free > 0
		return coded("compact", err)
	})
	return more && err == nil, err
}

// TakeLease implements store.Retention.
func (s *Store) TakeLease(ctx context.Context, name, holder string, now time.Time, ttl time.Duration) (bool, error) {
	n, err := s.change(ctx, "take lease", takeLeaseSQL, func(st *statement) {
		st.str(name).str(holder).int(now.Add(ttl).UnixMicro()).int(now.UnixMicro())
	})
	return n > 0, err
}
