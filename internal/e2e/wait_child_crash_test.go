package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// gated runs until there is a file, and counts its calls.
const gated = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: gated, path: e2e/gated}
workload: {gate: none}
workflow:
  - step: start
    tool:
      kind: shell
      command: "echo $$ >> DIR/{{ gate }}.pid; while [ -d DIR ] && [ ! -e DIR/{{ gate }}.open ]; do sleep 0.02; done"
    next: done
  - {step: done, tool: {kind: python, input: {g: "{{ gate }}"}, code: "result = {'gate': g}"}}
`

// waits calls gated and waits for it.
const waits = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waits, path: e2e/waits}
workload: {gate: none}
workflow:
  - step: call
    tool: {kind: playbook, path: e2e/gated, return_step: done, input: {gate: "{{ gate }}"}}
    next: after
  - {step: after, tool: {kind: noop, result: {gate: "{{ call.gate }}"}}}
`

// calling starts a parent whose child waits at a gate.
func (s *system) calling(p *process, src, gate string) event.ID {
	s.t.Helper()
	s.register(p, gated)
	reg := s.register(p, src)
	a, err := p.client.Execute(s.ctx(), client.ExecuteRequest{CatalogID: reg.CatalogID, Payload: fmt.Appendf(nil, `{"gate":%q}`, gate)})
	if err != nil {
		s.t.Fatal(err)
	}
	return a.ExecutionID
}

func TestServerKilledWhileAPlaybookWaitsForAnother(t *testing.T) {
	for _, tc := range []struct {
		name string
		kill func(s *system, p *process, id event.ID) // waits for the moment
	}{
		{"parked", func(s *system, p *process, id event.ID) { s.logged(p, id, event.CommandParked) }},
		{"child issued", func(s *system, p *process, id event.ID) { s.logged(p, id, event.ChildIssued) }},
		{"child running", func(s *system, _ *process, _ event.ID) { s.appears("g.pid") }},
		{"child ended", func(s *system, p *process, id event.ID) {
			child := s.child(p, id)
			s.write("g.open", "")
			s.logged(p, child, event.PlaybookCompleted)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onBackends(t, func(t *testing.T, s *system) {
				first := s.server(0, "--slots", "1")
				id := s.calling(first, waits, "g")
				tc.kill(s, first, id)
				first.Kill()

				second := s.server(0, "--slots", "1")
				s.write("g.open", "")
				d := s.ended(second, id, event.StatusCompleted)
				result(t, d, "after", `{"gate":"g"}`)
				child := s.child(second, id)
				s.ended(second, child, event.StatusCompleted)
				s.stop(second)
				db := s.open()
				for _, e := range []event.ID{id, child} {
					if p := prove(t, db, e); len(p.accepted) != 2 {
						t.Errorf("execution %s has %d commands, want 2", e, len(p.accepted))
					}
				}
			})
		})
	}
}

// TestServerDiesAgainAndAgainWhileChildrenRun kills at moments nobody chose.
func TestServerDiesAgainAndAgainWhileChildrenRun(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		const children, kills = 12, 4
		start := func() *process { return s.server(0, "--slots", "2", "--max-attempts", "100") }
		server := start()
		s.register(server, called)
		id := s.start(server, caller("many", fmt.Sprintf(`
  - step: call
    loop: {in: "{{ range(%d) | list }}", iterator: i, spec: {mode: parallel, max_in_flight: 3}}
    tool:
      - slow: {kind: shell, command: "sleep 0.1"}
      - child: {kind: playbook, path: e2e/called, return_step: double, input: {n: "{{ i }}"}}
      - after: {kind: python, input: {d: "{{ child.doubled }}"}, code: "result = d"}
    next: sum
  - {step: sum, tool: {kind: noop, result: {total: "{{ call | map(attribute='after') | sum }}"}}}
`, children)))
		for range kills {
			wait := time.Duration(rand.IntN(300)) * time.Millisecond
			<-time.After(wait)
			server.Kill()
			server = start()
			t.Logf("killed after %s", wait)
		}
		d := s.ended(server, id, event.StatusCompleted)
		result(t, d, "sum", fmt.Sprintf(`{"total":%d}`, children*(children-1)))
		rows := s.children(server, id)
		if len(rows) != children {
			t.Errorf("%d children were started, want %d", len(rows), children)
		}
		s.stop(server)
		db := s.open()
		prove(t, db, id)
		for _, r := range rows {
			prove(t, db, r.ExecutionID)
		}
	})
}

// TestEndOfAWaitReachesBothSides stops one side of a wait and looks at the
// other.
func TestEndOfAWaitReachesBothSides(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0)
		for _, tc := range []struct {
			name          string
			timeout       string // of the step that waits
			stop          func(s *system, parent, child event.ID)
			parent, child string
			says          string // what the parent's error tells
		}{
			{
				name: "cancelled parent", parent: event.StatusCancelled, child: event.StatusCancelled,
				stop: func(s *system, parent, _ event.ID) { s.cancel(server, parent, client.CancelRequest{Reason: "enough"}) },
			},
			{
				name: "parent cancelled alone", parent: event.StatusCancelled, child: event.StatusCancelled,
				stop: func(s *system, parent, _ event.ID) {
					s.cancel(server, parent, client.CancelRequest{Reason: "enough", Alone: true})
				},
			},
			{
				name: "cancelled child", parent: event.StatusFailed, child: event.StatusCancelled, says: "was cancelled",
				stop: func(s *system, _, child event.ID) { s.cancel(server, child, client.CancelRequest{Reason: "enough"}) },
			},
			{
				name: "timeout of the step", timeout: "1s", parent: event.StatusFailed, child: event.StatusCancelled,
				says: `step "call" did not end within 1s`, stop: func(*system, event.ID, event.ID) {},
			},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				s := s.on(t)
				gate := strings.ReplaceAll(tc.name, " ", "-")
				src := strings.Replace(waits, "e2e/waits", "e2e/"+gate, 1)
				if tc.timeout != "" {
					src = strings.Replace(src, "- step: call\n", "- step: call\n    spec: {timeout: "+tc.timeout+"}\n", 1)
				}
				id := s.calling(server, src, gate)
				child := s.child(server, id)
				pid := s.appears(gate + ".pid")
				tc.stop(s, id, child)
				d := s.ended(server, id, tc.parent)
				if !strings.Contains(d.Error, tc.says) {
					t.Errorf("error %q, want %q in it", d.Error, tc.says)
				}
				s.ended(server, child, tc.child)
				s.gone(pid)
			})
		}
	})
}

func (s *system) cancel(p *process, id event.ID, r client.CancelRequest) {
	s.t.Helper()
	if _, err := p.client.Cancel(s.ctx(), id, r); err != nil {
		s.t.Fatal(err)
	}
}

// TestParentCancelledJustBeforeTheServerDies leaves the child to the heir.
func TestParentCancelledJustBeforeTheServerDies(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		first := s.server(0)
		id := s.calling(first, waits, "g")
		child := s.child(first, id)
		s.appears("g.pid")
		s.cancel(first, id, client.CancelRequest{Alone: true})
		first.Kill()

		second := s.server(0)
		s.ended(second, id, event.StatusCancelled)
		s.ended(second, child, event.StatusCancelled)
	})
}
