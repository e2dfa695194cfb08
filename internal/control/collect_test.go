package control_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/result/file"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// archive is a plane over executions that are put there as rows.
type archive struct {
	*control.Plane
	t     *testing.T
	store *memstore.Store
	now   time.Time
	last  event.ID
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	a := &archive{t: t, store: memstore.New(), now: time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC)}
	files, err := file.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bus := membus.New(membus.Options{})
	t.Cleanup(func() { _ = bus.Close() })
	a.Plane, err = control.New(control.Options{
		Store: a.store, Bus: bus, IDs: a.id, Clock: func() time.Time { return a.now },
		Results: control.ResultOptions{Tiers: []result.Tier{files}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *archive) id() event.ID {
	a.last = max(a.last+1, store.IDAt(a.now))
	return a.last
}

// execution puts one there that ended; zero = it goes on.
func (a *archive) execution(parent event.ID, ended time.Time) event.ID {
	a.t.Helper()
	id := a.id()
	x := store.Execution{ExecutionID: id, ParentExecutionID: parent, Status: event.StatusRunning, LastSeq: 1, StartedAt: a.now, UpdatedAt: a.now, EndedAt: ended}
	if !ended.IsZero() {
		x.Status = event.StatusCompleted
	}
	err := a.store.Append(a.t.Context(), store.Batch{
		Execution: x, Events: []event.Event{{ExecutionID: id, Seq: 1, EventID: a.id(), Type: event.PlaybookStarted, CreatedAt: a.now}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

func (a *archive) put(id event.ID, o event.ResultOptions) string {
	a.t.Helper()
	o.Name = "n"
	at, err := a.PutBlob(a.t.Context(), id, o, strings.NewReader(`{"a":1}`))
	if err != nil {
		a.t.Fatal(err)
	}
	return at.Ref
}

// collect tells which of the references are there afterwards. A dry run before
// it must say the same and remove nothing.
func (a *archive) collect(refs map[string]string) (there []string, report control.CollectReport) {
	a.t.Helper()
	before := a.there(refs)
	dry, err := a.CollectResults(a.t.Context(), true)
	if err != nil {
		a.t.Fatal(err)
	}
	if after := a.there(refs); !slices.Equal(before, after) {
		a.t.Errorf("a dry run leaves %q of %q", after, before)
	}
	if report, err = a.CollectResults(a.t.Context(), false); err != nil || report.Failed > 0 || report.Removed != dry.Removed {
		a.t.Errorf("removed %+v, %v; a dry run said %+v", report, err, dry)
	}
	return a.there(refs), report
}

func (a *archive) there(refs map[string]string) (names []string) {
	for name, ref := range refs {
		_, err := a.Result(a.t.Context(), ref)
		switch {
		case err == nil:
			names = append(names, name)
		case event.CodeOf(err) != event.NotFound || !strings.Contains(err.Error(), "collected"):
			a.t.Errorf("%s: %v", name, err)
		}
	}
	slices.Sort(names)
	return names
}

func (a *archive) want(what string, got []string, want ...string) {
	a.t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		a.t.Errorf("%s: %q are there, want %q", what, got, want)
	}
}

func TestResultsAreKeptAsLongAsTheirScopeSays(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	root := a.execution(0, time.Time{})
	done := a.execution(0, a.now)
	refs := map[string]string{
		"step": a.put(done, event.ResultOptions{Scope: "step"}), "execution": a.put(done, event.ResultOptions{}),
		"file": a.put(done, event.ResultOptions{Store: "file"}), "permanent": a.put(done, event.ResultOptions{Scope: "permanent"}),
		"forever": a.put(done, event.ResultOptions{TTL: "forever"}), "a week": a.put(done, event.ResultOptions{TTL: "7d"}),
		"an hour": a.put(root, event.ResultOptions{TTL: "1h", Store: "file"}), "running": a.put(root, event.ResultOptions{}),
	}
	at := func(d time.Duration, want ...string) {
		t.Helper()
		a.now = time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC).Add(d)
		got, _ := a.collect(refs)
		a.want(d.String(), got, want...)
	}
	at(0, "step", "execution", "file", "permanent", "forever", "a week", "an hour", "running")
	at(time.Hour, "step", "execution", "file", "permanent", "forever", "a week", "running")
	at(24*time.Hour, "step", "execution", "file", "permanent", "forever", "a week", "running")
	at(24*time.Hour+time.Second, "permanent", "forever", "a week", "running")
	at(8*24*time.Hour, "permanent", "forever", "running")
}

func TestResultsOfChildrenWaitForThoseAbove(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	open, recent := a.execution(0, time.Time{}), a.execution(0, a.now.Add(20*time.Hour))
	below, beside := a.execution(open, a.now), a.execution(recent, a.now)
	lost := a.execution(999, a.now)
	refs := map[string]string{
		"of a parent that goes on": a.put(below, event.ResultOptions{}), "its step": a.put(below, event.ResultOptions{Scope: "step"}),
		"of a parent that ended": a.put(beside, event.ResultOptions{}), "its workflow": a.put(beside, event.ResultOptions{Scope: "workflow"}),
		"of a parent nobody knows": a.put(lost, event.ResultOptions{}),
	}
	a.now = a.now.Add(25 * time.Hour)
	got, report := a.collect(refs)
	a.want("a day later", got, "of a parent that goes on", "its step", "its workflow", "of a parent nobody knows")
	if report.Kept["ancestor_open"] != 2 || report.Kept["root_open"] != 1 || report.Kept["unknown"] != 1 {
		t.Errorf("the report says %+v", report.Kept)
	}
	a.now = a.now.Add(24 * time.Hour)
	got, _ = a.collect(refs)
	a.want("another day later", got, "of a parent that goes on", "its step", "of a parent nobody knows")
}

func TestWhatARerunReusesIsKept(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	done := a.execution(0, a.now)
	refs := map[string]string{"reused": a.put(done, event.ResultOptions{}), "starting": a.put(done, event.ResultOptions{}), "abandoned": a.put(done, event.ResultOptions{})}
	abandoned := a.id()
	a.now = a.now.Add(48 * time.Hour)
	rerun := a.execution(0, time.Time{})
	for name, holder := range map[string]event.ID{"reused": rerun, "starting": a.id(), "abandoned": abandoned} {
		if err := a.store.PinResult(t.Context(), done, refs[name], holder); err != nil {
			t.Fatal(err)
		}
	}
	got, report := a.collect(refs)
	a.want("at first", got, "reused", "starting")
	if report.Kept["used_elsewhere"] != 2 {
		t.Errorf("the report says %+v", report.Kept)
	}
	if n, err := a.RemoveResults(t.Context(), done, ""); err != nil || n != 0 {
		t.Errorf("what others use is removed: %d, %v", n, err)
	}
	a.now = a.now.Add(2 * time.Hour)
	got, _ = a.collect(refs)
	a.want("when the start did not come", got, "reused")
}

func TestACollectionThatCannotRemoveTriesAgain(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	done := a.execution(0, a.now)
	refs := map[string]string{"file": a.put(done, event.ResultOptions{Store: "file"})}
	a.now = a.now.Add(25 * time.Hour)
	a.store.Inject(memstore.Faults{Hook: memstore.Next("ForgetResult", memstore.Refuse)})
	report, err := a.CollectResults(t.Context(), false)
	if err != nil || report.Failed != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	got, report := a.collect(refs)
	a.want("the value", got)
	if report.Removed != 1 || report.Results[0].Why != "remains" {
		t.Errorf("the next one says %+v", report)
	}
	if report, err = a.CollectResults(t.Context(), false); err != nil || report.Looked != 0 {
		t.Errorf("then nothing is left: %+v, %v", report, err)
	}
	a.store.Inject(memstore.Faults{Hook: memstore.Next("ExpiredResults", memstore.Refuse)})
	if _, err := a.CollectResults(t.Context(), false); event.CodeOf(err) != event.Unavailable {
		t.Errorf("a store that does not answer: %v", err)
	}
}

// TestCollectedResultsAreNoDifference reruns from a step whose reused result is
// there, pins it, and then takes it away.
func TestCollectedResultsAreNoDifference(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, heavy)
		w := &crew{r: r, id: "w", eager: 1, planes: []*control.Plane{p.Plane}}
		var kept event.StoredResult
		w.says = func(cmd *event.Command) *event.Incoming {
			if cmd.NodeName != "start" {
				return nil
			}
			var err error
			if kept, err = p.PutResult(t.Context(), cmd.ExecutionID, "start", json.RawMessage(`{"text":"x"}`)); err != nil {
				t.Error(err)
			}
			return &event.Incoming{Type: event.CommandCompleted, Payload: json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID +
				`","status":"success","result":{"status":"success","reference":{"kind":"result_ref","ref":"` + kept.Ref + `","store":"db","extracted":{"text":"x"}}}}`)}
		}
		r.employ(w, 4)
		id := r.start(p, "test/heavy")
		r.await(p, id)
		again, err := p.Rerun(t.Context(), id, control.RerunRequest{FromStep: "end"})
		if err != nil || len(again.Warnings) > 0 {
			t.Fatalf("%+v, %v", again, err)
		}
		r.await(p, again.ExecutionID)
		at, err := event.ParseResultRef(kept.Ref)
		if err != nil {
			t.Fatal(err)
		}
		row, err := r.store.Result(t.Context(), at.Execution, kept.Ref)
		if err != nil || !slices.Equal(row.PinnedBy, []event.ID{again.ExecutionID}) {
			t.Fatalf("the rerun does not hold what it reuses: %+v, %v", row.PinnedBy, err)
		}
		if done, err := r.store.RetireResult(t.Context(), row, time.Now()); err != nil || !done {
			t.Fatal(done, err)
		}
		if _, err := p.Result(t.Context(), kept.Ref); !errors.Is(err, store.ErrCollected) {
			t.Errorf("the value is still found: %v", err)
		}
		for _, x := range []event.ID{id, again.ExecutionID} {
			checked, err := control.Verify(t.Context(), control.VerifyOptions{Store: r.store, Execution: x})
			if err != nil || !checked.Clean || checked.Collected == 0 {
				t.Errorf("the check of %d found %+v, %v", x, checked, err)
			}
		}
		third, err := p.Rerun(t.Context(), id, control.RerunRequest{FromStep: "end"})
		if err != nil || len(third.Warnings) != 1 || !strings.Contains(third.Warnings[0], "was collected") {
			t.Errorf("a rerun without the value says %+v, %v", third, err)
		}
		r.await(p, third.ExecutionID)
	})
}
