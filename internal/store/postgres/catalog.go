package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	entryFields = `catalog_id, path, version, kind, content, payload, meta, created_at, archived_at`
	selectEntry = `SELECT ` + entryFields + ` FROM noetl.catalog `
)

const (
	entrySQL        = selectEntry + `WHERE catalog_id = $1`
	entryVersionSQL = selectEntry + `WHERE path = $1 AND version = $2 AND archived_at IS NULL`
	entryLatestSQL  = selectEntry + `WHERE path = $1 AND archived_at IS NULL ORDER BY version DESC LIMIT 1`
	insertEntrySQL  = `INSERT INTO noetl.catalog (catalog_id, path, kind, content, payload, meta, created_at, version)
	VALUES ($1, $2, $3, $4, $5::json, $6::json, $7, 1 + (SELECT coalesce(max(version), 0) FROM noetl.catalog WHERE path = $2))
	RETURNING ` + entryFields
	archiveSQL = `UPDATE noetl.catalog SET archived_at = $3
		WHERE path = $1 AND ($2 = 0 OR version = $2) AND archived_at IS NULL RETURNING ` + entryFields
	restoreSQL = `UPDATE noetl.catalog SET archived_at = NULL
	WHERE path = $1 AND ($2 = 0 OR version = $2) AND archived_at IS NOT NULL RETURNING ` + entryFields
	countEntriesSQL = `SELECT count(DISTINCT path) FROM noetl.catalog WHERE kind = $1 AND archived_at IS NULL`
)

// catalogLock is the first key of the advisory locks that number the versions
// of a path; the second is a hash of the path.
const catalogLock = 705327042

func scanEntry(row scanner, e *store.Entry) error {
	return row.Scan(&e.CatalogID, &e.Path, &e.Version, &e.Kind, &e.Content, &e.Payload, &e.Meta, stamp{&e.CreatedAt}, stamp{&e.ArchivedAt})
}

// AddEntry implements store.Catalog. Those who add to one path take turns.
func (s *Store) AddEntry(ctx context.Context, e store.Entry) (store.Entry, error) {
	var stored store.Entry
	err := s.onPath(ctx, e.Path, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "INSERT INTO noetl.resource (name) VALUES ($1) ON CONFLICT DO NOTHING", e.Kind); err != nil {
			return err
		}
		var created *time.Time
		if !e.CreatedAt.IsZero() {
			created = new(e.CreatedAt.UTC())
		}
		return scanEntry(tx.QueryRow(ctx, insertEntrySQL, e.CatalogID, e.Path, e.Kind, e.Content,
			nullJSON(e.Payload), nullJSON(e.Meta), created), &stored)
	})
	if sqlState(err) == uniqueViolation {
		return store.Entry{}, event.Errorf(event.Conflict, "catalog id %d is already stored", e.CatalogID)
	}
	if err != nil {
		return store.Entry{}, coded("store catalog entry", err)
	}
	return stored, nil
}

// onPath runs body in a transaction that has the path to itself.
func (s *Store) onPath(ctx context.Context, path string, body func(pgx.Tx) error) error {
	return repeated(func() error {
		return pgx.BeginFunc(ctx, s.cluster, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1, hashtext($2))", int32(catalogLock), path); err != nil {
				return err
			}
			return body(tx)
		})
	})
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
	if !f.Archived {
		where = append(where, "archived_at IS NULL")
	}
	text := selectEntry
	if len(where) > 0 {
		text += "WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, rowLimit(f.Limit), max(f.Offset, 0))
	return many(ctx, s.cluster, "list catalog", scanEntry,
		fmt.Sprintf("%s ORDER BY catalog_id DESC LIMIT $%d OFFSET $%d", text, len(args)-1, len(args)), args...)
}
