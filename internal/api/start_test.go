package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestExecuteReadsDedupAndTraceFromBodyAndHeaders(t *testing.T) {
	t.Parallel()
	minutes := func(key string, n time.Duration) *control.Dedup {
		return &control.Dedup{Key: key, Window: n * time.Minute}
	}
	for _, tc := range []struct {
		name, body string
		header     http.Header
		want       control.ExecuteRequest
	}{
		{"dedup with the usual window", `{"path":"a","dedup":{"key":"k"}}`, nil, control.ExecuteRequest{Path: "a", Dedup: minutes("k", 5)}},
		{"dedup with its own", `{"path":"a","dedup":{"key":"k","window_secs":60}}`, nil, control.ExecuteRequest{Path: "a", Dedup: minutes("k", 1)}},
		{"no dedup", `{"path":"a","dedup":null}`, nil, control.ExecuteRequest{Path: "a"}},
		{"Idempotency-Key", `{"path":"a"}`, http.Header{"Idempotency-Key": {"h"}}, control.ExecuteRequest{Path: "a", Dedup: minutes("h", 24*60)}},
		{"dedup before Idempotency-Key", `{"path":"a","dedup":{"key":"k"}}`, http.Header{"Idempotency-Key": {"h"}}, control.ExecuteRequest{Path: "a", Dedup: minutes("k", 5)}},
		{
			"trace headers", `{"path":"a"}`,
			http.Header{"Traceparent": {parent}, "Tracestate": {"a=1", "b=2"}, "Baggage": {"k=v"}},
			control.ExecuteRequest{Path: "a", Trace: json.RawMessage(`{"baggage":"k=v","traceparent":"` + parent + `","tracestate":"a=1,b=2"}`)},
		},
		{
			"trace of the body", `{"path":"a","trace":{"traceparent":"anything"}}`,
			http.Header{"Traceparent": {parent}},
			control.ExecuteRequest{Path: "a", Trace: json.RawMessage(`{"traceparent":"anything"}`)},
		},
		{"malformed trace", `{"path":"a"}`, http.Header{"Traceparent": {"00-zz-00f067aa0ba902b7-01"}, "Tracestate": {"a=1"}}, control.ExecuteRequest{Path: "a"}},
		{"trace of zeros", `{"path":"a"}`, http.Header{"Traceparent": {"00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01"}}, control.ExecuteRequest{Path: "a"}},
		{"long baggage", `{"path":"a"}`, http.Header{"Baggage": {strings.Repeat("x", 10_000)}}, control.ExecuteRequest{Path: "a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got control.ExecuteRequest
			srv := newServer(t, &apitest.Plane{OnExecute: func(r control.ExecuteRequest) (control.ExecuteAnswer, error) {
				got = r
				return control.ExecuteAnswer{ExecutionID: 7, Status: "duplicate"}, nil
			}}, nil)
			post(t, srv, "/api/execute", tc.body, tc.header).want(t, 200, `{"execution_id":"7","status":"duplicate","commands_generated":0}`)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

// A client that means to be safe against starting twice must not be left in
// the belief that it is.
func TestABlankIdempotencyKeyIsRefused(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, nil)
	a := post(t, srv, "/api/execute", `{"path":"a"}`, http.Header{"Idempotency-Key": {""}})
	if a.status != 422 || !strings.Contains(a.body, "Idempotency-Key") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func post(t *testing.T, srv *httptest.Server, path, body string, header http.Header) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	return do(t, srv, req)
}

func TestABatchOfStartsOnTheWire(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{OnExecute: func(r control.ExecuteRequest) (control.ExecuteAnswer, error) {
		switch r.Path {
		case "missing":
			return control.ExecuteAnswer{}, event.Errorf(event.NotFound, "Playbook not found: missing")
		case "down":
			return control.ExecuteAnswer{}, event.Errorf(event.Unavailable, "try again")
		case "secret":
			return control.ExecuteAnswer{}, fmt.Errorf("password is hunter2")
		case "twice":
			return control.ExecuteAnswer{ExecutionID: 8, Status: "duplicate"}, nil
		}
		return control.ExecuteAnswer{ExecutionID: 612489553370251264, Status: "started", CommandsGenerated: 1, Warnings: []string{"w"}}, nil
	}}, nil)
	ask(t, srv, "POST", "/api/execute/batch", `{"executions":[{"path":"a"},{"path":"missing","version":3},{"path":7},{"catalog_id":1.5},{},null,"x",{"path":"twice"},{"path":"down"},
		{"path":"a","dedup":{"key":"k","window_secs":"x"}}]}`).want(t, 200, `{"count":10,"started":1,"duplicates":1,"failed":8,"results":[
		{"index":0,"status":"started","execution_id":"`+big+`","commands_generated":1,"warnings":["w"]},
		{"index":1,"status":"error","commands_generated":0,"error":"Resource not found: Playbook not found: missing version 3"},
		{"index":2,"status":"error","commands_generated":0,"error":"Validation error: path: want a string, got number"},
		{"index":3,"status":"error","commands_generated":0,"error":"Validation error: catalog_id: invalid id 1.5: want an integer or a decimal string"},
		{"index":4,"status":"error","commands_generated":0,"error":"Validation error: either path or catalog_id is needed"},
		{"index":5,"status":"error","commands_generated":0,"error":"Validation error: either path or catalog_id is needed"},
		{"index":6,"status":"error","commands_generated":0,"error":"Validation error: want a JSON object, got string"},
		{"index":7,"status":"duplicate","execution_id":"8","commands_generated":0},
		{"index":8,"status":"error","commands_generated":0,"error":"Service unavailable: try again"},
		{"index":9,"status":"error","commands_generated":0,"error":"Validation error: dedup.window_secs: want an integer, got string"}]}`)
	if a := ask(t, srv, "POST", "/api/execute/batch", `{"executions":[{"path":"secret"}]}`); a.status != 200 || strings.Contains(a.body, "hunter2") || !strings.Contains(a.body, "Internal error: ") {
		t.Errorf("%d %s", a.status, a.body)
	}
	for body, status := range map[string]int{
		`{}`: 422, `{"executions":[]}`: 422, `{"executions":{}}`: 422, `[]`: 422, `{"executions":null}`: 422, `{"executions":[`: 400, ``: 400,
		`{"executions":[` + strings.Repeat(`{"path":"a"},`, 1000) + `{"path":"a"}]}`: 422,
	} {
		if a := ask(t, srv, "POST", "/api/execute/batch", body); a.status != status {
			t.Errorf("%.40s: %d %s, want %d", body, a.status, a.body, status)
		}
	}
	large := `{"executions":[{"path":"a","payload":{"x":"` + strings.Repeat("x", 3<<20) + `"}}]}`
	if a := ask(t, srv, "POST", "/api/execute/batch", large); a.status != 200 {
		t.Errorf("3 MiB: %d %s", a.status, a.body)
	}
	huge := `{"executions":[{"path":"a","payload":{"x":"` + strings.Repeat("x", 17<<20) + `"}}]}`
	ask(t, srv, "POST", "/api/execute/batch", huge).wantError(t, 413, "larger")
}

func TestRerunOnTheWire(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		body string
		want control.RerunRequest
	}{
		{``, control.RerunRequest{}},
		{`{}`, control.RerunRequest{}},
		{`{"version":"latest","workload":{"a":1}}`, control.RerunRequest{Latest: true, Payload: json.RawMessage(`{"a":1}`)}},
		{`{"version":3,"payload":{"b":1},"workload":{"a":1},"from_step":"s","resource_kind":"agent"}`, control.RerunRequest{Version: 3, Payload: json.RawMessage(`{"b":1}`), FromStep: "s"}},
		{`{"version":null,"trace":{"x":1}}`, control.RerunRequest{Trace: json.RawMessage(`{"x":1}`)}},
	} {
		var got control.RerunRequest
		srv := newServer(t, &apitest.Plane{OnRerun: func(id event.ID, r control.RerunRequest) (control.ExecuteAnswer, error) {
			got = r
			return control.ExecuteAnswer{ExecutionID: id + 1, Status: "started", CommandsGenerated: 1}, nil
		}}, nil)
		step := ""
		if tc.want.FromStep != "" {
			step = `,"from_step":"s"`
		}
		ask(t, srv, "POST", "/api/executions/41/rerun", tc.body).want(t, 200,
			`{"execution_id":"42","status":"started","commands_generated":1,"rerun_of":"41"`+step+`}`)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: request (-want +got):\n%s", tc.body, diff)
		}
	}
	srv := newServer(t, &apitest.Plane{}, nil)
	ask(t, srv, "POST", "/api/executions/41/rerun", `{}`).wantError(t, 404, "not found")
	ask(t, srv, "POST", "/api/executions/x/rerun", `{}`).wantError(t, 400, "id")
	ask(t, srv, "POST", "/api/executions/41/rerun", `{"resource_kind":"mcp"}`).wantError(t, 422, "resource_kind")
	ask(t, srv, "POST", "/api/executions/41/rerun", `{"payload":[]}`).wantError(t, 422, "payload")
	ask(t, srv, "POST", "/api/executions/41/rerun", `{"version":0}`).wantError(t, 422, "version")
}

func TestStartsOverHTTPEndToEnd(t *testing.T) {
	t.Parallel()
	c := realServer(t)
	ctx := t.Context()
	if _, err := c.Register(ctx, twoSteps); err != nil {
		t.Fatal(err)
	}
	once := client.ExecuteRequest{Path: "demo/two", Payload: json.RawMessage(`{"who":"me"}`), Dedup: &client.Dedup{Key: "k"}}
	a, err := c.ExecuteBatch(ctx, []client.ExecuteRequest{once, {Path: "demo/none"}, once})
	if err != nil || a.Count != 3 || a.Started != 1 || a.Duplicates != 1 || a.Failed != 1 || a.Results[2].ExecutionID != a.Results[0].ExecutionID {
		t.Fatalf("%+v, %v", a, err)
	}
	if again, err := c.Execute(ctx, once); err != nil || again.Status != "duplicate" || again.ExecutionID != a.Results[0].ExecutionID {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := c.Execute(ctx, client.ExecuteRequest{Path: "demo/two", Dedup: &client.Dedup{Key: "k", WindowSecs: 1 << 40}}); client.CodeOf(err) != client.Invalid {
		t.Errorf("endless window: %v", err)
	}
	id := a.Results[0].ExecutionID
	cmd, err := c.Claim(ctx, client.ClaimRequest{EventID: issued(t, c, id), WorkerID: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	work(t, c, cmd, 1)
	run, err := c.Rerun(ctx, id, client.RerunRequest{FromStep: "finish", Payload: json.RawMessage(`{"more":1}`)})
	if err != nil || run.Status != "started" || run.CommandsGenerated != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
	d, err := c.Execution(ctx, run.ExecutionID)
	if err != nil || string(d.Workload) != `{"who":"me","more":1}` || d.Steps["start"].Status != client.Completed || d.Steps["start"].Reused != id || string(d.Steps["start"].Result) != `{"ok":true}` {
		t.Errorf("%+v, %v", d, err)
	}
	explained, err := c.Explain(ctx, run.ExecutionID, "start")
	if err != nil || !strings.Contains(explained.Steps[0].Reason, "reused from execution "+id.String()) {
		t.Errorf("%+v, %v", explained, err)
	}
	cmd, err = c.Claim(ctx, client.ClaimRequest{EventID: issued(t, c, run.ExecutionID), WorkerID: "w1"})
	if err != nil || cmd.NodeName != "finish" {
		t.Fatalf("%+v, %v", cmd, err)
	}
	work(t, c, cmd, 0)
	if st, err := c.Wait(ctx, run.ExecutionID); err != nil || st.Status != client.Completed || st.Progress.Completed != 2 || st.Progress.Total != 2 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := c.Rerun(ctx, id, client.RerunRequest{FromStep: "nowhere"}); client.CodeOf(err) != client.Invalid || !strings.Contains(err.Error(), "start, finish") {
		t.Errorf("unknown step: %v", err)
	}
	if _, err := c.Rerun(ctx, id+1, client.RerunRequest{}); client.CodeOf(err) != client.NotFound {
		t.Errorf("unknown execution: %v", err)
	}
}
