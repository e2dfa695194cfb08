package control_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
)

func TestALostNotificationIsRepeatedWithGrowingPauses(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		var mu sync.Mutex
		var attempts []int
		var at []time.Duration
		began := time.Now()
		r.bus = membus.New(membus.Options{Drop: func(n event.Notification) bool {
			mu.Lock()
			defer mu.Unlock()
			attempts, at = append(attempts, n.Attempt), append(at, time.Since(began))
			return true
		}})
		p := r.plane(nil)
		r.register(p, single)
		r.start(p, "test/single")
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if diff := cmp.Diff([]int{0, 2, 3, 4, 5, 6, 7}, attempts[:min(7, len(attempts))]); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
		if len(attempts) > 12 {
			t.Errorf("announced %d times in five minutes: %v", len(attempts), at)
		}
	})
}

func TestACommandWhoseWorkersKeepDyingFails(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		w := &crew{r: r, id: "mortal"}
		w.planes = append(w.planes, p.Plane)
		w.drop = func(*event.Command) bool { return true }
		r.employ(w, 1)
		r.register(p, single)
		id := r.start(p, "test/single")
		row := r.await(p, id)
		if row.Status != event.StatusFailed {
			t.Errorf("row is %+v", row)
		}
		cmds := 0
		w.runs.Range(func(_, n any) bool { cmds++; return true })
		s := r.verify(id)
		if cmds != 1 || s.Summary().StepsFailed != 1 {
			t.Errorf("%d commands, summary %+v", cmds, s.Summary())
		}
	})
}

func TestTheLocalWorkerTakesOverWhatAnotherLeft(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil, quiet)
		r.register(first, single)
		id := r.start(first, "test/single")
		claimFor(t, first, r.pending()[0].EventID, "gone")
		first.stop()

		d := newDesk(r, 1)
		p := r.plane(d)
		d.serve(p, 1)
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("row is %+v", row)
		}
		synctest.Wait()
		if n := len(d.slots); n != 0 {
			t.Errorf("%d slots are still reserved", n)
		}
		r.verify(id)
	})
}

func TestAPlaneThatStartsPicksUpPendingCommands(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil, quiet)
		r.register(first, single)
		id := r.start(first, "test/single")
		first.stop()
		r.bus = membus.New(membus.Options{}) // the broker forgot everything

		p := r.plane(nil)
		r.hire("w", 1, 0, p)
		began := time.Now()
		r.await(p, id)
		if took := time.Since(began); took > time.Second {
			t.Errorf("picked up after %v", took)
		}
	})
}

func TestABusThatIsDownDelaysAndLosesNothing(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		down := r.bus
		_ = down.Close()
		p := r.plane(nil)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		time.Sleep(10 * time.Second)
		if got := p.Stats().Published; got != 0 {
			t.Errorf("published %d on a closed bus", got)
		}
		p.stop()
		r.bus = membus.New(membus.Options{})
		q := r.plane(nil)
		r.hire("w", 1, 1, q)
		r.await(q, id)
		r.verify(id)
	})
}
