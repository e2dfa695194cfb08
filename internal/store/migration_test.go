package store_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func files(names ...string) fstest.MapFS {
	dir := fstest.MapFS{}
	for _, name := range names {
		dir[name] = &fstest.MapFile{Data: []byte("-- " + name)}
	}
	return dir
}

func TestMigrationsAreReadInOrder(t *testing.T) {
	t.Parallel()
	got, err := store.ReadMigrations(files("002_more_rows.sql", "001_init.sql", "notes.md"))
	if err != nil || len(got) != 2 || got[0].Name != "init" || got[1].Version != 2 || got[1].Name != "more_rows" || len(got[0].Checksum) != 64 {
		t.Errorf("ReadMigrations = %+v, %v", got, err)
	}
}

func TestAMissingMigrationIsNoticed(t *testing.T) {
	t.Parallel()
	for _, dir := range []fstest.MapFS{files("001_a.sql", "003_c.sql"), files("first.sql"), files("001_a.sql", "001_b.sql")} {
		if got, err := store.ReadMigrations(dir); err == nil {
			t.Errorf("ReadMigrations = %+v, want an error", got)
		}
	}
}

func TestPendingMigrationsAreThoseNotApplied(t *testing.T) {
	t.Parallel()
	known, err := store.ReadMigrations(files("001_a.sql", "002_b.sql", "003_c.sql"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := store.PendingMigrations(known, map[int]string{1: known[0].Checksum})
	if err != nil || len(got) != 2 || got[0].Version != 2 {
		t.Errorf("PendingMigrations = %+v, %v", got, err)
	}
	for reason, applied := range map[string]map[int]string{
		"schema_newer":   {4: "x"},
		"schema_changed": {1: "x"},
	} {
		_, err := store.PendingMigrations(known, applied)
		coded, ok := err.(*event.Error)
		if !ok || coded.Reason != reason || !strings.Contains(coded.Error(), "(") {
			t.Errorf("PendingMigrations(%v) = %v, want reason %s with a remedy", applied, err, reason)
		}
	}
}
