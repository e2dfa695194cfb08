package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

// onBackends runs a test on SQLite with everything embedded, and on PostgreSQL
// with a NATS server beside it.
func onBackends(t *testing.T, f func(t *testing.T, s *system)) {
	t.Helper()
	t.Parallel()
	for _, backend := range backends {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			f(t, newSystem(t, backend))
		})
	}
}

// on is the system as part of a subtest, which fails in its own name.
func (s *system) on(t *testing.T) *system {
	part := *s
	part.t, part.dir = t, s.dir
	return &part
}

// natsFor is where remote workers find the bus, and what to tell the server.
func (s *system) natsFor() (url string, args []string) {
	if s.nats != "" {
		return s.nats, nil
	}
	addr := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(s.t))
	return "nats://" + addr, []string{"--nats-listen", addr}
}

// file is a path in the directory of the test, for tools to leave traces at.
func (s *system) file(name string) string { return filepath.Join(s.dir, name) }

// write puts a file where a tool waits for it.
func (s *system) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// lines are the lines a tool has left in a file.
func (s *system) lines(name string) []string {
	s.t.Helper()
	b, err := os.ReadFile(s.file(name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// appears waits for a file with something in it, and returns that.
func (s *system) appears(name string) string {
	s.t.Helper()
	testkit.Eventually(s.t, func() bool { return len(s.lines(name)) > 0 }, patience)
	return s.lines(name)[0]
}

// gone waits until a process has ended.
func (s *system) gone(pid string) {
	s.t.Helper()
	testkit.Eventually(s.t, func() error {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return nil
		}
		return fmt.Errorf("process %s still runs", pid)
	}, patience)
}

// here replaces DIR in a playbook by the directory of the test.
func (s *system) here(src string) string { return strings.ReplaceAll(src, "DIR", s.dir) }

// register files a playbook.
func (s *system) register(p *process, src string) client.Registration {
	s.t.Helper()
	reg, err := p.client.Register(s.ctx(), s.here(src))
	if err != nil {
		s.t.Fatalf("register: %v", err)
	}
	return reg
}

// ended waits for the end of an execution, which must be the given one.
func (s *system) ended(p *process, id event.ID, status string) client.Detail {
	s.t.Helper()
	st, err := p.client.Wait(s.ctx(), id)
	if err != nil {
		s.t.Fatalf("wait: %v", err)
	}
	if st.Status != status {
		s.t.Fatalf("execution %s ended %s, want %s: %s", id, st.Status, status, st.Error)
	}
	d, err := p.client.Execution(s.ctx(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

// log reads all events of an execution.
func (s *system) log(p *process, id event.ID) []event.Event {
	s.t.Helper()
	var all []event.Event
	for after := int64(0); ; after = all[len(all)-1].Seq {
		page, err := p.client.Events(s.ctx(), id, after, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		if all = append(all, page...); len(page) == 0 {
			return all
		}
	}
}

// logged waits until the log of an execution has an event of a type, and
// returns the first.
func (s *system) logged(p *process, id event.ID, kind event.Type) event.Event {
	s.t.Helper()
	var found event.Event
	testkit.Eventually(s.t, func() error {
		for _, e := range s.log(p, id) {
			if e.Type == kind {
				found = e
				return nil
			}
		}
		return fmt.Errorf("the log has no %s", kind)
	}, patience)
	return found
}

// count is how many events of a type a log has.
func count(log []event.Event, kind event.Type) int {
	n := 0
	for _, e := range log {
		if e.Type == kind {
			n++
		}
	}
	return n
}

// children lists the executions that another one started, oldest first.
func (s *system) children(p *process, id event.ID) []client.Execution {
	s.t.Helper()
	rows, err := p.client.Executions(s.ctx(), client.ExecutionFilter{ParentID: id, Limit: 100})
	if err != nil {
		s.t.Fatal(err)
	}
	for i, j := 0, len(rows)-1; i < j; i, j = i+1, j-1 {
		rows[i], rows[j] = rows[j], rows[i]
	}
	return rows
}

// child waits for the only execution that another one has started.
func (s *system) child(p *process, id event.ID) event.ID {
	s.t.Helper()
	var rows []client.Execution
	testkit.Eventually(s.t, func() bool { rows = s.children(p, id); return len(rows) > 0 }, patience)
	if len(rows) != 1 {
		s.t.Fatalf("execution %s has %d children, want one", id, len(rows))
	}
	return rows[0].ExecutionID
}

// stop ends a server in good order, so that its store can be looked at.
func (s *system) stop(p *process) {
	s.t.Helper()
	p.Terminate()
	if err := p.Wait(patience); err != nil {
		s.t.Errorf("server after SIGTERM: %v", err)
	}
}

// result compares what a step returned; ids of executions read as ID.
func result(t *testing.T, d client.Detail, step, want string) {
	t.Helper()
	var v any
	if err := json.Unmarshal(d.Steps[step].Result, &v); err != nil {
		t.Errorf("result of %s: %v: %q", step, err, d.Steps[step].Result)
		return
	}
	got, _ := json.Marshal(v)
	if masked := ids.ReplaceAllString(string(got), "ID"); masked != want {
		t.Errorf("step %s returned %s, want %s", step, masked, want)
	}
}

var ids = regexp.MustCompile(`\d{15,}`)
