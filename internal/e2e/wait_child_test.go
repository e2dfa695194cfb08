package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

// called is the playbook that others call. Its second version says so.
const called = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: called, path: e2e/called}
workload: {n: 1, version: one}
workflow:
  - step: double
    tool: {kind: python, input: {n: "{{ n }}"}, code: "result = {'doubled': n * 2}"}
    next: last
  - {step: last, tool: {kind: python, input: {v: "{{ version }}"}, code: "result = {'version': v}"}}
`

const broken = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: broken, path: e2e/broken}
workflow:
  - {step: start, tool: {kind: shell, command: "echo ouch >&2; exit 3"}}
`

// TestPlaybooksCallPlaybooks runs every way to call on a worker with one slot:
// were it held by the caller, the child could never run.
func TestPlaybooksCallPlaybooks(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0, "--slots", "1")
		s.register(server, called)
		s.register(server, strings.Replace(called, "version: one", "version: two", 1))
		s.register(server, broken)
		for _, tc := range []struct {
			name, workflow string
			children       int
			results        map[string]string // of the steps
		}{
			{
				name:     "return_step",
				workflow: "  - {step: call, tool: {kind: playbook, path: e2e/called, return_step: double, input: {n: 21}}}\n",
				children: 1,
				results:  map[string]string{"call": `{"doubled":42,"execution_id":"ID","path":"e2e/called","status":"COMPLETED"}`},
			},
			{
				name:     "return_result",
				workflow: "  - {step: call, tool: {kind: playbook, path: e2e/called, return_result: true}}\n",
				children: 1,
				results:  map[string]string{"call": `{"version":"two"}`},
			},
			{
				name:     "result_step",
				workflow: "  - {step: call, tool: {kind: playbook, path: e2e/called, return_result: true, result_step: double}}\n",
				children: 1,
				results:  map[string]string{"call": `{"doubled":2}`},
			},
			{
				name:     "wait",
				workflow: "  - {step: call, tool: {kind: playbook, path: e2e/called, wait: true}}\n",
				children: 1,
				results:  map[string]string{"call": `{"execution_id":"ID","path":"e2e/called","status":"COMPLETED"}`},
			},
			{
				name:     "fire and forget",
				workflow: "  - {step: call, tool: {kind: playbook, path: e2e/called}}\n",
				children: 1,
				results:  map[string]string{"call": `{"async":true,"execution_id":"ID","path":"e2e/called","status":"started"}`},
			},
			{
				name:     "pinned version",
				workflow: "  - {step: call, tool: {kind: playbook, path: e2e/called, version: 1, return_step: last}}\n",
				children: 1,
				results:  map[string]string{"call": `{"execution_id":"ID","path":"e2e/called","status":"COMPLETED","version":"one"}`},
			},
			{
				name: "loop",
				workflow: `
  - step: call
    loop: {in: [1, 2, 3, 4, 5], iterator: i, spec: {mode: parallel, max_in_flight: 2}}
    tool: {kind: playbook, path: e2e/called, return_step: double, input: {n: "{{ i }}"}}
    next: sum
  - {step: sum, tool: {kind: noop, result: {all: "{{ call | map(attribute='doubled') | list }}"}}}
`,
				children: 5,
				results:  map[string]string{"sum": `{"all":[2,4,6,8,10]}`},
			},
			{
				name: "between two tasks",
				workflow: `
  - step: call
    tool:
      - before: {kind: python, code: "result = {'n': 4}"}
      - child: {kind: playbook, path: e2e/called, return_step: double, input: {n: "{{ before.n }}"}}
      - after: {kind: python, input: {d: "{{ child.doubled }}", n: "{{ before.n }}"}, code: "result = {'sum': d + n}"}
    next: show
  - {step: show, tool: {kind: noop, result: {sum: "{{ call.after.sum }}", child: "{{ call.child.status }}"}}}
`,
				children: 1,
				results:  map[string]string{"show": `{"child":"COMPLETED","sum":12}`},
			},
			{
				name: "failure that is handled",
				workflow: `
  - step: call
    tool: {kind: playbook, path: e2e/broken, return_result: true}
    next: {arcs: [{step: handled, when: "{{ output.status == 'error' }}"}]}
  - {step: handled, tool: {kind: noop, result: {kind: "{{ call.error.kind }}"}}}
`,
				children: 1,
				results:  map[string]string{"handled": `{"kind":"child"}`},
			},
			{
				name: "grandchild",
				workflow: `
  - step: call
    tool: {kind: playbook, path: e2e/calls_return_result, return_step: call}
`,
				children: 1,
				results:  map[string]string{"call": `{"execution_id":"ID","path":"e2e/calls_return_result","status":"COMPLETED","version":"two"}`},
			},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := s.on(t)
				id := s.start(server, caller(tc.name, tc.workflow))
				d := s.ended(server, id, event.StatusCompleted)
				for step, want := range tc.results {
					result(t, d, step, want)
				}
				children := s.children(server, id)
				if len(children) != tc.children {
					t.Errorf("%d executions were started, want %d", len(children), tc.children)
				}
				for _, c := range children {
					if _, err := server.client.Wait(s.ctx(), c.ExecutionID); err != nil {
						t.Error(err)
					}
				}
			})
		}
	})
}

func caller(name, workflow string) string {
	name = "calls_" + strings.ReplaceAll(name, " ", "_")
	return fmt.Sprintf("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: e2e/%s}\nworkflow:\n%s", name, name, workflow)
}

func TestCallsThatFailFailTheStep(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0, "--slots", "1")
		s.register(server, called)
		s.register(server, broken)
		for _, tc := range []struct{ name, tool, want string }{
			{"the child fails", "path: e2e/broken, return_result: true", "playbook e2e/broken (execution ID) failed"},
			{"there is no such playbook", "path: e2e/nowhere, return_result: true", "playbook e2e/nowhere cannot be started"},
			{"there is no such playbook to forget", "path: e2e/nowhere", "playbook e2e/nowhere cannot be started"},
			{"there is no such version", "path: e2e/called, version: 7, wait: true", "playbook e2e/called version 7 cannot be started"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				s := s.on(t)
				id := s.start(server, caller(tc.name, "  - {step: call, tool: {kind: playbook, "+tc.tool+"}}\n"))
				d := s.ended(server, id, event.StatusFailed)
				if got := ids.ReplaceAllString(d.Error, "ID"); !strings.Contains(got, tc.want) {
					t.Errorf("the execution failed with %q, want %q in it", got, tc.want)
				}
				if d.Steps["call"].Status != event.StatusFailed {
					t.Errorf("the step is %s", d.Steps["call"].Status)
				}
			})
		}
	})
}
