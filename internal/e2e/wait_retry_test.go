package e2e

import (
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// stubborn fails every time and is tried twice, with a pause long enough to be
// spent without a worker.
const stubborn = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: stubborn, path: e2e/stubborn}
workflow:
  - step: try
    tool:
      kind: shell
      command: "echo {{ _attempt }} >> DIR/calls; exit 1"
      spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 2, delay: 5}}]}}
`

const quick = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: quick, path: e2e/quick}
workflow:
  - {step: start, tool: {kind: shell, command: echo done}}
`

// pausing waits until the first try is over and its command is parked.
func (s *system) pausing(p *process, id event.ID) {
	s.t.Helper()
	s.logged(p, id, event.TimerSet)
	if got := s.lines("calls"); len(got) != 1 {
		s.t.Fatalf("the tool was called %d times before the first pause, want once", len(got))
	}
}

// tried demands the two tries that the rule allows, no matter what happened
// in between.
func (s *system) tried(p *process, id event.ID) {
	s.t.Helper()
	s.ended(p, id, event.StatusFailed)
	if got := s.lines("calls"); len(got) != 2 || got[0] != "1" || got[1] != "2" {
		s.t.Errorf("the tool was called as attempts %v, want 1 and 2", got)
	}
	log := s.log(p, id)
	if parked, fired := count(log, event.CommandParked), count(log, event.TimerFired); parked != 1 || fired != 1 {
		s.t.Errorf("the log has %d command.parked and %d timer.fired, want one each", parked, fired)
	}
}

func TestPauseBeforeARetryHoldsNoWorker(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		server := s.server(0, "--slots", "1")
		id := s.start(server, s.here(stubborn))
		s.pausing(server, id)
		s.completed(server, s.start(server, quick))
		if got := s.lines("calls"); len(got) != 1 {
			t.Fatalf("the pause was over before the other execution had its turn: %v", got)
		}
	})
}

// TestServerKilledWhileExecutionsWaitForTime has a timeout, a deadline and a
// pause outlive the server that set them.
func TestServerKilledWhileExecutionsWaitForTime(t *testing.T) {
	onBackends(t, func(t *testing.T, s *system) {
		first := s.server(0)
		try := s.start(first, s.here(stubborn))
		step := s.start(first, s.here(hanging("shell")))
		whole := s.start(first, s.here(late))
		s.pausing(first, try)
		s.logged(first, step, event.TimerSet)
		s.appears("shell.pid")
		s.appears("late.pid")
		first.Kill()

		second := s.server(0)
		s.timedOut(second, step)
		s.overdue(second, whole)
		s.tried(second, try)
		s.stop(second)
		db := s.open()
		prove(t, db, step)
		prove(t, db, whole)
		if p := prove(t, db, try); len(p.accepted) != 1 || p.reclaims != 0 {
			t.Errorf("%d commands and %d claims taken over, want one and none", len(p.accepted), p.reclaims)
		}
	})
}

// TestServerKilledWhenThePauseIsOver kills the server that has just handed the
// next try out. That try is lost with it and made again by the heir, so that
// the tool may be called once more, never once less.
func TestServerKilledWhenThePauseIsOver(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	first := s.server(0, "--slots", "1")
	id := s.start(first, s.here(stubborn))
	testkit.Eventually(t, func() bool { return len(s.lines("calls")) == 2 }, patience)
	first.Kill()

	second := s.server(0, "--slots", "1")
	s.ended(second, id, event.StatusFailed)
	got := s.lines("calls")
	if n := len(got); n < 2 || n > 3 || got[n-1] != "2" {
		t.Errorf("the tool was called as attempts %v, want 1 and 2, the second perhaps twice", got)
	}
	s.stop(second)
	prove(t, s.open(), id)
}

func TestRemoteWorkerIsFreeWhileARetryPauses(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "postgres")
	server := s.server(0, "--no-worker")
	w := s.worker("only", server.url, s.nats, 1)
	id := s.start(server, s.here(stubborn))
	s.pausing(server, id)
	s.completed(server, s.start(server, quick))
	w.Kill()
	s.worker("heir", server.url, s.nats, 1)
	s.tried(server, id)
}
