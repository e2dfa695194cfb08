package store

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Migration is one forward step of a driver's schema. Drivers embed theirs as
// NNN_name.sql and keep the table schema_migrations with these columns.
type Migration struct {
	Version  int
	Name     string
	Checksum string // SHA-256 of SQL in hex
	SQL      string
}

// ReadMigrations loads the *.sql files of a directory in version order and
// refuses gaps: a missing number is a lost file, not a choice.
func ReadMigrations(dir fs.FS) ([]Migration, error) {
	names, err := fs.Glob(dir, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	slices.Sort(names)
	out := make([]Migration, 0, len(names))
	for i, file := range names {
		text, err := fs.ReadFile(dir, file)
		if err != nil {
			return nil, fmt.Errorf("read migration: %w", err)
		}
		number, name, _ := strings.Cut(strings.TrimSuffix(file, ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: want number %03d", file, i+1)
		}
		sum := sha256.Sum256(text)
		out = append(out, Migration{Version: version, Name: name, Checksum: hex.EncodeToString(sum[:]), SQL: string(text)})
	}
	return out, nil
}

// PendingMigrations compares what a database has applied (checksums by
// version) with what this program knows, and returns what is left to run. A
// database from a newer or a different program is refused with a remedy.
func PendingMigrations(known []Migration, applied map[int]string) ([]Migration, error) {
	for version, sum := range applied {
		if version < 1 || version > len(known) {
			return nil, &event.Error{
				Code:    event.Conflict,
				Message: fmt.Sprintf("the database has schema version %d, this program knows %d", version, len(known)),
				Remedy:  "it was written by a newer noetl: upgrade this program",
				Reason:  "schema_newer",
			}
		}
		if m := known[version-1]; m.Checksum != sum {
			return nil, &event.Error{
				Code:    event.Conflict,
				Message: fmt.Sprintf("schema migration %03d_%s of the database differs from the one in this program", m.Version, m.Name),
				Remedy:  "use the noetl build that created the database, or start with an empty one",
				Reason:  "schema_changed",
			}
		}
	}
	var out []Migration
	for _, m := range known {
		if _, done := applied[m.Version]; !done {
			out = append(out, m)
		}
	}
	return out, nil
}
