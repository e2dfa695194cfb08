package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/store"
)

// RemoveEntries implements store.Catalog.
func (s *Store) RemoveEntries(ctx context.Context, path string, version int, now time.Time) (archived []store.Entry, err error) {
	path = cleanText(path)
	err = s.onPath(ctx, path, func(tx pgx.Tx) (err error) {
		archived, err = collect(ctx, tx, scanEntry, archiveSQL, path, version, now)
		return err
	})
	return byVersion(archived), coded("archive catalog entries", err)
}

// RestoreEntries implements store.Catalog.
func (s *Store) RestoreEntries(ctx context.Context, path string, version int) (restored []store.Entry, err error) {
	path = cleanText(path)
	err = s.onPath(ctx, path, func(tx pgx.Tx) (err error) {
		restored, err = collect(ctx, tx, scanEntry, restoreSQL, path, version)
		return err
	})
	return byVersion(restored), coded("restore catalog entries", err)
}

// CountEntries implements store.Catalog.
func (s *Store) CountEntries(ctx context.Context, kind string) (int64, error) {
	return one(ctx, s.cluster, "count catalog paths", func(row scanner, n *int64) error { return row.Scan(n) }, countEntriesSQL, cleanText(kind))
}

func byVersion(entries []store.Entry) []store.Entry {
	slices.SortFunc(entries, func(a, b store.Entry) int { return cmp.Compare(a.Version, b.Version) })
	return entries
}

// collect is many within a transaction.
func collect[T any](ctx context.Context, tx pgx.Tx, scan func(scanner, *T) error, text string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (v T, err error) {
		err = scan(row, &v)
		return v, err
	})
}
