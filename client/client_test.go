package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A worker works through the client as it does in the server's process.
var _ interface {
	Claim(context.Context, event.ClaimRequest) (*event.Command, error)
	Report(context.Context, event.Report) (event.ReportAnswer, error)
	Heartbeat(context.Context, []event.Heartbeat) ([]event.HeartbeatAnswer, error)
	Release(context.Context, event.Heartbeat) error
} = (*client.Client)(nil)

func handler(p *apitest.Plane) http.Handler {
	s, err := api.New(api.Options{Plane: p, Version: "1.2.3", Clock: func() time.Time { return apitest.Epoch.Add(time.Minute) }})
	if err != nil {
		panic(err)
	}
	return s.Handler()
}

func dial(t *testing.T, h http.Handler, opts ...client.Option) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	c, err := client.New(srv.URL+"/", opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		srv.Close()
	})
	return c
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCatalogAndExecuteRoundTrip(t *testing.T) {
	t.Parallel()
	c := dial(t, handler(&apitest.Plane{}))
	ctx := t.Context()
	reg, err := c.Register(ctx, "metadata:\n  path: demo/hello\n")
	if err != nil {
		t.Fatal(err)
	}
	same(t, client.Registration{Message: "Resource 'demo/hello' version '1' registered.", Path: "demo/hello", Version: 1, CatalogID: 1, Kind: "playbook"}, reg)
	entry, err := c.Entry(ctx, client.EntryRef{Path: "demo/hello"})
	if err != nil || entry.CatalogID != 1 || entry.Content == "" {
		t.Errorf("entry %+v: %v", entry, err)
	}
	list, err := c.Entries(ctx, client.EntryFilter{Kind: "Playbook"})
	if err != nil || len(list) != 1 {
		t.Errorf("entries %+v: %v", list, err)
	}
	run, err := c.Execute(ctx, client.ExecuteRequest{Path: "demo/hello", Payload: json.RawMessage(`{"a":1}`)})
	if err != nil || run.Status != "started" || run.ExecutionID == 0 {
		t.Fatalf("run %+v: %v", run, err)
	}
	rows, err := c.Executions(ctx, client.ExecutionFilter{Status: "RUNNING", Limit: 5})
	if err != nil || len(rows) != 1 || rows[0].ExecutionID != run.ExecutionID || !rows[0].CompletedAt.IsZero() {
		t.Errorf("rows %+v: %v", rows, err)
	}
	if _, err := c.Execute(ctx, client.ExecuteRequest{Path: "demo/hello", Payload: json.RawMessage(`{`)}); client.CodeOf(err) != client.Invalid {
		t.Errorf("broken payload: %v", err)
	}
}

func TestEventsComeBackAsTheyWereStored(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{}
	p.Put(store.Execution{ExecutionID: 612489553370251264, CatalogID: 9, Path: "demo", Status: event.StatusRunning, StartedAt: apitest.Epoch}, `{"w":1}`,
		engine.StepOutcome{Name: "s", Status: "COMPLETED", Runs: 1, Result: json.RawMessage(`[1]`)})
	stored := event.Event{
		EventID: 612489553370251265, CatalogID: 9, ParentEventID: 3, ParentExecutionID: 4, Type: event.CallDone, NodeName: "s", NodeType: "noop",
		Status: "COMPLETED", Context: json.RawMessage(`{"c":1}`), Result: json.RawMessage(`{"r":"é\n"}`), Meta: json.RawMessage(`{"command_id":"c","m":1}`),
		Error: "e", WorkerID: "w", CommandID: "c", Duration: 1234567 * time.Nanosecond, CreatedAt: apitest.Epoch.Add(123 * time.Microsecond),
	}
	p.Append(612489553370251264, stored, event.Event{Type: event.StepExit, CreatedAt: apitest.Epoch, EventID: 2})
	stored.ExecutionID, stored.Seq = 612489553370251264, 1
	c := dial(t, handler(p))

	log, err := c.Events(t.Context(), 612489553370251264, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, []client.Event{stored}, log)
	d, err := c.Execution(t.Context(), 612489553370251264)
	if err != nil || len(d.Events) != 2 {
		t.Fatalf("%+v: %v", d, err)
	}
	same(t, stored, d.Events[0])
	same(t, client.Event{ExecutionID: 612489553370251264, Seq: 2, EventID: 2, Type: event.StepExit, CreatedAt: apitest.Epoch}, d.Events[1])
	same(t, map[string]client.Step{"s": {Status: "COMPLETED", Runs: 1, Result: json.RawMessage(`[1]`)}}, d.Steps)
	if string(d.Workload) != `{"w":1}` || d.Path != "demo" || d.DurationSeconds != 60 {
		t.Errorf("%+v", d)
	}
}

func TestWorkerSideRoundTrip(t *testing.T) {
	t.Parallel()
	lease := apitest.Epoch
	want := &event.Command{
		Status: "ok", EventID: 456, ExecutionID: 5, NodeID: "s", NodeName: "s", Action: "noop", LeaseUntil: lease,
		Context: event.CommandContext{ToolConfig: json.RawMessage(`{"kind":"noop"}`), Args: json.RawMessage(`{}`), RenderContext: json.RawMessage(`{"a":1}`)},
		Meta:    event.CommandMeta{CommandID: "5:s:456", Step: "s", Attempt: 1, MaxAttempts: 3, ExecutionID: 5, Trace: json.RawMessage(`{}`)},
	}
	var report event.Report
	var released event.Heartbeat
	p := &apitest.Plane{
		OnClaim: func(context.Context, event.ClaimRequest) (*event.Command, error) { return want, nil },
		OnReport: func(r event.Report) (event.ReportAnswer, error) {
			report = r
			return event.ReportAnswer{Status: "ok", EventIDs: []event.ID{8}, CommandsGenerated: 1, Commands: []*event.Command{want}}, nil
		},
		OnHeartbeat: func([]event.Heartbeat) ([]event.HeartbeatAnswer, error) {
			return []event.HeartbeatAnswer{{LeaseUntil: lease}, {Cancel: true}}, nil
		},
		OnRelease: func(h event.Heartbeat) error { released = h; return nil },
	}
	c := dial(t, handler(p))
	ctx := t.Context()
	got, err := c.Claim(ctx, event.ClaimRequest{EventID: 456, ExecutionID: 5, WorkerID: "w"})
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got)
	yes := true
	sent := event.Report{ExecutionID: 5, WorkerID: "w", Eager: 2, Events: []event.Incoming{{
		EventID: 8, Step: "s", Type: event.CommandCompleted, Status: "success", Payload: json.RawMessage(`{"a":1}`),
		Meta: json.RawMessage(`{"m":1}`), Actionable: &yes, Informative: &yes, CreatedAt: lease,
	}}}
	ack, err := c.Report(ctx, sent)
	if err != nil {
		t.Fatal(err)
	}
	same(t, sent, report)
	same(t, event.ReportAnswer{Status: "ok", EventIDs: []event.ID{8}, CommandsGenerated: 1, Commands: []*event.Command{want}}, ack)
	beats, err := c.Heartbeat(ctx, []event.Heartbeat{{EventID: 1, WorkerID: "w"}, {EventID: 2, WorkerID: "w"}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, []event.HeartbeatAnswer{{LeaseUntil: lease}, {Cancel: true}}, beats)
	if err := c.Release(ctx, event.Heartbeat{EventID: 456, ExecutionID: 5, WorkerID: "w", Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	same(t, event.Heartbeat{EventID: 456, ExecutionID: 5, WorkerID: "w", Attempt: 1}, released)
}

func TestErrorsKeepTheirCodeAcrossTheWire(t *testing.T) {
	t.Parallel()
	for _, code := range []event.Code{
		event.Invalid, event.BadRequest, event.NotFound, event.Conflict, event.Unauthorized, event.Forbidden, event.Limit, event.Unavailable, event.Internal,
	} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			sent := &event.Error{Code: code, Message: "said so", Reason: "because", Remedy: "do it"}
			c := dial(t, handler(&apitest.Plane{OnExecute: func(control.ExecuteRequest) (control.ExecuteAnswer, error) { return control.ExecuteAnswer{}, sent }}))
			_, err := c.Execute(t.Context(), client.ExecuteRequest{Path: "a"})
			if !errors.Is(err, &client.Error{Code: code}) {
				t.Fatalf("%v is not %s", err, code)
			}
			if code == event.Unavailable {
				sent.RetryAfter = 2 * time.Second // as the server asks for
			}
			same(t, sent, err)
		})
	}
}

func TestForeignAnswersBecomeCodedErrors(t *testing.T) {
	t.Parallel()
	for status, code := range map[int]event.Code{502: event.Unavailable, 429: event.Unavailable, 504: event.Unavailable, 404: event.NotFound, 418: event.Internal} {
		c := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<html>", status) }))
		if _, err := c.Status(t.Context(), 1); client.CodeOf(err) != code {
			t.Errorf("status %d: %v", status, err)
		}
	}
	c := dial(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	if _, err := c.Status(t.Context(), 1); client.CodeOf(err) != client.Internal {
		t.Errorf("page instead of JSON: %v", err)
	}
}

func TestNetworkErrorsAreUnavailable(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	srv.Close()
	c, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Health(t.Context()); !errors.Is(err, &client.Error{Code: client.Unavailable}) {
		t.Errorf("nobody listens: %v", err)
	}
	if err := c.Stream(t.Context(), 1, 0, nil); !errors.Is(err, &client.Error{Code: client.Unavailable}) {
		t.Errorf("stream without a server must not wait: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Health(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
	slow := dial(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), client.WithTimeout(time.Millisecond))
	if _, err := slow.Health(t.Context()); !errors.Is(err, context.DeadlineExceeded) || client.CodeOf(err) != client.Unavailable {
		t.Errorf("slow server: %v", err)
	}
}

func TestAddressesThatAreNotURLsAreRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "localhost:8082", "ftp://x", "http://", "://"} {
		if _, err := client.New(bad); client.CodeOf(err) != client.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTokenAndAgentAreSent(t *testing.T) {
	t.Parallel()
	var token, agent atomic.Value
	c := dial(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token.Store(r.Header.Get("Authorization"))
		agent.Store(r.Header.Get("User-Agent"))
		_, _ = w.Write([]byte(`{}`))
	}), client.WithToken("t0k"), client.WithUserAgent("tester"))
	if _, err := c.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "Bearer t0k", token.Load())
	same(t, "tester", agent.Load())
}
