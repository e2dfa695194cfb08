package api_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

var _ api.Plane = (*control.Plane)(nil)

const twoSteps = `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: two
  path: demo/two
workload:
  who: nobody
workflow:
  - step: start
    tool:
      kind: noop
    next:
      arcs:
        - step: finish
  - step: finish
    tool:
      kind: noop
`

// realServer is the API over the control plane itself.
func realServer(t *testing.T) *client.Client {
	t.Helper()
	srv, _ := serve(t, control.Options{
		Store: memstore.New(), Bus: membus.New(membus.Options{}), IDs: snowflake.New(1, time.Now).Next,
	}, api.Options{})
	c, err := client.New(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// work finishes a claimed command the way a worker does.
func work(t *testing.T, c *client.Client, cmd *client.Command, eager int) client.ReportAnswer {
	t.Helper()
	payload := json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `","result":{"status":"success","context":{"data":{"ok":true}}}}`)
	meta, err := json.Marshal(map[string]any{"command_id": cmd.Meta.CommandID, "attempt": cmd.Meta.Attempt})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Report(t.Context(), client.Report{ExecutionID: cmd.ExecutionID, WorkerID: "w1", Eager: eager, Events: []client.Incoming{
		{Step: cmd.NodeName, Type: event.CommandStarted, Status: event.StatusStarted, Payload: payload, Meta: meta},
		{Step: cmd.NodeName, Type: event.CallDone, Payload: payload, Meta: meta},
		{Step: cmd.NodeName, Type: event.CommandCompleted, Status: event.ToolSuccess, Payload: payload, Meta: meta},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issued(t *testing.T, c *client.Client, id client.ID) client.ID {
	t.Helper()
	log, err := c.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log {
		if e.Type == event.CommandIssued {
			return e.EventID
		}
	}
	t.Fatalf("no command was issued: %+v", log)
	return 0
}

func TestPlaybookRunsOverHTTP(t *testing.T) {
	t.Parallel()
	c := realServer(t)
	ctx := t.Context()
	if _, err := c.Register(ctx, twoSteps); err != nil {
		t.Fatal(err)
	}
	run, err := c.Execute(ctx, client.ExecuteRequest{Path: "demo/two", Payload: json.RawMessage(`{"who":"me"}`)})
	if err != nil || run.CommandsGenerated != 1 {
		t.Fatalf("%+v: %v", run, err)
	}
	first := issued(t, c, run.ExecutionID)
	cmd, err := c.Claim(ctx, client.ClaimRequest{EventID: first, WorkerID: "w1"})
	if err != nil || cmd.Action != "noop" || cmd.NodeName != "start" || cmd.Meta.Attempt != 1 {
		t.Fatalf("%+v: %v", cmd, err)
	}
	_, err = c.Claim(ctx, client.ClaimRequest{EventID: first, WorkerID: "w2"})
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != client.Conflict || refused.Reason != "active_claim" {
		t.Errorf("second worker: %v", err)
	}
	if _, err := c.Claim(ctx, client.ClaimRequest{EventID: 1, WorkerID: "w1"}); client.CodeOf(err) != client.NotFound {
		t.Errorf("unknown command: %v", err)
	}
	beat := client.Heartbeat{EventID: first, ExecutionID: run.ExecutionID, WorkerID: "w1", Attempt: 1}
	if beats, err := c.Heartbeat(ctx, []client.Heartbeat{beat}); err != nil || beats[0].Cancel || beats[0].LeaseUntil.IsZero() {
		t.Errorf("heartbeat %+v: %v", beats, err)
	}
	ack := work(t, c, cmd, 1)
	if len(ack.EventIDs) != 3 || len(ack.Commands) != 1 || ack.Commands[0].NodeName != "finish" {
		t.Fatalf("eager hand-over: %+v", ack)
	}
	work(t, c, ack.Commands[0], 0)

	st, err := c.Wait(ctx, run.ExecutionID)
	if err != nil || st.Status != client.Completed || st.Progress.Completed != 2 {
		t.Fatalf("%+v: %v", st, err)
	}
	d, err := c.Execution(ctx, run.ExecutionID)
	if err != nil || string(d.Workload) != `{"who":"me"}` || len(d.Steps) != 2 || d.Steps["finish"].Status != client.Completed {
		t.Errorf("%+v: %v", d, err)
	}
	var last int64
	err = c.Stream(ctx, run.ExecutionID, 0, func(e client.Event) error { last = e.Seq; return nil })
	if err != nil || last != st.LastSeq {
		t.Errorf("streamed up to %d of %d: %v", last, st.LastSeq, err)
	}
	if _, err := c.Cancel(ctx, run.ExecutionID, client.CancelRequest{}); client.CodeOf(err) != client.Invalid {
		t.Errorf("cancel after the end: %v", err)
	}
}

func TestCancelledRunTellsItsWorkerOverHTTP(t *testing.T) {
	t.Parallel()
	c := realServer(t)
	ctx := t.Context()
	if _, err := c.Register(ctx, twoSteps); err != nil {
		t.Fatal(err)
	}
	run, err := c.Execute(ctx, client.ExecuteRequest{Path: "demo/two"})
	if err != nil {
		t.Fatal(err)
	}
	id := issued(t, c, run.ExecutionID)
	if _, err := c.Claim(ctx, client.ClaimRequest{EventID: id, WorkerID: "w1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cancel(ctx, run.ExecutionID, client.CancelRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	beats, err := c.Heartbeat(ctx, []client.Heartbeat{{EventID: id, ExecutionID: run.ExecutionID, WorkerID: "w1", Attempt: 1}})
	if err != nil || !beats[0].Cancel {
		t.Errorf("heartbeat after cancel: %+v, %v", beats, err)
	}
	if _, err := c.Claim(ctx, client.ClaimRequest{EventID: id, WorkerID: "w2"}); client.CodeOf(err) != client.Conflict {
		t.Errorf("claim after cancel: %v", err)
	}
	if st, err := c.Wait(ctx, run.ExecutionID); err != nil || st.Status != client.Cancelled {
		t.Errorf("%+v: %v", st, err)
	}
}
