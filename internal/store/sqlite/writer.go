package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
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
func clean(err error) bool {
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrRemoved) {
		return true
	}
	_, claimed := errors.AsType[*store.ClaimedError](err)
	return claimed
}

// writer is the only connection that writes. It speaks to the driver without
// database/sql: the statements of the hot path are bound and stepped millions
// of times by one goroutine, and pooling buys nothing there.
type writer struct {
	conn driver.Conn

	begin, end, undo          *statement
	savepoint, release, unsav *statement
	insertExecution           [1]*statement
	updateExecution           [3]*statement // cheapest first
	insertEvents              [len(eventRows)]*statement
	insertCommands            [len(commandRows)]*statement
	updateCommand             *statement
	renewLease                *statement
	expireLeases              *statement
	insertEntry               *statement
	insertResult              *statement
	insertOutbox              [len(eventRows)]*statement
	rare                      map[string]*statement // by text, prepared when first used
	all                       []*statement

	// Rows of the transaction under way that wait for company.
	newEvents   []*event.Event
	newCommands []*store.Command
	newOutbox   []*event.Event
}

// openWriter connects, migrates and prepares.
func openWriter(ctx context.Context, dsn string) (*writer, error) {
	conn, err := new(sqlite3.Driver).Open(dsn)
	if err != nil {
		return nil, err
	}
	w := &writer{conn: conn, rare: map[string]*statement{}}
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
		insertExecutionSQL: &w.insertExecution[0],
		touchExecutionSQL:  &w.updateExecution[0],
		wakeExecutionSQL:   &w.updateExecution[1],
		updateExecutionSQL: &w.updateExecution[2],
		updateCommandSQL:   &w.updateCommand,
		renewLeaseSQL:      &w.renewLease,
		expireLeasesSQL:    &w.expireLeases,
		insertEntrySQL:     &w.insertEntry,
		insertResultSQL:    &w.insertResult,
	}
	for i, rows := range eventRows {
		texts[repeatRow(insertEventSQL, rows)] = &w.insertEvents[i]
		texts[repeatRow(insertOutboxSQL, rows)] = &w.insertOutbox[i]
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
		if err := failpoint.Hit(failpoint.CommitAfter); err != nil {
			for i := range errs {
				errs[i] = err
			}
		}
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
		err = failpoint.Hit(failpoint.CommitBefore)
	}
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
	w.newEvents, w.newCommands, w.newOutbox = emptied(w.newEvents), emptied(w.newCommands), emptied(w.newOutbox)
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
