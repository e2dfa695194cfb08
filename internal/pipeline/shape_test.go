package pipeline_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

func TestASingleToolGivesItsOwnData(t *testing.T) {
	t.Parallel()
	code := 0
	b := newBench(pipeline.Options{}, &fake{kind: "list", answers: []answer{{res: &tool.Result{
		Data: json.RawMessage(`[1,2]`), Stdout: "out", Stderr: "err", ExitCode: &code,
	}}}})
	e := b.run(t, command("list", `{"kind":"list"}`))
	e.wantData(t, `[1,2]`)
	ctx := e.Result.Context
	if e.Status != "success" || e.Result.Status != "success" || ctx.Status != "success" {
		t.Errorf("statuses are %q, %q, %q, want success", e.Status, e.Result.Status, ctx.Status)
	}
	if ctx.Stdout != "out" || ctx.Stderr != "err" || ctx.ExitCode == nil || *ctx.ExitCode != 0 {
		t.Errorf("output is %q, %q, %v", ctx.Stdout, ctx.Stderr, ctx.ExitCode)
	}
	if e.Step != "s" || e.CommandID != "7:s:9" || e.CallIndex == nil || *e.CallIndex != 0 {
		t.Errorf("event is about step %q, command %q, call %v", e.Step, e.CommandID, e.CallIndex)
	}
	if got, want := string(e.Meta), `{"command_id":"7:s:9","attempt":1}`; got != want {
		t.Errorf("meta is %s, want %s", got, want)
	}
}

func TestAListGivesDataByLabelInOrderOfExecution(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "list", answers: []answer{{data: `[1]`}}})
	in := b.Run(t.Context(), command("task_sequence", `[{"z":{"kind":"list"}},{"a":{"kind":"noop"}}]`), nil)
	if !strings.Contains(string(in.Payload), `"data":{"z":[1],"a":{"status":"ok"}}`) {
		t.Errorf("payload is %s", in.Payload)
	}
}

func TestAListOfOneKeepsItsLabelUnlessMarkedSingle(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	config := `[{"only":{"kind":"noop"}}]`
	b.run(t, command("task_sequence", config)).wantData(t, `{"only":{"status":"ok"}}`)
	single := command("task_sequence", config, func(c *event.Command) { c.Meta.Single = true })
	b.run(t, single).wantData(t, `{"status":"ok"}`)
}

func TestAToolWithoutDataGivesNull(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "mute", answers: []answer{{res: &tool.Result{}}}})
	b.run(t, command("mute", `{"kind":"mute"}`)).wantData(t, `null`)
}

func TestFailuresSayWhere(t *testing.T) {
	t.Parallel()
	broken := func() *fake { return &fake{kind: "broken", answers: []answer{{err: failing(tool.KindLogic, false)}}} }
	for _, c := range []struct{ name, kind, config, context, wantKind, want string }{
		{"single tool", "broken", `{"kind":"broken"}`, ``, tool.KindLogic, "step s: boom"},
		{"task of a list", "task_sequence", `[{"a":{"kind":"noop"}},{"b":{"kind":"broken"}}]`, ``, tool.KindLogic, "step s, task b: boom"},
		{
			"template in the config", "echo", `{"kind":"echo","url":{"path":["{{ a + 1 }}"]}}`, `{"a":"x"}`, tool.KindTemplate,
			"step s: url.path.0: ",
		},
		{"template in the input", "task_sequence", `[{"a":{"kind":"echo","input":{"n":"{{ missing + 1 }}"}}}]`, ``, tool.KindTemplate, "step s, task a: input.n: "},
		{"no such tool", "teleport", `{"kind":"teleport"}`, ``, tool.KindConfig, `step s: no tool of kind "teleport" on this worker; it has: broken, echo, noop`},
		{"a kind nobody runs", "rhai", `{"kind":"rhai"}`, ``, tool.KindConfig, `step s: tools of kind "rhai" cannot be run: rhai scripts have no interpreter here; write the step as kind python`},
		{"unreadable config", "noop", `{"kind":`, ``, tool.KindConfig, "step s: read the tool configuration: "},
		{"unreadable context", "noop", `{"kind":"noop"}`, `[1]`, tool.KindInternal, "step s: read the render context: it is not an object"},
		{"bad timeout", "noop", `{"kind":"noop","timeout":"soon"}`, ``, tool.KindConfig, "step s: timeout: "},
		{"a credential nobody resolved", "echo", `{"kind":"echo","h":"{{ keychain.api.token }}"}`, ``, tool.KindAuth, `step s: keychain: there is no credential "api"; `},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(pipeline.Options{}, broken())
			e := b.run(t, command(c.kind, c.config, with(c.context)))
			if e.Type != event.CommandFailed || e.Status != event.StatusFailed {
				t.Fatalf("the command ended with %s: %s", e.Type, e.Payload)
			}
			if e.Error.Kind != c.wantKind || !strings.HasPrefix(e.Error.Message, c.want) {
				t.Errorf("error is %s: %q, want %s: %q", e.Error.Kind, e.Error.Message, c.wantKind, c.want)
			}
			if e.Result.Status != "error" || e.Result.Context.Status != "error" {
				t.Errorf("result says %q, %q, want error", e.Result.Status, e.Result.Context.Status)
			}
		})
	}
}

func TestAnUnknownKindStopsAListBeforeItBegins(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{})
	e := b.run(t, command("task_sequence", `[{"a":{"kind":"echo"}},{"b":{"kind":"teleport"}}]`))
	if e.Type != event.CommandFailed || b.echo.count() != 0 {
		t.Errorf("%s after %d calls, want a failure before the first", e.Type, b.echo.count())
	}
}

func TestAFailedListKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	status := &tool.Error{Kind: tool.KindNotFound, Message: "HTTP 404", HTTPStatus: 404}
	b := newBench(pipeline.Options{}, &fake{kind: "http", answers: []answer{{data: `{"status_code":404}`, err: status}}})
	e := b.run(t, command("task_sequence", `[{"a":{"kind":"noop"}},{"b":{"kind":"http"}},{"c":{"kind":"noop"}}]`))
	e.wantFailure(t, tool.KindNotFound, "step s, task b: HTTP 404")
	same(t, e.Result.Context.Data, `{"a":{"status":"ok"},"b":{"status_code":404}}`)
	if e.Result.Context.FailedTask != "b" || e.Error.HTTPStatus != 404 {
		t.Errorf("failed task %q, HTTP status %d", e.Result.Context.FailedTask, e.Error.HTTPStatus)
	}
}

func TestErrorsOfOtherTypesAndPanicsAreInternal(t *testing.T) {
	t.Parallel()
	b := newBench(pipeline.Options{}, &fake{kind: "odd", answers: []answer{{err: context.Canceled}}}, panicky{},
		&fake{kind: "garbage", answers: []answer{{data: `{"a":`}}})
	b.run(t, command("odd", `{"kind":"odd"}`)).wantFailure(t, tool.KindInternal, "step s: context canceled")
	b.run(t, command("panicky", `{"kind":"panicky"}`)).
		wantFailure(t, tool.KindInternal, "step s: internal error: oh; the worker's log has the details")
	b.run(t, command("garbage", `{"kind":"garbage"}`)).
		wantFailure(t, tool.KindInternal, "step s: the garbage tool returned data that is not JSON")
	if !strings.Contains(b.log.String(), "panicky") {
		t.Errorf("the log does not show the panic: %q", b.log.String())
	}
}

type panicky struct{}

func (panicky) Kind() string                                          { return "panicky" }
func (panicky) Run(context.Context, *tool.Call) (*tool.Result, error) { panic("oh") }

func TestATimeLimitEndsTheTaskAndIsAFailureRulesSee(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, config, want string }{
		{"number", `{"kind":"slow","timeout":2}`, "2s"},
		{"numeric text", `{"kind":"slow","timeout_seconds":"1.5"}`, "1.5s"},
		{"duration", `{"kind":"slow","timeout":"250ms"}`, "250ms"},
		{"template", `{"kind":"slow","timeout":"{{ limit }}"}`, "3s"},
		{"none", `{"kind":"slow"}`, "1m0s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(pipeline.Options{CommandTimeout: time.Minute}, &fake{kind: "slow", wait: true})
				e := b.run(t, command("slow", c.config, with(`{"limit":3}`)))
				e.wantFailure(t, tool.KindTimeout, "step s: the slow tool did not finish within "+c.want+" and was stopped")
				if !e.Error.Retryable {
					t.Error("a timeout is worth another try")
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(pipeline.Options{}, &fake{kind: "slow", wait: true})
		b.run(t, command("slow", `{"kind":"slow","timeout":1,"spec":{"policy":{"rules":[
			{"when":"{{ output.error.kind == 'timeout' }}","then":{"do":"continue"}}]}}}`)).
			wantData(t, `{"status":"error","error":"the slow tool did not finish within 1s and was stopped"}`)
	})
}

func TestCancellingEndsTheCommandAsCancelledWhateverItsRulesSay(t *testing.T) {
	t.Parallel()
	for _, then := range []string{`{"do":"retry","attempts":9}`, `{"do":"continue"}`, `{"do":"fail"}`} {
		t.Run(then, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				slow := &fake{kind: "slow", wait: true}
				b := newBench(pipeline.Options{}, slow)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan event.Incoming)
				go func() { ended <- b.Run(ctx, command("slow", rules("slow", `{"then":`+then+`}`)), nil) }()
				synctest.Wait()
				cancel()
				e := decode(t, <-ended)
				if e.Type != event.CommandCancelled || e.Status != event.StatusCancelled || e.Error.Kind != tool.KindCancelled {
					t.Errorf("the command ended with %s (%s): %s", e.Type, e.Status, e.Payload)
				}
				if slow.count() != 1 {
					t.Errorf("the tool ran %d times", slow.count())
				}
			})
		})
	}
}

func TestCancellingInterruptsThePauseBetweenTries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runner := pipeline.New(pipeline.Options{Tools: tool.NewSet(&fake{kind: "broken", answers: []answer{{err: failing("connection", true)}}})})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		started := time.Now()
		e := decode(t, runner.Run(ctx, command("broken", `{"kind":"broken","spec":{"policy":{"rules":[
			{"then":{"do":"retry","attempts":9,"backoff":"fixed","delay":60}}]}}}`), nil))
		if waited := time.Since(started); waited != time.Second {
			t.Errorf("it took %v to notice", waited)
		}
		e.wantFailure(t, tool.KindTimeout, "step s: the command ran out of time and was stopped")
	})
}

func TestTheStepsTimeoutBoundsTheWholeCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runner := pipeline.New(pipeline.Options{Tools: tool.NewSet(&fake{kind: "broken", answers: []answer{{err: failing("connection", true)}}})})
		cmd := command("broken", `{"kind":"broken","spec":{"policy":{"rules":[
			{"then":{"do":"retry","attempts":9,"backoff":"fixed","delay":1}}]}}}`)
		cmd.Meta.TimeoutSeconds = 2.5
		started := time.Now()
		e := decode(t, runner.Run(t.Context(), cmd, nil))
		if took := time.Since(started); took != 2500*time.Millisecond {
			t.Errorf("it ended after %v", took)
		}
		e.wantFailure(t, tool.KindTimeout, "step s: the command ran out of time and was stopped")
	})
}

func TestASuccessThatRacesTheCancelStands(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(pipeline.Options{}, canceller{cancel})
	decode(t, b.Run(ctx, command("cancel", `{"kind":"cancel"}`), nil)).wantData(t, `1`)
}

// canceller finishes its work in the moment the command is cancelled.
type canceller struct{ cancel context.CancelFunc }

func (canceller) Kind() string { return "cancel" }

func (c canceller) Run(context.Context, *tool.Call) (*tool.Result, error) {
	c.cancel()
	return &tool.Result{Data: json.RawMessage(`1`)}, nil
}
