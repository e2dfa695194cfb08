package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	claimHolderSQL = `SELECT execution_id FROM noetl.subscription_dedup
	WHERE subscription_id = $1 AND dedup_key = $2 AND seen_at > $3`
	purgeClaimsSQL = `DELETE FROM noetl.subscription_dedup WHERE ctid = ANY (ARRAY(
	SELECT ctid FROM noetl.subscription_dedup WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))`
)

// claimKey is a claim as it is stored.
type claimKey struct {
	scope event.ID
	key   string
}

func (k claimKey) compare(o claimKey) int {
	return cmp.Or(cmp.Compare(k.scope, o.scope), strings.Compare(k.key, o.key))
}

// longestKey is what an index takes without complaint; longer keys, and those
// PostgreSQL cannot hold, are stored as their hash.
const longestKey = 512

func keyOf(c store.StartClaim) claimKey {
	key := c.Key
	if len(key) > longestKey || cleanText(key) != key {
		sum := sha256.Sum256([]byte(key))
		key = "sha256:" + hex.EncodeToString(sum[:])
	}
	return claimKey{c.Scope, key}
}

// claimShard is the shard a claim lives on, whoever takes it. Every program
// that shares the databases computes it the same way, so it can never change.
func claimShard(c store.StartClaim, n int) int {
	k := keyOf(c)
	return store.ShardIndex(event.ID(xxhash.Sum64(append(binary.LittleEndian.AppendUint64(nil, uint64(k.scope)), k.key...))), n)
}

// Colocated implements store.StartClaims.
func (s *Store) Colocated(id event.ID, c store.StartClaim) bool {
	n := len(s.shards)
	return n <= 1 || store.ShardIndex(id, n) == claimShard(c, n)
}

// ClaimHolder implements store.StartClaims.
func (s *Store) ClaimHolder(ctx context.Context, c store.StartClaim) (event.ID, error) {
	return s.shards[claimShard(c, len(s.shards))].claimHolder(ctx, c)
}

func (sh *shard) claimHolder(ctx context.Context, c store.StartClaim) (event.ID, error) {
	k := keyOf(c)
	return one(ctx, sh.pool, "claim of a start", scanID, claimHolderSQL, k.scope, k.key, c.At.Add(-c.Window))
}

// PurgeClaims implements store.StartClaims.
func (s *Store) PurgeClaims(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.purge(ctx, "purge claims", purgeClaimsSQL, before, limit)
}

func encodeClaim(r *records, execution event.ID, c store.StartClaim) {
	k := keyOf(c)
	r.begin().id(execution).id(k.scope).str(k.key).stamp(c.At).stamp(c.At.Add(c.Window))
	r.end()
}

// loss says why a batch was not stored: its execution has another sequence, was
// removed, or another execution holds its claim.
func (w *writer) loss(it item) error {
	if it.Expected != 0 {
		return store.ErrConflict
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if _, err := w.shard.removedAt(ctx, it.Execution.ExecutionID); err == nil {
		return store.ErrRemoved
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if it.Claim == nil {
		return store.ErrConflict
	}
	_, err := one(ctx, w.shard.pool, "execution", scanID, "SELECT execution_id FROM noetl.execution WHERE execution_id = $1", it.Execution.ExecutionID)
	switch {
	case err == nil:
		return store.ErrConflict
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	holder, err := w.shard.claimHolder(ctx, *it.Claim)
	switch {
	case err == nil:
		return &store.ClaimedError{ExecutionID: holder}
	case errors.Is(err, store.ErrNotFound):
		return event.Errorf(event.Unavailable, "the claim of execution %d was held and is free again: try once more", it.Execution.ExecutionID)
	}
	return err
}
