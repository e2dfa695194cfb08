package sqlite

import (
	"context"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	insertResultSQL = `INSERT INTO result_store (execution_id, ref, name, bytes, sha256, created_at, data)
	VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	resultSQL = `SELECT execution_id, ref, name, sha256, created_at, data FROM result_store WHERE execution_id = ? AND ref = ?`
)

// PutResult implements store.Results.
func (s *Store) PutResult(ctx context.Context, r store.Result) error {
	return s.queue.Submit(ctx, (*resultOp)(&r))
}

type resultOp store.Result

func (o *resultOp) size() int             { return len(o.Data) }
func (o *resultOp) apply(w *writer) error { return w.putResult((*store.Result)(o)) }

func (w *writer) putResult(r *store.Result) error {
	s := w.insertResult
	s.id(r.ExecutionID).str(r.Ref).str(r.Name).int(int64(len(r.Data))).str(r.SHA256).time(r.CreatedAt).json(r.Data)
	_, err := s.exec()
	s.forget()
	return coded("store result", err)
}

func scanResult(row scanner, r *store.Result) error {
	return row.Scan(&r.ExecutionID, &r.Ref, &r.Name, &r.SHA256, micros{&r.CreatedAt}, &r.Data)
}

// Result implements store.Results.
func (s *Store) Result(ctx context.Context, execution event.ID, ref string) (store.Result, error) {
	return one("result "+ref, s.reader.QueryRowContext(ctx, resultSQL, execution, ref), scanResult)
}
