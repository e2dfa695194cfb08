package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/noetl/noetl-go/internal/store"
)

// scanner is the part of pgx.Row and pgx.Rows the row readers need.
type scanner interface{ Scan(dest ...any) error }

// many reads all rows of a query.
func many[T any](ctx context.Context, pool *pgxpool.Pool, doing string, scan func(scanner, *T) error, text string, args ...any) ([]T, error) {
	rows, err := pool.Query(ctx, text, args...)
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
func one[T any](ctx context.Context, pool *pgxpool.Pool, doing string, scan func(scanner, *T) error, text string, args ...any) (T, error) {
	var v T
	err := scan(pool.QueryRow(ctx, text, args...), &v)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, fmt.Errorf("%s: %w", doing, store.ErrNotFound)
	}
	return v, coded(doing, err)
}

// rowLimit is the LIMIT of a query whose limit 0 means all.
func rowLimit(n int) *int64 {
	if n <= 0 {
		return nil
	}
	return new(int64(n))
}

// cut orders rows of several shards and takes a page; a limit of 0 means all.
func cut[T any](rows []T, offset, limit int, order func(a, b T) int) []T {
	slices.SortFunc(rows, order)
	rows = rows[min(max(offset, 0), len(rows)):]
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	if len(rows) == 0 {
		return nil
	}
	return rows
}

// stamp scans a time column into UTC; NULL is the zero time.
type stamp struct{ t *time.Time }

func (s stamp) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*s.t = time.Time{}
	case time.Time:
		*s.t = v.UTC()
	default:
		return fmt.Errorf("time column holds %T", v)
	}
	return nil
}
