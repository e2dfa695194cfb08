package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	putResultSQL = standing + `INSERT INTO noetl.result_store (` + resultColumns + `, scope, source_step, media_type, store, key, frames,
	expires_at, pending) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 WHERE ` + unlessRemoved + ` ON CONFLICT DO NOTHING`
	resultFields = `r.execution_id, r.ref, r.name, r.sha256, r.created_at, r.scope, coalesce(r.source_step, ''), r.media_type,
	r.bytes, r.store, coalesce(r.key, ''), r.frames, r.expires_at, r.gone_at, r.pending, r.pinned_by`
	resultSQL      = `SELECT ` + resultFields + `, data FROM noetl.result_store r WHERE execution_id = $1 AND ref = $2`
	listResultsSQL = `SELECT ` + resultFields + ` FROM noetl.result_store r
	WHERE execution_id = $1 AND ref COLLATE "C" > $2 AND NOT pending AND gone_at IS NULL ORDER BY ref COLLATE "C" LIMIT $3`
	expiredResultsSQL = `SELECT ` + resultFields + ` FROM noetl.result_store r
	WHERE expires_at <= $1 ORDER BY expires_at, execution_id, ref COLLATE "C" LIMIT $2`
	endedResultsSQL = `SELECT ` + resultFields + ` FROM noetl.result_store r JOIN noetl.execution e ON e.execution_id = r.execution_id
	WHERE r.expires_at IS NULL AND r.gone_at IS NULL AND r.scope <> 'permanent' AND NOT r.pending
	AND r.execution_id >= $1 AND (r.execution_id > $1 OR r.ref COLLATE "C" > $2) AND r.execution_id < $5
	AND e.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND e.end_time < $3
	ORDER BY r.execution_id, r.ref COLLATE "C" LIMIT $4`
	finishResultSQL = `UPDATE noetl.result_store SET pending = false, bytes = $3, sha256 = $4, frames = $5, store = $6, key = $7, expires_at = $8
	WHERE execution_id = $1 AND ref = $2 AND pending AND gone_at IS NULL`
	retireResultSQL = `UPDATE noetl.result_store SET gone_at = $3::timestamptz, data = NULL, expires_at = CASE WHEN key IS NULL THEN NULL ELSE $3::timestamptz END
	WHERE execution_id = $1 AND ref = $2 AND gone_at IS NULL AND pending = $4 AND coalesce(pinned_by, '{}') = $5`
	forgetResultSQL = `WITH dropped AS (
		DELETE FROM noetl.result_store WHERE execution_id = $1 AND ref = $2 AND gone_at IS NOT NULL AND pending
	) UPDATE noetl.result_store SET key = NULL, frames = NULL, expires_at = NULL, pinned_by = NULL
	WHERE execution_id = $1 AND ref = $2 AND gone_at IS NOT NULL AND NOT pending`
	pinResultSQL = `UPDATE noetl.result_store SET pinned_by =
	CASE WHEN $3 = ANY (coalesce(pinned_by, '{}')) THEN pinned_by ELSE array_append(coalesce(pinned_by, '{}'), $3) END
	WHERE execution_id = $1 AND ref = $2 AND NOT pending AND gone_at IS NULL`
	putPartSQL = standing + `INSERT INTO noetl.result_chunk (execution_id, key, part, data) SELECT $1, $2, $3, $4 WHERE ` + unlessRemoved + `
	ON CONFLICT (execution_id, key, part) DO UPDATE SET data = excluded.data`
	partSQL        = `SELECT data FROM noetl.result_chunk WHERE execution_id = $1 AND key = $2 AND part = $3`
	deletePartsSQL = `DELETE FROM noetl.result_chunk WHERE execution_id = $1 AND key = $2 AND part = ANY (ARRAY(
	SELECT part FROM noetl.result_chunk WHERE execution_id = $1 AND key = $2 ORDER BY part LIMIT $3))`
)

// PutResult implements store.Results. It does not wait for a group: whatever
// refers to the value is appended later to the same database, and is durable
// no sooner than the value.
func (s *Store) PutResult(ctx context.Context, row store.Result) error {
	r := row.Normal()
	return s.putBeside(ctx, "store result", putResultSQL, r.ExecutionID, cleanText(r.Ref), nullTime(r.CreatedAt), r.Bytes,
		cleanText(r.Name), r.SHA256, nullJSON(r.Data), r.Scope, nullText(r.SourceStep), r.MediaType, r.Tier, nullText(r.Key), r.Frames,
		nullTime(r.ExpiresAt), r.Pending)
}

func nullText(v string) *string {
	if v = cleanText(v); v == "" {
		return nil
	}
	return &v
}

func encodeResult(e *records, r *store.Result) {
	e.begin().id(r.ExecutionID).str(r.Ref).stamp(r.CreatedAt).int8(int64(len(r.Data))).str(r.Name).str(r.SHA256).json(r.Data)
	e.end()
}

func scanResultRow(row scanner, r *store.Result, more ...any) error {
	var pins []int64
	err := row.Scan(append([]any{
		&r.ExecutionID, &r.Ref, &r.Name, &r.SHA256,
		stamp{&r.CreatedAt},
		&r.Scope, &r.SourceStep, &r.MediaType,
		&r.Bytes, &r.Tier, &r.Key, &r.Frames,
		stamp{&r.ExpiresAt},
		stamp{&r.GoneAt},
		&r.Pending, &pins,
	}, more...)...)
	for _, id := range pins {
		r.PinnedBy = append(r.PinnedBy, event.ID(id))
	}
	return err
}

func scanResult(row scanner, r *store.Result) error     { return scanResultRow(row, r, &r.Data) }
func scanResultMeta(row scanner, r *store.Result) error { return scanResultRow(row, r) }

// FinishResult implements store.Results.
func (s *Store) FinishResult(ctx context.Context, row store.Result) error {
	r := row.Normal()
	tag, err := s.shard(r.ExecutionID).pool.Exec(ctx, finishResultSQL, r.ExecutionID, cleanText(r.Ref), r.Bytes, r.SHA256, r.Frames,
		r.Tier, nullText(r.Key), nullTime(r.ExpiresAt))
	if err == nil && tag.RowsAffected() == 0 {
		return store.ErrNotFound
	}
	return coded("finish result", err)
}

// Result implements store.Results.
func (s *Store) Result(ctx context.Context, execution event.ID, ref string) (store.Result, error) {
	r, err := one(ctx, s.shard(execution).pool, "result "+ref, scanResult, resultSQL, execution, cleanText(ref))
	switch {
	case err != nil:
		return store.Result{}, err
	case r.Pending:
		return store.Result{}, store.ErrNotFound
	case !r.GoneAt.IsZero():
		return store.Result{}, store.ErrCollected
	}
	return r, nil
}

// ListResults implements store.Results.
func (s *Store) ListResults(ctx context.Context, execution event.ID, after string, limit int) ([]store.Result, error) {
	return many(ctx, s.shard(execution).pool, "list results", scanResultMeta, listResultsSQL, execution, cleanText(after), rowLimit(limit))
}

func byPosition(a, b store.Result) int { return a.Position().Compare(b.Position()) }

// ExpiredResults implements store.Results.
func (s *Store) ExpiredResults(ctx context.Context, now time.Time, limit int) ([]store.Result, error) {
	order := func(a, b store.Result) int { return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), byPosition(a, b)) }
	return present(ctx, s, limit, order, func(ctx context.Context, sh *shard, limit int) ([]store.Result, error) {
		return many(ctx, sh.pool, "find expired results", scanResultMeta, expiredResultsSQL, now, rowLimit(limit))
	})
}

// EndedResults implements store.Results. What started later cannot have ended
// earlier, which spares a look at most of what is there.
func (s *Store) EndedResults(ctx context.Context, before time.Time, after store.ResultPosition, limit int) ([]store.Result, error) {
	f := store.ExecutionFilter{StartedTo: before}
	_, to := f.IDRange()
	return present(ctx, s, limit, byPosition, func(ctx context.Context, sh *shard, limit int) ([]store.Result, error) {
		return many(ctx, sh.pool, "find results of ended executions", scanResultMeta, endedResultsSQL,
			after.ExecutionID, cleanText(after.Ref), before, rowLimit(limit), to)
	})
}

// RetireResult implements store.Results.
func (s *Store) RetireResult(ctx context.Context, r store.Result, now time.Time) (bool, error) {
	pins := make([]int64, len(r.PinnedBy))
	for i, id := range r.PinnedBy {
		pins[i] = int64(id)
	}
	tag, err := s.shard(r.ExecutionID).pool.Exec(ctx, retireResultSQL, r.ExecutionID, cleanText(r.Ref), now, r.Pending, pins)
	return err == nil && tag.RowsAffected() > 0, coded("retire result", err)
}

// ForgetResult implements store.Results.
func (s *Store) ForgetResult(ctx context.Context, execution event.ID, ref string) error {
	_, err := s.shard(execution).pool.Exec(ctx, forgetResultSQL, execution, cleanText(ref))
	return coded("forget result", err)
}

// PinResult implements store.Results.
func (s *Store) PinResult(ctx context.Context, execution event.ID, ref string, holder event.ID) error {
	tag, err := s.shard(execution).pool.Exec(ctx, pinResultSQL, execution, cleanText(ref), int64(holder))
	if err != nil || tag.RowsAffected() > 0 {
		return coded("pin result", err)
	}
	if _, err := s.Result(ctx, execution, ref); err != nil {
		return err
	}
	return event.Errorf(event.Unavailable, "pin result %s: it changed at the same time", ref)
}

// PutPart implements store.Results.
func (s *Store) PutPart(ctx context.Context, execution event.ID, key string, part int, data []byte) error {
	return s.putBeside(ctx, "store part of a result", putPartSQL, execution, cleanText(key), part, data)
}

// Part implements store.Results.
func (s *Store) Part(ctx context.Context, execution event.ID, key string, part int) ([]byte, error) {
	return one(ctx, s.shard(execution).pool, "part of a result", func(row scanner, b *[]byte) error { return row.Scan(b) },
		partSQL, execution, cleanText(key), part)
}

// DeleteParts implements store.Results.
func (s *Store) DeleteParts(ctx context.Context, execution event.ID, key string, limit int) (int, error) {
	tag, err := s.shard(execution).pool.Exec(ctx, deletePartsSQL, execution, cleanText(key), rowLimit(limit))
	return int(tag.RowsAffected()), coded("delete parts of a result", err)
}
