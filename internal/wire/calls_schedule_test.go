package wire

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/source/schedule"
)

// withSchedules lets a server keep schedules. Nothing fires by itself.
func withSchedules(w *world, o *api.Options) func(context.Context) error {
	o.Schedules = schedule.New(schedule.Options{Store: w.store, Executions: starter{w.plane}, IDs: w.ids, Clock: w.now})
	return nil
}

// starter is the control plane as schedules see it.
type starter struct{ plane *control.Plane }

func (s starter) Start(ctx context.Context, r schedule.Start) (event.ID, bool, error) {
	a, err := s.plane.Execute(ctx, control.ExecuteRequest{
		Path: r.Path, Version: r.Version, Pool: r.Pool, Payload: r.Payload, Caller: "schedule:" + r.Schedule.String(),
		Dedup: &control.Dedup{Key: r.Key, Window: r.Window},
	})
	return a.ExecutionID, a.Status == "started", err
}

func (s starter) Status(ctx context.Context, id event.ID) (string, time.Time, error) {
	x, err := s.plane.Execution(ctx, id)
	return x.Status, x.EndedAt, err
}

func (s starter) Cancel(context.Context, event.ID, string) error {
	return errors.New("no schedule here makes way")
}

// scheduleCalls is the life of a schedule, in the words of the command line and
// of the page.
var scheduleCalls = []call{
	{
		by: cli, ask: "POST /api/schedules", status: 200, shape: `@schedule`, keep: "schedule=schedule_id",
		body: `{"path":"demo/two","name":"nightly","cron":"30 2 * * *","timezone":"Europe/Berlin","overlap":"queue","queue_limit":3,"catch_up":"latest","jitter":"30s","payload":{"who":"cron"},"max_failures":5}`,
	},
	{by: cli, ask: "POST /api/schedules", body: `{"path":"demo/two","name":"nightly","every":"1h","unknown":1}`, status: 409, shape: `@error`},
	{by: cli, ask: "POST /api/schedules", body: `{"path":"demo/two","name":"x","cron":"61 * * * *"}`, status: 422, shape: `@error`},
	{by: cli, ask: "POST /api/schedules", body: `{"path":"demo/two","name":"x","cron":"0 2 * * *","every":"1h"}`, status: 422, shape: `@error`},
	{by: cli, ask: "POST /api/schedules", body: `{"path":"demo/two","name":"x","cron":"0 2 * * *","timezone":"Mars/Olympus"}`, status: 422, shape: `@error`},
	{by: gui, ask: "GET /api/schedules", status: 200, shape: `{items: [@schedule+], count: 1}`},
	{by: gui, ask: "GET /api/schedules?path=demo/two&state=paused", status: 200, shape: `{items: [], count: 0}`},
	{by: gui, ask: "GET /api/schedules?state=asleep", status: 422, shape: `@error`},
	{by: gui, ask: "GET /api/schedules/$schedule", status: 200, shape: `@schedule`},
	{by: cli, ask: "GET /api/schedules/nightly", status: 200, shape: `@schedule`},
	{by: cli, ask: "GET /api/schedules/nobody", status: 404, shape: `@error`},
	{by: cli, ask: "GET /api/schedules/nightly/next?count=3", status: 200, shape: `{schedule_id: "$schedule", name: "nightly", timezone: "Europe/Berlin", state: "active", times: [time+], !}`},
	{by: cli, ask: "GET /api/schedules/nightly/next?count=0", status: 422, shape: `@error`},
	{by: cli, ask: "POST /api/schedules/nightly/run", body: ``, status: 200, shape: `{tick: time, kind: "manual", state: "started", path: "demo/two", execution_id: sid, decided_at: time, started_at: time, ended_at: null, ticks: 1}`, keep: "scheduled=execution_id"},
	{by: gui, ask: "GET /api/executions/$scheduled", status: 200, shape: `{execution_id: id, status: "RUNNING", path: "demo/two"}`},
	{by: gui, ask: "GET /api/schedules/$schedule/runs?limit=10", status: 200, shape: `{schedule_id: "$schedule", name: "nightly", items: [{tick: time, kind: "manual", state: "started", path: "demo/two", execution_id: "$scheduled", decided_at: time, started_at: time, ended_at: null, ticks: 1}+], count: 1, !}`},
	{by: gui, ask: "GET /api/schedules/$schedule/runs?before=2020-01-01T00:00:00Z", status: 200, shape: `{items: [], count: 0}`},
	{by: gui, ask: "GET /api/schedules/$schedule/runs?before=soon", status: 422, shape: `@error`},
	{by: gui, ask: "POST /api/schedules/$schedule/pause", body: `{"reason":"the source is down"}`, status: 200, shape: `{schedule_id: "$schedule", state: "paused", pause_reason: "the source is down", paused_at: time}`},
	{by: cli, ask: "POST /api/schedules/nightly/pause", body: ``, status: 200, shape: `{state: "paused"}`},
	{by: cli, ask: "POST /api/schedules/nightly/resume", body: ``, status: 200, shape: `{schedule_id: "$schedule", state: "active", next_at: time}`},
	{by: cli, ask: "POST /api/schedules/nightly/backfill", body: `{"from":"2026-01-01","to":"2026-01-08","concurrency":2}`, status: 200, shape: `{schedule_id: "$schedule", backfill: {from: time, to: time, next: time, concurrency: 2, ticks: 7}}`},
	{by: cli, ask: "POST /api/schedules/nightly/backfill", body: `{"from":"2026-01-01"}`, status: 409, shape: `@error`},
	{by: gui, ask: "POST /api/schedules/nightly/backfill", body: `{"from":"soon"}`, status: 422, shape: `@error`},
	{by: gui, ask: "PUT /api/schedules/$schedule", body: `{"name":"hourly","every":"1h"}`, status: 200, shape: `{schedule_id: "$schedule", name: "hourly", path: "demo/two", every: text, state: "active", revision: int}`},
	{by: cli, ask: "POST /api/schedules/hourly/backfill", body: `{"from":"2026-01-01T00:00:00+01:00","to":"2026-01-01T05:00:00Z","unknown":1}`, status: 200, shape: `{backfill: {from: "2025-12-31T23:00:00Z", to: "2026-01-01T05:00:00Z", ticks: 6}}`},
	{by: cli, ask: "PUT /api/schedules/nightly", body: `{"every":"1h"}`, status: 404, shape: `@error`},
	{by: cli, ask: "DELETE /api/schedules/hourly", status: 200, shape: `{status: "deleted", schedule_id: "$schedule", name: "hourly", !}`},
	{by: cli, ask: "DELETE /api/schedules/hourly", status: 404, shape: `@error`},
	{by: gui, ask: "GET /api/executions/$scheduled/status", status: 200, shape: `{status: "RUNNING"}`},
}

// retentionCalls is what operators ask of what goes when its time is over.
var retentionCalls = []call{
	{by: operator, ask: "GET /api/retention", status: 200, shape: `{policy: str, rules: [any], every_seconds: real, pending: @retained, archives: false}`},
	{by: operator, ask: "POST /api/retention/run", body: `{"dry_run":true,"limit":10}`, status: 200, shape: `@retained`},
	{by: cli, ask: "POST /api/retention/run", body: ``, status: 200, shape: `{dry_run: false, removed: 0}`},
	{by: cli, ask: "POST /api/retention/run", body: `{"limit":-1}`, status: 422, shape: `@error`},
	{by: cli, ask: "POST /api/retention/run", body: `{"dry_run":"yes"}`, status: 422, shape: `@error`},
}
