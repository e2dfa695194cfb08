package control_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func TestThePoolFollowsFromTheCatalogPath(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, strings.Replace(single, "test/single", "system/own", 1))
		if _, err := p.Register(t.Context(), control.RegisterRequest{Content: single, Path: "subscription/elsewhere"}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Register(t.Context(), control.RegisterRequest{Content: strings.Replace(single, "test/single", "system/inside", 1), Path: "plain"}); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{"system/own": "system", "subscription/elsewhere": "subscription", "plain": "shared"} {
			a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			if row, err := p.Execution(t.Context(), a.ExecutionID); err != nil || row.Pool != want {
				t.Errorf("%s runs in %q, want %q: %v", path, row.Pool, want, err)
			}
		}
		a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "system/own", Pool: "iot"})
		if err != nil {
			t.Fatal(err)
		}
		if row, _ := p.Execution(t.Context(), a.ExecutionID); row.Pool != "iot" {
			t.Errorf("a pool that was asked for became %q", row.Pool)
		}
	})
}

func TestTheTraceGoesWithEveryCommand(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		trace := json.RawMessage(`{"traceparent":"00-1","baggage":{"a":1}}`)
		sub, err := r.bus.Subscribe(t.Context(), []string{"shared"}, 4)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Stop()
		a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/linear", Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		d, err := sub.Next(t.Context())
		if err != nil || string(d.Notification().Trace) != string(trace) {
			t.Errorf("notification %+v, %v", d.Notification(), err)
		}
		cmd := claimFor(t, p, d.Notification().EventID, "w")
		for cmd != nil {
			if string(cmd.Meta.Trace) != string(trace) {
				t.Errorf("%s carries %s", cmd.NodeName, cmd.Meta.Trace)
			}
			answer, err := p.Report(t.Context(), success(r.ids.Next(), "w", 1, cmd))
			if err != nil {
				t.Fatal(err)
			}
			cmd = nil
			if len(answer.Commands) > 0 {
				cmd = answer.Commands[0]
			}
		}
		if row, err := p.Execution(t.Context(), a.ExecutionID); err != nil || row.Status != event.StatusCompleted {
			t.Errorf("%+v, %v", row, err)
		}
		log, err := p.Events(t.Context(), a.ExecutionID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range log {
			var meta struct {
				Trace json.RawMessage `json:"trace"`
			}
			if carries := e.Type == event.PlaybookStarted || e.Type == event.CommandIssued; !carries {
				continue
			}
			if err := json.Unmarshal(e.Meta, &meta); err != nil || string(meta.Trace) != string(trace) {
				t.Errorf("%s carries %s (%v)", e.Type, e.Meta, err)
			}
		}
	})
}

func TestATraceIsNotABag(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, single)
		huge := json.RawMessage(`{"baggage":"` + strings.Repeat("x", 17<<10) + `"}`)
		_, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", Trace: huge})
		if event.CodeOf(err) != event.Invalid || !strings.Contains(err.Error(), "trace") {
			t.Errorf("a trace of %d bytes: %v", len(huge), err)
		}
	})
}
