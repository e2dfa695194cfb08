package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/noetl/noetl-go/internal/store"
)

// Inspect looks at a database file without changing it, whoever uses it. One
// that is not there yet is no error.
func Inspect(ctx context.Context, path string) (in store.Inspection, err error) {
	in = store.Inspection{Where: path, Software: "SQLite"}
	known, err := knownMigrations()
	if err != nil {
		return in, err
	}
	in.Known = len(known)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return in, nil
	}
	db, err := sql.Open("sqlite", dsn(path, "query_only(1)"))
	if err != nil {
		return in, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, "SELECT version, checksum FROM schema_migrations")
	if err != nil {
		if strings.Contains(err.Error(), "no such table") {
			return in, nil
		}
		return in, notOpened(path, err)
	}
	type step struct {
		version  int
		checksum string
	}
	steps, err := collect("read schema_migrations", rows, err, func(row scanner, s *step) error { return row.Scan(&s.version, &s.checksum) })
	if err != nil {
		return in, err
	}
	applied := map[int]string{}
	for _, s := range steps {
		applied[s.version] = s.checksum
	}
	in.Exists, in.Applied, in.Sealed = true, len(applied), map[string]string{}
	_, in.Schema = store.PendingMigrations(known, applied)
	rows, err = db.QueryContext(ctx, "SELECT name, data_encrypted FROM credential ORDER BY id DESC LIMIT 20")
	if err != nil {
		return in, nil // tables of an older program
	}
	type line struct{ name, sealed string }
	lines, err := collect("read credentials", rows, err, func(row scanner, l *line) error { return row.Scan(&l.name, &l.sealed) })
	for _, l := range lines {
		in.Sealed[l.name] = l.sealed
	}
	return in, err
}
