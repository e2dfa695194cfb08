package postgres_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/storetest"
	"github.com/noetl/noetl-go/internal/testkit"
)

// planNode is a node of a plan that was run.
type planNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Removed  float64    `json:"Rows Removed by Filter"`
	Plans    []planNode `json:"Plans"`
}

// each calls visit for the node and all below it.
func (n planNode) each(visit func(planNode)) {
	visit(n)
	for _, p := range n.Plans {
		p.each(visit)
	}
}

// busyDatabase has a past, and a little of everything that waits.
func busyDatabase(t *testing.T, now time.Time) string {
	t.Helper()
	dsn := testkit.Postgres(t)
	_ = open(t, postgres.Options{DSN: dsn}).Close()
	if err := (storetest.Fill{Executions: 60_000, Events: 2, Now: now}).Postgres(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`WITH few AS (SELECT execution_id FROM noetl.execution ORDER BY execution_id DESC LIMIT 500)
			UPDATE noetl.execution x SET status = 'RUNNING', wake_at = now() FROM few WHERE x.execution_id = few.execution_id`,
		`WITH few AS (SELECT event_id FROM noetl.command ORDER BY event_id DESC LIMIT 900) UPDATE noetl.command c
			SET status = (ARRAY['PENDING', 'CLAIMED', 'RUNNING'])[1 + c.event_id % 3], lease_until = now(), claimed_at = now(), worker_id = 'w' || c.event_id % 20
			FROM few WHERE c.event_id = few.event_id`,
		`INSERT INTO noetl.outbox (execution_id, event_id, status, published_at)
			SELECT execution_id, event_id, 'PUBLISHED', now() FROM noetl.event WHERE seq = 1 ORDER BY execution_id LIMIT 20000`,
		`INSERT INTO noetl.outbox (execution_id, event_id, status, locked_at, available_at)
			SELECT execution_id, event_id, (ARRAY['PENDING', 'FAILED', 'IN_FLIGHT'])[1 + event_id % 3], now(), now() + interval '1 minute' * (event_id % 2)
			FROM noetl.event WHERE seq = 2 ORDER BY execution_id DESC LIMIT 3000`,
		`INSERT INTO noetl.subscription_dedup (subscription_id, dedup_key, execution_id, expires_at)
			SELECT i % 50, 'k' || i, i, now() + interval '1 second' * (i % 1000) FROM generate_series(1, 30000) i`,
		`INSERT INTO noetl.schedule (schedule_id, name, playbook_path, owner, next_run_at, wake_at)
			SELECT i, 's' || i, 'p' || i % 500, CASE WHEN i % 2 = 0 THEN 'p' || i % 500 END, now() + interval '1 minute' * i, now() + interval '1 minute' * (i - 20)
			FROM generate_series(1, 20000) i`,
		`INSERT INTO noetl.schedule_run (schedule_id, tick, kind, state, playbook_path, playbook_version, decided_at, ended_at, ticks)
			SELECT 1 + i % 20, now() - interval '1 second' * i, 'tick', 'completed', 'p', 1, now(), CASE WHEN i > 100 THEN now() - interval '1 second' * i END, 1
			FROM generate_series(1, 60000) i`,
		`INSERT INTO noetl.execution_removed (execution_id, removed_at) SELECT i, now() - interval '1 second' * i FROM generate_series(1, 30000) i`,
		`INSERT INTO noetl.result_store (execution_id, ref, created_at, bytes, name, sha256, data)
			SELECT execution_id, 'r' || execution_id, now(), 2, 'n', 's', '{}' FROM noetl.execution ORDER BY execution_id LIMIT 40000`,
		"ANALYZE",
	} {
		run(t, dsn, text)
	}
	return dsn
}

// However much has happened, a question costs what its answer is long: no
// table of the past is read from end to end, by the plan made for these
// arguments nor by the one kept for all.
func TestNoQueryReadsThePast(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dsn := busyDatabase(t, now)
	conn := connect(t, dsn)
	var x int64
	if err := conn.QueryRow(t.Context(), "SELECT execution_id FROM noetl.execution ORDER BY execution_id OFFSET 30000 LIMIT 1").Scan(&x); err != nil {
		t.Fatal(err)
	}
	undo := errors.New("undo")
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		if _, err := conn.Exec(t.Context(), "SET plan_cache_mode = "+mode); err != nil {
			t.Fatal(err)
		}
		for name, q := range postgres.BusyQueries(x, now.Add(-15*24*time.Hour)) {
			var raw []byte
			err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
				if _, err := tx.Prepare(t.Context(), "q", q.Text); err != nil {
					return err
				}
				call := "EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE q" + placeholders(len(q.Args))
				args := append([]any{pgx.QueryExecModeSimpleProtocol}, q.Args...)
				if err := tx.QueryRow(t.Context(), call, args...).Scan(&raw); err != nil {
					return err
				}
				return undo
			})
			if !errors.Is(err, undo) {
				t.Fatalf("%s: %v\n%s", name, err, q.Text)
			}
			if err := conn.Deallocate(t.Context(), "q"); err != nil {
				t.Fatal(err)
			}
			checkPlan(t, mode+": "+name, q, raw)
		}
	}
}

// placeholders is ($1, …, $n).
func placeholders(n int) string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("$%d", i+1))
	}
	return "(" + strings.Join(words, ", ") + ")"
}

// checkPlan fails when a plan scans a table or handles more rows than a few pages.
func checkPlan(t *testing.T, name string, q postgres.Query, raw []byte) {
	t.Helper()
	var plans []struct{ Plan planNode }
	if err := json.Unmarshal(raw, &plans); err != nil {
		t.Fatal(err)
	}
	const most = 12_000 // of 60 000 executions, 120 000 events and as many commands
	var handled float64
	used := false
	plans[0].Plan.each(func(n planNode) {
		handled = max(handled, (n.Rows+n.Removed)*n.Loops)
		used = used || strings.Contains(n.Index, q.Index)
		if n.Type == "Seq Scan" && (n.Rows+n.Removed)*n.Loops > 0 {
			t.Errorf("%s scans %s:\n%s\n%s", name, n.Relation, q.Text, raw)
		}
	})
	if handled > most || !used {
		t.Errorf("%s handles %.0f rows and uses %s: %v\n%s\n%s", name, handled, q.Index, used, q.Text, raw)
	}
}

func TestListsOfABusyDatabaseAreRight(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dsn := testkit.Postgres(t)
	s := open(t, postgres.Options{DSN: dsn})
	if err := (storetest.Fill{Executions: 2000, Events: 1, Now: now}).Postgres(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	// All pages of a filter together are what one long page holds.
	for name, f := range map[string]store.ExecutionFilter{
		"path": {Path: "P1"}, "prefix": {PathPrefix: "fill/p2"}, "pool": {Pool: "shared", Status: "FAILED"}, "catalog": {CatalogID: 3},
		"range": {StartedFrom: now.Add(-20 * 24 * time.Hour), StartedTo: now.Add(-10 * 24 * time.Hour), PathPrefix: "fill/p3"},
	} {
		f.Limit = 5000
		all, err := s.ListExecutions(t.Context(), f)
		if err != nil || len(all) < 30 {
			t.Fatalf("%s: %d executions, %v", name, len(all), err)
		}
		f.Limit = 13
		for at := 0; at < len(all); {
			page, err := s.ListExecutions(t.Context(), f)
			if err != nil || len(page) != min(f.Limit, len(all)-at) {
				t.Fatalf("%s: a page of %d at %d of %d, %v", name, len(page), at, len(all), err)
			}
			for i := range page {
				if page[i].ExecutionID != all[at+i].ExecutionID {
					t.Fatalf("%s: place %d holds %d, want %d", name, at+i, page[i].ExecutionID, all[at+i].ExecutionID)
				}
			}
			at += len(page)
			f.Before = page[len(page)-1].ExecutionID
		}
	}
}
