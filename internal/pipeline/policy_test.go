package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

// rules makes a single tool config with policy rules.
func rules(kind, list string) string {
	return fmt.Sprintf(`{"kind":%q,"spec":{"policy":{"rules":[%s]}}}`, kind, list)
}

func TestRetryRunsTheTaskAgain(t *testing.T) {
	t.Parallel()
	boom := answer{err: failing(tool.KindConnection, true)}
	limited := answer{err: &tool.Error{Kind: tool.KindRateLimit, Message: "slow down", Retryable: true, RetryAfter: 7 * time.Second}}
	onError := `{"when":"{{ output.status == 'error' }}","then":{"do":"retry",%s}}`
	for _, c := range []struct {
		name    string
		rule    string
		answers []answer
		pauses  []time.Duration
		calls   int
		fails   bool
	}{
		{"until it succeeds", `"attempts":5`, []answer{boom, boom, {data: `1`}}, []time.Duration{0, 0}, 3, false},
		{"at most so many times in all", `"attempts":3`, []answer{boom}, []time.Duration{0, 0}, 3, true},
		{"once means no second try", `"attempts":1`, []answer{boom}, nil, 1, true},
		{"fixed", `"attempts":3,"backoff":"fixed","delay":2`, []answer{boom}, []time.Duration{2e9, 2e9}, 3, true},
		{"linear", `"attempts":4,"backoff":"linear","delay":0.5`, []answer{boom}, []time.Duration{5e8, 1e9, 15e8}, 4, true},
		{"exponential", `"attempts":4,"backoff":"exponential","delay":1`, []answer{boom}, []time.Duration{1e9, 2e9, 4e9}, 4, true},
		{"as late as the server asks", `"attempts":2,"backoff":"fixed","delay":1`, []answer{limited}, []time.Duration{7e9}, 2, true},
		{"no later than an hour", `"attempts":2,"backoff":"fixed","delay":99999`, []answer{boom}, []time.Duration{time.Hour}, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{kind: "flaky", answers: c.answers}
			b := newBench(pipeline.Options{}, f)
			e := b.run(t, command("flaky", rules("flaky", fmt.Sprintf(onError, c.rule))))
			if failed := e.Type == event.CommandFailed; failed != c.fails {
				t.Errorf("the command ended with %s", e.Type)
			}
			if f.count() != c.calls {
				t.Errorf("the tool ran %d times, want %d", f.count(), c.calls)
			}
			if diff := cmp.Diff(c.pauses, b.pauses); diff != "" {
				t.Errorf("pauses differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRetryOnSuccessPollsUntilAConditionHolds(t *testing.T) {
	t.Parallel()
	poll := &fake{kind: "poll", answers: []answer{{data: `{"state":"busy"}`}, {data: `{"state":"done"}`}}}
	config := rules("poll", `{"when":"{{ output.data.state != 'done' }}","then":{"do":"retry","attempts":5}}`)
	newBench(pipeline.Options{}, poll).run(t, command("poll", config)).wantData(t, `{"state":"done"}`)

	stuck := &fake{kind: "poll", answers: []answer{{data: `{"state":"busy"}`}}}
	newBench(pipeline.Options{}, stuck).run(t, command("poll", config)).
		wantFailure(t, tool.KindLogic, "step s: a policy rule asked for another try, but all 5 are used")
}

func TestTheCounterStartsAnewAfterASuccess(t *testing.T) {
	t.Parallel()
	boom := answer{err: failing(tool.KindConnection, true)}
	ok := answer{data: `1`}
	// Two tries each round: the second round only works with a fresh counter.
	f := &fake{kind: "flaky", answers: []answer{boom, ok, boom, ok}}
	b := newBench(pipeline.Options{}, f)
	e := b.run(t, command("task_sequence", `[
		{"a":{"kind":"flaky","spec":{"policy":{"rules":[{"when":"{{ output.status == 'error' }}","then":{"do":"retry","attempts":2}}]}}}},
		{"b":{"kind":"noop","spec":{"policy":{"rules":[
			{"when":"{{ ctx.round | default(0) == 0 }}","then":{"do":"jump","to":"a","set":{"ctx.round":1}}}]}}}}]`))
	e.wantData(t, `{"a":1,"b":{"status":"ok"}}`)
	if f.count() != 4 {
		t.Errorf("the flaky task ran %d times, want 4", f.count())
	}
}

func TestJumpGoesToALabelOrBack(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"a", "previous", "prev", "_previous", "@previous"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			b := newBench(pipeline.Options{})
			b.run(t, command("task_sequence", fmt.Sprintf(`[
				{"a":{"kind":"echo","set":{"iter.n":"{{ iter.n | default(0) + 1 }}"}}},
				{"b":{"kind":"noop","spec":{"policy":{"rules":[{"when":"{{ iter.n < 3 }}","then":{"do":"jump","to":%q}}]}}}}]`, to)))
			if b.echo.count() != 3 {
				t.Errorf("the first task ran %d times, want 3", b.echo.count())
			}
		})
	}
}

func TestTaskRunsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{MaxRuns: 10})
	e := b.run(t, command("task_sequence", `[{"a":{"kind":"echo","spec":{"policy":{"rules":[{"then":{"do":"jump","to":"a"}}]}}}}]`))
	e.wantFailure(t, tool.KindResourceLimit,
		"step s, task a: more than 10 task runs in one command; check the jump and retry rules of the pipeline")
	if e.Error.Code != "max_iterations_exceeded" || b.echo.count() != 10 {
		t.Errorf("code %q after %d runs", e.Error.Code, b.echo.count())
	}
}

func TestBreakEndsTheListWithWhatItHas(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "broken", answers: []answer{{err: failing("logic", false)}}})
	b.run(t, command("task_sequence", `[{"a":{"kind":"noop"}},
		{"b":{"kind":"broken","spec":{"policy":{"rules":[{"then":{"do":"break"}}]}}}},{"c":{"kind":"echo"}}]`)).
		wantData(t, `{"a":{"status":"ok"},"b":{"status":"error","error":"boom"}}`)
	if b.echo.count() != 0 {
		t.Error("a task after the break ran")
	}
}

func TestFailEndsTheCommandEvenAfterASuccess(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	e := b.run(t, command("noop", rules("noop", `{"then":{"do":"fail","set":{"ctx.why":"said so"}}}`)))
	e.wantFailure(t, tool.KindLogic, "step s: a policy rule said fail")
	same(t, e.Updates, `{"why":"said so"}`)
}

func TestWithoutAMatchingRuleTheOutcomeDecides(t *testing.T) {
	t.Parallel()
	never := `{"when":"{{ false }}","then":{"do":"break"}}`
	b := newBench(pipeline.Options{}, &fake{kind: "broken", answers: []answer{{err: failing("logic", false)}}})
	b.run(t, command("noop", rules("noop", never))).wantData(t, `{"status":"ok"}`)
	b.run(t, command("broken", rules("broken", never))).wantFailure(t, "logic", "step s: boom")
	// A rule that matches without a verb leaves the decision to the outcome too.
	bare := `{"then":{"set":{"ctx.seen":true}}}`
	e := b.run(t, command("broken", rules("broken", bare)))
	e.wantFailure(t, "logic", "step s: boom")
	same(t, e.Updates, `{"seen":true}`)
}

func TestTheFirstMatchingRuleWins(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "broken", answers: []answer{{err: failing("logic", false)}}})
	e := b.run(t, command("broken", rules("broken", `
		{"when":"{{ output.status == 'ok' }}","then":{"do":"fail"}},
		{"when":"{{ output.status == 'error' }}","then":{"do":"continue","set":{"ctx.rule":2}}},
		{"else":{"then":{"do":"fail"}}}`)))
	e.wantData(t, `{"status":"error","error":"boom"}`)
	same(t, e.Updates, `{"rule":2}`)
}

func TestAConditionThatCannotBeComputedIsFalseAndLogged(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	e := b.run(t, command("noop", rules("noop", `
		{"when":"{{ missing + 1 }}","then":{"do":"fail"}},{"else":{"then":{"do":"continue"}}}`)))
	e.wantData(t, `{"status":"ok"}`)
	if log := b.log.String(); !strings.Contains(log, "policy rule 1 of") || !strings.Contains(log, "missing") {
		t.Errorf("the log says %q", log)
	}
}

func TestRulesSeeTheWholeOutcome(t *testing.T) {
	t.Parallel()
	httpError := answer{
		res: &tool.Result{Data: []byte(`{"status_code":429,"why":"busy"}`), HTTP: &tool.HTTPInfo{Status: 429, Headers: map[string]string{"retry-after": "1"}}},
		err: &tool.Error{Kind: "rate_limit", Code: "HTTP_429", Message: "too many", Retryable: true, HTTPStatus: 429},
	}
	sqlError := answer{err: &tool.Error{Kind: "db_deadlock", Message: "deadlock", PGCode: "40P01"}}
	pyError := answer{err: &tool.Error{Kind: "schema", Message: "x", Details: map[string]any{"exception_type": "KeyError", "traceback": "tb"}}}
	fine := answer{data: `{"n":3,"status":"mine"}`}
	text := answer{res: &tool.Result{Data: []byte(`"plain"`), Stdout: "hi"}}
	for _, c := range []struct {
		when string
		a    answer
	}{
		{"output.status == 'ok' and output.status == 'success'", fine},
		{"output.status == 'error' and output.status != 'ok'", httpError},
		{"output.error is none", fine},
		{"output.data.n == 3", fine},
		{"output.n == 3", fine},
		{"output.data.status == 'mine'", fine},
		{"outcome.result.n == 3", fine},
		{"output.data == 'plain' and output.stdout == 'hi'", text},
		{"output.error.kind == 'rate_limit' and output.error.code == 'HTTP_429'", httpError},
		{"output.error.retryable and output.error.message == 'too many'", httpError},
		{"output.error.status_code == 429 and output.error.http_status == 429", httpError},
		{"output.http.status == 429 and output.http.headers['retry-after'] == '1'", httpError},
		{"output.http.status in [408, 429]", httpError},
		{"output.data.why == 'busy'", httpError},
		{"output.error.pg_code == '40P01' and output.pg.code == '40P01' and output.pg.sqlstate == '40P01'", sqlError},
		{"output.py.exception_type == 'KeyError' and output.py.traceback == 'tb'", pyError},
		{"output.meta.attempt == 1 and output.meta.duration_ms >= 0", fine},
		{"_attempt == 1 and _task == 'a' and results.a.n == 3 and _prev.n == 3 and a.data.n == 3", fine},
		{"a.error.message == 'deadlock'", sqlError},
	} {
		t.Run(c.when, func(t *testing.T) {
			t.Parallel()
			b := newBench(pipeline.Options{}, &fake{kind: "any", answers: []answer{c.a}})
			e := b.run(t, command("task_sequence", fmt.Sprintf(`[{"a":{"kind":"any","spec":{"policy":{"rules":[
				{"when":"{{ %s }}","then":{"do":"continue","set":{"ctx.hit":true}}},
				{"else":{"then":{"do":"continue","set":{"ctx.hit":false}}}}]}}}}]`, c.when)))
			same(t, e.Updates, `{"hit":true}`)
			if b.log.Len() > 0 {
				t.Errorf("log: %s", b.log.String())
			}
		})
	}
}

func TestARenderErrorIsAnOutcomeRulesCanHandle(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	for _, config := range []string{
		`{"a":{"kind":"echo","url":"{{ missing + 1 }}","spec":%s}}`,
		`{"a":{"kind":"echo","input":{"x":"{{ missing + 1 }}"},"spec":%s}}`,
		`{"a":{"kind":"noop","set":{"ctx.x":"{{ missing + 1 }}"},"spec":%s}}`,
	} {
		spec := `{"policy":{"rules":[{"when":"{{ output.error.kind == 'template' }}","then":{"do":"continue","set":{"ctx.caught":true}}}]}}`
		e := b.run(t, command("task_sequence", "["+fmt.Sprintf(config, spec)+"]"))
		if e.Type != event.CommandCompleted {
			t.Fatalf("%s: %s", config, e.Payload)
		}
		same(t, e.Updates, `{"caught":true}`)
	}
	if b.echo.count() != 0 {
		t.Error("a task that could not be rendered ran")
	}
}
