package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func rebuild(t *testing.T, o control.RebuildOptions) control.RebuildReport {
	t.Helper()
	got, err := control.Rebuild(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRebuildingWritesOnlyWhatDiffers(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, _ := provable(t)
		if got := rebuild(t, control.RebuildOptions{Store: r.store}); got.Rebuilt != 0 || got.Unchanged != 2 {
			t.Errorf("report is %+v", got)
		}
		if got := rebuild(t, control.RebuildOptions{Store: r.store, All: true}); got.Rebuilt != 2 || got.Unchanged != 0 || got.Commands < 10 {
			t.Errorf("report with all is %+v", got)
		}
	})
}

func TestADryRunChangesNothing(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, p := provable(t)
		row := spoil(t, r, p)
		got := rebuild(t, control.RebuildOptions{Store: r.store, DryRun: true})
		if got.Rebuilt != 1 || len(got.Differences) != 1 || got.Differences[0].Got != `"spoiled"` {
			t.Errorf("report is %+v", got)
		}
		if after, err := r.store.Execution(t.Context(), row.ExecutionID); err != nil || after.Path != "spoiled" {
			t.Errorf("row is %+v, %v", after, err)
		}
		rebuild(t, control.RebuildOptions{Store: r.store})
	})
}

// spoil writes a wrong path into the row of an execution.
func spoil(t *testing.T, r *rig, p *running) store.Execution {
	t.Helper()
	rows, err := p.Executions(t.Context(), store.ExecutionFilter{})
	if err != nil {
		t.Fatal(err)
	}
	row := rows[0]
	commands, err := r.store.CommandsOf(t.Context(), row.ExecutionID)
	if err != nil {
		t.Fatal(err)
	}
	row.Path = "spoiled"
	if err := r.store.Reproject(t.Context(), row, commands); err != nil {
		t.Fatal(err)
	}
	return row
}

func TestRebuildingKeepsTheLeasesOfWorkers(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		time.Sleep(30 * time.Second)
		beat := []event.Heartbeat{{ExecutionID: id, EventID: cmd.EventID, WorkerID: "w", Attempt: 1}}
		if _, err := p.Heartbeat(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
		before, err := r.store.CommandsOf(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		rebuild(t, control.RebuildOptions{Store: r.store, All: true})
		after, err := r.store.CommandsOf(t.Context(), id)
		if diff := cmp.Diff(before, after); err != nil || diff != "" {
			t.Errorf("rows changed: %v\n%s", err, diff)
		}

		// A lost row comes back with a lease the worker has time to renew.
		row, err := r.store.Execution(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.Reproject(t.Context(), row, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		rebuild(t, control.RebuildOptions{Store: r.store})
		answers, err := p.Heartbeat(t.Context(), beat)
		if err != nil || answers[0].Cancel {
			t.Fatalf("the worker lost its claim: %+v, %v", answers, err)
		}
		r.ends(p, cmd, "w", `{"status":"success"}`)
		r.await(p, id)
	})
}

func TestADamagedLogIsLeftAlone(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, _ := provable(t)
		db := &tampered{Store: r.store, events: func(s []event.Event) []event.Event { return append(s[:3:3], s[4:]...) }}
		got := rebuild(t, control.RebuildOptions{Store: db, All: true})
		if got.Rebuilt != 0 || got.LeftTotal != 2 || got.Left[0].What != control.DifferentGap {
			t.Errorf("report is %+v", got)
		}
	})
}

// heldUp is a store whose log cannot be read before it is let go.
type heldUp struct {
	store.Store
	asked, leave chan struct{}
}

func (s *heldUp) LoggedExecutions(ctx context.Context, after event.ID, limit int) ([]event.ID, error) {
	s.asked <- struct{}{}
	<-s.leave
	return s.Store.LoggedExecutions(ctx, after, limit)
}

func TestOneCheckAtATime(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		db := &heldUp{Store: r.store, asked: make(chan struct{}, 8), leave: make(chan struct{})}
		p := r.plane(nil, func(o *control.Options) { o.Store = db })
		first := make(chan error, 1)
		go func() {
			_, err := p.Verify(t.Context(), control.VerifyOptions{})
			first <- err
		}()
		<-db.asked
		_, err := p.Verify(t.Context(), control.VerifyOptions{})
		wantCode(t, err, event.Unavailable, "proof_running")
		_, err = p.Rebuild(t.Context(), control.RebuildOptions{})
		wantCode(t, err, event.Unavailable, "proof_running")
		close(db.leave)
		if err := <-first; err != nil {
			t.Error(err)
		}
		_, err = p.Verify(t.Context(), control.VerifyOptions{Execution: 42})
		wantCode(t, err, event.NotFound, "")
	})
}
