package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const selectEntry = `SELECT catalog_id, path, version, kind, content, payload, meta, created_at FROM noetl.catalog `

const (
	entrySQL        = selectEntry + `WHERE catalog_id = $1`
	entryVersionSQL = selectEntry + `WHERE path = $1 AND version = $2`
	entryLatestSQL  = selectEntry + `WHERE path = $1 ORDER BY version DESC LIMIT 1`
	insertEntrySQL  = `INSERT INTO noetl.catalog (catalog_id, path, kind, content, payload, meta, created_at, version)
	VALUES ($1, $2, $3, $4, $5::json, $6::json, $7, 1 + (SELECT coalesce(max(version), 0) FROM noetl.catalog WHERE path = $2))
	RETURNING version`
)

// catalogLock is the first key of the advisory locks that number the versions
// of a path; the second is a hash of the path.
const catalogLock = 705327042

func scanEntry(row scanner, e *store.Entry) error {
	return row.Scan(&e.CatalogID, &e.Path, &e.Version, &e.Kind, &e.Content, &e.Payload, &e.Meta, stamp{&e.CreatedAt})
}

// AddEntry implements store.Catalog. Those who add to one path take turns.
func (s *Store) AddEntry(ctx context.Context, e store.Entry) (store.Entry, error) {
	err := pgx.BeginFunc(ctx, s.cluster, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext($2))", int32(catalogLock), e.Path); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "INSERT INTO noetl.resource (name) VALUES ($1) ON CONFLICT DO NOTHING", e.Kind); err != nil {
			return err
		}
		created := &e.CreatedAt
		if e.CreatedAt.IsZero() {
			created = nil
		} else {
			e.CreatedAt = e.CreatedAt.UTC()
		}
		return tx.QueryRow(ctx, insertEntrySQL, e.CatalogID, e.Path, e.Kind, e.Content,
			nullJSON(e.Payload), nullJSON(e.Meta), created).Scan(&e.Version)
	})
	if sqlState(err) == uniqueViolation {
		return store.Entry{}, event.Errorf(event.Conflict, "catalog id %d is already stored", e.CatalogID)
	}
	if err != nil {
		return store.Entry{}, coded("store catalog entry", err)
	}
	return s.Entry(ctx, e.CatalogID)
}

// nullJSON is a document as a parameter; an empty one is NULL.
func nullJSON(b []byte) *string {
	if len(b) == 0 {
		return nil
	}
	return new(string(b))
}

// Entry implements store.Catalog.
func (s *Store) Entry(ctx context.Context, id event.ID) (store.Entry, error) {
	return one(ctx, s.cluster, "catalog entry "+id.String(), scanEntry, entrySQL, id)
}

// EntryByPath implements store.Catalog.
func (s *Store) EntryByPath(ctx context.Context, path string, version int) (store.Entry, error) {
	if version == 0 {
		return one(ctx, s.cluster, "catalog entry "+path, scanEntry, entryLatestSQL, path)
	}
	return one(ctx, s.cluster, "catalog entry "+path, scanEntry, entryVersionSQL, path, version)
}

// ListEntries implements store.Catalog.
func (s *Store) ListEntries(ctx context.Context, f store.EntryFilter) ([]store.Entry, error) {
	var (
		where []string
		args  []any
	)
	add := func(column, value string) {
		if value != "" {
			args = append(args, value)
			where = append(where, fmt.Sprintf("%s = $%d", column, len(args)))
		}
	}
	add("kind", f.Kind)
	add("path", f.Path)
	text := selectEntry
	if len(where) > 0 {
		text += "WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, rowLimit(f.Limit), max(f.Offset, 0))
	return many(ctx, s.cluster, "list catalog", scanEntry,
		fmt.Sprintf("%s ORDER BY catalog_id DESC LIMIT $%d OFFSET $%d", text, len(args)-1, len(args)), args...)
}
