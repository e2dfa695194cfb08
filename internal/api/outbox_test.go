package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

const secret = "s3cret token"

func withToken(o *api.Options) { o.InternalToken = secret }

// askAs asks with an Authorization header; "" sends none.
func askAs(t *testing.T, srv *httptest.Server, authorization, method, path, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func askInternal(t *testing.T, srv *httptest.Server, method, path, body string) answer {
	t.Helper()
	return askAs(t, srv, "Bearer "+secret, method, path, body)
}

func internalRoutes(t *testing.T) []api.Route {
	t.Helper()
	s, err := api.New(api.Options{Plane: &apitest.Plane{}})
	if err != nil {
		t.Fatal(err)
	}
	var list []api.Route
	for _, rt := range s.Routes() {
		if strings.HasPrefix(rt.Pattern, "/api/internal/") != (rt.Role == api.Internal) && strings.HasPrefix(rt.Pattern, "/api/internal/") {
			t.Errorf("%s is open to %s", rt.Pattern, rt.Role)
		}
		if rt.Role == api.Internal {
			rt.Pattern = strings.NewReplacer("{execution_id}", "7", "{step}", "s").Replace(rt.Pattern)
			list = append(list, rt)
		}
	}
	if len(list) < 9 {
		t.Fatalf("only %d internal routes found", len(list))
	}
	return list
}

func TestInternalRoutesAreClosedWithoutAToken(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, nil)
	for _, rt := range internalRoutes(t) {
		for _, header := range []string{"", "Bearer ", "Bearer x"} {
			a := askAs(t, srv, header, rt.Method, rt.Pattern, `{}`)
			a.wantError(t, 503, "no internal token")
			if remedy, _ := a.field(t, "remedy").(string); !strings.Contains(remedy, "NOETL_INTERNAL_API_TOKEN") {
				t.Errorf("%s: remedy %q", rt.Pattern, remedy)
			}
		}
	}
}

func TestInternalRoutesNeedTheToken(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, withToken)
	for _, rt := range internalRoutes(t) {
		for _, header := range []string{"", "Bearer", "Bearer ", secret, "Basic " + secret, "Bearer x", "Bearer " + secret + "x", "Bearer s3cret", "Bearer " + strings.ToUpper(secret)} {
			a := askAs(t, srv, header, rt.Method, rt.Pattern, `{}`)
			a.wantError(t, 403, "internal token")
			if strings.Contains(a.body, secret) {
				t.Errorf("%s shows the token", rt.Pattern)
			}
		}
	}
}

func TestTheTokenIsFoundHoweverTheHeaderIsSpelled(t *testing.T) {
	t.Parallel()
	srv := newServer(t, started(7), withToken)
	for _, header := range []string{"Bearer " + secret, "bearer " + secret, "BEARER   " + secret + "  ", "  Bearer " + secret} {
		if a := askAs(t, srv, header, "POST", "/api/internal/container-callback/7/s", `{"state":"succeeded","job_name":"j"}`); a.status != 202 {
			t.Errorf("%q: %d %s", header, a.status, a.body)
		}
	}
}

// publishing is the API over a control plane that writes outbox rows.
func publishing(t *testing.T) (*httptest.Server, *control.Plane) {
	t.Helper()
	bus, st := membus.New(membus.Options{}), memstore.New()
	plane, err := control.New(control.Options{
		Store: st, Bus: bus, IDs: snowflake.New(1, time.Now).Next, Outbox: control.OutboxOptions{On: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- plane.Run(ctx) }()
	s, err := api.New(api.Options{Plane: plane, InternalToken: secret})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(checked(t, s))
	t.Cleanup(func() {
		srv.Close()
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		_ = bus.Close()
		_ = st.Close()
	})
	return srv, plane
}

func startTwoSteps(t *testing.T, p *control.Plane) event.ID {
	t.Helper()
	if _, err := p.Register(t.Context(), control.RegisterRequest{Content: twoSteps}); err != nil {
		t.Fatal(err)
	}
	a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "demo/two"})
	if err != nil {
		t.Fatal(err)
	}
	return a.ExecutionID
}

type claimed struct {
	Rows []struct {
		OutboxID    int64           `json:"outbox_id"`
		EventID     event.ID        `json:"event_id"`
		ExecutionID event.ID        `json:"execution_id"`
		Subject     string          `json:"subject"`
		Payload     json.RawMessage `json:"payload"`
		Codec       string          `json:"payload_codec"`
		Attempts    int             `json:"attempts"`
	} `json:"rows"`
	Claimed int    `json:"claimed"`
	Token   string `json:"fencing_token"`
}

func claimRows(t *testing.T, srv *httptest.Server, body string) claimed {
	t.Helper()
	a := askInternal(t, srv, "POST", "/api/internal/outbox/claim", body)
	var c claimed
	if err := json.Unmarshal([]byte(a.body), &c); err != nil || a.status != 200 || c.Claimed != len(c.Rows) || c.Token == "" {
		t.Fatalf("claim answers %d %s: %v", a.status, a.body, err)
	}
	return c
}

func TestAPublisherDrainsTheOutbox(t *testing.T) {
	t.Parallel()
	srv, plane := publishing(t)
	askInternal(t, srv, "GET", "/api/internal/outbox/pending-count", "").want(t, 200, `{"pending":0}`)
	if c := claimRows(t, srv, ""); c.Claimed != 0 {
		t.Errorf("an empty outbox hands out %+v", c)
	}
	id := startTwoSteps(t, plane)
	log, err := plane.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	askInternal(t, srv, "GET", "/api/internal/outbox/pending-count", "").want(t, 200, fmt.Sprintf(`{"pending":%d}`, len(log)))
	first := claimRows(t, srv, `{"limit":-5}`)
	if first.Claimed != 1 {
		t.Fatalf("a limit below one hands out %d rows", first.Claimed)
	}
	row := first.Rows[0]
	if row.EventID != log[0].EventID || row.ExecutionID != id || row.Attempts != 1 || row.Codec != "json" || row.Subject != "noetl.events.playbook_started" {
		t.Errorf("row %+v", row)
	}
	if c := claimRows(t, srv, `{}`); c.Claimed != 0 {
		t.Errorf("rows behind one in flight were handed out: %+v", c)
	}
	const failed = "/api/internal/outbox/mark-failed"
	askInternal(t, srv, "POST", failed, fmt.Sprintf(`{"outbox_id":"%d","error":"x","fencing_token":"other"}`, row.OutboxID)).
		want(t, 200, `{"marked":false,"available_at_in":1}`)
	askInternal(t, srv, "POST", failed, fmt.Sprintf(`{"outbox_id":%d,"error":"x","max_delay_seconds":0,"fencing_token":%q}`, row.OutboxID, first.Token)).
		want(t, 200, `{"marked":true,"available_at_in":0}`)
	all := claimRows(t, srv, `{"limit":5000}`)
	if all.Claimed != len(log) || all.Rows[0].Attempts != 2 || all.Rows[1].Attempts != 1 {
		t.Fatalf("claimed %+v", all)
	}
	const published = "/api/internal/outbox/mark-published"
	ids := make([]string, len(all.Rows))
	for i, r := range all.Rows {
		ids[i] = fmt.Sprint(r.OutboxID)
	}
	list := "[" + strings.Join(ids, ",") + "]"
	askInternal(t, srv, "POST", published, `{"outbox_ids":`+list+`,"fencing_token":"other"}`).want(t, 200, `{"marked":0}`)
	askInternal(t, srv, "POST", published, `{"outbox_ids":`+list+`}`).want(t, 200, fmt.Sprintf(`{"marked":%d}`, len(log)))
	askInternal(t, srv, "POST", published, `{"outbox_ids":`+list+`}`).want(t, 200, `{"marked":0}`)
}

func TestAnEventThatIsTooLargeToPublishSaysWhereItIs(t *testing.T) {
	t.Parallel()
	srv, plane := publishing(t)
	id := startTwoSteps(t, plane)
	a, err := plane.Report(t.Context(), event.Report{ExecutionID: id, Events: []event.Incoming{{
		Step: "start", Type: "a.note", Payload: json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	rows := claimRows(t, srv, `{"limit":1000}`).Rows
	var e struct {
		Result struct {
			Reference struct {
				URI string `json:"uri"`
			} `json:"reference"`
		} `json:"result"`
	}
	if err := json.Unmarshal(rows[len(rows)-1].Payload, &e); err != nil {
		t.Fatal(err)
	}
	got := ask(t, srv, "GET", e.Result.Reference.URI, "")
	if got.status != 200 || !strings.Contains(got.body, `"event_id":`+a.EventIDs[0].String()) || len(got.body) < 1<<20 {
		t.Errorf("%q answers %d with %d bytes", e.Result.Reference.URI, got.status, len(got.body))
	}
}

func TestInternalRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	srv, _ := publishing(t)
	for _, tc := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"outbox/claim", `{"limit":"x"}`, 422, "limit"},
		{"outbox/claim", `{"limit":1.5}`, 422, "limit"},
		{"outbox/claim", `{`, 400, "malformed"},
		{"outbox/mark-published", `{"outbox_ids":[]}`, 400, "outbox_ids is empty"},
		{"outbox/mark-published", `{}`, 400, "outbox_ids is empty"},
		{"outbox/mark-published", `{"outbox_ids":["x"]}`, 422, "outbox_ids[0]"},
		{"outbox/mark-failed", `{"outbox_id":1,"error":""}`, 400, "error is empty"},
		{"outbox/mark-failed", `{"outbox_id":1}`, 400, "error is empty"},
		{"outbox/mark-failed", `{"error":"x"}`, 422, "outbox_id is missing"},
		{"outbox/mark-failed", `{"outbox_id":1,"error":"x","max_delay_seconds":-1}`, 422, "max_delay_seconds"},
		{"events/project", `{"events":[]}`, 400, "events is empty"},
		{"events/project", `{}`, 400, "events is empty"},
		{"events/materialize", `[]`, 400, "empty"},
		{"events/materialize", `{}`, 422, "list of events"},
		{"projection/advance", `{"execution_ids":[]}`, 400, "execution_ids is empty"},
		{"cleanup/purge", `{"event_retention_days":-1}`, 422, "event_retention_days"},
		{"cleanup/purge", `{"event_retention_days":36501}`, 422, "event_retention_days"},
		{"cleanup/purge", `{"command_retention_days":-1}`, 422, "command_retention_days"},
	} {
		askInternal(t, srv, "POST", "/api/internal/"+tc.path, tc.body).wantError(t, tc.status, tc.want)
	}
}

func TestEnvelopesAreProjectedOneByOne(t *testing.T) {
	t.Parallel()
	srv, plane := publishing(t)
	id := startTwoSteps(t, plane)
	own := claimRows(t, srv, `{"limit":1000}`)
	events := make([]string, 0, len(own.Rows))
	for _, row := range own.Rows {
		events = append(events, string(row.Payload))
	}
	const path = "/api/internal/events/project"
	askInternal(t, srv, "POST", path, `{"events":[`+strings.Join(events, ",")+`]}`).want(t, 200,
		fmt.Sprintf(`{"projected":0,"duplicates":%d}`, len(own.Rows)))
	a := askInternal(t, srv, "POST", path, fmt.Sprintf(`{"events":[
		{"event_id":1.5,"execution_id":%d,"event_type":"a.note"},
		{"event_id":"501","execution_id":"%d","event_type":"a.note","node_id":"start","timestamp":"2026-01-02 03:04:05.5","worker_id":"w",
			"duration":1.5,"stack_trace":"at x","error":{"code":7},"meta":{"k":1},"unknown":[1]},
		{"event_id":502,"event_type":"a.note"},
		{"event_id":503,"execution_id":5,"event_type":"a.note"},
		7
	]}`, id, id))
	for _, part := range []string{`"projected":1`, `"duplicates":0`, `{"index":0,"error":"event_id`, `{"index":2,"error":"execution_id is missing"}`, `{"index":3,"error":"Execution not found: 5"}`, `{"index":4,`} {
		if a.status != 200 || !strings.Contains(a.body, part) {
			t.Errorf("answer %d %s lacks %s", a.status, a.body, part)
		}
	}
	log, err := plane.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := log[len(log)-1]
	if e.EventID != 501 || e.NodeName != "start" || !e.CreatedAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)) || e.WorkerID != "w" ||
		e.Duration != 1500*time.Millisecond || e.Error != `{"code":7}` || !strings.Contains(string(e.Meta), `"stack_trace":"at x"`) || !strings.Contains(string(e.Meta), `"k":1`) {
		t.Errorf("stored %+v", e)
	}
}

func TestEventsAreMaterialized(t *testing.T) {
	t.Parallel()
	srv, plane := publishing(t)
	id := startTwoSteps(t, plane)
	body := fmt.Sprintf(`[{"execution_id":%d,"event_id":601,"step":"start","event_type":"a.note","payload":{"x":1},"worker_id":"w"},
		{"execution_id":"%d","event_id":602,"node_name":"start","name":"a.note"},{"event_id":603,"step":"start","event_type":"a.note"}]`, id, id)
	const path = "/api/internal/events/materialize"
	rejected := `"rejected":[{"index":2,"error":"execution_id is missing"}]`
	askInternal(t, srv, "POST", path, body).want(t, 200, `{"materialized":2,"duplicates":0,`+rejected+`}`)
	askInternal(t, srv, "POST", path, body).want(t, 200, `{"materialized":0,"duplicates":2,`+rejected+`}`)
}

func TestExecutionsAreAdvancedAndOldThingsPurged(t *testing.T) {
	t.Parallel()
	srv, plane := publishing(t)
	id := startTwoSteps(t, plane)
	row, err := plane.Execution(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	askInternal(t, srv, "POST", "/api/internal/projection/advance", fmt.Sprintf(`{"execution_ids":["%d",5]}`, id)).want(t, 200,
		fmt.Sprintf(`{"advanced":[{"execution_id":%d,"version":%d,"events":0}],"failed":[{"execution_id":5,"error":"Execution not found: 5"}]}`, id, row.LastSeq))
	const none = `{"commands_purged":0,"runtime_purged":0,"events_purged":0,"outbox_purged":0,"claims_purged":0,"executions_purged":0,"event_partitions_dropped":0}`
	askInternal(t, srv, "POST", "/api/internal/cleanup/purge", "").want(t, 200, none)
	askInternal(t, srv, "POST", "/api/internal/cleanup/purge", `{"event_retention_days":1}`).want(t, 200, none) // it has not ended
}
