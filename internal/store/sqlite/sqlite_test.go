package sqlite_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, filepath.Join(t.TempDir(), "noetl.db")) })
}

func TestARelaxedStoreWithOneReaderWorks(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "noetl.db"), sqlite.Options{Relaxed: true, Readers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Append(t.Context(), start(1)); err != nil {
		t.Errorf("Append: %v", err)
	}
	if x, err := s.Execution(t.Context(), 1); err != nil || x.LastSeq != 1 {
		t.Errorf("Execution = %+v, %v", x, err)
	}
}

func start(id event.ID) store.Batch {
	return store.Batch{
		Execution: store.Execution{ExecutionID: id, Status: event.StatusRunning, LastSeq: 1},
		Events:    []event.Event{{ExecutionID: id, Seq: 1, EventID: id + 1, Type: event.PlaybookStarted}},
	}
}

func TestASecondOpenIsRefusedAndSaysWhoHoldsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "noetl.db")
	first := open(t, path)
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if event.CodeOf(err) != event.Conflict || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("second Open = %v, want a conflict that names this process", err)
	}
	if err := first.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	open(t, path)
}

func TestAFileThatIsNoDatabaseIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "noetl.db")
	junk := strings.Repeat("no database ", 1000)
	if err := os.WriteFile(path, []byte(junk), 0o600); err != nil {
		t.Fatal(err)
	}
	_, written := sqlite.Open(t.Context(), path, sqlite.Options{})
	_, read := sqlite.OpenReader(t.Context(), path)
	for _, err := range []error{written, read} {
		e, ok := errors.AsType[*event.Error](err)
		if !ok || e.Code != event.Conflict || !strings.Contains(e.Message, path) || strings.Contains(e.Message, "SELECT") || !strings.Contains(e.Remedy, "backup") {
			t.Errorf("%v", err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != junk {
		t.Errorf("the file was changed: %v", err)
	}
}

func TestTheFilesAreForTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, filepath.Join(dir, "noetl.db"))
	if err := s.Append(t.Context(), start(7)); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(f.Name(), "noetl.db") && !strings.HasSuffix(f.Name(), ".lock") && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s is %s: others can read it", f.Name(), info.Mode())
		}
	}
	if len(files) < 3 {
		t.Fatalf("only %d files", len(files))
	}
}

func TestAReopenedFileHoldsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "dir with ? and % and #", "noetl.db")
	s := open(t, path)
	if err := s.Append(t.Context(), start(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the file is not where it was asked for: %v", err)
	}
	if events, err := open(t, path).Events(t.Context(), 1, 0, 0); err != nil || len(events) != 1 {
		t.Errorf("Events after reopening = %d, %v", len(events), err)
	}
}

// A copy of the files taken while the store is open is what a power cut leaves
// behind, at worst without what was never synced.
func TestAnAcknowledgedAppendIsInTheFilesBeforeClose(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "noetl.db"))
	for id := event.ID(10); id <= 100; id += 10 {
		if err := s.Append(t.Context(), start(id)); err != nil {
			t.Fatal(err)
		}
	}
	after := t.TempDir()
	for _, name := range []string{"noetl.db", "noetl.db-wal"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(after, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := open(t, filepath.Join(after, "noetl.db")).ListExecutions(t.Context(), store.ExecutionFilter{})
	if err != nil || len(got) != 10 {
		t.Errorf("%d executions survived, %v, want 10", len(got), err)
	}
}

func TestConcurrentAppendsShareCommits(t *testing.T) {
	t.Parallel()
	s := open(t, filepath.Join(t.TempDir(), "noetl.db"))
	const appends = 400
	var wg sync.WaitGroup
	for i := range event.ID(appends) {
		wg.Go(func() {
			if err := s.Append(t.Context(), start(10*(i+1))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.Commits(); n < 1 || n > appends/2 {
		t.Errorf("%d commits for %d concurrent appends", n, appends)
	}
}

func TestADatabaseOfANewerProgramIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "noetl.db")
	_ = open(t, path).Close()
	for name, change := range map[string]string{
		"schema version 99": "INSERT INTO schema_migrations VALUES (99, 'future', 'x', 'now')",
		"differs":           "DELETE FROM schema_migrations WHERE version = 99; UPDATE schema_migrations SET checksum = 'other'",
	} {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil || event.CodeOf(err) != event.Conflict {
			t.Errorf("%s: Open = %v, want a conflict", name, err)
		}
	}
}

func TestEveryQueryUsesItsIndex(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]int{
		"without statistics": 0, // the planner does not look at rows then
		"with statistics":    1000,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "noetl.db")
			s := open(t, path)
			fill(t, s, rows)
			_ = s.Close()
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if rows > 0 {
				if _, err := db.Exec("ANALYZE"); err != nil {
					t.Fatal(err)
				}
			}
			for text, index := range sqlite.Queries() {
				if plan := explain(t, db, text); !strings.Contains(plan, index) || walks(plan) || strings.Contains(plan, "TEMP B-TREE") {
					t.Errorf("want %s for\n%s\ngot\n%s", index, text, plan)
				}
			}
			for text, index := range sqlite.SortingQueries() {
				if plan := explain(t, db, text); !strings.Contains(plan, index) || walks(plan) {
					t.Errorf("want %s for\n%s\ngot\n%s", index, text, plan)
				}
			}
		})
	}
}

// walks tells of a plan that reads a large table from one end to the other.
func walks(plan string) bool {
	for line := range strings.Lines(plan) {
		line = strings.TrimSpace(line)
		switch line {
		case "SCAN execution USING COVERING INDEX execution_by_status": // counting them can do no less
			continue
		case "SCAN command USING INDEX command_held": // what is held is no history
			continue
		}
		for _, table := range []string{"event", "e", "execution", "x", "command", "c", "subscription_dedup", "transient"} {
			if line == "SCAN "+table || strings.HasPrefix(line, "SCAN "+table+" ") {
				return true
			}
		}
	}
	return false
}

// fill starts n executions of different kinds with events, commands and all.
func fill(t *testing.T, s *sqlite.Store, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			b := start(event.ID(1000 + 10*i))
			x := &b.Execution
			x.Path, x.CatalogID = fmt.Sprint("path/", i%40), event.ID(i%60)
			x.Status = []string{event.StatusCompleted, event.StatusCompleted, event.StatusFailed, event.StatusRunning}[i%4]
			x.Pool = []string{"", "gpu"}[i%2]
			x.ParentExecutionID = event.ID(i % 5)
			b.Commands = []store.Command{{ExecutionID: x.ExecutionID, EventID: b.Events[0].EventID, Status: event.StatusCompleted}}
			b.Publish = true
			b.Claim = &store.StartClaim{Scope: 1, Key: fmt.Sprint(i)}
			if err := s.Append(t.Context(), b); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func explain(t *testing.T, db *sql.DB, text string) string {
	t.Helper()
	args := make([]any, strings.Count(text, "?"))
	rows, err := db.Query("EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var (
			id, parent, unused int
			detail             string
		)
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(detail + "\n")
	}
	return plan.String()
}
