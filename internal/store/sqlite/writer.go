package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// op is one write. apply runs inside a transaction of the writer and may leave
// rows to be flushed together with those of other ops. An error that clean
// recognises left nothing behind; after any other the writer undoes what the
// op did.
type op interface {
	size() int
	apply(w *writer) error
}

// clean tells whether a refused op has changed nothing, so that the group it
// shares can go on.
func clean(err error) bool { return errors.Is(err, store.ErrConflict) }

// writer is the only connection that writes. It speaks to the driver without
// database/sql: the statements of the hot path are bound and stepped millions
// of times by one goroutine, and pooling buys nothing there.
type writer struct {
	conn driver.Conn

	begin, end, undo          *statement
	savepoint, release, unsav *statement
	insertExecution           *statement
	touchExecution            *statement
	updateExecution           *statement
	insertEvents              [len(eventRows)]*statement
	insertCommands            [len(commandRows)]*statement
	updateCommand             *statement
	renewLease                *statement
	expireLeases              *statement
	insertEntry               *statement
	insertResult              *statement
	all                       []*statement

	// Rows of the transaction under way that wait for company.
	newEvents   []*event.Event
	newCommands []*store.Command
}

// openWriter connects, migrates and prepares.
func openWriter(ctx context.Context, dsn string) (*writer, error) {
	conn, err := new(sqlite3.Driver).Open(dsn)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn}
	if err = ctx.Err(); err == nil {
		err = w.migrate()
	}
	if err == nil {
		err = w.prepareAll()
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *writer) prepareAll() error {
	texts := map[string]**statement{
		"BEGIN IMMEDIATE":  &w.begin,
		"COMMIT":           &w.end,
		"ROLLBACK":         &w.undo,
		"SAVEPOINT one":    &w.savepoint,
		"RELEASE one":      &w.release,
		"ROLLBACK TO one":  &w.unsav,
		insertExecutionSQL: &w.insertExecution,
		touchExecutionSQL:  &w.touchExecution,
		updateExecutionSQL: &w.updateExecution,
		updateCommandSQL:   &w.updateCommand,
		renewLeaseSQL:      &w.renewLease,
		expireLeasesSQL:    &w.expireLeases,
		insertEntrySQL:     &w.insertEntry,
		insertResultSQL:    &w.insertResult,
	}
	for i, rows := range eventRows {
		texts[repeatRow(insertEventSQL, rows)] = &w.insertEvents[i]
	}
	for i, rows := range commandRows {
		texts[repeatRow(insertCommandSQL, rows)] = &w.insertCommands[i]
	}
	for text, dst := range texts {
		s, err := w.prepare(text)
		if err != nil {
			return fmt.Errorf("prepare %q: %w", text, err)
		}
		*dst = s
	}
	return nil
}

// commit is the group commit: all ops in one transaction, one fsync.
func (w *writer) commit(group []op, errs []error) {
	err := w.transaction(func() error {
		for i, o := range group {
			if errs[i] = o.apply(w); errs[i] != nil && !clean(errs[i]) {
				return errs[i]
			}
		}
		return w.flush()
	})
	if err == nil {
		return
	}
	// Somebody's op broke half-way and took the group along. Run it again with
	// a savepoint each, so that only the guilty pays.
	clear(errs)
	if err := w.transaction(func() error { return w.applyEach(group, errs) }); err != nil {
		for i := range errs {
			errs[i] = coded("commit", err)
		}
	}
}

func (w *writer) applyEach(group []op, errs []error) error {
	for i, o := range group {
		if _, err := w.savepoint.exec(); err != nil {
			return err
		}
		if errs[i] = o.apply(w); errs[i] == nil {
			errs[i] = w.flush()
		}
		if errs[i] != nil {
			w.forget()
			if _, err := w.unsav.exec(); err != nil {
				return err
			}
		}
		if _, err := w.release.exec(); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) transaction(body func() error) error {
	if _, err := w.begin.exec(); err != nil {
		return err
	}
	defer w.forget()
	err := body()
	if err == nil {
		_, err = w.end.exec()
	}
	if err != nil {
		// Some failures end the transaction by themselves; the complaint about
		// that is not the news.
		_, _ = w.undo.exec()
	}
	return err
}

// forget drops rows that were not flushed, and what the buffers still point to.
func (w *writer) forget() {
	w.newEvents, w.newCommands = emptied(w.newEvents), emptied(w.newCommands)
}

// emptied is a buffer for the next group; one of unusual size is let go.
func emptied[T any](buf []T) []T {
	if cap(buf) > 1<<14 {
		return nil
	}
	buf = buf[:cap(buf)]
	clear(buf)
	return buf[:0]
}

// run executes a script without parameters.
func (w *writer) run(script string) error {
	_, err := w.conn.(driver.ExecerContext).ExecContext(context.Background(), script, nil)
	return err
}

func (w *writer) query(text string) (driver.Rows, error) {
	return w.conn.(driver.QueryerContext).QueryContext(context.Background(), text, nil)
}

func (w *writer) close() error {
	errs := make([]error, 0, len(w.all)+1)
	for _, s := range w.all {
		errs = append(errs, s.st.(driver.Stmt).Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

// statement is a prepared statement with its argument list, which is filled by
// the binding methods in order and emptied by exec.
type statement struct {
	st   driver.StmtExecContext
	args []driver.NamedValue
	n    int
}

func (w *writer) prepare(text string) (*statement, error) {
	st, err := w.conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := &statement{st: st.(driver.StmtExecContext), args: make([]driver.NamedValue, strings.Count(text, "?"))}
	for i := range s.args {
		s.args[i].Ordinal = i + 1
	}
	w.all = append(w.all, s)
	return s, nil
}

// exec runs the statement and returns how many rows it changed. A writer has
// no business with a caller's context: the group belongs to many callers.
func (s *statement) exec() (int64, error) {
	res, err := s.st.ExecContext(context.Background(), s.args[:s.n])
	s.n = 0
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// forget drops the arguments of the last run, for statements whose arguments
// are too large to be kept until the next.
func (s *statement) forget() {
	for i := range s.args {
		s.args[i].Value = nil
	}
}

func (s *statement) bind(v driver.Value) *statement {
	s.args[s.n].Value = v
	s.n++
	return s
}

func (s *statement) int(v int64) *statement   { return s.bind(v) }
func (s *statement) id(v event.ID) *statement { return s.bind(int64(v)) }

// nullID binds a reference; 0 is none.
func (s *statement) nullID(v event.ID) *statement {
	if v == 0 {
		return s.bind(nil)
	}
	return s.bind(int64(v))
}

// str binds a string as it is, text one whose absence is NULL.
func (s *statement) str(v string) *statement { return s.bind(v) }

func (s *statement) text(v string) *statement {
	if v == "" {
		return s.bind(nil)
	}
	return s.bind(v)
}

// json binds a document as text, for people who open the file with sqlite3.
func (s *statement) json(v []byte) *statement {
	if len(v) == 0 {
		return s.bind(nil)
	}
	return s.bind(string(v))
}

func (s *statement) time(t time.Time) *statement {
	if t.IsZero() {
		return s.bind(nil)
	}
	return s.bind(t.UnixMicro())
}
