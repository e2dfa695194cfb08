package corpus_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/testkit/testapi"
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
	h.tables = map[string]tableRows{"select": {rows: [][]any{{1.0, `{"a": [1,2]}`, map[string]any{"k": true}}}}, "broken": {err: errors.New("no such table")}}
	h.requests = []testapi.Request{{Path: "/p/1", Status: 200}, {Path: "/p/2", Status: 200}, {Path: "/q", Status: 500}}
	h.children = []childRun{{path: "x", status: event.StatusCompleted, workload: map[string]any{"n": 1.0, "m": 2.0}}}
	for i, line := range strings.Fields("step.enter:a command.completed:a step.enter:b step.enter:c " +
		"command.completed:b command.completed:c step.enter:d command.completed:d") {
		kind, name, _ := strings.Cut(line, ":")
		h.events = append(h.events, event.Event{
			Seq: int64(i + 1), Type: event.Type(kind), NodeName: name, Result: json.RawMessage(`{"context":{"stdout":"from ` + name + `\n"}}`),
		})
	}
	h.events = append(h.events, event.Event{Seq: 9, Type: event.LoopDone, NodeName: "c", Result: json.RawMessage(`{"context":{"iterations":2}}`)})
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
		{"another mode", `{loops: {c: {iterations: 2, mode: parallel}}}`, "want a parallel loop"},
		{"more iterations", `{loops: {c: {iterations: 3}}}`, "want [3] iterations"},
		{"a table", `{tables: [{sql: select, rows: [[1, '{"a":[1, 2]}', {k: true}]]}]}`, ""},
		{"another cell", `{tables: [{sql: select, rows: [[1, '{"a":[1, 3]}', {k: true}]]}]}`, "row 1 column 2"},
		{"another number of columns", `{tables: [{sql: select, rows: [[1]]}]}`, "want 1 columns"},
		{"another number of rows", `{tables: [{sql: select, rows: []}]}`, "want 0 rows"},
		{"a table that cannot be read", `{tables: [{sql: broken, rows: []}]}`, "no such table"},
		{"a table counts for the other status too", `{status: {any_of: [FAILED, COMPLETED]}, tables: [{sql: broken, rows: []}]}`, "no such table"},
		{"requests", `{http_requests: {/p/1: [200], '/p/*': 2 x 200, /r: []}}`, ""},
		{"all requests", `{http_requests: {total: [200, 200, 500]}}`, ""},
		{"more requests", `{http_requests: {'/p/*': 3 x 200}}`, "want [200 200 200]"},
		{"requests in no known form", `{http_requests: {/q: many}}`, "not like"},
		{"a step that may run", `{steps_executed: [a, b, d], optional_steps: [c], step_order_matters: true}`, ""},
		{"a step that an alternative rules out", `{not_executed: [c]}`, "must not run"},
		{"a printed text", `{stdout_contains: {a: from a}}`, ""},
		{"a text that was not printed", `{stdout_contains: {a: from b}}`, "did not print"},
		{"a child execution", `{child_executions: [{path: x, status: COMPLETED, workload: {n: 1}}]}`, ""},
		{"a child with another input", `{child_executions: [{path: x, status: COMPLETED, workload: {n: 2}}]}`, "workload.n: want"},
		{"another child", `{child_executions: [{path: y, status: COMPLETED}]}`, "want COMPLETED of y"},
		{"more children of a kind", `{child_executions: [{path: x, count: 2, status: COMPLETED}]}`, "want 2, got 1"},
		{"a missing child", `{child_executions: [{path: x}, {path: y}]}`, "want 2, got 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := &entry{Expect: expectation{Status: statuses{event.StatusCompleted}}}
			if err := yaml.Unmarshal([]byte(c.expect), &e.Expect); err != nil {
				t.Fatal(err)
			}
			got, _ := compare(e, sample())
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("difference %q, want %q", got, c.want)
			}
		})
	}
}

func TestCorpusCountsEveryEntryOfALoop(t *testing.T) {
	t.Parallel()
	h := &history{status: event.StatusCompleted}
	for _, line := range []string{
		`step.enter {"mode":"cursor"}`, `frame.committed {"row_count":3}`, `loop.done {"iterations":3}`,
		`step.enter {"mode":"cursor"}`, `frame.committed {"row_count":2}`, `frame.committed {"row_count":4}`, `loop.done {"iterations":6}`,
	} {
		kind, about, _ := strings.Cut(line, " ")
		h.events = append(h.events, event.Event{Type: event.Type(kind), NodeName: "l", Result: json.RawMessage(`{"context":` + about + `}`)})
	}
	for text, want := range map[string]string{
		`{loops: {l: {mode: cursor, rows: [3, 6], iterations: [3, 6]}}}`: "",
		`{loops: {l: {rows: [3]}}}`:                                      "want [3] rows",
		`{loops: {l: {iterations: 6}}}`:                                  "want [6] iterations",
	} {
		e := &entry{Expect: expectation{Status: statuses{event.StatusCompleted}}}
		if err := yaml.Unmarshal([]byte(text), &e.Expect); err != nil {
			t.Fatal(err)
		}
		if got, _ := compare(e, h); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: difference %q, want %q", text, got, want)
		}
	}
}

func TestCorpusAlternativesCountForUncertainEntriesOnly(t *testing.T) {
	t.Parallel()
	e := &entry{
		Expect:       expectation{Status: statuses{rejected}},
		Alternatives: []expectation{{Status: statuses{event.StatusCompleted}, Results: map[string]any{"a": map[string]any{"more": true}}}},
	}
	if diff, _ := compare(e, sample()); diff == "" {
		t.Error("a certain entry may not end in an alternative")
	}
	e.Uncertain = true
	if diff, instead := compare(e, sample()); diff != "" || instead == "" {
		t.Errorf("an uncertain entry may: %q, %q", diff, instead)
	}
}
