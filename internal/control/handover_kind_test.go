package control_test

import (
	"context"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
)

const mixed = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: mixed, path: test/mixed}
workflow:
  - {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}}
  - {step: a, tool: {kind: python, code: "result = 1"}}
  - {step: b, tool: {kind: http, url: "http://127.0.0.1:1/"}}
`

func TestAWorkerIsHandedOnlyKindsItHasASlotFor(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, mixed)
		r.start(p, "test/mixed")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w1")
		done := success(r.ids.Next(), "w1", 2, cmd)
		done.EagerNot = []string{"python", "shell"}
		a, err := p.Report(t.Context(), done)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Commands) != 1 || a.Commands[0].Action != "http" {
			t.Errorf("handed over %+v, want http only", a.Commands)
		}
		waiting := r.pending()
		if len(waiting) != 1 || waiting[0].ToolKind != "python" {
			t.Errorf("%+v wait, want python", waiting)
		}
	})
}

// picky is a desk without slots for python.
type picky struct{ *desk }

func (d picky) ReserveFor(kind string) bool { return kind != "python" && d.Reserve() }
func (d picky) UnreserveFor(string)         { d.Unreserve() }

func TestTheLocalWorkerIsGivenOnlyKindsItHasASlotForAndOthersHearOfTheRest(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		d := newDesk(r, 4)
		sub, err := r.bus.Subscribe(t.Context(), []string{"shared"}, 8)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Stop()
		p := r.plane(picky{d}, func(o *control.Options) { o.Republish = time.Second })
		r.register(p, mixed)
		r.start(p, "test/mixed")
		first := <-d.got
		d.Unreserve()
		if _, err := p.Report(t.Context(), success(r.ids.Next(), d.ID(), 0, first)); err != nil {
			t.Fatal(err)
		}
		if cmd := <-d.got; cmd.Action != "http" || len(d.slots) != 1 {
			t.Errorf("given %s with %d slots taken, want http on one", cmd.Action, len(d.slots))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		n, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if note := n.Notification(); note.Step != "a" || note.ToolKind != "python" {
			t.Errorf("announced %+v, want the python step with its kind", note)
		}
	})
}
