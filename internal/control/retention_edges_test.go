package control_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// aMinute is a policy that keeps nothing.
var aMinute = control.RetentionPolicy{{Ages: map[string]time.Duration{event.StatusCompleted: time.Minute}}}

// replica is another plane on the same store, with large values in dir.
func (a *archive) replica(s store.Store, dir string, o control.RetentionOptions) *control.Plane {
	a.t.Helper()
	files, err := file.Open(dir)
	if err != nil {
		a.t.Fatal(err)
	}
	bus := membus.New(membus.Options{})
	a.t.Cleanup(func() { _ = bus.Close() })
	p, err := control.New(control.Options{
		Store: s, Bus: bus, IDs: a.id, Clock: func() time.Time { return a.now }, Retention: o,
		Results: control.ResultOptions{Tiers: []result.Tier{files}},
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return p
}

// append adds an event to an execution, which starts or ends it.
func (a *archive) append(id event.ID, seq int64, typ event.Type, status string) {
	a.t.Helper()
	x := store.Execution{ExecutionID: id, Status: status, LastSeq: seq, StartedAt: a.now, UpdatedAt: a.now}
	if event.IsFinal(status) {
		x.EndedAt = a.now
	}
	e := event.Event{ExecutionID: id, Seq: seq, EventID: a.id(), Type: typ, Status: status, CreatedAt: a.now}
	if err := a.store.Append(a.t.Context(), store.Batch{Execution: x, Expected: seq - 1, Events: []event.Event{e}}); err != nil {
		a.t.Fatal(err)
	}
}

func TestAReplicaForgetsWhatAnotherRemoved(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	other := a.replica(a.store, t.TempDir(), control.RetentionOptions{})
	ended, open := a.id(), a.id()
	for _, id := range []event.ID{ended, open} {
		a.append(id, 1, event.PlaybookStarted, event.StatusRunning)
	}
	a.append(ended, 2, event.PlaybookCompleted, event.StatusCompleted)
	report := func(id event.ID) error {
		_, err := other.Report(t.Context(), event.Report{ExecutionID: id, Events: []event.Incoming{{Type: event.StepEnter, Step: "s"}}})
		return err
	}
	for _, id := range []event.ID{ended, open} { // the other replica knows both now
		if err := report(id); errors.Is(err, store.ErrRemoved) {
			t.Fatal(err)
		}
	}
	row, err := a.store.Execution(t.Context(), open)
	if err != nil {
		t.Fatal(err)
	}
	a.append(open, row.LastSeq+1, event.PlaybookCompleted, event.StatusCompleted)
	a.now = a.now.Add(5 * time.Minute)
	if report, err := a.Retain(t.Context(), control.RetentionRequest{Policy: aMinute}); err != nil || report.Removed != 2 {
		t.Fatalf("%+v, %v", report, err)
	}
	for what, id := range map[string]event.ID{"seen ended": ended, "seen open": open} {
		if err := report(id); !errors.Is(err, store.ErrRemoved) {
			t.Errorf("%s: the other replica says %v", what, err)
		}
		if _, err := a.store.Execution(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: it is back: %v", what, err)
		}
	}
}

func TestValuesInFilesGoWithTheirExecution(t *testing.T) {
	t.Parallel()
	a, dir := newArchive(t), t.TempDir()
	p := a.replica(a.store, dir, control.RetentionOptions{})
	gone, stays := a.execution(0, a.now), a.execution(0, time.Time{})
	for _, id := range []event.ID{gone, stays} {
		if _, err := p.PutBlob(t.Context(), id, event.ResultOptions{Name: "n", Store: "file"}, strings.NewReader(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	files := func() (n int) {
		_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				n++
			}
			return err
		})
		return n
	}
	if n := files(); n != 2 {
		t.Fatalf("%d files", n)
	}
	a.now = a.now.Add(5 * time.Minute)
	if report, err := p.Retain(t.Context(), control.RetentionRequest{Policy: aMinute}); err != nil || report.Removed != 1 || report.Rows["result_store"] != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	if n := files(); n != 1 {
		t.Errorf("%d files are left, want that of the other execution", n)
	}
	if _, err := p.PutBlob(t.Context(), gone, event.ResultOptions{Name: "late", Store: "file"}, strings.NewReader(`{"a":1}`)); !errors.Is(err, store.ErrRemoved) {
		t.Errorf("a late value = %v", err)
	}
	if n := files(); n != 1 {
		t.Errorf("a late value left %d files", n-1)
	}
}

// keeper is an archive in memory that can fail.
type keeper struct {
	fail error
	kept []control.ArchivedExecution
}

func (k *keeper) Keep(_ context.Context, batch []control.ArchivedExecution) error {
	if k.fail == nil {
		k.kept = append(k.kept, batch...)
	}
	return k.fail
}

func TestWhatCannotBeArchivedIsNotRemoved(t *testing.T) {
	t.Parallel()
	a, k := newArchive(t), &keeper{fail: errors.New("disk full")}
	p := a.replica(a.store, t.TempDir(), control.RetentionOptions{Archive: k})
	first := a.execution(0, a.now)
	child, open := a.execution(first, a.now), a.execution(0, time.Time{})
	a.now = a.now.Add(5 * time.Minute)
	if _, err := p.Retain(t.Context(), control.RetentionRequest{Policy: aMinute}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("a run with a full archive = %v", err)
	}
	if left, err := a.store.LoggedExecutions(t.Context(), 0, 0); err != nil || len(left) != 3 {
		t.Fatalf("%d are left, %v", len(left), err)
	}
	if plan, err := p.Retain(t.Context(), control.RetentionRequest{Policy: aMinute, DryRun: true}); err != nil || plan.Removed != 2 || plan.Archived != 0 {
		t.Errorf("a plan asks the archive: %+v, %v", plan, err)
	}
	k.fail = nil
	report, err := p.Retain(t.Context(), control.RetentionRequest{Policy: aMinute})
	if err != nil || report.Removed != 2 || report.Archived != 2 || len(k.kept) != 2 {
		t.Fatalf("%+v, %v, %d kept", report, err, len(k.kept))
	}
	for i, id := range []event.ID{first, child} {
		if x := k.kept[i]; x.Execution.ExecutionID != id || len(x.Events) != 1 || x.Events[0].ExecutionID != id {
			t.Errorf("archived %+v, want execution %d", x, id)
		}
	}
	if left, err := a.store.LoggedExecutions(t.Context(), 0, 0); err != nil || len(left) != 1 || left[0] != open {
		t.Errorf("%v are left, %v", left, err)
	}
}

// cut is a store whose log has one part that cannot be dropped.
type cut struct {
	*memstore.Store
	asked int
}

func (c *cut) LogState(context.Context) (store.LogState, error) {
	return store.LogState{Parts: []store.LogPart{{Name: "all", From: 1, To: store.IDAt(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))}}}, nil
}

func (c *cut) RemoveRange(context.Context, store.RangeRemoval) (map[string]int, bool, error) {
	c.asked++
	return nil, false, errors.New("must be owner of table")
}

func TestAPartThatCannotBeDroppedGoesRowByRow(t *testing.T) {
	t.Parallel()
	a := newArchive(t)
	s := &cut{Store: a.store}
	p := a.replica(s, t.TempDir(), control.RetentionOptions{})
	now := a.now
	a.now = now.Add(-30 * 24 * time.Hour)
	for range 7 {
		a.execution(0, a.now)
	}
	a.now = now
	report, err := p.Retain(t.Context(), control.RetentionRequest{Policy: aMinute})
	if err != nil || report.Removed != 7 || report.Partitions != 0 || report.Rows["execution"] != 7 || s.asked != 1 {
		t.Errorf("%+v, %v; the part was asked for %d times", report, err, s.asked)
	}
}
