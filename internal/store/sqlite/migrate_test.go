package sqlite_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// oldDatabase makes a file as a program wrote it that knew only the first
// migrations, and runs statements on it.
func oldDatabase(t *testing.T, migrations int, statements ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "noetl.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(text string, args ...any) {
		t.Helper()
		if _, err := db.Exec(text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	known, err := store.ReadMigrations(os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	run("CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT")
	for _, m := range known[:migrations] {
		run(m.SQL)
		run("INSERT INTO schema_migrations VALUES (?, ?, ?, 'then')", m.Version, m.Name, m.Checksum)
	}
	for _, text := range statements {
		run(text)
	}
	return path
}

func TestAFileOfAnOlderProgramIsUpgradedWithItsContent(t *testing.T) {
	t.Parallel()
	path := oldDatabase(t, 1,
		`INSERT INTO event (execution_id, seq, event_id, catalog_id, event_type) VALUES (7, 1, 8, 9, 'playbook_started')`,
		`INSERT INTO execution (execution_id, last_seq, catalog_id, status, path, version, last_event_id, steps_total,
			steps_completed, steps_running, steps_failed) VALUES (7, 1, 9, 'RUNNING', 'p', 1, 8, 0, 0, 0, 0)`)
	s := open(t, path)
	x, err := s.Execution(t.Context(), 7)
	if err != nil || x.LastSeq != 1 || x.Path != "p" || !x.WakeAt.IsZero() {
		t.Fatalf("Execution = %+v, %v", x, err)
	}
	wake := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	x.WakeAt, x.LastSeq = wake, 2
	r := store.Result{ExecutionID: 7, Ref: "r", Name: "n", Data: []byte(`{"a":1}`), SHA256: "s"}
	err = s.Append(t.Context(), store.Batch{
		Execution: x, Expected: 1, Results: []store.Result{r},
		Events: []event.Event{{ExecutionID: 7, Seq: 2, EventID: 10, Type: event.StepEnter}},
	})
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	if due, err := s.DueExecutions(t.Context(), wake, 0); err != nil || len(due) != 1 || due[0] != 7 {
		t.Errorf("DueExecutions = %v, %v", due, err)
	}
	if got, err := s.Result(t.Context(), 7, "r"); err != nil || string(got.Data) != `{"a":1}` {
		t.Errorf("Result = %s, %v", got.Data, err)
	}
	if events, err := s.Events(t.Context(), 7, 0, 0); err != nil || len(events) != 2 {
		t.Errorf("Events = %d, %v", len(events), err)
	}
}

func TestExecutionsOfAnOlderFileAreListedAndTheirEntriesKept(t *testing.T) {
	t.Parallel()
	path := oldDatabase(t, 2,
		`INSERT INTO catalog (catalog_id, path, version, kind, content) VALUES (9, 'etl/daily', 1, 'playbook', 'x'), (10, 'etl/daily', 2, 'playbook', 'y')`,
		`INSERT INTO event (execution_id, seq, event_id, catalog_id, event_type) VALUES (7, 1, 8, 9, 'playbook_started')`,
		`INSERT INTO execution (execution_id, last_seq, catalog_id, parent_execution_id, status, path, version, pool, last_event_id, steps_total,
			steps_completed, steps_running, steps_failed) VALUES (7, 1, 9, 3, 'RUNNING', 'etl/daily', 1, 'gpu', 8, 0, 0, 0, 0)`,
		`INSERT INTO command (event_id, execution_id, catalog_id, status, worker_id, attempt, max_attempts, iter_index, lease_until)
			VALUES (8, 7, 9, 'RUNNING', 'w', 1, 3, -1, 1000)`)
	s := open(t, path)
	for name, f := range map[string]store.ExecutionFilter{
		"path": {Path: "DAILY"}, "prefix": {PathPrefix: "etl/"}, "catalog": {CatalogID: 9}, "parent": {ParentID: 3},
		"pool": {Pool: "gpu"}, "status": {Status: event.StatusRunning}, "all": {},
	} {
		if got, err := s.ListExecutions(t.Context(), f); err != nil || len(got) != 1 || got[0].ExecutionID != 7 {
			t.Errorf("by %s = %+v, %v", name, got, err)
		}
	}
	if got, err := s.ExpiredCommands(t.Context(), time.Unix(1, 0), 0); err != nil || len(got) != 1 {
		t.Errorf("ExpiredCommands = %v, %v", got, err)
	}
	removed, err := s.RemoveEntries(t.Context(), "etl/daily", 0, time.Unix(5, 0))
	if err != nil || len(removed) != 2 || removed[0].ArchivedAt.IsZero() || removed[1].ArchivedAt.IsZero() {
		t.Errorf("RemoveEntries = %+v, %v", removed, err)
	}
}
