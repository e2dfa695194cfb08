package sqlite

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	executionExistsSQL = `SELECT execution_id FROM execution WHERE execution_id = ?`
	takeClaimSQL       = `INSERT INTO subscription_dedup (subscription_id, dedup_key, execution_id, seen_at, expires_at)
	VALUES (?, ?, ?, ?, ?) ON CONFLICT (subscription_id, dedup_key) DO UPDATE SET execution_id = excluded.execution_id,
	seen_at = excluded.seen_at, expires_at = excluded.expires_at WHERE seen_at <= ? OR execution_id = excluded.execution_id`
	claimHolderSQL = `SELECT execution_id FROM subscription_dedup WHERE subscription_id = ? AND dedup_key = ? AND seen_at > ?`
	purgeClaimsSQL = `DELETE FROM subscription_dedup WHERE (subscription_id, dedup_key) IN (SELECT subscription_id, dedup_key
	FROM subscription_dedup WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`
)

// takeClaim runs before anything of the start is written, so that a start that
// is refused leaves its group alone. The row of the execution is looked for
// first, because a conflict is the more important news.
func (w *writer) takeClaim(c *store.StartClaim, execution event.ID) error {
	there, err := returning(w, executionExistsSQL, func(s *statement) { s.id(execution) }, scanID)
	if err != nil {
		return coded("look up execution", err)
	}
	if len(there) > 0 {
		return store.ErrConflict
	}
	live := c.At.Add(-c.Window).UnixMicro()
	n, err := w.change(takeClaimSQL, func(s *statement) {
		s.id(c.Scope).str(c.Key).id(execution).int(c.At.UnixMicro()).int(c.At.Add(c.Window).UnixMicro()).int(live)
	})
	if err != nil || n == 1 {
		return coded("take claim", err)
	}
	holder, err := returning(w, claimHolderSQL, func(s *statement) { s.id(c.Scope).str(c.Key).int(live) }, scanID)
	if err != nil {
		return coded("look up claim", err)
	}
	return &store.ClaimedError{ExecutionID: holder[0]}
}

// ClaimHolder implements store.StartClaims.
func (s *Store) ClaimHolder(ctx context.Context, c store.StartClaim) (event.ID, error) {
	row := s.reader.QueryRowContext(ctx, claimHolderSQL, c.Scope, c.Key, c.At.Add(-c.Window).UnixMicro())
	return one("claim "+c.Key, row, scanID)
}

// Colocated implements store.StartClaims: all is in one file.
func (s *Store) Colocated(event.ID, store.StartClaim) bool { return true }

// PurgeClaims implements store.StartClaims.
func (s *Store) PurgeClaims(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.change(ctx, "purge claims", purgeClaimsSQL, func(st *statement) {
		st.int(before.UnixMicro()).int(int64(rowLimit(limit)))
	})
}
