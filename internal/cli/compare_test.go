package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const compared = `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: cmp, path: compare/p}
workload: {name: Ada, n: 2}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: each}]}
  - step: each
    loop: {in: "{{ [1, workload.n] }}", iterator: x}
    tool: {kind: shell, command: "echo {{ iter.x }} {{ workload.name }}"}
    next: {arcs: [{step: more, when: "{{ workload.n > 4 }}"}]}
  - step: more
    tool: {kind: shell, command: "echo {{ each }} {{ broken( }}"}
`

// ended runs a playbook of the shared server to its end.
func ended(t *testing.T, args ...string) string {
	t.Helper()
	code, out := noetl(t, append([]string{"execute", "--wait", "-o", "json", "--server-url", served(t)}, args...)...)
	var o struct {
		ID string `json:"execution_id"`
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &o); err != nil || code != ExitOK {
		t.Fatalf("%d: %v\n%s", code, err, out)
	}
	return o.ID
}

func TestExecutionsAreCompared(t *testing.T) {
	t.Parallel()
	doc := strings.Replace(compared, " {{ broken( }}", "", 1)
	registered(t, doc)
	one, same, other := ended(t, "compare/p"), ended(t, "compare/p"), ended(t, "compare/p", "--set", "n=5")
	url := served(t)
	if code, out := noetl(t, "diff", one, same, "--server-url", url); code != ExitOK || !strings.Contains(out, "the same inputs, the same way, the same results") {
		t.Errorf("the same twice: %d\n%s", code, out)
	}
	code, out := noetl(t, "diff", one, other, "--server-url", url, "-o", "json")
	var d difference
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != ExitOK {
		t.Fatalf("%d: %v\n%s", code, err, out)
	}
	if len(d.Inputs) != 1 || d.Inputs[0].Path != "n" || string(d.Inputs[0].B) != "5" {
		t.Errorf("changed inputs: %+v", d.Inputs)
	}
	if x := d.Divergence; x == nil || x.Step != "each" || x.What != "reached" {
		t.Errorf("first divergence: %+v", x)
	}
	if len(d.Steps) != 3 || d.Steps[2].Step != "more" || d.Steps[2].StatusA != "SKIPPED" || d.Steps[2].StatusB != "COMPLETED" {
		t.Errorf("steps: %+v", d.Steps)
	}
	if len(d.Results) == 0 || !strings.HasPrefix(d.Results[0].Path, "each[1]") {
		t.Errorf("results: %+v", d.Results)
	}
	if code, out := noetl(t, "diff", one, "5", "--server-url", url); code != ExitInvalid {
		t.Errorf("an unknown one: %d\n%s", code, out)
	}
}

// TestADifferenceIsFollowedIntoWhatWasStarted has the same parent twice whose
// child went another way.
func TestADifferenceIsFollowedIntoWhatWasStarted(t *testing.T) {
	t.Parallel()
	registered(t, `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: compare/child}
workload: {n: 1}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: count}]}
  - step: count
    tool: {kind: shell, command: "echo {{ workload.n }}"}
`)
	registered(t, `apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parent, path: compare/parent}
workload: {n: 1}
workflow:
  - step: start
    tool: {kind: playbook, path: compare/child, wait: true, args: {n: "{{ workload.n }}"}}
`)
	one, other := ended(t, "compare/parent"), ended(t, "compare/parent", "--set", "n=2")
	code, out := noetl(t, "diff", one, other, "--server-url", served(t), "-o", "json")
	var d difference
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != ExitOK {
		t.Fatalf("%d: %v\n%s", code, err, out)
	}
	if d.Divergence == nil || d.Divergence.Step != "start" || d.Divergence.Child == nil {
		t.Fatalf("no divergence in the child: %+v", d.Divergence)
	}
	if child := d.Divergence.Child; child.A.Path != "compare/child" || len(child.Inputs) != 1 || child.Inputs[0].Path != "n" || child.Divergence == nil || child.Divergence.Step != "count" {
		t.Errorf("the child: %s", out)
	}
	if code, out := noetl(t, "diff", one, other, "--server-url", served(t)); code != ExitOK || !strings.Contains(out, "compare/child") {
		t.Errorf("as text: %d\n%s", code, out)
	}
}

func TestMomentsAreReplayed(t *testing.T) {
	t.Parallel()
	registered(t, strings.ReplaceAll(strings.Replace(compared, " {{ broken( }}", "", 1), "compare/p", "compare/replay"))
	id := ended(t, "compare/replay")
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{nil, ExitOK, "COMPLETED  at now"},
		{[]string{"--at", "3"}, ExitOK, "RUNNING  at event 3, command.issued start: 3 events"},
		{[]string{"--at", "3", "--diff", "now"}, ExitOK, "execution "},
		{[]string{"--at", "3", "--diff", "3"}, ExitOK, "nothing changed"},
		{[]string{"--at", "2000-01-01T00:00:00Z"}, ExitOK, "0 events"},
		{[]string{"--at", "-0s"}, ExitOK, "COMPLETED"},
		{[]string{"--at", "9999"}, ExitInvalid, "has no event with that number"},
		{[]string{"--at", "soon"}, ExitInvalid, "is no moment"},
		{[]string{"-o", "yaml"}, ExitOK, "event_count:"},
	} {
		args := append([]string{"replay", id, "--server-url", served(t)}, tc.args...)
		for i, a := range args { // a moment may begin with a dash
			if a == "--at" {
				args = append(append(args[:i:i], "--at="+args[i+1]), args[i+2:]...)
				break
			}
		}
		if code, out := noetl(t, args...); code != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("%v: code %d, want %d and %q in\n%s", tc.args, code, tc.code, tc.want, out)
		}
	}
}

func TestTemplatesAreRendered(t *testing.T) {
	t.Parallel()
	registered(t, strings.ReplaceAll(strings.Replace(compared, " {{ broken( }}", "", 1), "compare/p", "compare/render"))
	id := ended(t, "compare/render")
	file := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(compared, " {{ broken( }}", " {{ 1 / 0 }}", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"--step", "each", "--set", "n=7"}, ExitOK, []string{"loop.in\n", "= [1,7]", "tool.command\n", "= echo 1 Ada", "next.arcs[0].when\n", "= true"}},
		{[]string{"--step", "more"}, ExitOK, []string{"? known when the step each has run"}},
		{[]string{"--step", "more", "--from", id, "--server-url", served(t)}, ExitInvalid, []string{file + ":14:", "division"}},
		{[]string{"--step", "eahc"}, ExitInvalid, []string{`did you mean "each"`}},
		{[]string{"--step", "start"}, ExitOK, []string{"has no templates"}},
	} {
		code, out := noetl(t, append([]string{"render", file}, tc.args...)...)
		if code != tc.code {
			t.Errorf("%v: code %d, want %d\n%s", tc.args, code, tc.code, out)
		}
		for _, want := range tc.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: no %q in\n%s", tc.args, want, out)
			}
		}
	}
}

func TestTextIsMeasuredAsTerminalsShowIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "abc": 3, "日本": 4, "e\u0301": 1, "✓": 1, "🚀": 2} {
		if got := shownWidth(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := printable("a\x1b[31mb\nc\u009bd"); got != "a[31mb cd" {
		t.Errorf("%q", got)
	}
	if got := fit("日本語", 5); got != "日本…" {
		t.Errorf("%q", got)
	}
}
