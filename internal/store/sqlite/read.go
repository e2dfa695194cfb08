package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/store"
)

// reads are the prepared statements of the look-ups that happen per step. They
// end with their connections.
type reads struct {
	events, eventByID, eventIDs, execution, command, commandAnywhere *sql.Stmt
}

func prepareReads(ctx context.Context, db *sql.DB) (reads, error) {
	var r reads
	for text, dst := range map[string]**sql.Stmt{
		eventsSQL:          &r.events,
		eventByIDSQL:       &r.eventByID,
		eventIDsSQL:        &r.eventIDs,
		executionSQL:       &r.execution,
		commandSQL:         &r.command,
		commandAnywhereSQL: &r.commandAnywhere,
	} {
		st, err := db.PrepareContext(ctx, text)
		if err != nil {
			return r, fmt.Errorf("prepare %q: %w", text, err)
		}
		*dst = st
	}
	return r, nil
}

// querier is what reads inside and outside of a transaction.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, text string, args ...any) *sql.Row
	PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
}

// reading runs several queries that see the database at one moment.
func (s *Store) reading(ctx context.Context, doing string, run func(q querier) error) error {
	tx, err := s.reader.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return coded(doing, err)
	}
	defer func() { _ = tx.Rollback() }()
	return coded(doing, run(tx))
}

// scanner is the part of sql.Row and sql.Rows the row readers need.
type scanner interface{ Scan(dest ...any) error }

// collect reads all rows of a query.
func collect[T any](doing string, rows *sql.Rows, err error, scan func(scanner, *T) error) ([]T, error) {
	if err != nil {
		return nil, coded(doing, err)
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, coded(doing, err)
		}
		out = append(out, v)
	}
	return out, coded(doing, rows.Err())
}

// one reads a single row; none is store.ErrNotFound.
func one[T any](doing string, row *sql.Row, scan func(scanner, *T) error) (T, error) {
	var v T
	err := scan(row, &v)
	if errors.Is(err, sql.ErrNoRows) {
		return v, fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	return v, coded(doing, err)
}

// rowLimit is the LIMIT of a query whose limit 0 means all.
func rowLimit(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}

// micros scans a column of microseconds into a time; NULL is the zero time.
type micros struct{ t *time.Time }

func (m micros) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*m.t = time.Time{}
	case int64:
		*m.t = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("time column holds %T", v)
	}
	return nil
}
