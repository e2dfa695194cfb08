package sqlite

import (
	"context"
	"regexp"
	"slices"

	"github.com/noetl/noetl-go/internal/store"
)

const (
	tablesSQL        = `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`
	schemaVersionSQL = `SELECT count(*) FROM schema_migrations`
)

// Migrate implements store.Schema. Opening has done it, and the file is locked
// since: it can only find that somebody meddled.
func (s *Store) Migrate(ctx context.Context) error {
	return s.write(ctx, 0, func(w *writer) error {
		pending, err := w.pendingMigrations()
		for i := 0; err == nil && i < len(pending); i++ {
			if err = w.run(pending[i].SQL); err == nil {
				err = w.run(recordMigration(pending[i]))
			}
		}
		return coded("migrate", err)
	})
}

var createdTable = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)

// SchemaState implements store.Schema.
func (s *Store) SchemaState(ctx context.Context) (store.SchemaState, error) {
	known, err := knownMigrations()
	if err != nil {
		return store.SchemaState{}, err
	}
	out := store.SchemaState{Want: len(known)}
	err = s.reading(ctx, "look at the schema", func(q querier) error {
		rows, err := q.QueryContext(ctx, tablesSQL)
		if out.Tables, err = collect("list tables", rows, err, scanText); err != nil {
			return err
		}
		return q.QueryRowContext(ctx, schemaVersionSQL).Scan(&out.Version)
	})
	if err != nil {
		return store.SchemaState{}, err
	}
	for _, m := range known {
		for _, match := range createdTable.FindAllStringSubmatch(m.SQL, -1) {
			if !slices.Contains(out.Tables, match[1]) {
				out.Missing = append(out.Missing, match[1])
			}
		}
	}
	slices.Sort(out.Missing)
	return out, nil
}

// PoolState implements store.Schema: the readers and the writer.
func (s *Store) PoolState() store.PoolState {
	st := s.reader.Stats()
	return store.PoolState{Min: 1, Max: st.MaxOpenConnections + 1, Open: st.OpenConnections + 1, Idle: st.Idle}
}

// Shards implements store.Schema.
func (s *Store) Shards() int { return 1 }
