package api_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
)

// replaying keeps what it was asked and answers with a small state.
type replaying struct {
	*apitest.Plane
	asked control.ReplayRequest
}

func (p *replaying) Replay(_ context.Context, r control.ReplayRequest) (control.ReplayAnswer, error) {
	p.asked = r
	projection, err := replay.ParseProjection(r.Projection)
	if err != nil {
		return control.ReplayAnswer{}, err
	}
	s := replay.Records([]replay.Record{
		{EventID: 1, Type: event.StepEnter, NodeName: "start", Status: "ENTERED"},
		{EventID: 612489553370251265, Type: event.CommandIssued, CommandID: "7:start:2", Result: json.RawMessage(`{"reference":{"f":1.0,"t":"<&>"}}`)},
	}, replay.Options{TenantID: "default", OrganizationID: "default", ExecutionID: r.ExecutionID, Projection: projection})
	return control.ReplayAnswer{State: s, Truncated: true, NextAfterEventID: 612489553370251265}, nil
}

func replayServer(t *testing.T) (*httptest.Server, *replaying) {
	p := &replaying{Plane: &apitest.Plane{}}
	return newServer(t, p.Plane, func(o *api.Options) { o.Plane = p }), p
}

func TestReplayedStateOnTheWire(t *testing.T) {
	t.Parallel()
	srv, p := replayServer(t)
	a := ask(t, srv, "GET", "/api/replay/state?execution_id="+big, "")
	state, err := p.Replay(t.Context(), control.ReplayRequest{ExecutionID: 612489553370251264})
	if err != nil {
		t.Fatal(err)
	}
	sums, err := json.Marshal(state.Checksums)
	if err != nil {
		t.Fatal(err)
	}
	a.want(t, 200, `{"tenant_id":"default","organization_id":"default","execution_id":612489553370251264,"projection":"all",
		"event_count":2,"last_event_id":612489553370251265,"last_event_type":"command.issued",
		"execution":{"status":"RUNNING","last_node_name":"start","payload_refs":[{"event_id":612489553370251265,"reference":{"f":1.0,"t":"<&>"},"summary":{}}]},
		"stages":{},"frames":{},"business_objects":{},"loops":{},
		"commands":{"7:start:2":{"command_id":"7:start:2","status":"PENDING","issued_event_id":612489553370251265,"last_event_id":612489553370251265}},
		"checksum":{"type":"sha256","value":"`+state.Checksum.Value+`"},"projection_checksums":`+string(sums)+`,
		"truncated":true,"next_after_event_id":612489553370251265}`)
}

func TestReplayParameters(t *testing.T) {
	t.Parallel()
	id, none, at := event.ID(9), event.ID(0), time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	whole, minute, day := at.Truncate(time.Second), at.Truncate(time.Minute), at.Truncate(24*time.Hour)
	for query, want := range map[string]control.ReplayRequest{
		"":                                  {},
		"tenant_id=t&organization_id=o":     {TenantID: "t", OrganizationID: "o"},
		"as_of_event_id=9":                  {AsOfEventID: &id},
		"as_of_event_id=0":                  {AsOfEventID: &none},
		"as_of_position=9&as_of_time=":      {AsOfPosition: &id},
		"as_of_time=2026-01-02T03:04:05.6Z": {AsOfTime: &at},
		"as_of_time=2026-01-02T05:04:05.6%2B02:00": {AsOfTime: &at},
		"as_of_time=2026-01-02T05:04:05.6+02:00":   {AsOfTime: &at},
		"as_of_time=2026-01-02+05:04:05.6+02:00":   {AsOfTime: &at},
		"as_of_time=2026-01-01T22:04:05.6-0500":    {AsOfTime: &at},
		"as_of_time=2026-01-02T03:04:05":           {AsOfTime: &whole},
		"as_of_time=2026-01-02%2003:04:05.6":       {AsOfTime: &at},
		"as_of_time=2026-01-02T03:04":              {AsOfTime: &minute},
		"as_of_time=2026-01-02":                    {AsOfTime: &day},
		"projection=stage&only=true":               {Projection: "stage", Only: true},
		"limit=5":                                  {Limit: 5},
		"limit=0":                                  {Limit: 1},
		"limit=-7":                                 {Limit: 1},
		"limit=1000000000":                         {Limit: 1_000_000_000},
		"limit=99999999999999999999":               {Limit: 1<<31 - 1},
		"resolve_payloads=1&snapshot=True":         {ResolvePayloads: true, Snapshot: true},
	} {
		srv, p := replayServer(t)
		if a := ask(t, srv, "GET", "/api/replay/state?execution_id=7&"+query, ""); a.status != 200 {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
		want.ExecutionID = 7
		if diff := cmp.Diff(want, p.asked); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestReplayRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	srv, _ := replayServer(t)
	for query, part := range map[string]string{
		"":                                     "execution_id is missing",
		"execution_id=":                        "execution_id is missing",
		"execution_id=abc":                     "execution_id: want a decimal id",
		"execution_id=1.5":                     "execution_id: want a decimal id",
		"execution_id=-1":                      "execution_id: want a decimal id",
		"execution_id=99999999999999999999":    "execution_id: want a decimal id",
		"execution_id=7&as_of_event_id=x":      "as_of_event_id: want a decimal id",
		"execution_id=7&as_of_position=1e3":    "as_of_position: want a decimal id",
		"execution_id=7&as_of_time=yesterday":  "as_of_time: want an RFC 3339 time",
		"execution_id=7&as_of_time=1767225845": "as_of_time: want an RFC 3339 time",
		"execution_id=7&limit=many":            "limit: want an integer",
		"execution_id=7&limit=1.5":             "limit: want an integer",
		"execution_id=7&only=perhaps":          "only: want true or false",
		"execution_id=7&resolve_payloads=2":    "resolve_payloads: want true or false",
		"execution_id=7&projection=stages":     "execution, stage, frame, command, business_object, loop, all",
	} {
		ask(t, srv, "GET", "/api/replay/state?"+query, "").wantError(t, 400, part)
	}
}

func TestAnExecutionIsReplayedOverHTTP(t *testing.T) {
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
	cmd, err := c.Claim(ctx, client.ClaimRequest{EventID: issued(t, c, run.ExecutionID), WorkerID: "w1"})
	if err != nil {
		t.Fatal(err)
	}
	work(t, c, work(t, c, cmd, 1).Commands[0], 0)
	if _, err := c.Wait(ctx, run.ExecutionID); err != nil {
		t.Fatal(err)
	}
	log, err := c.Events(ctx, run.ExecutionID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := replay.NewFold(replay.Options{TenantID: "default", OrganizationID: "default", ExecutionID: run.ExecutionID})
	for i := range log {
		f.ApplyEvent(&log[i])
		got, err := c.Replay(ctx, client.ReplayRequest{ExecutionID: run.ExecutionID, AsOfEventID: log[i].EventID})
		if err != nil || got.EventCount != int64(i)+1 || got.LastEventID != log[i].EventID || got.LastEventType != log[i].Type {
			t.Fatalf("up to event %d: %+v, %v", i, got, err)
		}
		if want := f.State(); got.Checksum.Value != want.Checksum.Value {
			t.Errorf("up to event %d the checksum is %s; by the log as clients see it, %s", i, got.Checksum.Value, want.Checksum.Value)
		}
	}
	last := log[len(log)-1]
	got, err := c.Replay(ctx, client.ReplayRequest{
		ExecutionID: run.ExecutionID, AsOfTime: last.CreatedAt, TenantID: "acme", Projection: "command", Only: true, Limit: 1000, ResolvePayloads: true, Snapshot: true,
	})
	if err != nil || got.Execution.Status != client.Completed || got.Execution.LastNodeName != "finish" || got.TenantID != "acme" ||
		got.Truncated || string(got.Resolutions) != "[]" || got.Snapshot != nil || len(got.Checksums) != 6 {
		t.Errorf("the whole: %+v, %v", got, err)
	}
	first := got.Commands[cmd.Meta.CommandID]
	if len(got.Commands) != 2 || first.Status != event.ToolSuccess || first.WorkerID != "w1" || first.IssuedBy == 0 || first.StartedBy == 0 || first.EndedBy == 0 {
		t.Errorf("commands are %+v", got.Commands)
	}
	if cut, err := c.Replay(ctx, client.ReplayRequest{ExecutionID: run.ExecutionID, Limit: 2}); err != nil || !cut.Truncated || cut.NextAfter != log[1].EventID {
		t.Errorf("the first two: %+v, %v", cut, err)
	}
	if none, err := c.Replay(ctx, client.ReplayRequest{ExecutionID: 1}); err != nil || none.EventCount != 0 || none.Execution.Status != "UNKNOWN" {
		t.Errorf("an unknown execution: %+v, %v", none, err)
	}
	_, err = c.Replay(ctx, client.ReplayRequest{ExecutionID: run.ExecutionID, AsOfEventID: 1, AsOfTime: last.CreatedAt})
	if client.CodeOf(err) != client.BadRequest || !strings.Contains(err.Error(), "only one of as_of_event_id, as_of_position and as_of_time") {
		t.Errorf("two cutoffs: %v", err)
	}
}
