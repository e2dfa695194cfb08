package postgres

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	endedExecutionsSQL = selectExecution + `WHERE execution_id > $1 AND execution_id < $2
	AND (status || '') IN ('COMPLETED', 'FAILED', 'CANCELLED') AND end_time < $3 ORDER BY execution_id LIMIT $4`
	newestEndedSQL = `SELECT execution_id FROM (
	(SELECT execution_id FROM noetl.execution WHERE path COLLATE "C" = $1 AND status = 'COMPLETED' ORDER BY execution_id DESC LIMIT $2) UNION ALL
	(SELECT execution_id FROM noetl.execution WHERE path COLLATE "C" = $1 AND status = 'FAILED' ORDER BY execution_id DESC LIMIT $2) UNION ALL
	(SELECT execution_id FROM noetl.execution WHERE path COLLATE "C" = $1 AND status = 'CANCELLED' ORDER BY execution_id DESC LIMIT $2)) AS newest
	ORDER BY execution_id DESC LIMIT $2`
	valuesOfSQL = `SELECT ` + resultFields + ` FROM noetl.result_store r WHERE execution_id = ANY ($1)
	AND key IS NOT NULL AND store <> 'db' ORDER BY execution_id, ref COLLATE "C"`
	removedAtSQL = `SELECT removed_at FROM noetl.execution_removed WHERE execution_id = $1`
	holdSQL      = `INSERT INTO noetl.execution_hold AS h (execution_id, until)
	SELECT execution_id, $2 FROM noetl.execution WHERE execution_id = $1 FOR KEY SHARE
	ON CONFLICT (execution_id) DO UPDATE SET until = greatest(h.until, excluded.until)`
	purgeHoldsSQL = `DELETE FROM noetl.execution_hold WHERE until < $1`
	purgeGoneSQL  = `DELETE FROM noetl.execution_removed WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM noetl.execution_removed WHERE removed_at < $1 ORDER BY removed_at LIMIT $2 FOR UPDATE SKIP LOCKED))`
	takeLeaseSQL = `INSERT INTO noetl.work_lease AS l (name, holder, until) VALUES ($1, $2, $3) ON CONFLICT (name) DO UPDATE
	SET holder = excluded.holder, until = excluded.until WHERE l.holder = excluded.holder OR l.until <= $4`

	presentSQL      = `SELECT execution_id FROM noetl.execution WHERE execution_id = ANY ($1)`
	openChildrenSQL = `SELECT DISTINCT parent_execution_id FROM noetl.execution
	WHERE parent_execution_id = ANY ($1) AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')`
	pinnersSQL = `SELECT DISTINCT unnest(pinned_by) FROM noetl.result_store
	WHERE execution_id = ANY ($1) AND pinned_by IS NOT NULL AND gone_at IS NULL`

	lockEndedSQL = `SELECT execution_id, last_seq FROM noetl.execution WHERE execution_id = ANY ($1)
	AND status IN ('COMPLETED', 'FAILED', 'CANCELLED') ORDER BY execution_id FOR UPDATE`
	heldSQL        = `SELECT execution_id FROM noetl.execution_hold WHERE execution_id = ANY ($1) AND until > $2`
	lockValuesSQL  = `SELECT ` + resultFields + ` FROM noetl.result_store r WHERE execution_id = ANY ($1) ORDER BY execution_id, ref FOR UPDATE`
	unpublishedSQL = `SELECT DISTINCT execution_id FROM noetl.outbox WHERE execution_id = ANY ($1) AND status <> 'PUBLISHED'`
	noteRemovedSQL = `INSERT INTO noetl.execution_removed (execution_id, removed_at) SELECT unnest($1::bigint[]), $2
	ON CONFLICT (execution_id) DO UPDATE SET removed_at = excluded.removed_at`
	removeKeychainSQL = `DELETE FROM noetl.keychain WHERE execution_id = ANY ($1) AND scope_type <> 'global'`
)

// standing keeps execution $1, if it is there, from being removed until the end of
// the statement; unlessRemoved then holds unless it was removed, be it while
// that was waited for. One that has not started yet may have rows already.
const (
	standing      = `WITH standing AS MATERIALIZED (SELECT 1 FROM noetl.execution WHERE execution_id = $1 FOR KEY SHARE) `
	unlessRemoved = `(EXISTS (SELECT FROM standing) OR NOT EXISTS (SELECT FROM noetl.execution WHERE execution_id = $1)
	AND NOT EXISTS (SELECT FROM noetl.execution_removed WHERE execution_id = $1))`
)

// putBeside writes rows beside the log of an execution, $1 of the statement,
// unless it was removed: they would be left behind.
func (s *Store) putBeside(ctx context.Context, doing, text string, execution event.ID, args ...any) error {
	tag, err := s.shard(execution).pool.Exec(ctx, text, append([]any{execution}, args...)...)
	if err != nil || tag.RowsAffected() > 0 {
		return coded(doing, err)
	}
	if _, err := s.RemovedAt(ctx, execution); !errors.Is(err, store.ErrNotFound) {
		return orRemoved(err)
	}
	return nil
}

// orRemoved is an error, or that of an execution that was removed.
func orRemoved(err error) error {
	if err != nil {
		return err
	}
	return store.ErrRemoved
}

// ownedTables are what an execution is made of, the log first.
var ownedTables = []string{
	"event", "command", "result_store", "result_chunk", "outbox", "transient", "projection_snapshot", "execution_hold", "execution",
}

// deleteOf is the statement that deletes the rows of executions.
func deleteOf(table string) string {
	return "DELETE FROM noetl." + table + " WHERE execution_id = ANY ($1)"
}

// EndedExecutions implements store.Retention.
func (s *Store) EndedExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]store.Execution, error) {
	order := func(a, b store.Execution) int { return cmp.Compare(a.ExecutionID, b.ExecutionID) }
	return present(ctx, s, limit, order, func(ctx context.Context, sh *shard, limit int) ([]store.Execution, error) {
		return many(ctx, sh.pool, "find ended executions", scanExecution, endedExecutionsSQL, after, store.EndedBelow(before), before, rowLimit(limit))
	})
}

// NewestEnded implements store.Retention.
func (s *Store) NewestEnded(ctx context.Context, path string, nth int) (event.ID, error) {
	if nth <= 0 {
		return 0, ctx.Err()
	}
	newest := func(a, b event.ID) int { return cmp.Compare(b, a) }
	ids, err := merged(ctx, s, 0, nth, newest, func(ctx context.Context, sh *shard, _, limit int) ([]event.ID, error) {
		return many(ctx, sh.pool, "find newest executions", scanID, newestEndedSQL, cleanText(path), limit)
	})
	if err != nil || len(ids) < nth {
		return 0, err
	}
	return ids[nth-1], nil
}

// byShard sorts ids by where they live.
func (s *Store) byShard(ids []event.ID) map[*shard][]event.ID {
	out := map[*shard][]event.ID{}
	for _, id := range ids {
		sh := s.shard(id)
		out[sh] = append(out[sh], id)
	}
	return out
}

// ValuesOf implements store.Retention.
func (s *Store) ValuesOf(ctx context.Context, executions []event.ID) (out []store.Result, err error) {
	for sh, ids := range s.byShard(executions) {
		rows, err := many(ctx, sh.pool, "find values of executions", scanResultMeta, valuesOfSQL, ids)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
	}
	return cut(out, 0, 0, func(a, b store.Result) int { return a.Position().Compare(b.Position()) }), ctx.Err()
}

// there are those of ids that exist, wherever they live.
func (s *Store) there(ctx context.Context, ids []event.ID) (map[event.ID]bool, error) {
	found := map[event.ID]bool{}
	for sh, part := range s.byShard(ids) {
		rows, err := many(ctx, sh.pool, "look for executions", scanID, presentSQL, part)
		if err != nil {
			return nil, err
		}
		for _, id := range rows {
			found[id] = true
		}
	}
	return found, nil
}

// surroundings are what other databases say about executions to be removed. It
// is asked for before the transaction, because none spans databases: a parent
// that is gone stays so, and an execution that ended starts nothing new.
type surroundings struct {
	parents, openChildren, pinners map[event.ID]bool
}

func (s *Store) surroundings(ctx context.Context, list []store.Removal) (around surroundings, err error) {
	ids, parents := make([]event.ID, len(list)), make([]event.ID, 0, len(list))
	for i, r := range list {
		ids[i] = r.ExecutionID
		if r.Parent != 0 {
			parents = append(parents, r.Parent)
		}
	}
	if around.parents, err = s.there(ctx, parents); err != nil {
		return around, err
	}
	open, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]event.ID, error) {
		return many(ctx, sh.pool, "look for open children", scanID, openChildrenSQL, ids)
	})
	if err != nil {
		return around, err
	}
	around.openChildren = map[event.ID]bool{}
	for _, id := range open {
		around.openChildren[id] = true
	}
	pinners, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]event.ID, error) {
		return many(ctx, sh.pool, "look for pins", scanID, pinnersSQL, ids)
	})
	if err != nil {
		return around, err
	}
	alive, err := s.there(ctx, pinners)
	if err != nil {
		return around, err
	}
	around.pinners = map[event.ID]bool{}
	for _, id := range pinners {
		around.pinners[id] = alive[id]
	}
	return around, nil
}

// pins tells whether an execution counts as one that uses a value: it is there,
// or was not asked for because the pin is new.
func (a *surroundings) pins(id event.ID) bool {
	alive, asked := a.pinners[id]
	return alive || !asked
}

// RemoveExecutions implements store.Retention: one transaction per shard.
func (s *Store) RemoveExecutions(ctx context.Context, list []store.Removal, o store.RemovalOptions) (store.RemovalReport, error) {
	report := store.RemovalReport{Kept: make([]string, len(list)), Rows: map[string]int{}}
	around, err := s.surroundings(ctx, list)
	if err != nil {
		for i := range report.Kept {
			report.Kept[i] = store.KeptChanged
		}
		return report, err
	}
	members := map[*shard][]int{}
	for i, r := range list {
		members[s.shard(r.ExecutionID)] = append(members[s.shard(r.ExecutionID)], i)
	}
	for sh, places := range members {
		part := make([]store.Removal, len(places))
		for i, at := range places {
			part[i] = list[at]
		}
		var kept []string
		var rows map[string]int
		failed := repeated(func() error {
			return pgx.BeginFunc(ctx, sh.pool, func(tx pgx.Tx) (err error) {
				kept, rows, err = removeIn(ctx, tx, part, &around, o)
				return err
			})
		})
		if failed != nil { // what other shards did stays done
			err = errors.Join(err, coded("remove executions", failed))
			kept, rows = make([]string, len(part)), nil
			for i := range kept {
				kept[i] = store.KeptChanged
			}
		}
		for i, at := range places {
			report.Kept[at] = kept[i]
		}
		addRows(report.Rows, rows)
	}
	if o.DryRun {
		return report, err
	}
	return report, errors.Join(err, s.removeKeychain(ctx, list, report.Kept, report.Rows))
}

func addRows(sum, rows map[string]int) {
	for table, n := range rows {
		sum[table] += n
	}
}

// removeIn removes executions of one database in a transaction.
func removeIn(ctx context.Context, tx pgx.Tx, list []store.Removal, around *surroundings, o store.RemovalOptions) (kept []string, rows map[string]int, err error) {
	if kept, err = keptOf(ctx, tx, list, around, o); err != nil || o.DryRun {
		return kept, nil, err
	}
	var gone []event.ID
	for i, why := range kept {
		if why == "" {
			gone = append(gone, list[i].ExecutionID)
		}
	}
	if len(gone) == 0 {
		return kept, nil, nil
	}
	rows = map[string]int{}
	batch := &pgx.Batch{}
	for _, table := range ownedTables {
		batch.Queue(deleteOf(table), gone)
	}
	batch.Queue(noteRemovedSQL, gone, o.Now)
	results := tx.SendBatch(ctx, batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	for _, table := range ownedTables {
		tag, err := results.Exec()
		if err != nil {
			return kept, nil, err
		}
		if n := int(tag.RowsAffected()); n > 0 && table != "execution_hold" {
			rows[table] += n
		}
	}
	_, err = results.Exec()
	return kept, rows, err
}

// removeKeychain removes secrets kept for executions that are gone. They live in
// the cluster database and end by themselves should this not come to pass.
func (s *Store) removeKeychain(ctx context.Context, list []store.Removal, kept []string, rows map[string]int) error {
	var gone []event.ID
	for i, r := range list {
		if kept == nil || kept[i] == "" {
			gone = append(gone, r.ExecutionID)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	tag, err := s.cluster.Exec(ctx, removeKeychainSQL, gone)
	if n := int(tag.RowsAffected()); n > 0 {
		rows["keychain"] += n
	}
	return coded("remove secrets of executions", err)
}

type endedAt struct {
	id  event.ID
	seq int64
}

// keptOf tells what speaks against each removal, with the rows locked.
func keptOf(ctx context.Context, tx pgx.Tx, list []store.Removal, around *surroundings, o store.RemovalOptions) ([]string, error) {
	ids := make([]event.ID, len(list))
	for i, r := range list {
		ids[i] = r.ExecutionID
	}
	ended, err := collect(ctx, tx, func(row scanner, e *endedAt) error { return row.Scan(&e.id, &e.seq) }, lockEndedSQL, ids)
	if err != nil {
		return nil, err
	}
	seqs := make(map[event.ID]int64, len(ended))
	for _, e := range ended {
		seqs[e.id] = e.seq
	}
	held, err := setOf(ctx, tx, heldSQL, ids, o.Now)
	if err != nil {
		return nil, err
	}
	values, err := collect(ctx, tx, scanResultMeta, lockValuesSQL, ids)
	if err != nil {
		return nil, err
	}
	byValue := map[event.ID]string{}
	for i := range values {
		id := values[i].ExecutionID
		byValue[id] = store.MoreImportant(byValue[id], store.ValueKeeps(&values[i], o, around.pins))
	}
	unpublished := map[event.ID]bool{}
	if !o.Unpublished {
		if unpublished, err = setOf(ctx, tx, unpublishedSQL, ids); err != nil {
			return nil, err
		}
	}
	kept := make([]string, len(list))
	for i, r := range list {
		id := r.ExecutionID
		switch seq, there := seqs[id]; {
		case !there || seq != r.LastSeq:
			kept[i] = store.KeptChanged
		case r.Parent != 0 && around.parents[r.Parent]:
			kept[i] = store.KeptParent
		case held[id]:
			kept[i] = store.KeptHeld
		case around.openChildren[id]:
			kept[i] = store.KeptChild
		case byValue[id] != "":
			kept[i] = byValue[id]
		case unpublished[id]:
			kept[i] = store.KeptUnpublished
		}
	}
	return kept, nil
}

func setOf(ctx context.Context, tx pgx.Tx, text string, args ...any) (map[event.ID]bool, error) {
	ids, err := collect(ctx, tx, scanID, text, args...)
	set := make(map[event.ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set, err
}

// HoldExecution implements store.Retention.
func (s *Store) HoldExecution(ctx context.Context, id event.ID, until time.Time) error {
	tag, err := s.shard(id).pool.Exec(ctx, holdSQL, id, until)
	if err != nil || tag.RowsAffected() > 0 {
		return coded("hold execution", err)
	}
	if _, err := s.RemovedAt(ctx, id); err == nil {
		return store.ErrRemoved
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return store.ErrNotFound
}

// RemovedAt implements store.Retention.
func (s *Store) RemovedAt(ctx context.Context, id event.ID) (time.Time, error) {
	return s.shard(id).removedAt(ctx, id)
}

func (sh *shard) removedAt(ctx context.Context, id event.ID) (time.Time, error) {
	return one(ctx, sh.pool, "removed execution", func(row scanner, t *time.Time) error { return row.Scan(stamp{t}) }, removedAtSQL, id)
}

// PurgeRemoved implements store.Retention.
func (s *Store) PurgeRemoved(ctx context.Context, before time.Time, limit int) (int, error) {
	for _, sh := range s.shards {
		if _, err := sh.pool.Exec(ctx, purgeHoldsSQL, before); err != nil {
			return 0, coded("purge holds", err)
		}
	}
	return s.purge(ctx, "purge removed executions", purgeGoneSQL, before, limit)
}

// Compact implements store.Retention: the server's own vacuum does that.
func (s *Store) Compact(ctx context.Context) (bool, error) { return false, s.Ping(ctx) }

// TakeLease implements store.Retention.
func (s *Store) TakeLease(ctx context.Context, name, holder string, now time.Time, ttl time.Duration) (bool, error) {
	tag, err := s.cluster.Exec(ctx, takeLeaseSQL, cleanText(name), cleanText(holder), now.Add(ttl), now)
	return tag.RowsAffected() > 0, coded("take lease", err)
}

// RemoveRange implements store.Retention. The rows beside the log are deleted
// first; the log's part goes at the end, so that the lock everybody would wait
// for is held for a moment only.
func (s *Store) RemoveRange(ctx context.Context, r store.RangeRemoval) (map[string]int, bool, error) {
	if r.Part.Shard < 0 || r.Part.Shard >= len(s.shards) || r.DryRun {
		return nil, false, nil
	}
	around, err := s.surroundings(ctx, r.Members)
	if err != nil {
		return nil, false, err
	}
	for _, m := range r.Members { // the whole range goes, parents with their children
		if m.Parent >= r.Part.From && m.Parent < r.Part.To {
			delete(around.parents, m.Parent)
		}
	}
	var rows map[string]int
	err = pgx.BeginFunc(ctx, s.shards[r.Part.Shard].pool, func(tx pgx.Tx) (err error) {
		rows, err = removeRangeIn(ctx, tx, r, &around)
		return err
	})
	if errors.Is(err, errRangeKept) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, coded("drop "+r.Part.Name, err)
	}
	return rows, true, s.removeKeychain(ctx, r.Members, nil, rows)
}
