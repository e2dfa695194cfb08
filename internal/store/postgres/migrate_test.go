package postgres_test

import (
	"os"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

// oldDatabase makes a database as a program left it that knew only the first
// migrations, and runs statements on it.
func oldDatabase(t *testing.T, migrations int, statements ...string) string {
	t.Helper()
	dsn := testkit.Postgres(t)
	conn := connect(t, dsn)
	run := func(text string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	known, err := store.ReadMigrations(os.DirFS("migrations"))
	if err != nil {
		t.Fatal(err)
	}
	run(`CREATE SCHEMA noetl; CREATE TABLE noetl.schema_migrations (
		version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())`)
	for _, m := range known[:migrations] {
		run(m.SQL)
		run("INSERT INTO noetl.schema_migrations (version, name, checksum) VALUES ($1, $2, $3)", m.Version, m.Name, m.Checksum)
	}
	for _, text := range statements {
		run(text)
	}
	return dsn
}

const oldExecution = `INSERT INTO noetl.execution (execution_id, last_seq, catalog_id, status, path, version, last_event_id,
	steps_total, steps_completed, steps_running, steps_failed) VALUES (7, 1, 9, 'RUNNING', 'p', 1, 8, 0, 0, 0, 0)`

func TestADatabaseOfAnOlderProgramIsUpgradedWithItsContent(t *testing.T) {
	t.Parallel()
	dsn := oldDatabase(t, 1, oldExecution,
		`INSERT INTO noetl.event (execution_id, seq, event_id, catalog_id, event_type) VALUES (7, 1, 8, 9, 'playbook_started')`)
	s := open(t, postgres.Options{DSN: dsn})
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

// While replicas are replaced one by one, an older one goes on appending with
// the row types it was built for.
func TestRowTypesOfAnOlderProgramSurviveAnUpgrade(t *testing.T) {
	t.Parallel()
	attributes := `SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM pg_attribute
		WHERE attrelid = ANY (ARRAY['noetl.append_execution', 'noetl.append_event', 'noetl.append_command']::regclass[])
		GROUP BY attrelid ORDER BY 1`
	dsn := oldDatabase(t, 1)
	conn := connect(t, dsn)
	before := column(t, conn, attributes)
	open(t, postgres.Options{DSN: dsn})
	after := column(t, conn, attributes)
	if len(before) != 3 || len(after) != 3 {
		t.Fatalf("row types before %q, after %q", before, after)
	}
	for i := range before {
		if before[i] != after[i] {
			t.Errorf("a row type changed from\n%s\nto\n%s", before[i], after[i])
		}
	}
}

// A database that ran before claims, the outbox and shards were known keeps
// its executions and catalog, and takes everything new.
func TestADatabaseWithoutTheControlPlaneIsUpgraded(t *testing.T) {
	t.Parallel()
	dsn := oldDatabase(t, 2, oldExecution,
		`INSERT INTO noetl.event (execution_id, seq, event_id, catalog_id, event_type) VALUES (7, 1, 8, 9, 'playbook_started')`,
		`INSERT INTO noetl.command (event_id, execution_id, catalog_id, attempt, max_attempts, iter_index, status, worker_id, claimed_at)
			VALUES (8, 7, 9, 1, 3, -1, 'CLAIMED', 'w', now())`,
		`INSERT INTO noetl.catalog (catalog_id, path, version, kind, content) VALUES (9, 'p', 1, 'playbook', 'x')`)
	s := open(t, postgres.Options{DSN: dsn})
	ctx, now := t.Context(), time.Now()
	x, err := s.Execution(ctx, 7)
	if err != nil {
		t.Fatal(err)
	}
	x.LastSeq, x.Status = 2, event.StatusFailed
	if err := s.Append(ctx, store.Batch{
		Execution: x, Expected: 1, Publish: true,
		Events: []event.Event{{ExecutionID: 7, Seq: 2, EventID: 10, Type: event.PlaybookFailed}},
	}); err != nil {
		t.Fatalf("Append: %v", err)
	}
	for _, f := range []store.ExecutionFilter{{PathPrefix: "p"}, {Path: "P"}, {CatalogID: 9}, {Status: event.StatusFailed}} {
		if found, err := s.ListExecutions(ctx, f); err != nil || len(found) != 1 {
			t.Errorf("ListExecutions(%+v) = %d, %v", f, len(found), err)
		}
	}
	if rows, err := s.ClaimOutbox(ctx, store.OutboxClaim{Token: "t", Now: now, Lease: time.Minute, Limit: 10}); err != nil || len(rows) != 1 || rows[0].Event.EventID != 10 {
		t.Errorf("ClaimOutbox = %+v, %v: what was stored before is not published anew", rows, err)
	}
	if n, err := s.RenewWorker(ctx, "w", now.Add(-time.Hour), now); err != nil || n != 1 {
		t.Errorf("RenewWorker = %d, %v", n, err)
	}
	if removed, err := s.RemoveEntries(ctx, "p", 0, now); err != nil || len(removed) != 1 || removed[0].ArchivedAt.IsZero() {
		t.Errorf("RemoveEntries = %+v, %v: an execution refers to it", removed, err)
	}
	if state, err := s.SchemaState(ctx); err != nil || state.Version != state.Want || len(state.Missing) != 0 {
		t.Errorf("SchemaState = %+v, %v", state, err)
	}
}

// appendedBy002 is the statement of a program that knew two migrations, cut
// down to what it writes.
const appendedBy002 = `WITH x AS MATERIALIZED (SELECT * FROM unnest($1::noetl.append_execution_2[])), started AS (
	INSERT INTO noetl.execution (execution_id, last_seq, catalog_id, version, steps_total, steps_completed, steps_running, steps_failed, last_event_id, status, path)
	SELECT execution_id, last_seq, catalog_id, version, steps_total, steps_completed, steps_running, steps_failed, last_event_id, status, path FROM x
	ON CONFLICT DO NOTHING RETURNING execution_id
), events AS (
	INSERT INTO noetl.event (execution_id, seq, event_id, catalog_id, event_type)
	SELECT execution_id, seq, event_id, catalog_id, event_type FROM unnest($2::noetl.append_event[]) WHERE execution_id IN (SELECT execution_id FROM started)
) SELECT execution_id::text FROM started`

func TestAnOlderProgramGoesOnAppendingAfterTheUpgrade(t *testing.T) {
	t.Parallel()
	dsn := oldDatabase(t, 2)
	old := connect(t, dsn)
	if _, err := old.Prepare(t.Context(), "append", appendedBy002); err != nil {
		t.Fatal(err)
	}
	s := open(t, postgres.Options{DSN: dsn})
	if won := column(t, old, "append", `{"(0,7,1,9,,1,0,0,0,0,8,,,,,RUNNING,p,,,,,)"}`, `{"(7,1,8,9,,,,,playbook_started,,,,,,,,,)"}`); len(won) != 1 {
		t.Fatalf("the older program stored %v", won)
	}
	if events, err := s.Events(t.Context(), 7, 0, 0); err != nil || len(events) != 1 {
		t.Errorf("Events = %d, %v", len(events), err)
	}
	b := start(7)
	b.Expected, b.Execution.LastSeq, b.Events[0].Seq, b.Events[0].EventID = 1, 2, 2, 99
	if err := s.Append(t.Context(), b); err != nil {
		t.Errorf("Append on top of it: %v", err)
	}
}
