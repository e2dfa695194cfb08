package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/noetl/noetl-go/internal/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schemaLock is the advisory lock of everything that changes the schema.
const schemaLock = 7053270418

const createMigrations = `CREATE SCHEMA IF NOT EXISTS noetl;
CREATE TABLE IF NOT EXISTS noetl.schema_migrations (
	version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())`

// knownMigrations are the steps this program has.
func knownMigrations() ([]store.Migration, error) {
	dir, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	return store.ReadMigrations(dir)
}

// migrate brings one database up to date. Replicas that start together take
// turns; the second finds nothing left to do.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	known, err := knownMigrations()
	if err != nil {
		return err
	}
	return underSchemaLock(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, createMigrations); err != nil {
			return coded("create schema noetl", err)
		}
		applied, err := appliedMigrations(ctx, tx)
		if err != nil {
			return coded("read schema_migrations", err)
		}
		pending, err := store.PendingMigrations(known, applied)
		if err != nil {
			return err
		}
		for _, m := range pending {
			if err := applyMigration(ctx, tx, m); err != nil {
				return coded(fmt.Sprintf("migrate to %03d_%s", m.Version, m.Name), err)
			}
		}
		return nil
	})
}

// underSchemaLock runs body in a transaction that holds the lock.
func underSchemaLock(ctx context.Context, pool *pgxpool.Pool, body func(pgx.Tx) error) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return coded("connect", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // without effect after the commit
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(schemaLock)); err != nil {
		return coded("wait for the schema lock", err)
	}
	if err := body(tx); err != nil {
		return err
	}
	return coded("commit the schema", tx.Commit(ctx))
}

func applyMigration(ctx context.Context, tx pgx.Tx, m store.Migration) error {
	if _, err := tx.Exec(ctx, m.SQL); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, "INSERT INTO noetl.schema_migrations (version, name, checksum) VALUES ($1, $2, $3)", m.Version, m.Name, m.Checksum)
	return err
}

func appliedMigrations(ctx context.Context, tx pgx.Tx) (map[int]string, error) {
	rows, err := tx.Query(ctx, "SELECT version, checksum FROM noetl.schema_migrations")
	if err != nil {
		return nil, err
	}
	applied := map[int]string{}
	var (
		version  int
		checksum string
	)
	_, err = pgx.ForEachRow(rows, []any{&version, &checksum}, func() error {
		applied[version] = checksum
		return nil
	})
	return applied, err
}
