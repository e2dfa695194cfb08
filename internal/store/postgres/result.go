package postgres

import (
	"context"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	putResultSQL = `INSERT INTO noetl.result_store (` + resultColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`
	resultSQL    = `SELECT execution_id, ref, created_at, name, sha256, data FROM noetl.result_store WHERE execution_id = $1 AND ref = $2`
)

// PutResult implements store.Results. It does not wait for a group: whatever
// refers to the value is appended later to the same database, and is durable
// no sooner than the value.
func (s *Store) PutResult(ctx context.Context, r store.Result) error {
	created := &r.CreatedAt
	if r.CreatedAt.IsZero() {
		created = nil
	}
	_, err := s.shard(r.ExecutionID).pool.Exec(ctx, putResultSQL, r.ExecutionID, cleanText(r.Ref), created,
		int64(len(r.Data)), cleanText(r.Name), r.SHA256, r.Data)
	return coded("store result", err)
}

func encodeResult(e *records, r *store.Result) {
	e.begin().id(r.ExecutionID).str(r.Ref).stamp(r.CreatedAt).int8(int64(len(r.Data))).str(r.Name).str(r.SHA256).json(r.Data)
	e.end()
}

func scanResult(row scanner, r *store.Result) error {
	return row.Scan(&r.ExecutionID, &r.Ref, stamp{&r.CreatedAt}, &r.Name, &r.SHA256, &r.Data)
}

// Result implements store.Results.
func (s *Store) Result(ctx context.Context, execution event.ID, ref string) (store.Result, error) {
	return one(ctx, s.shard(execution).pool, "result "+ref, scanResult, resultSQL, execution, cleanText(ref))
}
