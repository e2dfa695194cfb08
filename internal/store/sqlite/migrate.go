package sqlite

import (
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/store"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

const createMigrations = `CREATE TABLE IF NOT EXISTS schema_migrations (
	version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT`

func knownMigrations() ([]store.Migration, error) {
	dir, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return nil, err
	}
	return store.ReadMigrations(dir)
}

// migrate brings the schema up to date, one transaction per step.
func (w *writer) migrate() error {
	if err := w.run(createMigrations); err != nil {
		return fmt.Errorf("create schema_migrations: %w", err)
	}
	pending, err := w.pendingMigrations()
	if err != nil {
		return err
	}
	for _, m := range pending {
		if err := w.applyMigration(m); err != nil {
			return fmt.Errorf("migrate to %03d_%s: %w", m.Version, m.Name, err)
		}
	}
	return nil
}

func (w *writer) pendingMigrations() ([]store.Migration, error) {
	known, err := knownMigrations()
	if err != nil {
		return nil, err
	}
	applied, err := w.appliedMigrations()
	if err != nil {
		return nil, fmt.Errorf("read schema_migrations: %w", err)
	}
	return store.PendingMigrations(known, applied)
}

func (w *writer) applyMigration(m store.Migration) error {
	for _, text := range []string{"BEGIN IMMEDIATE", m.SQL, recordMigration(m), "COMMIT"} {
		if err := w.run(text); err != nil {
			return errors.Join(err, w.run("ROLLBACK"))
		}
	}
	return nil
}

func recordMigration(m store.Migration) string {
	return fmt.Sprintf("INSERT INTO schema_migrations VALUES (%d, '%s', '%s', '%s')",
		m.Version, strings.ReplaceAll(m.Name, "'", "''"), m.Checksum, time.Now().UTC().Format(time.RFC3339))
}

func (w *writer) appliedMigrations() (map[int]string, error) {
	rows, err := w.query("SELECT version, checksum FROM schema_migrations")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	applied := map[int]string{}
	for row := make([]driver.Value, 2); ; {
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			return applied, nil
		} else if err != nil {
			return nil, err
		}
		applied[int(row[0].(int64))] = row[1].(string)
	}
}
