package control_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

const bounded = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: bounded, path: test/bounded}
workflow:
  - step: start
    tool: {kind: noop}
    spec: {timeout: 10m}
`

// hangs is a worker that takes commands and is never heard of again, except
// that its leases last.
func (r *rig) hangs(p *running) *crew {
	w := &crew{r: r, id: "hangs", planes: []*control.Plane{p.Plane}, drop: func(*event.Command) bool { return true }}
	r.employ(w, 1)
	return w
}

func longLease(o *control.Options) { o.Lease = 24 * time.Hour }

func TestAStepThatHangsIsEndedOnTime(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, longLease)
		r.hangs(p)
		r.register(p, bounded)
		began := time.Now()
		id := r.start(p, "test/bounded")
		row := r.await(p, id)
		if took := time.Since(began); row.Status != event.StatusFailed || took < 10*time.Minute || took > 10*time.Minute+time.Second {
			t.Errorf("%s after %v: %s", row.Status, took, row.Error)
		}
		r.verify(id)
	})
}

func TestATimerOutlivesTheProcessThatSetIt(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil, longLease)
		r.hangs(first)
		r.register(first, bounded)
		began := time.Now()
		id := r.start(first, "test/bounded")
		time.Sleep(time.Minute)
		first.stop()

		p := r.plane(nil, longLease)
		row := r.await(p, id)
		if took := time.Since(began); row.Status != event.StatusFailed || took > 10*time.Minute+2*time.Second {
			t.Errorf("%s after %v: %s", row.Status, took, row.Error)
		}
		r.verify(id)
	})
}

func TestAPauseHoldsNoWorkerAndOutlivesACrash(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil)
		r.register(first, single)
		w := &crew{r: r, id: "w", planes: []*control.Plane{first.Plane}}
		w.says = func(cmd *event.Command) *event.Incoming {
			if cmd.Meta.Resume != nil {
				return nil
			}
			return &event.Incoming{
				Type: event.CommandParked, Payload: json.RawMessage(`{"park":{"delay_seconds":3600,"resume":{"at":7}}}`),
			}
		}
		r.employ(w, 1)
		began := time.Now()
		id := r.start(first, "test/single")
		time.Sleep(time.Minute)
		if rows := r.pending(); len(rows) != 0 {
			t.Errorf("pending while it pauses: %+v", rows)
		}
		first.stop()

		p := r.plane(nil)
		second := r.hire("second", 1, 0, p)
		row := r.await(p, id)
		if took := time.Since(began); row.Status != event.StatusCompleted || took < time.Hour || took > time.Hour+5*time.Second {
			t.Errorf("%s after %v: %s", row.Status, took, row.Error)
		}
		runs := 0
		second.runs.Range(func(_, _ any) bool { runs++; return true })
		if runs != 1 {
			t.Errorf("the second worker ran %d commands", runs)
		}
		r.verify(id)
	})
}
