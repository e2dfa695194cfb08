package sqlite

import (
	"context"
	"slices"
	"time"

	code "modernc.org/sqlite/lib"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const runtimeColumns = `runtime_id, name, kind, coalesce(uri, ''), status, labels, capabilities, capacity, runtime, heartbeat, created_at, updated_at`

const (
	putRuntimeSQL = `INSERT INTO runtime (runtime_id, name, kind, uri, status, labels, capabilities, capacity, runtime,
	heartbeat, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE
	SET uri = excluded.uri, status = excluded.status, labels = excluded.labels, capabilities = excluded.capabilities,
	capacity = excluded.capacity, runtime = excluded.runtime, heartbeat = excluded.heartbeat, updated_at = excluded.updated_at
	RETURNING ` + runtimeColumns
	beatRuntimeSQL   = `UPDATE runtime SET heartbeat = ? WHERE kind = ? AND name = ? RETURNING ` + runtimeColumns
	runtimeSQL       = `SELECT ` + runtimeColumns + ` FROM runtime WHERE kind = ? AND name = ?`
	listRuntimesSQL  = `SELECT ` + runtimeColumns + ` FROM runtime ORDER BY kind, name`
	deleteRuntimeSQL = `DELETE FROM runtime WHERE kind = ? AND name = ?`
	purgeRuntimesSQL = `DELETE FROM runtime WHERE heartbeat IS NULL OR heartbeat < ?`
)

func scanRuntime(row scanner, r *store.Runtime) error {
	return row.Scan(&r.RuntimeID, &r.Name, &r.Kind, &r.URI, &r.Status, &r.Labels, &r.Capabilities, &r.Capacity, &r.Runtime,
		micros{&r.Heartbeat}, micros{&r.CreatedAt}, micros{&r.UpdatedAt})
}

// PutRuntime implements store.Runtimes.
func (s *Store) PutRuntime(ctx context.Context, r store.Runtime) (store.Runtime, error) {
	stored, err := writeReturning(ctx, s, "store runtime", putRuntimeSQL, func(st *statement) {
		st.id(r.RuntimeID).str(r.Name).str(r.Kind).text(r.URI).str(r.Status).json(r.Labels).json(r.Capabilities)
		st.int(int64(r.Capacity)).json(r.Runtime).time(r.Heartbeat).time(r.CreatedAt).time(r.UpdatedAt)
	}, scanRuntime)
	if resultCode(err)&0xff == code.SQLITE_CONSTRAINT {
		return store.Runtime{}, event.Errorf(event.Conflict, "runtime id %d is already stored", r.RuntimeID)
	}
	return first(stored, err)
}

// BeatRuntime implements store.Runtimes.
func (s *Store) BeatRuntime(ctx context.Context, kind, name string, now time.Time) (store.Runtime, error) {
	return first(writeReturning(ctx, s, "beat runtime", beatRuntimeSQL, func(st *statement) {
		st.time(now).str(kind).str(name)
	}, scanRuntime))
}

// Runtime implements store.Runtimes.
func (s *Store) Runtime(ctx context.Context, kind, name string) (store.Runtime, error) {
	return one("runtime "+name, s.reader.QueryRowContext(ctx, runtimeSQL, kind, name), scanRuntime)
}

// DeleteRuntime implements store.Runtimes.
func (s *Store) DeleteRuntime(ctx context.Context, kind, name string) (bool, error) {
	n, err := s.change(ctx, "delete runtime", deleteRuntimeSQL, func(st *statement) { st.str(kind).str(name) })
	return n == 1, err
}

// ListRuntimes implements store.Runtimes. SQLite's LIKE ignores case, so the
// few rows there are get compared here.
func (s *Store) ListRuntimes(ctx context.Context, f store.RuntimeFilter) ([]store.Runtime, error) {
	rows, err := s.reader.QueryContext(ctx, listRuntimesSQL)
	all, err := collect("list runtimes", rows, err, scanRuntime)
	return slices.DeleteFunc(all, func(r store.Runtime) bool {
		return f.Kind != "" && r.Kind != f.Kind || f.Name != "" && !store.Like(f.Name, r.Name)
	}), err
}

// PurgeRuntimes implements store.Runtimes.
func (s *Store) PurgeRuntimes(ctx context.Context, before time.Time) (int, error) {
	return s.change(ctx, "purge runtimes", purgeRuntimesSQL, func(st *statement) { st.int(before.UnixMicro()) })
}
