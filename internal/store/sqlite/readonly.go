package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store/groupcommit"
)

// OpenReader opens a database file for reading only, beside the process that
// holds it, if any. It locks nothing and changes nothing: the schema must be
// the one this program knows, and every write is refused.
func OpenReader(ctx context.Context, path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, &event.Error{
				Code: event.NotFound, Message: "there is no database " + path,
				Remedy: "name the directory of a server with --data-dir", Err: err,
			}
		}
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	db, err := sql.Open("sqlite", dsn(path, "query_only(1)"))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	readers := max(4, runtime.NumCPU())
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	s := &Store{reader: db, outbox: newOutbox()}
	if s.reads, err = prepareReads(ctx, db); err != nil {
		if damaged := notOpened(path, err); event.CodeOf(damaged) == event.Conflict {
			return nil, errors.Join(damaged, db.Close())
		}
		return nil, errors.Join(&event.Error{
			Code: event.Conflict, Message: "the tables of " + path + " are not those of this program: " + err.Error(),
			Remedy: "bring them up to date with noetl db init", Reason: "schema_older", Err: err,
		}, db.Close())
	}
	s.queue = groupcommit.New(groupcommit.Config[op]{
		Commit: func(_ []op, errs []error) { refuse(errs) }, Size: op.size,
	})
	s.close = sync.OnceValue(func() error {
		s.queue.Close()
		return db.Close()
	})
	return s, nil
}

func refuse(errs []error) {
	for i := range errs {
		errs[i] = event.Errorf(event.Forbidden, "the database is open for reading only")
	}
}
