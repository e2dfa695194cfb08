package api_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/source/schedule"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// startsAll starts whatever it is asked for.
type startsAll struct{ n atomic.Int64 }

func (s *startsAll) Start(context.Context, schedule.Start) (event.ID, bool, error) {
	return event.ID(s.n.Add(1)), true, nil
}

func (s *startsAll) Status(context.Context, event.ID) (string, time.Time, error) {
	return event.StatusCompleted, apitest.Epoch, nil
}
func (s *startsAll) Cancel(context.Context, event.ID, string) error { return nil }

func scheduleServer(t *testing.T) *httptest.Server {
	t.Helper()
	var ids atomic.Int64
	service := schedule.New(schedule.Options{
		Store: memstore.New(), Executions: &startsAll{}, IDs: func() event.ID { return event.ID(100 + ids.Add(1)) }, Clock: func() time.Time { return apitest.Epoch },
	})
	plane := &apitest.Plane{}
	if _, err := plane.Register(t.Context(), control.RegisterRequest{Content: "path: etl/daily\n"}); err != nil {
		t.Fatal(err)
	}
	return newServer(t, plane, func(o *api.Options) { o.Schedules = service })
}

// gotten reads an answer that has to be a success.
func gotten[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); a.status != 200 || err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	return v
}

func TestASchedulesLife(t *testing.T) {
	t.Parallel()
	srv := scheduleServer(t)
	made := gotten[event.ScheduleView](t, ask(t, srv, "POST", "/api/schedules", `{"path": "etl/daily", "cron": "0 2 * * *", "timezone": "Europe/Berlin", "payload": {"n": 1}}`))
	if made.Name != "etl/daily" || made.State != "active" || made.Overlap != "skip" || made.CatchUp != "latest" || made.NextAt == nil {
		t.Errorf("made %+v", made)
	}
	at := "/api/schedules/" + url.PathEscape(made.Name)
	if v := gotten[event.ScheduleView](t, ask(t, srv, "GET", "/api/schedules/"+event.ID(made.ID).String(), "")); v.Name != made.Name || string(v.Payload) != `{"n":1}` {
		t.Errorf("by id %+v", v)
	}
	if v := gotten[event.ScheduleView](t, ask(t, srv, "PUT", at, `{"every": "10m", "name": "often"}`)); v.Every != "10m" || v.Cron != "" || v.Path != "etl/daily" {
		t.Errorf("changed %+v", v)
	}
	if v := gotten[event.ScheduleView](t, ask(t, srv, "POST", "/api/schedules/often/pause", `{"reason": "a flood"}`)); v.State != "paused" || v.PauseReason != "a flood" {
		t.Errorf("paused %+v", v)
	}
	if v := gotten[struct{ Items []event.ScheduleView }](t, ask(t, srv, "GET", "/api/schedules?state=paused", "")); len(v.Items) != 1 {
		t.Errorf("listed %+v", v)
	}
	if v := gotten[struct{ Items []event.ScheduleView }](t, ask(t, srv, "GET", "/api/schedules?path=other", "")); v.Items == nil || len(v.Items) != 0 {
		t.Errorf("listed %+v", v)
	}
	if v := gotten[event.ScheduleView](t, ask(t, srv, "POST", "/api/schedules/often/resume", "")); v.State != "active" {
		t.Errorf("resumed %+v", v)
	}
	if v := gotten[event.ScheduleRunView](t, ask(t, srv, "POST", "/api/schedules/often/run", "")); v.ExecutionID == 0 || v.Kind != "manual" {
		t.Errorf("run %+v", v)
	}
	from := apitest.Epoch.Add(-time.Hour).Format(time.RFC3339)
	if v := gotten[event.ScheduleView](t, ask(t, srv, "POST", "/api/schedules/often/backfill", `{"from": "`+from+`"}`)); v.Backfill == nil || v.Backfill.Ticks != 6 {
		t.Errorf("backfill %+v", v.Backfill)
	}
	if a := ask(t, srv, "POST", "/api/schedules/often/backfill", `{"from": "`+from+`"}`); a.status != 409 {
		t.Errorf("a second backfill: %d %s", a.status, a.body)
	}
	if v := gotten[struct{ Items []event.ScheduleRunView }](t, ask(t, srv, "GET", "/api/schedules/often/runs?limit=5", "")); len(v.Items) != 1 {
		t.Errorf("runs %+v", v)
	}
	if v := gotten[struct{ Times []time.Time }](t, ask(t, srv, "GET", "/api/schedules/often/next?count=3", "")); len(v.Times) != 3 || v.Times[1].Sub(v.Times[0]) != 10*time.Minute {
		t.Errorf("next %+v", v)
	}
	gotten[struct{}](t, ask(t, srv, "DELETE", "/api/schedules/often", ""))
	if a := ask(t, srv, "GET", "/api/schedules/often", ""); a.status != 404 {
		t.Errorf("after its removal: %d %s", a.status, a.body)
	}
}

func TestWrongSchedulesAreExplained(t *testing.T) {
	t.Parallel()
	srv := scheduleServer(t)
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		want               []string
	}{
		"cron":        {"POST", "/api/schedules", `{"path": "p", "cron": "0 25 * * *"}`, 422, []string{`the hour \"25\"`, "character 3", "want 0-23"}},
		"no playbook": {"POST", "/api/schedules", `{"path": "etl/dayly", "every": "1h"}`, 404, []string{`there is no playbook \"etl/dayly\"`, "register it first"}},
		"no version":  {"POST", "/api/schedules", `{"path": "etl/daily", "version": 7, "every": "1h"}`, 404, []string{"version 7"}},
		"no time":     {"POST", "/api/schedules", `{"path": "p"}`, 422, []string{"nothing says when"}},
		"no path":     {"POST", "/api/schedules", `{"cron": "@daily", "name": "x"}`, 422, []string{"path of a playbook"}},
		"state":       {"GET", "/api/schedules?state=odd", "", 422, []string{"want active, paused or ended"}},
		"unknown":     {"GET", "/api/schedules/nobody", "", 404, []string{`no schedule \"nobody\"`}},
		"unknown run": {"POST", "/api/schedules/nobody/run", "", 404, []string{"no schedule"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, srv, c.method, c.path, c.body)
			for _, want := range c.want {
				if a.status != c.status || !strings.Contains(a.body, want) {
					t.Errorf("%d %s, want %d with %q", a.status, a.body, c.status, want)
				}
			}
		})
	}
	if a := ask(t, newServer(t, &apitest.Plane{}, nil), "GET", "/api/schedules", ""); a.status != 503 {
		t.Errorf("without schedules: %d %s", a.status, a.body)
	}
}
