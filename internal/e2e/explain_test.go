package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/testkit"
)

var update = flag.Bool("update", false, "write the golden files of explanations")

// explained shows every way in which a step stands at one moment: open
// branches hang at a gate until the test has looked.
const explained = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: explained, path: e2e/explained}
workload: {small: 3}
workflow:
  - step: start
    tool: {kind: noop}
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: quick}
        - {step: many}
        - {step: call}
        - {step: never, when: "{{ small > 5 }}"}
  - {step: quick, tool: {kind: noop}, next: [join, fails]}
  - step: many
    loop: {in: 4, iterator: i, spec: {mode: parallel, max_in_flight: 2}}
    tool: {kind: shell, command: "[ {{ i }} = 0 ] || { echo $$ >> DIR/many.pid; while [ -d DIR ] && [ ! -e DIR/many.open ]; do sleep 0.02; done; }"}
    next: join
  - {step: call, tool: {kind: playbook, path: e2e/gated, return_step: done, input: {gate: kid}}, next: join}
  - step: fails
    tool: {kind: shell, command: "exit 3"}
    next: {arcs: [{step: handled, when: "{{ output.status == 'error' }}"}]}
  - {step: handled, tool: {kind: noop}, when: "{{ small > 4 }}", next: join}
  - {step: never, tool: {kind: noop}, next: join}
  - {step: join, tool: {kind: noop}}
`

// pending has a command that nobody takes.
const pending = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: pending, path: e2e/pending}
workflow:
  - {step: start, tool: {kind: noop}, next: after}
  - {step: after, tool: {kind: noop}}
`

// cli runs the program against a server and returns what it wrote and how it
// ended.
func (s *system) cli(p *process, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx(), s.bin, append(args, "--server-url", p.url)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

var masks = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\d{15,}`), "ID"},
	{regexp.MustCompile(`\d\d:\d\d:\d\d`), "TIME"},
	{regexp.MustCompile(`worker \S+ runs`), "worker NAME runs"},
}

// golden compares a text with a file, ids and times masked.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, m := range masks {
		got = m.what.ReplaceAllString(got, m.by)
	}
	file := filepath.Join("testdata", "explain", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s reads:\n%s\nwant:\n%s", name, got, want)
	}
}

func TestExplainSaysWhyAStepStandsAsItDoes(t *testing.T) {
	t.Parallel()
	s := newSystem(t, "sqlite")
	server := s.server(0, "--slots", "4", "--lease", "60s")
	s.register(server, gated)
	id := s.start(server, s.here(explained))
	// The loop has two open iterations and the child its one: now all stand still.
	testkit.Eventually(t, func() bool { return len(s.lines("many.pid")) == 2 && len(s.lines("kid.pid")) == 1 }, patience)
	s.settled(server, id)

	reg := s.register(server, pending)
	lonely, err := server.client.Execute(s.ctx(), client.ExecuteRequest{CatalogID: reg.CatalogID, Pool: "nobody"})
	if err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		golden string
		id     event.ID
		step   []string
	}{
		{"running", id, nil},
		{"join", id, []string{"join"}},
		{"pending", lonely.ExecutionID, nil},
	} {
		out, errs, code := s.cli(server, append([]string{"explain", tc.id.String()}, tc.step...)...)
		if code != 0 {
			t.Errorf("%s: exit code %d: %s", tc.golden, code, errs)
		}
		golden(t, tc.golden, out)
	}

	out, _, _ := s.cli(server, "explain", id.String(), "call", "--json")
	var x client.Explained
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatalf("--json: %v: %s", err, out)
	}
	if len(x.Steps) != 1 || len(x.Steps[0].Waits) == 0 || x.Steps[0].Waits[0].For != "child" || x.Steps[0].Waits[0].Name != s.child(server, id).String() {
		t.Errorf("--json of a step that waits for a child: %s", out)
	}

	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{id.String(), "nowhere"}, 2, "start, quick, many, call, fails, handled, never, join"},
		{[]string{"123"}, 2, "Execution not found: 123"},
		{[]string{"abc"}, 2, "abc"},
	} {
		out, errs, code := s.cli(server, append([]string{"explain"}, tc.args...)...)
		if code != tc.code || !strings.Contains(errs, tc.says) || out != "" {
			t.Errorf("explain %v: exit code %d, %q, %q; want %d and %q on stderr", tc.args, code, out, errs, tc.code, tc.says)
		}
	}

	s.write("many.open", "")
	testkit.Eventually(t, func() error {
		out, _, _ := s.cli(server, "explain", id.String(), "join")
		if !strings.Contains(out, "it waits for call\n") {
			return errors.New(out)
		}
		return nil
	}, patience)
	s.write("kid.open", "")
	s.ended(server, id, event.StatusCompleted)
	out, _, _ = s.cli(server, "explain", id.String())
	golden(t, "ended", out)
}

// settled waits until the steps that do not hang have ended.
func (s *system) settled(p *process, id event.ID) {
	s.t.Helper()
	testkit.Eventually(s.t, func() error {
		x, err := p.client.Explain(s.ctx(), id, "")
		if err != nil {
			return err
		}
		for _, st := range x.Steps {
			switch st.Step {
			case "quick", "fails", "handled":
				if st.Ended.IsZero() {
					return errors.New(st.Step + " has not ended")
				}
			case "many":
				if !strings.HasPrefix(st.Progress, "1 of 4") {
					return errors.New(st.Progress)
				}
			}
		}
		return nil
	}, patience)
}
