package corpus_test

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

// sample is a run of a, then b and c beside each other, then d.
func sample() *history {
	h := &history{
		status: event.StatusCompleted,
		steps: map[string]engine.StepOutcome{
			"a": {Status: "COMPLETED", Result: json.RawMessage(`{"n":2.0000001,"list":[1,2],"more":true}`)},
			"b": {Status: "FAILED", Result: json.RawMessage(`{"fetch":{"ok":true},"save":{"ok":false},"ok":false}`)},
			"c": {Status: "COMPLETED", Result: json.RawMessage(`[{"i":0},{"i":1}]`)},
		},
		playbook: &playbook.Playbook{Steps: []*playbook.Step{
			{Name: "b", Tasks: []*playbook.Task{{Label: "fetch"}, {Label: "save"}}},
		}},
	}
	h.children = []childRun{{path: "x", status: event.StatusCompleted, workload: map[string]any{"n": 1.0, "m": 2.0}}}
	for i, line := range strings.Fields("step.enter:a command.completed:a step.enter:b step.enter:c " +
		"command.completed:b command.completed:c step.enter:d command.completed:d") {
		kind, name, _ := strings.Cut(line, ":")
		h.events = append(h.events, event.Event{
			Seq: int64(i + 1), Type: event.Type(kind), NodeName: name, Result: json.RawMessage(`{"context":{"stdout":"from ` + name + `\n"}}`),
		})
	}
	return h
}

func TestCorpusComparisonFindsDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, expect, want string }{
		{"everything as expected", `{steps_executed: [a, b, c, d], step_order_matters: true, exactly_once: [d], steps_not_executed: [e]}`, ""},
		{"one of two steps", `{steps_executed: [a, x|b, c, d], step_order_matters: true}`, ""},
		{"another order", `{steps_executed: [a, c, b, d], step_order_matters: true}`, "steps: want"},
		{"another order that does not matter", `{steps_executed: [d, c, b, a]}`, ""},
		{"a missing step", `{steps_executed: [a, b, c]}`, "steps: want"},
		{"a step too many", `{steps_not_executed: [c]}`, "must not run"},
		{"a step not run once", `{exactly_once: [e]}`, "must run once"},
		{"a partial order", `{partial_order: ['a < {b, c} < d']}`, ""},
		{"a step that began too early", `{partial_order: ['b < c']}`, "must end before c"},
		{"another status", `{status: FAILED}`, "want FAILED, got COMPLETED"},
		{"one of two statuses", `{status: {any_of: [COMPLETED, FAILED]}}`, ""},
		{"the other status goes part of the way", `{status: {any_of: [FAILED, COMPLETED]}, steps_executed: [a, b, c, d, e], results: {e: 1}}`, ""},
		{"the other status goes another way", `{status: {any_of: [FAILED, COMPLETED]}, steps_executed: [a, c]}`, "a beginning of"},
		{"an error that does not match", `{error_matches: boom}`, "want a match"},
		{"the failed step", `{failed_step: b}`, ""},
		{"a step that did not fail", `{failed_step: a}`, "failed_step"},
		{"a part of a result", `{results: {a: {n: 2, list: [1, 2]}}}`, ""},
		{"a length and a bound", `{results: {a: {n: '>=2', list: 'len:2'}}}`, ""},
		{"a bound not reached", `{results: {a: {n: '>=3'}}}`, "a.n: want"},
		{"another length", `{results: {a: {list: 'len:3'}}}`, "a.list: want"},
		{"another number", `{results: {a: {n: 2.1}}}`, "a.n: want"},
		{"a missing key", `{results: {a: {m: 2}}}`, "a.m: missing"},
		{"a longer list", `{results: {a: {list: [1]}}}`, "want 1 items"},
		{"a step without a result", `{results: {d: {m: 2}}}`, "no result"},
		{"the entry of a task", `{results: {b: {ok: true}}}`, ""},
		{"no entry of a task", `{results: {b: {ok: 3}}}`, "b.ok: want"},
		{"a loop", `{loops: {c: {iterations: 2, results: [{i: 0}, {i: 1}]}}}`, ""},
		{"another iteration", `{loops: {c: {iterations: 2, results: [{i: 0}, {i: 2}]}}}`, "c[1].i: want"},
		{"more iterations", `{loops: {c: {iterations: 3}}}`, "want 3 iterations"},
		{"a printed text", `{stdout_contains: {a: from a}}`, ""},
		{"a text that was not printed", `{stdout_contains: {a: from b}}`, "did not print"},
		{"a child execution", `{child_executions: [{path: x, status: COMPLETED, workload: {n: 1}}]}`, ""},
		{"a child with another input", `{child_executions: [{path: x, status: COMPLETED, workload: {n: 2}}]}`, "workload.n: want"},
		{"another child", `{child_executions: [{path: y, status: COMPLETED}]}`, "want COMPLETED of y"},
		{"a missing child", `{child_executions: [{path: x}, {path: y}]}`, "want 2, got 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &entry{Expect: expectation{Status: statuses{event.StatusCompleted}}}
			if err := yaml.Unmarshal([]byte(c.expect), &e.Expect); err != nil {
				t.Fatal(err)
			}
			got := compare(e, sample())
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("difference %q, want %q", got, c.want)
			}
		})
	}
}

func TestCorpusAlternativesCountForUncertainEntriesOnly(t *testing.T) {
	t.Parallel()
	e := &entry{
		Expect:       expectation{Status: statuses{rejected}},
		Alternatives: []expectation{{Status: statuses{event.StatusCompleted}, Results: map[string]any{"a": map[string]any{"more": true}}}},
	}
	if compare(e, sample()) == "" {
		t.Error("a certain entry may not end in an alternative")
	}
	e.Uncertain = true
	if diff := compare(e, sample()); diff != "" {
		t.Errorf("an uncertain entry may: %s", diff)
	}
}
