package e2e

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
)

// hanging has a tool that never ends by itself, and leaves its process id.
func hanging(tool string) string {
	return `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: hanging, path: e2e/hanging}
workflow:
  - step: hang
    spec: {timeout: 2s}
    tool:
` + map[string]string{
		"shell":  "      kind: shell\n      command: \"echo $$ > DIR/shell.pid; exec sleep 600\"\n",
		"python": "      kind: python\n      code: |\n        import os, time\n        open('DIR/python.pid', 'w').write(str(os.getpid()) + '\\n')\n        time.sleep(600)\n",
	}[tool] + `    next: after
  - {step: after, tool: {kind: noop}}
`
}

// timedOut holds a log against what a step leaves behind that took too long.
func (s *system) timedOut(p *process, id event.ID) {
	s.t.Helper()
	d := s.ended(p, id, event.StatusFailed)
	if !strings.Contains(d.Error, `step "hang" did not end within 2s`) {
		s.t.Errorf("error of the execution: %q", d.Error)
	}
	if got := d.Steps["hang"].Status; got != event.StatusFailed {
		s.t.Errorf("the step is %s, want FAILED", got)
	}
	if d.Steps["after"].Runs != 0 {
		s.t.Error("the step after it ran")
	}
	log := s.log(p, id)
	if set, fired := count(log, event.TimerSet), count(log, event.TimerFired); set != 1 || fired != 1 {
		s.t.Errorf("the log has %d timer.set and %d timer.fired, want one each", set, fired)
	}
	for _, e := range log {
		if e.Type == event.CommandFailed && strings.Contains(string(e.Result), `"kind":"timeout"`) {
			return
		}
	}
	s.t.Error("no command failed with an error of kind timeout")
}

// handled ends well because an arc takes the timeout up.
const handled = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: handled, path: e2e/handled}
workflow:
  - step: hang
    spec: {timeout: 200ms}
    tool: {kind: shell, command: "exec sleep 600"}
    next: {arcs: [{step: late, when: "{{ output.error.kind == 'timeout' }}"}, {step: other}]}
  - {step: late, tool: {kind: noop}}
  - {step: other, tool: {kind: noop}}
`

func TestStepTimeoutStopsTheTool(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0)
		for _, tool := range []string{"shell", "python"} {
			t.Run(tool, func(t *testing.T) {
				t.Parallel()
				s := s.on(t)
				id := s.start(server, s.here(hanging(tool)))
				pid := s.appears(tool + ".pid")
				s.timedOut(server, id)
				s.gone(pid)
			})
		}
		d := s.ended(server, s.start(server, handled), event.StatusCompleted)
		if d.Steps["late"].Runs != 1 || d.Steps["other"].Runs != 0 {
			t.Errorf("the arc for a timeout was not taken: %+v", d.Steps)
		}
	})
}

// late has more work than its deadline allows, some of it without a worker.
const late = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: late, path: e2e/late}
executor: {spec: {timeout: 3s}}
workflow:
  - {step: start, tool: {kind: noop}, next: [hang, each]}
  - {step: hang, tool: {kind: shell, command: "echo $$ > DIR/late.pid; exec sleep 600"}}
  - step: each
    loop: {in: 5, iterator: i, spec: {mode: parallel}}
    tool: {kind: shell, command: "exec sleep 600"}
`

// overdue holds an execution against what its deadline leaves behind.
func (s *system) overdue(p *process, id event.ID) {
	s.t.Helper()
	d := s.ended(p, id, event.StatusFailed)
	if want := "the execution did not end within its deadline of 3s"; d.Error != want {
		s.t.Errorf("error %q, want %q", d.Error, want)
	}
	for step, want := range map[string]string{"start": event.StatusCompleted, "hang": event.StatusCancelled, "each": event.StatusCancelled} {
		if got := d.Steps[step].Status; got != want {
			s.t.Errorf("step %s is %s, want %s", step, got, want)
		}
	}
}

func TestDeadlineEndsTheExecution(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0, "--slots", "2")
		id := s.start(server, s.here(late))
		pid := s.appears("late.pid")
		s.overdue(server, id)
		s.gone(pid)
		s.stop(server)
		if p := prove(t, s.open(), id); len(p.accepted) != 7 {
			t.Errorf("%d commands, want 7", len(p.accepted))
		}
	})
}
