// Package sqlite is the store in one file: a single writer connection fed by a
// group-commit queue, and a pool of readers beside it. It must not know what
// events mean, nor anything of other drivers.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	sqlite3 "modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/groupcommit"
)

// Options tune a store. The zero value is durable.
type Options struct {
	// Relaxed gives up the last commits on power loss for speed. A crash of
	// the process alone still loses nothing.
	Relaxed bool
	// Readers bounds the connections that read; 0 = 4, or one per CPU if more.
	Readers int
}

// Store implements store.Store over one database file. Make one with Open.
type Store struct {
	lock   *os.File
	reader *sql.DB
	reads  reads
	writer *writer
	queue  *groupcommit.Queue[op]
	close  func() error // once

	outbox outbox
}

var _ store.Store = (*Store)(nil)

// Open opens or creates the database file and brings its schema up to date.
// The file is locked for this process: a second Open fails with a coded
// conflict that says who holds it.
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	lock, err := lockFile(ctx, path+".lock")
	if err != nil {
		return nil, err
	}
	if err := private(path); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s := &Store{lock: lock, outbox: newOutbox()}
	s.close = sync.OnceValue(func() error {
		s.queue.Close()
		return s.release()
	})
	if err := s.open(ctx, path, o); err != nil {
		return nil, errors.Join(notOpened(path, err), s.release())
	}
	return s, nil
}

// private makes a file that does not exist for its owner alone. SQLite gives the
// files beside it the same rights.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return notOpened(path, err)
	}
	return f.Close()
}

// notOpened says why a file could not be opened and what can be done.
func notOpened(path string, err error) error {
	switch resultCode(err) & 0xff {
	case code.SQLITE_NOTADB, code.SQLITE_CORRUPT:
		return &event.Error{
			Code: event.Conflict, Reason: "damaged", Message: path + " is damaged or no database at all", Err: err,
			Remedy: "restore it from a backup, or choose another data directory",
		}
	}
	return coded("open "+path, err)
}

func (s *Store) open(ctx context.Context, path string, o Options) error {
	synchronous := "FULL"
	if o.Relaxed {
		synchronous = "NORMAL"
	}
	readers := o.Readers
	if readers <= 0 {
		readers = max(4, runtime.NumCPU())
	}
	var err error
	if s.writer, err = openWriter(ctx, dsn(path, "synchronous("+synchronous+")", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)")); err != nil {
		return err
	}
	if s.reader, err = sql.Open("sqlite", dsn(path, "query_only(1)")); err != nil {
		return err
	}
	s.reader.SetMaxOpenConns(readers)
	s.reader.SetMaxIdleConns(readers)
	if s.reads, err = prepareReads(ctx, s.reader); err != nil {
		return err
	}
	s.queue = groupcommit.New(groupcommit.Config[op]{Commit: s.writer.commit, Size: op.size})
	return nil
}

// dsn addresses the file as a URI, which is the form that lets a path hold any
// character.
func dsn(path string, pragmas ...string) string {
	// Pages that are freed can be given back only by files that were made so,
	// which is decided before anything else is.
	q := url.Values{"_pragma": append([]string{"busy_timeout(5000)", "auto_vacuum(INCREMENTAL)", "journal_mode(WAL)", "temp_store(MEMORY)", "cache_size(-65536)"}, pragmas...)}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// Ping reads a row.
func (s *Store) Ping(ctx context.Context) error {
	var one int
	return coded("ping", s.reader.QueryRowContext(ctx, "SELECT 1").Scan(&one))
}

// Close commits what waits, and gives up the file. It may be called more than once.
func (s *Store) Close() error { return s.close() }

// release closes what is open, in any state of opening.
func (s *Store) release() error {
	var errs []error
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	return errors.Join(append(errs, unlockFile(s.lock))...)
}

// Commits counts the transactions of this store so far; several appends share one.
func (s *Store) Commits() int64 {
	groups, _ := s.queue.Stats()
	return groups
}

// coded wraps a failure of the database with what was attempted. What passes
// on its own or can be helped by an operator is Unavailable.
func coded(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if errors.Is(err, sql.ErrConnDone) || err.Error() == "sql: database is closed" {
		return fmt.Errorf("%s: %w", doing, groupcommit.ErrClosed)
	}
	switch resultCode(err) & 0xff {
	case code.SQLITE_FULL:
		return &event.Error{Code: event.Unavailable, Message: doing + ": the disk is full", Remedy: "free space in the data directory", Err: err}
	case code.SQLITE_BUSY, code.SQLITE_LOCKED:
		return &event.Error{Code: event.Unavailable, Message: doing + ": the database is locked", Remedy: "another program holds the data file open", Err: err}
	case code.SQLITE_IOERR, code.SQLITE_READONLY, code.SQLITE_CANTOPEN:
		return &event.Error{Code: event.Unavailable, Message: doing + ": " + err.Error(), Remedy: "check the disk and the rights on the data directory", Err: err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// resultCode is SQLite's extended result code, or 0.
func resultCode(err error) int {
	if e, ok := errors.AsType[*sqlite3.Error](err); ok {
		return e.Code()
	}
	return 0
}
