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

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func fuzzHandler(f *testing.F) http.Handler {
	s, err := api.New(api.Options{Plane: &apitest.Plane{}})
	if err != nil {
		f.Fatal(err)
	}
	return s.Handler()
}

func send(h http.Handler, path, body string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func demo() store.Execution {
	return store.Execution{
		ExecutionID: 612489553370251264, CatalogID: 9, Path: "demo/hello", Version: 3, Pool: "shared", Status: event.StatusRunning,
		CurrentStep: "s", StepsTotal: 4, StepsCompleted: 1, StepsRunning: 1, StartedAt: apitest.Epoch,
	}
}

const demoRow = `"execution_id":` + big + `,"execution_id_str":"` + big + `","catalog_id":9,"catalog_id_str":"9",
	"parent_execution_id":null,"parent_execution_id_str":null,"path":"demo/hello","version":3,"pool":"shared","execution_pool":"shared","status":"RUNNING",
	"started_at":"2026-01-02T03:04:05Z","completed_at":null,"start_time":"2026-01-02T03:04:05Z","end_time":null,
	"duration_seconds":60,"duration_human":"1m0s","progress":25,"current_step":"s","result":null,"error":null`

func TestExecutionListIsABareArrayOfSupersetRows(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{}
	p.Put(demo(), `{}`)
	done := store.Execution{
		ExecutionID: 7, CatalogID: 9, ParentExecutionID: 5, Status: event.StatusFailed, Error: "boom", LastSeq: 12,
		StartedAt: apitest.Epoch, EndedAt: apitest.Epoch.Add(1985 * time.Millisecond),
	}
	p.Put(done, `{}`)
	ask(t, newServer(t, p, nil), "GET", "/api/executions", "").want(t, 200, `[{`+demoRow+`,"event_count":0},
		{"execution_id":7,"execution_id_str":"7","catalog_id":9,"catalog_id_str":"9","parent_execution_id":5,"parent_execution_id_str":"5",
		 "path":null,"version":0,"pool":null,"execution_pool":null,"status":"FAILED","started_at":"2026-01-02T03:04:05Z","completed_at":"2026-01-02T03:04:06.985Z",
		 "start_time":"2026-01-02T03:04:05Z","end_time":"2026-01-02T03:04:06.985Z","duration_seconds":1.985,"duration_human":"1.985s",
		 "progress":0,"event_count":12,"current_step":null,"result":null,"error":"boom"}]`)
}

func TestExecutionListFilters(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]store.ExecutionFilter{
		"":                          {Limit: 50},
		"?limit=500&offset=10":      {Limit: 100, Offset: 10},
		"?page=3&page_size=20":      {Limit: 20, Offset: 40},
		"?status=running&path=Demo": {Limit: 50, Status: "RUNNING", Path: "Demo"},
		"?catalog_id=5&parent_execution_id=" + big: {Limit: 50, CatalogID: 5, ParentID: 612489553370251264},
		"?limit=0":                            {Limit: 1},
		"?limit=-7":                           {Limit: 1},
		"?limit=99999999999999999999":         {Limit: 100},
		"?page_size=0&page=2":                 {Limit: 1, Offset: 1},
		"?status=%20Completed":                {Limit: 50, Status: "COMPLETED"},
		"?pool=gpu&execution_pool=cpu":        {Limit: 50, Pool: "gpu"},
		"?execution_pool=cpu&path_prefix=a/B": {Limit: 50, Pool: "cpu", PathPrefix: "a/B"},
		"?before=" + big:                      {Limit: 50, Before: 612489553370251264},
		"?started_after=2026-01-02T03:04:05Z&started_before=2026-01-02T03:04:05.5": {
			Limit: 50, StartedFrom: apitest.Epoch, StartedTo: apitest.Epoch.Add(time.Second / 2),
		},
		"?started_after=2026-01-02T05:04:05%2B02:00": {Limit: 50, StartedFrom: apitest.Epoch},
		"?started_after=2026-01-02T05:04:05+02:00":   {Limit: 50, StartedFrom: apitest.Epoch}, // the plus arrives as a blank
		"?started_after=2026-01-02+03:04:05":         {Limit: 50, StartedFrom: apitest.Epoch},
		"?started_before=2026-01-02":                 {Limit: 50, StartedTo: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)},
	} {
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			var got store.ExecutionFilter
			p := &apitest.Plane{OnList: func(f store.ExecutionFilter) ([]store.Execution, error) { got = f; return nil, nil }}
			ask(t, newServer(t, p, nil), "GET", "/api/executions"+query, "").want(t, 200, `[]`)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	srv := newServer(t, &apitest.Plane{}, nil)
	for _, bad := range []string{
		"limit=x", "offset=-1", "page=0", "catalog_id=1.5", "catalog_id=-1", "before=x", "parent_execution_id=1e3",
		"started_after=yesterday", "started_before=2026-13-01", "status=DONE",
	} {
		ask(t, srv, "GET", "/api/executions?"+bad, "").wantError(t, 422, "want")
	}
	ask(t, srv, "GET", "/api/executions?status=DONE", "").wantError(t, 422, "RUNNING, COMPLETED, FAILED, CANCELLED")
}

func TestExecutionDetailIsASuperset(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{}
	p.Put(demo(), `{"a":1}`, engine.StepOutcome{Name: "s", Status: "COMPLETED", Runs: 2, Result: json.RawMessage(`{"x":1}`)},
		engine.StepOutcome{Name: "t", Status: "FAILED", Runs: 1, Error: "bad \"quote\""})
	p.Append(demo().ExecutionID, event.Event{
		EventID: 11, CatalogID: 9, Type: event.CallDone, NodeName: "s", NodeType: "noop", Status: "COMPLETED", Result: json.RawMessage(`{"status":"COMPLETED"}`),
		Meta: json.RawMessage(`{"attempts":0}`), CommandID: "c1", WorkerID: "w", ParentEventID: 3, Duration: 1500 * time.Millisecond,
		CreatedAt: time.Date(2026, 1, 2, 5, 0, 0, 123000, time.FixedZone("", 7200)),
	})
	srv := newServer(t, p, nil)
	base := "/api/executions/" + big
	const head = `{` + demoRow + `,"event_count":1,"workload":{"a":1},"events_endpoint":"/api/executions/` + big + `/events",
		"steps":{"s":{"status":"COMPLETED","runs":2,"result":{"x":1}},"t":{"status":"FAILED","runs":1,"error":"bad \"quote\""}}`
	ask(t, srv, "GET", base, "").want(t, 200, head+`,"events_included":true,
		"pagination":{"page":1,"page_size":2000,"total_events":1,"total_pages":1,"has_next":false,"has_prev":false},"events":[
		{"event_id":11,"execution_id":`+big+`,"catalog_id":9,"seq":1,"event_type":"call.done","node_id":"s","node_name":"s","node_type":"noop","status":"COMPLETED",
		 "context":null,"result":{"status":"COMPLETED"},"meta":{"command_id":"c1","attempts":0},"error":null,"worker_id":"w","parent_event_id":3,
		 "parent_execution_id":null,"duration":1.5,"created_at":"2026-01-02T03:00:00.000123Z","timestamp":"2026-01-02T03:00:00.000123Z"}]}`)
	ask(t, srv, "GET", base+"?include_events=false", "").want(t, 200, head+`,"events_included":false,"events":[]}`)
	ask(t, srv, "GET", "/api/executions/404", "").wantError(t, 404, "Execution not found: 404")
	ask(t, srv, "GET", "/api/executions/1e3", "").wantError(t, 400, "decimal id")
}

// seqs reads the sequence numbers of an answer's events.
func seqs(t *testing.T, a answer) []int64 {
	t.Helper()
	var v struct {
		Events []struct {
			Seq int64 `json:"seq"`
		} `json:"events"`
	}
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != 200 {
		t.Fatalf("%v: %d %.200s", err, a.status, a.body)
	}
	list := make([]int64, len(v.Events))
	for i, e := range v.Events {
		list[i] = e.Seq
	}
	return list
}

func span(from, to int64) []int64 {
	list := make([]int64, 0, to-from+1)
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

func TestLogIsReadByTailPageAndPosition(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{}
	p.Put(store.Execution{ExecutionID: 5, Status: event.StatusRunning}, `{}`)
	events := make([]event.Event, 2500)
	for i := range events {
		// Ids fall now and then, as those of workers with a slow clock do.
		events[i] = event.Event{EventID: event.ID(10*i + 100 - 15*(i%2)), Type: event.CallDone}
		if i%1000 == 0 {
			events[i].Type = "playbook_completed"
		}
	}
	events[2400].Type = event.StepExit
	for i := range events {
		if events[i].Type.IsTerminal() {
			events[i].Type = event.StepEnter
		}
	}
	p.Append(5, events...)
	srv := newServer(t, p, nil)
	for path, want := range map[string][]int64{
		"/api/executions/5":                                            span(501, 2500),
		"/api/executions/5?page=2&page_size=10":                        span(11, 20),
		"/api/executions/5?page=25":                                    span(2401, 2500),
		"/api/executions/5?page=26":                                    {},
		"/api/executions/5?event_type=step_enter":                      {1, 1001, 2001},
		"/api/executions/5?event_type=step.enter&page=2&page_size=2":   {2001},
		"/api/executions/5?since_event_id=" + fmt.Sprint(10*2498+100):  {2500},
		"/api/executions/5?since_event_id=" + fmt.Sprint(10*11+100-15): span(13, 2012),
		"/api/executions/5/events":                                     span(1, 1000),
		"/api/executions/5/events?after=2498":                          {2499, 2500},
		"/api/executions/5/events?after=10&limit=3":                    {11, 12, 13},
		"/api/executions/5/events?after=9999":                          {},
		"/api/executions/5/events?page=1&page_size=2":                  {1, 2},
		"/api/executions/5/events?event_type=step.enter&limit=2":       {1, 1001},
		"/api/executions/5/events?event_type=step.enter&after=1001":    {2001},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, seqs(t, ask(t, srv, "GET", path, ""))); diff != "" {
				t.Errorf("sequence numbers (-want +got):\n%s", diff)
			}
		})
	}
	a := ask(t, srv, "GET", "/api/executions/5?page=2&page_size=10&event_type=call.done", "")
	want := `{"page":2,"page_size":10,"total_events":2496,"total_pages":250,"has_next":true,"has_prev":true}`
	if diff := cmp.Diff(tree(t, want), a.field(t, "pagination")); diff != "" {
		t.Error(diff)
	}
	a = ask(t, srv, "GET", "/api/executions/5/events?after=10&limit=3", "")
	if a.field(t, "next_after") != json.Number("13") || a.field(t, "last_seq") != json.Number("2500") || a.field(t, "has_more") != true {
		t.Errorf("position: %v %v %v", a.field(t, "next_after"), a.field(t, "last_seq"), a.field(t, "has_more"))
	}
	a = ask(t, srv, "GET", "/api/executions/5/events", "")
	want = `{"page":1,"page_size":1000,"total_events":2500,"total_pages":3,"has_next":true,"has_prev":false}`
	if diff := cmp.Diff(tree(t, want), a.field(t, "pagination")); diff != "" {
		t.Error(diff)
	}
	// Whoever follows next_after gets each wanted event once and comes to an end.
	var walked []int64
	for after, more, tries := "0", true, 0; more && tries < 5; tries++ {
		a = ask(t, srv, "GET", "/api/executions/5/events?event_type=step.enter&limit=2&after="+after, "")
		walked = append(walked, seqs(t, a)...)
		after, more = a.field(t, "next_after").(json.Number).String(), a.field(t, "has_more").(bool)
	}
	if diff := cmp.Diff([]int64{1, 1001, 2001}, walked); diff != "" {
		t.Errorf("walk (-want +got):\n%s", diff)
	}
	ask(t, srv, "GET", "/api/executions/6/events", "").wantError(t, 404, "Execution not found: 6")
	ask(t, srv, "GET", "/api/executions/5?include_events=maybe", "").wantError(t, 422, "include_events")
}

func TestStatusIsASuperset(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{}
	x := demo()
	x.LastSeq = 8
	p.Put(x, `{}`, engine.StepOutcome{Name: "a", Status: "COMPLETED"}, engine.StepOutcome{Name: "s", Status: "RUNNING"})
	srv := newServer(t, p, nil)
	ask(t, srv, "GET", "/api/executions/"+big+"/status", "").want(t, 200, `{"execution_id":`+big+`,"execution_id_str":"`+big+`","path":"demo/hello",
		"status":"RUNNING","current_step":"s","is_cancelled":false,"completed":false,"failed":false,
		"progress":{"total_steps":4,"completed_steps":1,"running_steps":1,"failed_steps":0},"completed_steps":["a"],
		"started_at":"2026-01-02T03:04:05Z","completed_at":null,"start_time":"2026-01-02T03:04:05Z","end_time":null,
		"duration_seconds":60,"duration_human":"1m0s","error":null,"last_seq":8,"completion_inferred":false,"source":"execution"}`)
	ask(t, srv, "GET", "/api/executions/404/status", "").wantError(t, 404, "Execution not found: 404")
}

func TestCancelAndItsCheck(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{}
	p.Put(demo(), `{}`)
	srv := newServer(t, p, nil)
	base := "/api/executions/" + big
	check := func(cancelled bool, status, kind string) {
		t.Helper()
		ask(t, srv, "GET", base+"/cancellation-check", "").want(t, 200, fmt.Sprintf(
			`{"execution_id":%s,"is_cancelled":%t,"status":%q,"event_type":%q,"cancelled":%t,"completed":false,"failed":false}`, big, cancelled, status, kind, cancelled))
	}
	check(false, "RUNNING", "")
	ask(t, srv, "POST", base+"/cancel", "").want(t, 200,
		`{"execution_id":`+big+`,"execution_id_str":"`+big+`","status":"cancelled","message":"Execution cancelled","cancelled_executions":[`+big+`]}`)
	check(true, "CANCELLED", "playbook.cancelled")
	ask(t, srv, "POST", base+"/stop", `{"reason":"again"}`).wantError(t, 422, "Cannot cancel execution in CANCELLED state")
	ask(t, srv, "POST", "/api/executions/404/cancel", "").wantError(t, 404, "Execution not found: 404")
	ask(t, srv, "GET", "/api/executions/404/cancellation-check", "").want(t, 200,
		`{"execution_id":404,"is_cancelled":false,"status":"","event_type":"","cancelled":false,"completed":false,"failed":false}`)
}

func TestCancelCascadesUnlessToldNotTo(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]control.CancelRequest{
		``:                                     {By: "api", Cascade: true},
		`{}`:                                   {By: "api", Cascade: true},
		`{"reason":"r","cascade":false}`:       {By: "api", Reason: "r"},
		`{"cancelled_by":"me","cascade":null}`: {By: "me", Cascade: true},
	} {
		var got control.CancelRequest
		p := &apitest.Plane{OnCancel: func(_ event.ID, r control.CancelRequest) (control.CancelAnswer, error) {
			got = r
			return control.CancelAnswer{Status: "cancelled"}, nil
		}}
		if a := ask(t, newServer(t, p, nil), "POST", "/api/executions/1/cancel", body); a.status != 200 {
			t.Errorf("%q: %s", body, a.body)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", body, diff)
		}
	}
}
