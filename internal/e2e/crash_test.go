package e2e

import (
	"fmt"
	"testing"

	"github.com/noetl/noetl-go/internal/testkit"
)

// slowLoop has 200 iterations that take long enough to be killed among.
const slowLoop = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: slow_loop, path: e2e/slow_loop}
workflow:
  - step: start
    tool: {kind: noop}
    next: each
  - step: each
    loop: {in: 200, iterator: i, spec: {mode: parallel, max_in_flight: 32}}
    tool:
      kind: shell
      input: {i: "{{ i }}"}
      command: "sleep 0.05; echo {{ i }}"
    next: end
  - step: end
    tool: {kind: noop, result: {count: "{{ each | length }}", last: "{{ each[199].stdout | trim }}"}}
`

// everyIteration demands one accepted end for each of the 202 commands.
func everyIteration(t *testing.T, p proof) {
	t.Helper()
	if len(p.accepted) != 202 {
		t.Errorf("%d commands, want 202", len(p.accepted))
	}
}

func TestServerKilledInTheMiddleOfALoop(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, backend)
			first := s.server(0, "--slots", "8")
			id := s.start(first, slowLoop)
			s.progressed(first, id, 30)
			first.Kill()

			second := s.server(0, "--slots", "8")
			s.completed(second, id)
			second.Terminate()
			if err := second.Wait(patience); err != nil {
				t.Errorf("server after SIGTERM: %v", err)
			}
			p := prove(t, s.open(), id)
			everyIteration(t, p)
			if p.reclaims == 0 {
				t.Error("no claim of the killed server was taken over: the test killed too late to show anything")
			}
		})
	}
}

func TestWorkerKilledInTheMiddleOfALoop(t *testing.T) {
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			s := newSystem(t, backend)
			nats, args := s.nats, []string{"--no-worker"}
			if nats == "" {
				addr := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
				nats, args = "nats://"+addr, append(args, "--nats-listen", addr)
			}
			server := s.server(0, args...)
			doomed := s.worker("doomed", server.url, nats, 8)
			id := s.start(server, slowLoop)
			s.progressed(server, id, 30)
			doomed.Kill()

			s.worker("heir", server.url, nats, 8)
			s.completed(server, id)
			server.Terminate()
			if err := server.Wait(patience); err != nil {
				t.Errorf("server after SIGTERM: %v", err)
			}
			p := prove(t, s.open(), id)
			everyIteration(t, p)
			if p.reclaims == 0 {
				t.Error("no claim of the killed worker was taken over: the test killed too late to show anything")
			}
		})
	}
}
