package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/tool"
)

// fake is a tool whose runs are scripted: the n-th call gets the n-th answer,
// and the last one repeats. Without answers it echoes its config and args.
type fake struct {
	kind    string
	answers []answer
	wait    bool // until ctx ends

	mu    sync.Mutex
	calls []*tool.Call
}

type answer struct {
	data string
	res  *tool.Result
	err  error
}

func (f *fake) Kind() string { return f.kind }

func (f *fake) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, call)
	n := len(f.calls)
	f.mu.Unlock()
	if f.wait {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if len(f.answers) == 0 {
		data, err := json.Marshal(map[string]any{"config": call.Config, "args": call.Args})
		return &tool.Result{Data: data}, err
	}
	a := f.answers[min(n, len(f.answers))-1]
	if a.res == nil && a.data != "" {
		a.res = &tool.Result{Data: json.RawMessage(a.data)}
	}
	return a.res, a.err
}

func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

func failing(kind string, retryable bool) error {
	return &tool.Error{Kind: kind, Code: "BOOM", Message: "boom", Retryable: retryable}
}

// bench is a runner with tools `echo`, `noop` and whatever a test adds, whose
// pauses are recorded instead of slept.
type bench struct {
	*pipeline.Runner
	echo   *fake
	log    bytes.Buffer
	pauses []time.Duration
}

func newBench(o pipeline.Options, tools ...tool.Tool) *bench {
	b := &bench{echo: &fake{kind: "echo"}}
	tools = append(tools, b.echo, &fake{kind: "noop", answers: []answer{{data: `{"status":"ok"}`}}})
	o.Tools = tool.NewSet(tools...)
	o.ServerURL, o.WorkerID = "http://server", "w1"
	o.Sleep = func(ctx context.Context, d time.Duration) error {
		b.pauses = append(b.pauses, d)
		return ctx.Err()
	}
	b.Runner = pipeline.New(o)
	return b
}

// command makes a command of step "s" from JSON.
func command(kind, config string, change ...func(*event.Command)) *event.Command {
	cmd := &event.Command{
		EventID: 9, ExecutionID: 7, NodeID: "s", NodeName: "s", Action: kind,
		Context: event.CommandContext{ToolConfig: json.RawMessage(config)},
		Meta:    event.CommandMeta{CommandID: "7:s:9", Step: "s", ToolKind: kind, Attempt: 1, ExecutionID: 7, CatalogID: 5},
	}
	for _, c := range change {
		c(cmd)
	}
	return cmd
}

func with(renderContext string) func(*event.Command) {
	return func(c *event.Command) { c.Context.RenderContext = json.RawMessage(renderContext) }
}

func stepInput(args string) func(*event.Command) {
	return func(c *event.Command) { c.Context.Args = json.RawMessage(args) }
}

func iteration(item string, index, total int) func(*event.Command) {
	return func(c *event.Command) {
		c.Meta.ItemVar, c.Meta.IterationIndex, c.Meta.IterationTotal = item, &index, &total
	}
}

// ending is a terminal event, decoded.
type ending struct {
	event.Incoming
	CommandID string `json:"command_id"`
	CallIndex *int   `json:"call_index"`
	Error     struct {
		Kind, Code, Message string
		Retryable           bool
		HTTPStatus          int `json:"http_status"`
	} `json:"error"`
	Result struct {
		Status  string `json:"status"`
		Context struct {
			Status     string `json:"status"`
			Data       any    `json:"data"`
			Stdout     string `json:"stdout"`
			Stderr     string `json:"stderr"`
			ExitCode   *int   `json:"exit_code"`
			FailedTask string `json:"failed_task"`
		} `json:"context"`
	} `json:"result"`
	Updates map[string]any `json:"context_updates"`
}

func (b *bench) run(t *testing.T, cmd *event.Command) *ending {
	t.Helper()
	return decode(t, b.Run(t.Context(), cmd, &b.log))
}

func decode(t *testing.T, in event.Incoming) *ending {
	t.Helper()
	var e ending
	if err := json.Unmarshal(in.Payload, &e); err != nil {
		t.Fatalf("payload is not JSON: %v\n%s", err, in.Payload)
	}
	e.Incoming = in
	return &e
}

// wantData checks that a command completed with exactly this data.
func (e *ending) wantData(t *testing.T, want string) {
	t.Helper()
	if e.Type != event.CommandCompleted {
		t.Fatalf("the command ended with %s: %s", e.Type, e.Payload)
	}
	same(t, e.Result.Context.Data, want)
}

// wantFailure checks that a command failed with this kind of error.
func (e *ending) wantFailure(t *testing.T, kind, message string) {
	t.Helper()
	if e.Type != event.CommandFailed || e.Status != event.StatusFailed {
		t.Fatalf("the command ended with %s (%s): %s", e.Type, e.Status, e.Payload)
	}
	if e.Error.Kind != kind || e.Error.Message != message {
		t.Errorf("error is %s: %q, want %s: %q", e.Error.Kind, e.Error.Message, kind, message)
	}
}

// same compares a decoded value with JSON.
func same(t *testing.T, got any, want string) {
	t.Helper()
	var w any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("the wanted value is not JSON: %v", err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var g any
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("value differs (-want +got):\n%s", diff)
	}
}
