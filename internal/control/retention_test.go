package control_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

func TestPoliciesAreReadAsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"30d":                                 "completed=30d,failed=30d,cancelled=30d",
		" 30d , failed=90d ":                  "completed=30d,failed=90d,cancelled=30d",
		"failed=90d,30d":                      "completed=30d,failed=90d,cancelled=30d",
		"failed=forever":                      "failed=forever",
		"keep=5":                              "keep=5",
		"team/a:completed=7d,keep=3":          "team/a:completed=7d,keep=3",
		"30d,team/a:completed=7d,failed=2w":   "completed=30d,failed=30d,cancelled=30d;team/a:completed=7d,failed=14d",
		"/team/a/:12h;Canceled=90m":           "cancelled=90m;team/a:completed=12h,failed=12h,cancelled=12h",
		"a:1y;a/b:forever;a/b/c:completed=1h": "a:completed=365d,failed=365d,cancelled=365d;a/b:completed=forever,failed=forever,cancelled=forever;a/b/c:completed=1h",
	} {
		p, err := control.ParseRetention(text)
		if err != nil || p.String() != want {
			t.Errorf("ParseRetention(%q) = %q, %v, want %q", text, p, err, want)
		}
		if again, err := control.ParseRetention(want); err != nil || again.String() != want {
			t.Errorf("ParseRetention(%q) = %q, %v", want, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "missing", "30": "is no age", "d": "is no age", "-3d": "is no age", "0d": "too short", "30s": "is no age", "9999999d": "too long", "1e3d": "is no age",
		"running=3d": "no end of an execution", "keep=0": "want a number", "keep=x": "want a number", "a:": "missing", ":3d": "no path",
		"3d,,4d": "missing", "3d;": "missing", "a:3d;a:4d": "two rules", "3d;4d": "two rules for everything", "99999999999999999999d": "is no age",
	} {
		if p, err := control.ParseRetention(text); err == nil || event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseRetention(%q) = %q, %v, want an error with %q", text, p, err, want)
		}
	}
}

func TestTheLongestPathThatSaysSomethingDecides(t *testing.T) {
	t.Parallel()
	p, err := control.ParseRetention("30d;team/a:completed=7d,keep=3;team/a/b:failed=forever;team/ab:1d")
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		path, status string
		want         time.Duration
		keep         int
	}{
		{"other", event.StatusCompleted, 30 * day, 0},
		{"team", event.StatusFailed, 30 * day, 0},
		{"team/a", event.StatusCompleted, 7 * day, 3},
		{"team/a", event.StatusFailed, 30 * day, 3},
		{"team/a/b/c", event.StatusCompleted, 7 * day, 3},
		{"team/a/b/c", event.StatusFailed, control.Forever, 3},
		{"team/ab", event.StatusFailed, day, 0},
		{"team/a", event.StatusRunning, control.Forever, 3},
	} {
		if age, _ := p.Age(c.path, c.status); age != c.want || p.KeepLast(c.path) != c.keep {
			t.Errorf("%s %s is kept for %s and %d, want %s and %d", c.path, c.status, age, p.KeepLast(c.path), c.want, c.keep)
		}
	}
	if age, _ := control.RetentionPolicy(nil).Age("a", event.StatusCompleted); age != control.Forever {
		t.Errorf("without a policy executions are kept for %s", age)
	}
}

// past puts executions of a random history there and returns their rows by id.
func (a *archive) past(r *rand.Rand, n int) map[event.ID]store.Execution {
	a.t.Helper()
	rows := map[event.ID]store.Execution{}
	now := a.now
	a.now = now.Add(-100 * 24 * time.Hour)
	for i := range n {
		a.now = a.now.Add(time.Duration(r.IntN(int(200*24*time.Hour) / n)))
		x := store.Execution{
			ExecutionID: a.id(), Path: []string{"team/a", "team/a/x", "team/b", "other"}[r.IntN(4)], LastSeq: 1, StartedAt: a.now, UpdatedAt: a.now,
			Status: []string{event.StatusCompleted, event.StatusCompleted, event.StatusFailed, event.StatusCancelled, event.StatusRunning}[r.IntN(5)],
		}
		if x.Status != event.StatusRunning {
			x.EndedAt = a.now.Add(time.Duration(r.IntN(int(time.Hour))))
		}
		if i > 0 && r.IntN(2) == 0 {
			ids := slices.Sorted(maps.Keys(rows))
			x.ParentExecutionID = ids[max(0, len(ids)-1-r.IntN(8))]
		}
		e := event.Event{ExecutionID: x.ExecutionID, Seq: 1, EventID: a.id(), Type: event.PlaybookStarted, CreatedAt: a.now}
		x.LastEventID = e.EventID
		if err := a.store.Append(a.t.Context(), store.Batch{Execution: x, Events: []event.Event{e}}); err != nil {
			a.t.Fatal(err)
		}
		rows[x.ExecutionID] = x
	}
	a.now = now
	return rows
}

// expected is what a policy leaves, said in another way: an execution goes when
// it is over and old enough, is not of the newest of its path, what started it
// is gone, and nothing it started goes on.
func expected(p control.RetentionPolicy, now time.Time, rows map[event.ID]store.Execution) map[event.ID]bool {
	left := map[event.ID]bool{}
	newest := map[string][]event.ID{}
	for id, x := range rows {
		left[id] = true
		if x.Status != event.StatusRunning {
			newest[x.Path] = append(newest[x.Path], id)
		}
	}
	kept := map[event.ID]bool{}
	for path, ids := range newest {
		slices.Sort(ids)
		for i, id := range ids {
			kept[id] = i >= len(ids)-p.KeepLast(path)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		x := rows[id]
		age, _ := p.Age(x.Path, x.Status)
		if age == control.Forever || x.Status == event.StatusRunning || now.Before(x.EndedAt.Add(age)) || kept[id] || left[x.ParentExecutionID] {
			continue
		}
		open := false
		for _, child := range rows {
			open = open || child.ParentExecutionID == id && child.Status == event.StatusRunning
		}
		if !open {
			delete(left, id)
		}
	}
	return left
}

func TestRandomHistoriesLeaveWhatTheModelLeaves(t *testing.T) {
	t.Parallel()
	policies := []string{"30d", "10d;team/a:completed=60d;team/a/x:1d", "failed=1d;other:forever,keep=4;team:20d,keep=2", "team/a/x:5d", "1m"}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		policy, err := control.ParseRetention(policies[seed%uint64(len(policies))])
		if err != nil {
			t.Fatal(err)
		}
		a := newArchive(t)
		rows := a.past(r, 120)
		want := expected(policy, a.now, rows)
		plan, err := a.Retain(t.Context(), control.RetentionRequest{DryRun: true, Policy: policy})
		if err != nil || plan.Removed != len(rows)-len(want) {
			t.Errorf("seed %d: the plan removes %d, want %d: %v", seed, plan.Removed, len(rows)-len(want), err)
		}
		limit := 0
		if seed%2 == 1 {
			limit = 7
		}
		for range 100 {
			report, err := a.Retain(t.Context(), control.RetentionRequest{Limit: limit, Policy: policy})
			if err != nil || limit > 0 && report.Removed > limit {
				t.Fatalf("seed %d: %+v, %v", seed, report, err)
			}
			if !report.Truncated {
				break
			}
		}
		got, err := a.store.LoggedExecutions(t.Context(), 0, 0)
		if err != nil || !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
			t.Errorf("seed %d, %s: %d executions are left, want %d: %v", seed, policy, len(got), len(want), err)
		}
	}
}

func TestARemovedExecutionIsAnsweredClearlyAndStaysGone(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	id := a.execution(0, a.now.Add(-time.Hour))
	held := a.execution(0, a.now.Add(-time.Hour))
	if _, err := a.Rerun(t.Context(), held, control.RerunRequest{}); err == nil {
		t.Fatal("an execution without a playbook was run again")
	}
	policy, err := control.ParseRetention("1m")
	if err != nil {
		t.Fatal(err)
	}
	a.now = a.now.Add(5 * time.Minute)
	report, err := a.Retain(t.Context(), control.RetentionRequest{Policy: policy})
	if err != nil || report.Removed != 1 || report.Kept[store.KeptHeld] != 1 {
		t.Fatalf("the one somebody starts from is not kept: %+v, %v", report, err)
	}
	_, find := a.Execution(t.Context(), id)
	_, rerun := a.Rerun(t.Context(), id, control.RerunRequest{})
	_, late := a.Report(t.Context(), event.Report{ExecutionID: id, Events: []event.Incoming{{Type: event.StepExit, Step: "s"}}})
	taken, project := a.Project(t.Context(), []event.Event{{ExecutionID: id, EventID: a.id(), Type: event.PlaybookStarted}})
	for what, err := range map[string]error{"find": find, "rerun": rerun, "report": late} {
		if !errors.Is(err, store.ErrRemoved) || event.CodeOf(err) != event.NotFound || !strings.Contains(err.Error(), "was removed on 2026-") {
			t.Errorf("%s = %v", what, err)
		}
	}
	if project != nil || taken.Stored != 0 || len(taken.Rejected) != 1 || !strings.Contains(taken.Rejected[0].Error, "was removed") {
		t.Errorf("an event of the stream: %+v, %v", taken, project)
	}
	if events, err := a.store.Events(t.Context(), id, 0, 0); err != nil || len(events) != 0 {
		t.Errorf("a removed execution is back with %d events, %v", len(events), err)
	}
	a.now = a.now.Add(time.Hour)
	if report, err := a.Retain(t.Context(), control.RetentionRequest{Policy: policy}); err != nil || report.Removed != 1 {
		t.Errorf("the hold does not end: %+v, %v", report, err)
	}
}

func TestOnlyOneServerRemovesAtATime(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	a.execution(0, a.now.Add(-time.Hour))
	if taken, err := a.store.TakeLease(t.Context(), "retention", "another server", a.now, 10*time.Minute); err != nil || !taken {
		t.Fatal(taken, err)
	}
	policy := control.RetentionPolicy{{Ages: map[string]time.Duration{event.StatusCompleted: time.Minute}}}
	report, err := a.Retain(t.Context(), control.RetentionRequest{Policy: policy})
	if event.CodeOf(err) != event.Conflict || report.Removed != 0 {
		t.Errorf("beside another server: %+v, %v", report, err)
	}
	a.now = a.now.Add(11 * time.Minute) // it died
	if report, err := a.Retain(t.Context(), control.RetentionRequest{Policy: policy}); err != nil || report.Removed != 1 {
		t.Errorf("after its lease: %+v, %v", report, err)
	}
}

func TestAStoreThatFailsLeavesWholeExecutions(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	for range 5 {
		a.execution(0, a.now.Add(-time.Hour))
	}
	a.now = a.now.Add(5 * time.Minute)
	policy := control.RetentionPolicy{{Ages: map[string]time.Duration{event.StatusCompleted: time.Minute}}}
	a.store.Inject(memstore.Faults{Hook: func(op string) memstore.Fault {
		if op == "RemoveExecutions" {
			return memstore.LoseAck
		}
		return memstore.None
	}})
	if _, err := a.Retain(t.Context(), control.RetentionRequest{Policy: policy}); err == nil {
		t.Error("a lost answer is no error")
	}
	a.store.Inject(memstore.Faults{})
	report, err := a.Retain(t.Context(), control.RetentionRequest{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := a.store.LoggedExecutions(t.Context(), 0, 0); err != nil || len(left) != 0 {
		t.Errorf("%d are left, %v: %s", len(left), err, fmt.Sprint(report))
	}
}
