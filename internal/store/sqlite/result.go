package sqlite

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	insertResultSQL = `INSERT INTO result_store (execution_id, ref, name, bytes, sha256, created_at, scope, source_step,
	media_type, store, key, frames, expires_at, pending, data)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	resultColumns = `r.execution_id, r.ref, r.name, r.sha256, r.created_at, r.scope, r.source_step, r.media_type, r.bytes,
	r.store, r.key, r.frames, r.expires_at, r.gone_at, r.pending, r.pinned_by`
	resultSQL      = `SELECT ` + resultColumns + `, data FROM result_store r WHERE execution_id = ? AND ref = ?`
	listResultsSQL = `SELECT ` + resultColumns + ` FROM result_store r
	WHERE execution_id = ? AND ref > ? AND pending = 0 AND gone_at IS NULL ORDER BY ref LIMIT ?`
	expiredResultsSQL = `SELECT ` + resultColumns + ` FROM result_store r
	WHERE expires_at <= ? ORDER BY expires_at, execution_id, ref LIMIT ?`
	endedResultsSQL = `SELECT ` + resultColumns + ` FROM result_store r INDEXED BY result_by_life
	JOIN execution e ON e.execution_id = r.execution_id
	WHERE r.expires_at IS NULL AND r.gone_at IS NULL AND r.scope <> 'permanent' AND r.pending = 0
	AND (r.execution_id, r.ref) > (?, ?) AND e.status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND e.end_time < ?
	ORDER BY r.execution_id, r.ref LIMIT ?`
	finishResultSQL = `UPDATE result_store SET pending = 0, bytes = ?, sha256 = ?, frames = ?, store = ?, key = ?, expires_at = ?
	WHERE execution_id = ? AND ref = ? AND pending = 1 AND gone_at IS NULL`
	retireResultSQL = `UPDATE result_store SET gone_at = ?, data = '', expires_at = CASE WHEN key IS NULL THEN NULL ELSE ? END
	WHERE execution_id = ? AND ref = ? AND gone_at IS NULL AND pending = ? AND pinned_by IS ?`
	dropReservationSQL = `DELETE FROM result_store WHERE execution_id = ? AND ref = ? AND gone_at IS NOT NULL AND pending = 1`
	forgetResultSQL    = `UPDATE result_store SET key = NULL, frames = NULL, expires_at = NULL, pinned_by = NULL
	WHERE execution_id = ? AND ref = ? AND gone_at IS NOT NULL AND pending = 0`
	pinResultSQL = `UPDATE result_store SET pinned_by = CASE WHEN instr(',' || coalesce(pinned_by, '') || ',', ',' || ? || ',') > 0
	THEN pinned_by ELSE coalesce(pinned_by || ',', '') || ? END
	WHERE execution_id = ? AND ref = ? AND pending = 0 AND gone_at IS NULL`
	putPartSQL = `INSERT INTO result_chunk (execution_id, key, part, data) VALUES (?, ?, ?, ?)
	ON CONFLICT DO UPDATE SET data = excluded.data`
	partSQL        = `SELECT data FROM result_chunk WHERE execution_id = ? AND key = ? AND part = ?`
	deletePartsSQL = `DELETE FROM result_chunk WHERE execution_id = ? AND key = ? AND part IN (
	SELECT part FROM result_chunk WHERE execution_id = ? AND key = ? ORDER BY part LIMIT ?)`
)

// PutResult implements store.Results.
func (s *Store) PutResult(ctx context.Context, r store.Result) error {
	return s.queue.Submit(ctx, (*resultOp)(&r))
}

type resultOp store.Result

func (o *resultOp) size() int { return len(o.Data) }

func (o *resultOp) apply(w *writer) error {
	if err := w.notRemoved(o.ExecutionID); err != nil {
		return err
	}
	return w.putResult((*store.Result)(o))
}

func (w *writer) putResult(row *store.Result) error {
	r := row.Normal()
	s := w.insertResult
	s.id(r.ExecutionID).str(r.Ref).str(r.Name).int(r.Bytes).str(r.SHA256).time(r.CreatedAt).str(r.Scope).text(r.SourceStep)
	s.str(r.MediaType).str(r.Tier).text(r.Key).blob(r.Frames).time(r.ExpiresAt).flag(r.Pending).str(string(r.Data))
	_, err := s.exec()
	s.forget()
	return coded("store result", err)
}

// blob binds bytes; none are NULL.
func (s *statement) blob(v []byte) *statement {
	if len(v) == 0 {
		return s.bind(nil)
	}
	return s.bind(v)
}

func (s *statement) flag(v bool) *statement {
	if v {
		return s.bind(int64(1))
	}
	return s.bind(int64(0))
}

// FinishResult implements store.Results.
func (s *Store) FinishResult(ctx context.Context, row store.Result) error {
	r := row.Normal()
	n, err := s.change(ctx, "finish result", finishResultSQL, func(st *statement) {
		st.int(r.Bytes).str(r.SHA256).blob(r.Frames).str(r.Tier).text(r.Key).time(r.ExpiresAt).id(r.ExecutionID).str(r.Ref)
	})
	if err == nil && n == 0 {
		return store.ErrNotFound
	}
	return err
}

func scanResultRow(row scanner, r *store.Result, more ...any) error {
	var step, key, pins nullText
	var pending int64
	err := row.Scan(append([]any{
		&r.ExecutionID, &r.Ref, &r.Name, &r.SHA256,
		micros{&r.CreatedAt},
		&r.Scope, &step, &r.MediaType,
		&r.Bytes, &r.Tier, &key, &r.Frames,
		micros{&r.ExpiresAt},
		micros{&r.GoneAt},
		&pending, &pins,
	}, more...)...)
	if err != nil {
		return err
	}
	r.SourceStep, r.Key, r.Pending = string(step), string(key), pending != 0
	for id := range strings.SplitSeq(string(pins), ",") {
		if n, err := strconv.ParseInt(id, 10, 64); err == nil {
			r.PinnedBy = append(r.PinnedBy, event.ID(n))
		}
	}
	return nil
}

// nullText scans a text column; NULL is the empty text.
type nullText string

func (t *nullText) Scan(v any) error {
	text, _ := v.(string)
	*t = nullText(text)
	return nil
}

func scanResult(row scanner, r *store.Result) error {
	if err := scanResultRow(row, r, &r.Data); err != nil {
		return err
	}
	if len(r.Data) == 0 {
		r.Data = nil
	}
	return nil
}

func scanResultMeta(row scanner, r *store.Result) error { return scanResultRow(row, r) }

// Result implements store.Results.
func (s *Store) Result(ctx context.Context, execution event.ID, ref string) (store.Result, error) {
	r, err := one("result "+ref, s.reader.QueryRowContext(ctx, resultSQL, execution, ref), scanResult)
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
	rows, err := s.reader.QueryContext(ctx, listResultsSQL, execution, after, rowLimit(limit))
	return collect("list results", rows, err, scanResultMeta)
}

// ExpiredResults implements store.Results.
func (s *Store) ExpiredResults(ctx context.Context, now time.Time, limit int) ([]store.Result, error) {
	rows, err := s.reader.QueryContext(ctx, expiredResultsSQL, now.UnixMicro(), rowLimit(limit))
	return collect("find expired results", rows, err, scanResultMeta)
}

// EndedResults implements store.Results.
func (s *Store) EndedResults(ctx context.Context, before time.Time, after store.ResultPosition, limit int) ([]store.Result, error) {
	rows, err := s.reader.QueryContext(ctx, endedResultsSQL, after.ExecutionID, after.Ref, before.UnixMicro(), rowLimit(limit))
	return collect("find results of ended executions", rows, err, scanResultMeta)
}

// RetireResult implements store.Results.
func (s *Store) RetireResult(ctx context.Context, r store.Result, now time.Time) (bool, error) {
	pins := make([]string, len(r.PinnedBy))
	for i, id := range r.PinnedBy {
		pins[i] = id.String()
	}
	n, err := s.change(ctx, "retire result", retireResultSQL, func(st *statement) {
		st.time(now).time(now).id(r.ExecutionID).str(r.Ref).flag(r.Pending).text(strings.Join(pins, ","))
	})
	return n > 0, err
}

// ForgetResult implements store.Results.
func (s *Store) ForgetResult(ctx context.Context, execution event.ID, ref string) error {
	return s.write(ctx, 0, func(w *writer) error {
		for _, text := range []string{dropReservationSQL, forgetResultSQL} {
			if _, err := w.change(text, func(st *statement) { st.id(execution).str(ref) }); err != nil {
				return coded("forget result", err)
			}
		}
		return nil
	})
}

// PinResult implements store.Results.
func (s *Store) PinResult(ctx context.Context, execution event.ID, ref string, holder event.ID) error {
	n, err := s.change(ctx, "pin result", pinResultSQL, func(st *statement) {
		st.str(holder.String()).str(holder.String()).id(execution).str(ref)
	})
	if err != nil || n > 0 {
		return err
	}
	if _, err := s.Result(ctx, execution, ref); err != nil {
		return err
	}
	return event.Errorf(event.Unavailable, "pin result %s: it changed at the same time", ref)
}

// PutPart implements store.Results.
func (s *Store) PutPart(ctx context.Context, execution event.ID, key string, part int, data []byte) error {
	return s.write(ctx, len(data), func(w *writer) error {
		if err := w.notRemoved(execution); err != nil {
			return err
		}
		_, err := w.change(putPartSQL, func(st *statement) { st.id(execution).str(key).int(int64(part)).bind(data) })
		return coded("store part of a result", err)
	})
}

// Part implements store.Results.
func (s *Store) Part(ctx context.Context, execution event.ID, key string, part int) ([]byte, error) {
	return one("part of a result", s.reader.QueryRowContext(ctx, partSQL, execution, key, part), func(row scanner, b *[]byte) error { return row.Scan(b) })
}

// DeleteParts implements store.Results.
func (s *Store) DeleteParts(ctx context.Context, execution event.ID, key string, limit int) (int, error) {
	return s.change(ctx, "delete parts of a result", deletePartsSQL, func(st *statement) {
		st.id(execution).str(key).id(execution).str(key).int(int64(rowLimit(limit)))
	})
}
