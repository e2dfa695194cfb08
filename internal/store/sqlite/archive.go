package sqlite

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/store"
)

const (
	archiveSQL = `UPDATE catalog SET archived_at = ?3 WHERE path = ?1 AND (?2 = 0 OR version = ?2) AND archived_at IS NULL
	RETURNING ` + entryColumns
	restoreSQL = `UPDATE catalog SET archived_at = NULL WHERE path = ?1 AND (?2 = 0 OR version = ?2) AND archived_at IS NOT NULL
	RETURNING ` + entryColumns
	countEntriesSQL = `SELECT count(DISTINCT path) FROM catalog WHERE kind = ? AND archived_at IS NULL`
)

// RemoveEntries implements store.Catalog.
func (s *Store) RemoveEntries(ctx context.Context, path string, version int, now time.Time) ([]store.Entry, error) {
	out, err := writeReturning(ctx, s, "archive catalog entries", archiveSQL, func(st *statement) {
		st.str(path).int(int64(version)).time(now)
	}, scanEntry)
	slices.SortFunc(out, func(a, b store.Entry) int { return cmp.Compare(a.Version, b.Version) })
	return out, err
}

// RestoreEntries implements store.Catalog.
func (s *Store) RestoreEntries(ctx context.Context, path string, version int) ([]store.Entry, error) {
	out, err := writeReturning(ctx, s, "restore catalog entries", restoreSQL, func(st *statement) {
		st.str(path).int(int64(version))
	}, scanEntry)
	slices.SortFunc(out, func(a, b store.Entry) int { return cmp.Compare(a.Version, b.Version) })
	return out, err
}

// CountEntries implements store.Catalog.
func (s *Store) CountEntries(ctx context.Context, kind string) (int64, error) {
	row := s.reader.QueryRowContext(ctx, countEntriesSQL, kind)
	return one("count catalog", row, func(row scanner, n *int64) error { return row.Scan(n) })
}
