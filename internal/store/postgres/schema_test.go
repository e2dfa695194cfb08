package postgres_test

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestShardIndexNeverChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id      event.ID
		n, want int
	}{{320816801799737344, 16, 14}, {1, 4, 1}, {42, 4, 3}, {325, 4, 0}, {325, 8, 4}, {9223372036854775807, 4, 0}} {
		if got := store.ShardIndex(c.id, c.n); got != c.want {
			t.Errorf("ShardIndex(%d, %d) = %d, want %d", c.id, c.n, got, c.want)
		}
	}
}

func start(id event.ID) store.Batch {
	return store.Batch{
		Execution: store.Execution{ExecutionID: id, Status: event.StatusRunning, LastSeq: 1},
		Events:    []event.Event{{ExecutionID: id, Seq: 1, EventID: id + 1, Type: event.PlaybookStarted}},
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// column reads a query with one text column.
func column(t *testing.T, conn *pgx.Conn, text string, args ...any) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

func TestReplicasMayOpenAnEmptyDatabaseTogether(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	errs := make(chan error, 4)
	for range cap(errs) {
		go func() {
			s, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn, MaxConns: 2})
			if err == nil {
				err = s.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Errorf("Open: %v", err)
		}
	}
}

func TestPartitionsAreMadeAheadAndTakeWhatFellIntoTheDefault(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	s, conn := open(t, postgres.Options{DSN: dsn}), connect(t, dsn)
	at := func(year int) event.ID {
		return event.ID((time.Date(year, 2, 15, 0, 0, 0, 0, time.UTC).UnixMilli() - 1704067200000) << 22)
	}
	where := func(id event.ID) string {
		return column(t, conn, "SELECT tableoid::regclass::text FROM noetl.event WHERE execution_id = $1", id)[0]
	}
	var placed []string
	for _, id := range []event.ID{1, at(2040)} {
		if err := s.Append(t.Context(), start(id)); err != nil {
			t.Fatal(err)
		}
		placed = append(placed, where(id))
	}
	if err := s.EnsurePartitions(t.Context(), time.Date(2039, 8, 31, 23, 0, 0, 0, time.UTC)); err != nil {
		t.Fatalf("EnsurePartitions: %v", err)
	}
	if err := s.EnsurePartitions(t.Context(), time.Date(2039, 8, 31, 23, 0, 0, 0, time.UTC)); err != nil {
		t.Fatalf("EnsurePartitions again: %v", err)
	}
	placed = append(placed, where(at(2040)))
	if diff := cmp.Diff([]string{"noetl.event_pre_2026", "noetl.event_default", "noetl.event_2040_02"}, placed); diff != "" {
		t.Errorf("partitions (-want +got):\n%s", diff)
	}
	made := column(t, conn, `SELECT c.relname || ' ' || pg_get_expr(c.relpartbound, c.oid) FROM pg_class c
		WHERE c.relname LIKE 'event\_2039\___' AND c.relkind = 'r' ORDER BY 1`)
	want := []string{}
	for m := 8; m <= 12; m++ {
		boundary := func(month int) int64 {
			return (time.Date(2039, time.Month(month), 1, 0, 0, 0, 0, time.UTC).UnixMilli() - 1704067200000) << 22
		}
		want = append(want, fmt.Sprintf("event_2039_%02d FOR VALUES FROM ('%d') TO ('%d')", m, boundary(m), boundary(m+1)))
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("partitions of 2039 (-want +got):\n%s", diff)
	}
}

func TestADatabaseOfANewerProgramIsRefused(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	_ = open(t, postgres.Options{DSN: dsn}).Close()
	run(t, dsn, "INSERT INTO noetl.schema_migrations VALUES (99, 'future', 'x')")
	if _, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn}); err == nil || event.CodeOf(err) != event.Conflict {
		t.Errorf("Open = %v, want a conflict", err)
	}
}

func TestOpenSaysWhatIsWrongWithTheAddress(t *testing.T) {
	t.Parallel()
	for dsn, code := range map[string]event.Code{
		"postgres://[broken":                                    event.Invalid,
		"postgres://x@127.0.0.1:1/x?connect_timeout=2":          event.Unavailable,
		"host=/nonexistent user=x dbname=x connect_timeout=2":   event.Unavailable,
		testkit.Postgres(t) + "&dbname=surely_no_such_database": event.Unavailable,
	} {
		if _, err := postgres.Open(t.Context(), postgres.Options{DSN: dsn}); err == nil || event.CodeOf(err) != code {
			t.Errorf("Open(%s) = %v (%s), want %s", dsn, err, event.CodeOf(err), code)
		}
	}
}

func TestALostConnectionIsReportedAndTheNextAppendWorks(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	s, conn := open(t, postgres.Options{DSN: dsn, Writers: 1}), connect(t, dsn)
	if err := s.Append(t.Context(), start(1)); err != nil {
		t.Fatal(err)
	}
	// The append waits for a lock while its connection is cut.
	if _, err := conn.Exec(t.Context(), "BEGIN; LOCK TABLE noetl.execution IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Append(t.Context(), start(10)) }()
	killer := connect(t, dsn)
	for len(column(t, killer, `SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%append_execution%' AND pid <> pg_backend_pid()`)) == 0 {
	}
	if err := <-failed; event.CodeOf(err) != event.Unavailable {
		t.Errorf("Append over a cut connection = %v (%s), want an unavailable error", err, event.CodeOf(err))
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), start(20)); err != nil {
		t.Errorf("the next Append = %v", err)
	}
	if _, err := s.Execution(t.Context(), 10); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the execution of the cut append: %v, want ErrNotFound", err)
	}
}

func TestTextThatPostgreSQLCannotHoldDoesNotStopAnExecution(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{DSN: testkit.Postgres(t)})
	b := start(1)
	b.Events[0].Error = "nul \x00 and broken \xff utf-8"
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatalf("Append: %v", err)
	}
	e, err := s.Event(t.Context(), 1, 2)
	if err != nil || e.Error != "nul \uFFFD and broken \uFFFD utf-8" {
		t.Errorf("error = %q, %v", e.Error, err)
	}
	b = start(10)
	b.Events[0].Result = []byte(`{"not": json`)
	if err := s.Append(t.Context(), b); err == nil || event.CodeOf(err) != event.Invalid {
		t.Errorf("Append of broken JSON = %v, want an invalid error", err)
	}
}

func TestEveryQueryUsesItsIndex(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	open(t, postgres.Options{DSN: dsn})
	conn := connect(t, dsn)
	// One long execution tells the two indexes of the log apart. The other
	// tables are empty, which tempts the planner to scan; what remains scanned
	// with that discouraged has no index to use.
	for _, set := range []string{
		"INSERT INTO noetl.event (execution_id, seq, event_id, catalog_id, event_type) SELECT 1, i, i, 1, 'x' FROM generate_series(1, 5000) i",
		"ANALYZE noetl.event",
		"SET enable_seqscan = off", "SET enable_bitmapscan = off",
		"SET plan_cache_mode = force_generic_plan",
	} {
		if _, err := conn.Exec(t.Context(), set); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range postgres.Queries() {
		plan := strings.Join(column(t, conn, "EXPLAIN "+q.Text, q.Args...), "\n")
		if !strings.Contains(plan, q.Index) || strings.Contains(plan, "Seq Scan") {
			t.Errorf("want %s for\n%s\ngot\n%s", q.Index, q.Text, plan)
		}
	}
}

func TestTheAppendStatementNeverScansATable(t *testing.T) {
	t.Parallel()
	dsn := testkit.Postgres(t)
	open(t, postgres.Options{DSN: dsn})
	conn := connect(t, dsn)
	if err := postgres.PrepareWriter(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	for form := range 8 {
		call := fmt.Sprintf("noetl_append_%d('{}', '{}', '{}'%s)", form, strings.Repeat(", '{}'", bits.OnesCount(uint(form))))
		plan := strings.Join(column(t, conn, "EXPLAIN EXECUTE "+call), "\n")
		if strings.Contains(plan, "Seq Scan") || strings.Contains(plan, "Sort") || !strings.Contains(plan, "execution_pkey") {
			t.Errorf("plan of %s:\n%s", call, plan)
		}
	}
}
