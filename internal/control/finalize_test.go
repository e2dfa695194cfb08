package control_test

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func TestAnEndByHandWinsOverTheWork(t *testing.T) {
	for _, status := range []string{event.StatusCompleted, event.StatusFailed} {
		t.Run(status, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, quiet)
				r.register(p, single)
				id := r.start(p, "test/single")
				cmd := claimFor(t, p, r.pending()[0].EventID, "w1")
				other := r.plane(nil, quiet) // with a state of its own
				a, err := other.Finalize(t.Context(), id, control.FinalizeRequest{Status: status, Reason: "stuck"})
				if err != nil || a.Before || a.Status != status {
					t.Fatalf("%+v, %v", a, err)
				}
				// The first replica, which has not heard of it, finds out.
				if a, err := p.Finalize(t.Context(), id, control.FinalizeRequest{Status: event.StatusFailed}); err != nil || !a.Before || a.Status != status {
					t.Errorf("%+v, %v", a, err)
				}
				if _, err := p.Report(t.Context(), success(r.ids.Next(), "w1", 0, cmd)); err != nil {
					t.Fatal(err)
				}
				row, err := p.Execution(t.Context(), id)
				if err != nil || row.Status != status || (row.Error == "stuck") != (status == event.StatusFailed) {
					t.Errorf("row is %+v, %v", row, err)
				}
				r.verify(id)
			})
		})
	}
}

func TestCleanupLeavesWhatMovedMeanwhile(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		silent := r.start(p, "test/single")
		time.Sleep(10 * time.Minute)
		moved := r.start(p, "test/single")
		a, err := p.Cleanup(t.Context(), control.CleanupRequest{Silence: 5 * time.Minute})
		if err != nil || len(a.Executions) != 1 || a.Executions[0] != silent {
			t.Errorf("%+v, %v", a, err)
		}
		for id, want := range map[event.ID]string{silent: event.StatusCancelled, moved: event.StatusRunning} {
			if row, err := p.Execution(t.Context(), id); err != nil || row.Status != want {
				t.Errorf("row is %+v, %v", row, err)
			}
		}
		r.verify(silent)
	})
}
