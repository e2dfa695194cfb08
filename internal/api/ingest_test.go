package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func TestExecuteUnderstandsEveryGenerationOfClients(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		want       control.ExecuteRequest
	}{
		{"path only", `{"path":"a/b"}`, control.ExecuteRequest{Path: "a/b"}},
		{"ids as strings", `{"catalog_id":"` + big + `","parent_execution_id":"7"}`, control.ExecuteRequest{CatalogID: 612489553370251264, ParentExecutionID: 7}},
		{"ids as numbers", `{"catalog_id":` + big + `,"parent_execution_id":7}`, control.ExecuteRequest{CatalogID: 612489553370251264, ParentExecutionID: 7}},
		{"workload alias", `{"path":"a","workload":{"x":1}}`, control.ExecuteRequest{Path: "a", Payload: json.RawMessage(`{"x":1}`)}},
		{"payload wins", `{"path":"a","workload":{"x":1},"payload":{"y":2}}`, control.ExecuteRequest{Path: "a", Payload: json.RawMessage(`{"y":2}`)}},
		{"version text", `{"path":"a","version":"3"}`, control.ExecuteRequest{Path: "a", Version: 3}},
		{"version latest", `{"path":"a","version":"latest","payload":null}`, control.ExecuteRequest{Path: "a"}},
		{
			"everything", `{"path":"a","execution_pool":"gpu","trace":{"traceparent":"t"},"resource_kind":"Playbook","other":1}`,
			control.ExecuteRequest{Path: "a", Pool: "gpu", Trace: json.RawMessage(`{"traceparent":"t"}`)},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got control.ExecuteRequest
			p := &apitest.Plane{OnExecute: func(r control.ExecuteRequest) (control.ExecuteAnswer, error) {
				got = r
				return control.ExecuteAnswer{ExecutionID: 612489553370251264, Status: "started", CommandsGenerated: 2}, nil
			}}
			ask(t, newServer(t, p, nil), "POST", "/api/execute", tc.body).want(t, 200,
				`{"execution_id":"`+big+`","status":"started","commands_generated":2}`)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
	srv := newServer(t, &apitest.Plane{}, nil)
	ask(t, srv, "POST", "/api/execute", `{}`).wantError(t, 422, "path or catalog_id")
	ask(t, srv, "POST", "/api/execute", `{"path":"a","resource_kind":"mcp"}`).wantError(t, 422, "resource_kind")
	ask(t, srv, "POST", "/api/execute", `{"path":"a","dedup":{"key":7}}`).wantError(t, 422, "dedup.key")
	ask(t, srv, "POST", "/api/execute", `{"path":"a"}`).wantError(t, 404, "Playbook not found: a")
	ask(t, srv, "POST", "/api/execute", `{"path":"a","version":7}`).wantError(t, 404, "Playbook not found: a version 7")
	for _, pool := range []string{" ", "a.b", "a b", "x>", "*", strings.Repeat("p", 65)} {
		ask(t, srv, "POST", "/api/execute", fmt.Sprintf(`{"path":"a","execution_pool":%q}`, pool)).wantError(t, 422, "execution_pool")
	}
}

func recorder(got *event.Report) *apitest.Plane {
	return &apitest.Plane{OnReport: func(r event.Report) (event.ReportAnswer, error) {
		*got = r
		a := event.ReportAnswer{Status: "ok", CommandsGenerated: 1}
		for i := range r.Events {
			a.EventIDs = append(a.EventIDs, event.ID(i)+612489553370251264)
		}
		if r.Eager > 0 {
			a.Commands = []*event.Command{{EventID: 9, ExecutionID: 5, NodeID: "s", NodeName: "s", Action: "noop"}}
		}
		return a, nil
	}}
}

func TestSingleEventHonoursNamesAliasesAndDefaults(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, tc := range []struct {
		name, body string
		want       event.Report
	}{
		{
			"minimal", `{"execution_id":5,"step":"","event_type":"call.done"}`,
			event.Report{ExecutionID: 5, Events: []event.Incoming{{Type: "call.done", Actionable: &yes, Informative: &yes}}},
		},
		{
			"aliases", `{"execution_id":"5","node_name":"s","name":"call.done","context":{"a":1},"event_id":"77","worker_id":"w"}`,
			event.Report{ExecutionID: 5, WorkerID: "w", Events: []event.Incoming{{EventID: 77, Step: "s", Type: "call.done", Payload: json.RawMessage(`{"a":1}`), Actionable: &yes, Informative: &yes}}},
		},
		{
			"canonical names win", `{"execution_id":5,"node_name":"x","step":"s","name":"x","event_type":"call.done","context":{"a":1},"payload":[2]}`, // a bare value is wrapped
			event.Report{ExecutionID: 5, Events: []event.Incoming{{Step: "s", Type: "call.done", Payload: json.RawMessage(`{"value":[2]}`), Actionable: &yes, Informative: &yes}}},
		},
		{
			"everything",
			`{"execution_id":5,"step":"s","event_type":"call.done","meta":{"m":1},"status":"OK","result_kind":"refs","result_uri":"gs://b","event_ids":[1,"2"],
			  "actionable":false,"informative":true,"created_at":"2026-01-02T03:04:05.5+02:00","event_id":null}`,
			event.Report{ExecutionID: 5, Events: []event.Incoming{{
				Step: "s", Type: "call.done", Meta: json.RawMessage(`{"m":1}`), Status: "OK", ResultKind: "refs", ResultURI: "gs://b", EventIDs: []event.ID{1, 2},
				Actionable: &no, Informative: &yes, CreatedAt: time.Date(2026, 1, 2, 1, 4, 5, 5e8, time.UTC),
			}}},
		},
		{
			"meta that is no object", `{"execution_id":5,"step":"s","event_type":"e","meta":["m"],"payload":"done"}`,
			event.Report{ExecutionID: 5, Events: []event.Incoming{{
				Step: "s", Type: "e", Meta: json.RawMessage(`{"value":["m"]}`), Payload: json.RawMessage(`{"value":"done"}`), Actionable: &yes, Informative: &yes,
			}}},
		},
		{
			"time with a short zone", `{"execution_id":5,"step":"s","event_type":"e","created_at":"2026-01-02 05:04:05.5+02"}`,
			event.Report{ExecutionID: 5, Events: []event.Incoming{{Step: "s", Type: "e", Actionable: &yes, Informative: &yes, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)}}},
		},
		{
			"time without a zone", `{"execution_id":5,"step":"s","event_type":"e","created_at":"2026-01-02T03:04:05.123456"}`,
			event.Report{ExecutionID: 5, Events: []event.Incoming{{Step: "s", Type: "e", Actionable: &yes, Informative: &yes, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)}}},
		},
		{
			"time as Python prints it", `{"execution_id":5,"step":"s","event_type":"e","created_at":"2026-01-02 03:04:05.123456"}`,
			event.Report{ExecutionID: 5, Events: []event.Incoming{{Step: "s", Type: "e", Actionable: &yes, Informative: &yes, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC)}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got event.Report
			ask(t, newServer(t, recorder(&got), nil), "POST", "/api/events", tc.body).want(t, 200,
				`{"status":"ok","event_id":`+big+`,"commands_generated":1}`)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSingleEventHandsOverCommandsWhenAsked(t *testing.T) {
	t.Parallel()
	var got event.Report
	a := ask(t, newServer(t, recorder(&got), nil), "POST", "/api/events", `{"execution_id":5,"step":"s","event_type":"e","eager":true}`)
	if cmds, _ := a.field(t, "commands").([]any); len(cmds) != 1 || got.Eager != 1 {
		t.Errorf("eager %d, answer %s", got.Eager, a.body)
	}
}

func TestBatchHonoursItemsAndLimits(t *testing.T) {
	t.Parallel()
	var got event.Report
	srv := newServer(t, recorder(&got), nil)
	yes, no := true, false
	ask(t, srv, "POST", "/api/events/batch", `{"execution_id":"5","worker_id":"w","eager":3,"events":[
		{"step":"s","name":"call.done","payload":{"a":1},"event_id":"7","status":"COMPLETED","meta":{"k":1},"created_at":"2026-01-02T03:04:05Z"},
		{"step":"s","event_type":"command.completed"}]}`).want(t, 200,
		`{"status":"ok","event_ids":[`+big+`,612489553370251265],"commands_generated":1,"commands":[
			{"event_id":9,"execution_id":5,"node_id":"s","node_name":"s","action":"noop","context":{"tool_config":null,"args":null,"render_context":null},
			 "meta":{"command_id":"","step":"","tool_kind":"","attempt":0,"max_attempts":0,"execution_id":"0","catalog_id":"0","actionable":false}}]}`)
	want := event.Report{ExecutionID: 5, WorkerID: "w", Eager: 3, Events: []event.Incoming{
		{EventID: 7, Step: "s", Type: "call.done", Payload: json.RawMessage(`{"a":1}`), Status: "COMPLETED", Meta: json.RawMessage(`{"k":1}`), Actionable: &no, Informative: &yes, CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{Step: "s", Type: "command.completed", Actionable: &no, Informative: &yes},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	empty := `{"status":"ok","event_ids":[],"commands_generated":0}`
	ask(t, srv, "POST", "/api/events/batch", `{"execution_id":"nonsense","events":[]}`).want(t, 200, empty)
	ask(t, srv, "POST", "/api/events/batch", `{}`).want(t, 200, empty)

	item := `{"step":"s","event_type":"e"}`
	ask(t, srv, "POST", "/api/events/batch", `{"execution_id":"x","events":[`+item+`]}`).wantError(t, 422, "execution_id")
	ask(t, srv, "POST", "/api/events/batch", `{"events":[`+item+`]}`).wantError(t, 422, "execution_id is missing")
	ask(t, srv, "POST", "/api/events/batch", `{"execution_id":1,"events":[`+item+`,{"step":"s"}]}`).wantError(t, 422, "events[1]: event_type is missing")
	ask(t, srv, "POST", "/api/events/batch", `{"execution_id":1,"events":[{"event_type":"e"}]}`).wantError(t, 422, "step is missing")
	ask(t, srv, "POST", "/api/events/batch", `{"execution_id":1,"events":[`+strings.Repeat(item+",", 1000)+item+`]}`).wantError(t, 422, "at most 1000")
	ask(t, srv, "POST", "/api/events", `{"step":"s","event_type":"e"}`).wantError(t, 422, "execution_id is missing")
	ask(t, srv, "POST", "/api/events", `{"execution_id":1,"step":"s","event_type":"e","created_at":"yesterday"}`).wantError(t, 422, "RFC 3339")
	ask(t, srv, "POST", "/api/events", `{"execution_id":1,"step":"s","event_type":"e","result_kind":"x"}`).wantError(t, 422, "result_kind")
	ask(t, newServer(t, &apitest.Plane{}, nil), "POST", "/api/events", `{"execution_id":404,"step":"s","event_type":"e"}`).wantError(t, 404, "Execution not found: 404")
}

func TestClaimAnswersAsWorkersExpect(t *testing.T) {
	t.Parallel()
	var fail error
	var got event.ClaimRequest
	p := &apitest.Plane{OnClaim: func(_ context.Context, r event.ClaimRequest) (*event.Command, error) {
		got = r
		if fail != nil {
			return nil, fail
		}
		return &event.Command{
			EventID: 456, ExecutionID: 612489553370251264, NodeID: "fetch", NodeName: "fetch", Action: "http",
			Context: event.CommandContext{ToolConfig: json.RawMessage(`{"url": "{{ u }}"}`), Args: json.RawMessage(`{}`), RenderContext: json.RawMessage(`{"u":"<x>"}`)},
			Meta:    event.CommandMeta{CommandID: "1:fetch:456", Step: "fetch", ToolKind: "http", Attempt: 1, MaxAttempts: 3, ExecutionID: 612489553370251264, CatalogID: 9, Actionable: true},
		}, nil
	}}
	srv := newServer(t, p, nil)
	ask(t, srv, "POST", "/api/commands/456/claim", `{"worker_id":"w","execution_id":"5"}`).want(t, 200, `{
		"status":"ok","event_id":456,"execution_id":`+big+`,"node_id":"fetch","node_name":"fetch","action":"http",
		"context":{"tool_config":{"url":"{{ u }}"},"args":{},"render_context":{"u":"<x>"}},
		"meta":{"command_id":"1:fetch:456","step":"fetch","tool_kind":"http","attempt":1,"max_attempts":3,"execution_id":"`+big+`","catalog_id":"9","actionable":true}}`)
	if diff := cmp.Diff(event.ClaimRequest{EventID: 456, ExecutionID: 5, WorkerID: "w"}, got); diff != "" {
		t.Error(diff)
	}
	claim := func() answer { return ask(t, srv, "POST", "/api/commands/456/claim", `{"worker_id":"w"}`) }
	fail = &event.Error{Code: event.Conflict, Message: "Command already claimed by v", Reason: "active_claim"}
	a := claim()
	a.want(t, 409, `{"error":"Command already claimed by v","status":409,"code":"conflict","reason":"active_claim"}`)
	if a.header.Get("Retry-After") == "" {
		t.Error("a live claim may end: want Retry-After")
	}
	fail = fmt.Errorf("look up: %w", event.Errorf(event.NotFound, "not found"))
	claim().want(t, 404, `{"error":"command.issued event not found: 456","status":404,"code":"not_found"}`)
	fail = event.Errorf(event.Unavailable, "busy")
	a = claim()
	a.wantError(t, 503, "busy")
	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	ask(t, srv, "POST", "/api/commands/456/claim", `{}`).wantError(t, 422, "worker_id")
	ask(t, srv, "POST", "/api/commands/abc/claim", `{"worker_id":"w"}`).wantError(t, 400, "decimal id")
}

func TestCommandIsShownWithoutStatus(t *testing.T) {
	t.Parallel()
	var gotExecution event.ID
	p := &apitest.Plane{OnCommand: func(execution, id event.ID) (*event.Command, error) {
		gotExecution = execution
		if id != 7 {
			return nil, event.Errorf(event.NotFound, "not found")
		}
		return &event.Command{EventID: 7, Action: "noop"}, nil
	}}
	srv := newServer(t, p, nil)
	a := ask(t, srv, "GET", "/api/commands/7?execution_id=3", "")
	if a.status != 200 || gotExecution != 3 || a.field(t, "status") != nil || a.field(t, "action") != "noop" {
		t.Errorf("execution %d: %d %s", gotExecution, a.status, a.body)
	}
	ask(t, srv, "GET", "/api/commands/8", "").wantError(t, 404, "command.issued event not found: 8")
	ask(t, srv, "GET", "/api/commands/7?execution_id=1.5", "").wantError(t, 422, "execution_id")
}

func TestHeartbeatTellsAboutLostClaims(t *testing.T) {
	t.Parallel()
	var got []event.Heartbeat
	p := &apitest.Plane{OnHeartbeat: func(beats []event.Heartbeat) ([]event.HeartbeatAnswer, error) {
		got = beats
		answers := make([]event.HeartbeatAnswer, len(beats))
		for i, b := range beats {
			answers[i] = event.HeartbeatAnswer{LeaseUntil: apitest.Epoch, Cancel: b.EventID == 2}
			if b.EventID == 3 {
				answers[i] = event.HeartbeatAnswer{Cancel: true}
			}
		}
		return answers, nil
	}}
	srv := newServer(t, p, nil)
	const lease = `"lease_until":"2026-01-02T03:04:05Z"`
	ask(t, srv, "POST", "/api/commands/1/heartbeat", `{"worker_id":"w","execution_id":"9","attempt":2}`).want(t, 200, `{`+lease+`,"cancel":false}`)
	if diff := cmp.Diff([]event.Heartbeat{{EventID: 1, ExecutionID: 9, WorkerID: "w", Attempt: 2}}, got); diff != "" {
		t.Error(diff)
	}
	ask(t, srv, "POST", "/api/commands/2/heartbeat", `{"worker_id":"w"}`).want(t, 200, `{`+lease+`,"cancel":true}`)
	ask(t, srv, "POST", "/api/commands/3/heartbeat", `{"worker_id":"w"}`).want(t, 409,
		`{"error":"the claim was lost","status":409,"code":"conflict","reason":"claim_lost"}`)
	ask(t, srv, "POST", "/api/commands/heartbeat", `{"worker_id":"w","commands":[{"event_id":"1","execution_id":9,"attempt":1},{"event_id":3,"execution_id":9}]}`).want(t, 200,
		`{"answers":[{`+lease+`,"cancel":false},{"cancel":true}]}`)
	if got[1].WorkerID != "w" {
		t.Errorf("worker not handed down: %+v", got)
	}
	ask(t, srv, "POST", "/api/commands/heartbeat", `{"worker_id":"w","commands":[]}`).want(t, 200, `{"answers":[]}`)
	ask(t, srv, "POST", "/api/commands/heartbeat", `{"commands":[{"event_id":1}]}`).wantError(t, 422, "commands[0]")
}

func TestReleaseGivesTheClaimBack(t *testing.T) {
	t.Parallel()
	var got event.Heartbeat
	p := &apitest.Plane{OnRelease: func(h event.Heartbeat) error { got = h; return nil }}
	ask(t, newServer(t, p, nil), "POST", "/api/commands/4/release", `{"worker_id":"w","attempt":1}`).want(t, 200, `{"status":"ok"}`)
	if diff := cmp.Diff(event.Heartbeat{EventID: 4, WorkerID: "w", Attempt: 1}, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzBodies feeds arbitrary bytes to every route that reads a body: whatever
// comes, the answer is JSON and never a crash.
func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{"execution_id":"1","events":[{"step":"s","event_type":"e","payload":{}}],"eager":true}`,
		`{"path":"a","version":"latest","payload":{"a":[1]},"catalog_id":1e3}`, `{"worker_id":"w","commands":[{"event_id":1}]}`,
		`{"created_at":5,"meta":[],"event_id":-1}`, "\ufeff{}", `{"content":"path: a"}`,
	} {
		f.Add(seed)
	}
	paths := []string{
		"/api/catalog/register", "/api/catalog/list", "/api/catalog/resource", "/api/execute", "/api/events", "/api/events/batch",
		"/api/commands/1/claim", "/api/commands/claim", "/api/executions/1/finalize", "/api/executions/cleanup", "/api/commands/1/heartbeat", "/api/commands/heartbeat", "/api/commands/1/release", "/api/executions/1/cancel",
	}
	h := fuzzHandler(f)
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range paths {
			status, answer := send(h, path, body)
			if !json.Valid([]byte(answer)) || status == 500 {
				t.Errorf("%s with %q: %d %s", path, body, status, answer)
			}
		}
	})
}

func TestARefusalNamesTheMemberAsItWasSent(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, nil)
	for _, tc := range []struct{ path, body, want string }{
		{"/api/execute", `{"catalog_id":"x"}`, `catalog_id: invalid id "x"`},
		{"/api/execute", `{"path":7,"payload":{}}`, "path: want a string, got number"},
		{"/api/execute", `{"path":"a","workload":[]}`, "workload: want a JSON object, got a list"},
		{"/api/execute", `{"path":"a","version":99999999999}`, "version: want a positive integer"},
		{"/api/execute", `{"PATH":7}`, "path: want a string, got number"},
		{"/api/execute", `[]`, "want a JSON object, got array"},
		{"/api/events", `{"execution_id":1.5}`, "execution_id: invalid id 1.5"},
		{"/api/events", `{"execution_id":1,"step":3}`, "step: want a string, got number"},
		{"/api/events", `{"execution_id":1,"event_ids":[1,true]}`, "event_ids[1]: invalid id true"},
		{"/api/events", `{"execution_id":1,"actionable":"no"}`, "actionable: want a boolean, got string"},
		{"/api/events", `{"execution_id":1,"eager":"x"}`, "eager: want a number of commands"},
		{"/api/events/batch", `{"execution_id":1,"events":{}}`, "events: want a list, got object"},
		{"/api/events/batch", `{"execution_id":1,"events":[{},"x"]}`, "events[1]: want an object, got string"},
		{"/api/events/batch", `{"execution_id":1,"events":[{},{"created_at":"yesterday"}]}`, "events[1].created_at: want an RFC 3339 time"},
		{"/api/commands/heartbeat", `{"commands":[{"event_id":"x"}]}`, `commands[0].event_id: invalid id "x"`},
	} {
		a := ask(t, srv, "POST", tc.path, tc.body)
		a.wantError(t, 422, tc.want)
		if got := a.field(t, "error").(string); !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s %s: %s", tc.path, tc.body, got)
		}
	}
}
