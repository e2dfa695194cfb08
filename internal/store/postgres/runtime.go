package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const runtimeColumns = `runtime_id, name, kind, coalesce(uri, ''), status, labels, capabilities, runtime, coalesce(capacity, 0),
	heartbeat, created_at, updated_at`

const (
	putRuntimeSQL = `INSERT INTO noetl.runtime (runtime_id, name, kind, uri, status, labels, capabilities, runtime, capacity,
	heartbeat, created_at, updated_at) VALUES ($1, $2, $3, nullif($4, ''), $5, $6::json, $7::json, $8::json, $9, coalesce($10, now()), $11, $12)
	ON CONFLICT (kind, name) DO UPDATE SET uri = excluded.uri, status = excluded.status, labels = excluded.labels,
	capabilities = excluded.capabilities, runtime = excluded.runtime, capacity = excluded.capacity,
	heartbeat = excluded.heartbeat, updated_at = excluded.updated_at RETURNING ` + runtimeColumns
	beatRuntimeSQL = `UPDATE noetl.runtime SET heartbeat = $3 WHERE kind = $1 AND name = $2 RETURNING ` + runtimeColumns
	runtimeSQL     = `SELECT ` + runtimeColumns + ` FROM noetl.runtime WHERE kind = $1 AND name = $2`
	runtimesSQL    = `SELECT ` + runtimeColumns + ` FROM noetl.runtime WHERE ($1 = '' OR kind = $1) AND ($2 = '' OR name LIKE $2)
	ORDER BY kind, name`
	deleteRuntimeSQL = `DELETE FROM noetl.runtime WHERE kind = $1 AND name = $2`
	purgeRuntimesSQL = `DELETE FROM noetl.runtime WHERE heartbeat < $1`
)

func scanRuntime(row scanner, r *store.Runtime) error {
	return row.Scan(&r.RuntimeID, &r.Name, &r.Kind, &r.URI, &r.Status, &r.Labels, &r.Capabilities, &r.Runtime, &r.Capacity,
		stamp{&r.Heartbeat}, stamp{&r.CreatedAt}, stamp{&r.UpdatedAt})
}

// PutRuntime implements store.Runtimes.
func (s *Store) PutRuntime(ctx context.Context, r store.Runtime) (store.Runtime, error) {
	stored, err := one(ctx, s.cluster, "store runtime", scanRuntime, putRuntimeSQL, r.RuntimeID, cleanText(r.Name), cleanText(r.Kind),
		cleanText(r.URI), cleanText(r.Status), nullJSON(r.Labels), nullJSON(r.Capabilities), nullJSON(r.Runtime), r.Capacity,
		nullTime(r.Heartbeat), nullTime(r.CreatedAt), nullTime(r.UpdatedAt))
	if sqlState(err) == uniqueViolation {
		return store.Runtime{}, event.Errorf(event.Conflict, "runtime id %d is already stored", r.RuntimeID)
	}
	return stored, err
}

// BeatRuntime implements store.Runtimes.
func (s *Store) BeatRuntime(ctx context.Context, kind, name string, now time.Time) (store.Runtime, error) {
	return one(ctx, s.cluster, "runtime "+name, scanRuntime, beatRuntimeSQL, cleanText(kind), cleanText(name), now)
}

// Runtime implements store.Runtimes.
func (s *Store) Runtime(ctx context.Context, kind, name string) (store.Runtime, error) {
	return one(ctx, s.cluster, "runtime "+name, scanRuntime, runtimeSQL, cleanText(kind), cleanText(name))
}

// DeleteRuntime implements store.Runtimes.
func (s *Store) DeleteRuntime(ctx context.Context, kind, name string) (bool, error) {
	tag, err := s.cluster.Exec(ctx, deleteRuntimeSQL, cleanText(kind), cleanText(name))
	return tag.RowsAffected() > 0, coded("delete runtime", err)
}

// ListRuntimes implements store.Runtimes.
func (s *Store) ListRuntimes(ctx context.Context, f store.RuntimeFilter) ([]store.Runtime, error) {
	pattern := cleanText(f.Name)
	if tail := len(pattern) - len(strings.TrimRight(pattern, `\`)); tail%2 == 1 {
		pattern += `\` // a backslash at the end stands for itself
	}
	return many(ctx, s.cluster, "list runtimes", scanRuntime, runtimesSQL, cleanText(f.Kind), pattern)
}

// PurgeRuntimes implements store.Runtimes.
func (s *Store) PurgeRuntimes(ctx context.Context, before time.Time) (int, error) {
	tag, err := s.cluster.Exec(ctx, purgeRuntimesSQL, before)
	return int(tag.RowsAffected()), coded("purge runtimes", err)
}
