package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/storetest"
)

const retentionFinished = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: short, path: fill/short}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: second}]}
  - step: second
    tool: {kind: noop}
`

const retentionWaiting = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: long, path: fill/long}
workflow:
  - step: start
    tool: {kind: wait, signal: go}
`

// filled is how many executions the past holds: few in the usual run, as many as
// NOETL_RETENTION_FILL says in a campaign.
func filled(t *testing.T) int {
	n := 5000
	if text := os.Getenv("NOETL_RETENTION_FILL"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1000 {
			t.Fatalf("NOETL_RETENTION_FILL=%q: want a number from 1000 on", text)
		}
	}
	return n
}

// TestRetentionRemovesWhatIsOverAndNothingElse gives a server a past of many
// executions, of which some are old, some young and some go on, and has it clean
// up through the command line.
func TestRetentionRemovesWhatIsOverAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"sqlite", "postgres"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, backend)
			first := s.server(0)
			done, open := s.start(first, retentionFinished), s.start(first, retentionWaiting)
			if _, err := first.client.Wait(s.ctx(), done); err != nil {
				t.Fatal(err)
			}
			stopped(t, first)
			// Nothing ends just now so long ago that it comes to be over during the test.
			const day, month = 24 * time.Hour, 30 * 24 * time.Hour
			count, over := filled(t), filled(t)*3/4
			copies := storetest.Copies{Of: done, Count: over, Now: time.Now(), Newest: month + day, Oldest: 4 * month}
			s.fill(copies)
			s.fill(storetest.Copies{Of: done, Count: count - over, Now: copies.Now, Newest: time.Hour, Oldest: month - day})
			before := s.size()

			policy := "NOETL_RETENTION=fill:completed=30d,failed=forever,keep=3"
			p := s.serverWith([]string{policy}, 0)
			plan := s.retention(p, "plan")
			if plan.Removed != over || !plan.DryRun {
				t.Errorf("the plan removes %d, want %d: %+v", plan.Removed, over, plan)
			}
			began := time.Now()
			removed, parts := 0, 0
			for range 1000 {
				report := s.retention(p, "run", "--limit", "50000")
				removed, parts = removed+report.Removed, parts+report.Partitions
				if !report.Truncated {
					break
				}
			}
			took := time.Since(began)
			if removed != over {
				t.Errorf("%d executions were removed, want %d", removed, over)
			}
			if backend == "postgres" && parts == 0 {
				t.Error("no partition was dropped, though some were over as a whole")
			}
			oldest := copies.ID(copies.Count - 1)
			if _, err := p.client.Status(s.ctx(), oldest); err == nil || !strings.Contains(err.Error(), "was removed on") {
				t.Errorf("status of a removed execution = %v", err)
			}
			if _, err := p.client.Report(s.ctx(), event.Report{ExecutionID: oldest, Events: []event.Incoming{{Type: event.StepExit, Step: "start"}}}); err == nil {
				t.Error("a late report of a removed execution was taken")
			}
			if again := s.retention(p, "run"); again.Removed != 0 {
				t.Errorf("a second run removes %d", again.Removed)
			}
			if _, err := p.client.Signal(s.ctx(), open, "go", client.SignalRequest{}); err != nil {
				t.Errorf("what went on does not go on: %v", err)
			}
			if st, err := p.client.Wait(s.ctx(), open); err != nil || st.Status != event.StatusCompleted {
				t.Errorf("what went on ended %+v, %v", st, err)
			}
			stopped(t, p)
			t.Logf("%s: %d of %d executions removed in %s, %d partitions dropped, %d MB before, %d MB after", backend, removed, count,
				took.Round(time.Millisecond), parts, before>>20, s.size()>>20)

			began = time.Now()
			s.verified()
			t.Logf("%s: db verify took %s", backend, time.Since(began).Round(time.Millisecond))
			db := s.open()
			left := 0
			for after := event.ID(0); ; {
				rows, err := db.ProjectedExecutions(s.ctx(), after, 5000)
				if err != nil {
					t.Fatal(err)
				}
				for i := range rows {
					after, left = rows[i].ExecutionID, left+1
					if left%97 == 0 {
						wantGapless(t, db, &rows[i])
					}
					if rows[i].Status == event.StatusCompleted && rows[i].EndedAt.Before(copies.Now.Add(-month)) {
						t.Fatalf("execution %d is over and still there", after)
					}
				}
				if len(rows) < 5000 {
					break
				}
			}
			if want := count - over + 2; left != want {
				t.Errorf("%d executions are left, want %d", left, want)
			}
			if backend == "sqlite" && s.size() > before*3/4 {
				t.Errorf("the file has %d bytes, before there were %d", s.size(), before)
			}
			_ = db.Close()
		})
	}
}

// verified fails unless `noetl db verify` finds all that the servers left in order.
func (s *system) verified() {
	s.t.Helper()
	args := []string{"db", "verify", "--data-dir", filepath.Join(s.dir, "data")}
	if s.dsn != "" {
		args = []string{"db", "verify", "--database-url", s.dsn}
	}
	if out, err := exec.Command(s.bin, args...).CombinedOutput(); err != nil {
		s.t.Errorf("noetl db verify: %v\n%s", err, out)
	}
}

// wantGapless fails unless the log of an execution runs from its first event to
// the last its row knows of.
func wantGapless(t *testing.T, db store.Store, x *store.Execution) {
	t.Helper()
	events, err := db.Events(t.Context(), x.ExecutionID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if events[i].Seq != int64(i)+1 {
			t.Fatalf("event %d of execution %d has sequence %d", i+1, x.ExecutionID, events[i].Seq)
		}
	}
	if int64(len(events)) != x.LastSeq {
		t.Errorf("execution %d has %d events, its row says %d", x.ExecutionID, len(events), x.LastSeq)
	}
}

// fill writes the past of a system whose server has stopped.
func (s *system) fill(c storetest.Copies) {
	s.t.Helper()
	if s.dsn == "" {
		if err := c.SQLite(s.t.Context(), filepath.Join(s.dir, "data", "noetl.db")); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	db := s.open()
	// As if the server had been running all the time.
	if err := db.(*postgres.Store).EnsurePartitions(s.t.Context(), c.Now.Add(-c.Oldest)); err != nil {
		s.t.Fatal(err)
	}
	_ = db.Close()
	if err := c.Postgres(s.t.Context(), s.dsn); err != nil {
		s.t.Fatal(err)
	}
}

// stopped ends a server in order.
func stopped(t *testing.T, p *process) {
	t.Helper()
	p.Terminate()
	if err := p.Wait(patience); err != nil {
		t.Fatal(err)
	}
}

// size is what the database takes, in bytes.
func (s *system) size() int64 {
	s.t.Helper()
	if s.dsn == "" {
		info, err := os.Stat(filepath.Join(s.dir, "data", "noetl.db"))
		if err != nil {
			s.t.Fatal(err)
		}
		return info.Size()
	}
	conn, err := pgx.Connect(s.ctx(), s.dsn)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(s.ctx()) }()
	var bytes int64
	if err := conn.QueryRow(s.ctx(), "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'noetl' AND c.relkind = 'r'").Scan(&bytes); err != nil {
		s.t.Fatal(err)
	}
	return bytes
}

// retention runs a command and reads its report.
func (s *system) retention(p *process, args ...string) control.RetentionReport {
	s.t.Helper()
	stdout, stderr, code := s.cli(p, append(append([]string{"retention"}, args...), "--json")...)
	var report control.RetentionReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
		s.t.Fatalf("noetl retention %v: exit %d, %s, %v", args, code, stderr, err)
	}
	return report
}
