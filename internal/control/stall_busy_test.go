package control_test

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// A queue longer than the grace is no reason to give up what waits in it.
func TestACommandBehindBusyWorkersIsLeftAlone(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, seldom)
		r.register(p, single)
		r.start(p, "test/single")
		busy := claimFor(t, p, r.pending()[0].EventID, "w")
		waiting := r.start(p, "test/single")
		for range 30 * 60 * 2 {
			beat(t, p, busy)
			time.Sleep(30 * time.Second)
		}
		if x := verdictOf(t, p, waiting); x.Verdict != control.VerdictBusyPool || x.Cause == "" {
			t.Errorf("the report says %+v", x)
		}
		if row, err := p.Execution(t.Context(), waiting); err != nil || row.Status != event.StatusRunning {
			t.Errorf("row is %+v, %v", row, err)
		}
		time.Sleep(26 * time.Hour) // nobody works in the pool any more
		if row := r.await(p, waiting); row.Status != event.StatusFailed {
			t.Errorf("row is %+v", row)
		}
	})
}

// Whoever was away for days must give the others time to come back, too.
func TestNobodyIsGivenUpSoonAfterAStart(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil, seldom)
		r.register(first, single)
		id := r.start(first, "test/single")
		first.stop()
		time.Sleep(72 * time.Hour) // everything is down
		p := r.plane(nil)
		time.Sleep(50 * time.Minute)
		if row, err := p.Execution(t.Context(), id); err != nil || row.Status != event.StatusRunning {
			t.Fatalf("row is %+v, %v", row, err)
		}
		r.hire("w", 1, 0, p)
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("row is %+v", row)
		}
	})
}
