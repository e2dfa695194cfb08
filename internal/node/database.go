package node

import (
	"context"
	"path/filepath"

	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/sqlite"
)

// OpenDatabase opens the database a node with these options would use, without
// the node. Whoever only reads does not disturb a server that holds the same
// database file; to write, the file must be free.
func OpenDatabase(ctx context.Context, o Options, readOnly bool) (store.Store, error) {
	if o.usesPostgres() {
		opts, err := o.postgresOptions()
		if err != nil {
			return nil, err
		}
		return opened(postgres.Open(ctx, opts))
	}
	file := filepath.Join(o.DataDir, "noetl.db")
	if readOnly {
		return opened(sqlite.OpenReader(ctx, file))
	}
	if err := ensureDir(o.DataDir); err != nil {
		return nil, err
	}
	return opened(sqlite.Open(ctx, file, sqlite.Options{}))
}

// opened keeps a failure from becoming a store that is not nil.
func opened[S store.Store](db S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return db, nil
}
