package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/noetl/noetl-go/internal/store"
)

// tables are what every database holds, whether or not it uses them all.
var tables = []string{
	"access_login", "access_session", "access_token", "action", "catalog", "command", "credential", "event", "execution", "execution_hold", "execution_removed", "keychain", "outbox", "projection_snapshot", "resource",
	"result_chunk", "result_store", "runtime", "schedule", "schedule_run", "schema_migrations", "secret_audit", "shard", "subscription_dedup", "transient", "work_lease",
}

// Migrate implements store.Schema.
func (s *Store) Migrate(ctx context.Context) error {
	for _, pool := range s.pools() {
		if err := migrate(ctx, pool); err != nil {
			return err
		}
	}
	return nil
}

// pools are the databases, each once.
func (s *Store) pools() []*pgxpool.Pool {
	pools := []*pgxpool.Pool{s.cluster}
	for _, sh := range s.shards {
		if sh.pool != s.cluster {
			pools = append(pools, sh.pool)
		}
	}
	return pools
}

const (
	schemaVersionSQL = `SELECT coalesce(max(version), 0) FROM noetl.schema_migrations`
	schemaTablesSQL  = `SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'noetl' AND c.relkind IN ('r', 'p') AND NOT c.relispartition`
)

// SchemaState implements store.Schema. A table counts as present when every
// database has it.
func (s *Store) SchemaState(ctx context.Context) (store.SchemaState, error) {
	known, err := knownMigrations()
	if err != nil {
		return store.SchemaState{}, err
	}
	state := store.SchemaState{Version: len(known), Want: len(known)}
	found := map[string]int{}
	text := func(row scanner, v *string) error { return row.Scan(v) }
	for _, pool := range s.pools() {
		version, err := one(ctx, pool, "read the schema version", func(row scanner, v *int) error { return row.Scan(v) }, schemaVersionSQL)
		if err != nil && sqlState(err) != undefinedTable {
			return store.SchemaState{}, err
		}
		state.Version = min(state.Version, version)
		names, err := many(ctx, pool, "list tables", text, schemaTablesSQL)
		if err != nil {
			return store.SchemaState{}, err
		}
		for _, name := range names {
			found[name]++
		}
	}
	for name, n := range found {
		if n == len(s.pools()) {
			state.Tables = append(state.Tables, name)
		}
	}
	slices.Sort(state.Tables)
	for _, name := range tables {
		if !slices.Contains(state.Tables, name) {
			state.Missing = append(state.Missing, name)
		}
	}
	slices.Sort(state.Missing)
	return state, nil
}

// PoolState implements store.Schema: the sum over all databases. The pools do
// not tell how many wait.
func (s *Store) PoolState() store.PoolState {
	var sum store.PoolState
	add := func(pool *pgxpool.Pool) {
		st := pool.Stat()
		sum.Min += int(pool.Config().MinConns)
		sum.Max += int(st.MaxConns())
		sum.Open += int(st.TotalConns())
		sum.Idle += int(st.IdleConns())
	}
	for _, pool := range s.pools() {
		add(pool)
	}
	for _, sh := range s.shards {
		add(sh.writers)
	}
	return sum
}

// Shards implements store.Schema.
func (s *Store) Shards() int { return len(s.shards) }
