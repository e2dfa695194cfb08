package sqlite

import (
	"context"
	"strings"

	code "modernc.org/sqlite/lib"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const entryColumns = `catalog_id, path, version, kind, content, payload, meta, created_at, archived_at`

const selectEntry = `SELECT ` + entryColumns + ` FROM catalog `

const (
	entrySQL        = selectEntry + `WHERE catalog_id = ?`
	entryVersionSQL = selectEntry + `WHERE path = ? AND version = ? AND archived_at IS NULL`
	entryLatestSQL  = selectEntry + `WHERE path = ? AND archived_at IS NULL ORDER BY version DESC LIMIT 1`
	insertEntrySQL  = `INSERT INTO catalog (catalog_id, path, kind, content, payload, meta, created_at, version)
	VALUES (?, ?, ?, ?, ?, ?, ?, 1 + (SELECT coalesce(max(version), 0) FROM catalog WHERE path = ?))`
)

func scanEntry(row scanner, e *store.Entry) error {
	return row.Scan(&e.CatalogID, &e.Path, &e.Version, &e.Kind, &e.Content, &e.Payload, &e.Meta,
		micros{&e.CreatedAt}, micros{&e.ArchivedAt})
}

// AddEntry implements store.Catalog.
func (s *Store) AddEntry(ctx context.Context, e store.Entry) (store.Entry, error) {
	if err := s.queue.Submit(ctx, (*entryOp)(&e)); err != nil {
		return store.Entry{}, err
	}
	return s.Entry(ctx, e.CatalogID)
}

type entryOp store.Entry

func (o *entryOp) size() int { return len(o.Content) + len(o.Payload) + len(o.Meta) }

func (o *entryOp) apply(w *writer) error {
	_, err := w.insertEntry.id(o.CatalogID).str(o.Path).str(o.Kind).str(o.Content).
		json(o.Payload).json(o.Meta).time(o.CreatedAt).str(o.Path).exec()
	if resultCode(err)&0xff == code.SQLITE_CONSTRAINT {
		return event.Errorf(event.Conflict, "catalog id %d is already stored", o.CatalogID)
	}
	return coded("store catalog entry", err)
}

// Entry implements store.Catalog.
func (s *Store) Entry(ctx context.Context, id event.ID) (store.Entry, error) {
	return one("catalog entry "+id.String(), s.reader.QueryRowContext(ctx, entrySQL, id), scanEntry)
}

// EntryByPath implements store.Catalog.
func (s *Store) EntryByPath(ctx context.Context, path string, version int) (store.Entry, error) {
	if version == 0 {
		return one("catalog entry "+path, s.reader.QueryRowContext(ctx, entryLatestSQL, path), scanEntry)
	}
	return one("catalog entry "+path, s.reader.QueryRowContext(ctx, entryVersionSQL, path, version), scanEntry)
}

// ListEntries implements store.Catalog.
func (s *Store) ListEntries(ctx context.Context, f store.EntryFilter) ([]store.Entry, error) {
	var (
		where []string
		args  []any
	)
	if f.Kind != "" {
		where, args = append(where, "kind = ?"), append(args, f.Kind)
	}
	if f.Path != "" {
		where, args = append(where, "path = ?"), append(args, f.Path)
	}
	if !f.Archived {
		where = append(where, "archived_at IS NULL")
	}
	text := selectEntry
	if len(where) > 0 {
		text += "WHERE " + strings.Join(where, " AND ")
	}
	rows, err := s.reader.QueryContext(ctx, text+" ORDER BY catalog_id DESC LIMIT ? OFFSET ?",
		append(args, rowLimit(f.Limit), max(f.Offset, 0))...)
	return collect("list catalog", rows, err, scanEntry)
}
