package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

func listed(t *testing.T, a answer) []event.ID {
	t.Helper()
	var rows []struct {
		ID event.ID `json:"execution_id"`
	}
	if err := json.Unmarshal([]byte(a.ok(t).body), &rows); err != nil {
		t.Fatal(err)
	}
	ids := make([]event.ID, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

var nextLink = regexp.MustCompile(`^<(\?[^>]+)>; rel="next"$`)

func TestPagesOfTheListDoNotShiftWhenExecutionsStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var started []event.ID
	for range 5 {
		id, _ := w.start("")
		started = append(started, id)
	}
	slices.Reverse(started)
	var walked []event.ID
	for query := "?status=running&page=1&page_size=2"; query != ""; {
		a := w.get("/api/executions" + query)
		page := listed(t, a)
		walked = append(walked, page...)
		query = ""
		if m := nextLink.FindStringSubmatch(a.header.Get("Link")); m != nil {
			query = m[1]
			if got := a.header.Get("X-Next-Before"); got != page[len(page)-1].String() {
				t.Errorf("X-Next-Before is %q behind %v", got, page)
			}
		}
		w.start("") // newer ones must not push rows onto the next page
	}
	if diff := cmp.Diff(started, walked); diff != "" {
		t.Errorf("walked (-want +got):\n%s", diff)
	}
	if a := w.get("/api/executions?limit=100"); a.header.Get("Link") != "" || a.header.Get("X-Next-Before") != "" {
		t.Errorf("the last page points on: %v", a.header)
	}
}

func TestListFindsByPoolPathParentAndTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(strings.ReplaceAll(strings.ReplaceAll(twoSteps, "demo/two", "Other/deep/two"), "name: two", "name: other"))
	old, _ := w.start("")
	w.pass(2 * time.Hour)
	cut := time.Now().Add(time.Hour).UTC()
	gpu, _ := w.start(`,"execution_pool":"gpu","parent_execution_id":"` + old.String() + `"`)
	other := w.post("/api/execute", `{"path":"Other/deep/two"}`).ok(t).id(t, "execution_id")
	catalog := w.get(fmt.Sprintf("/api/executions/%d", other)).ok(t).id(t, "catalog_id_str")
	for query, want := range map[string][]event.ID{
		"pool=gpu":                                  {gpu},
		"execution_pool=gpu":                        {gpu},
		"path=TWO":                                  {other, gpu, old},
		"path=deep":                                 {other},
		"path_prefix=Other/":                        {other},
		"path_prefix=other/":                        {},
		"path_prefix=deep":                          {},
		"path_prefix=demo&path=tw":                  {gpu, old},
		"parent_execution_id=" + old.String():       {gpu},
		"catalog_id=" + catalog.String():            {other},
		"started_after=" + cut.Format(time.RFC3339): {other, gpu},
		"started_before=" + cut.Format("2006-01-02T15:04:05"): {old},
		"status=completed":       {},
		"before=" + gpu.String(): {old},
		"limit=1&offset=1":       {gpu},
		"page=2&page_size=2":     {old},
		"before=" + old.String(): {},
	} {
		if diff := cmp.Diff(want, listed(t, w.get("/api/executions?"+query))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// idKeys are the members that hold ids in answers about executions.
var idKeys = []string{"execution_id", "catalog_id", "parent_execution_id", "event_id", "parent_event_id"}

// idKinds collects how the ids in a tree are written, outside payloads.
func idKinds(v any, found map[string]string) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			idKinds(item, found)
		}
	case map[string]any:
		for key, item := range v {
			switch {
			case key == "workload" || key == "result" || key == "context" || key == "meta" || key == "steps":
			case key == "cancelled_executions" || key == "execution_ids":
				found[key] = fmt.Sprintf("%T", item.([]any)[0])
			case slices.Contains(idKeys, key) && item != nil:
				found[key] = fmt.Sprintf("%T", item)
			default:
				idKinds(item, found)
			}
		}
	}
}

func TestIdsOfExecutionsAreNumbersOrStringsAsTheServerIsTold(t *testing.T) {
	t.Parallel()
	for _, asStrings := range []bool{false, true} {
		x := demo()
		x.ParentExecutionID = 5
		p := &apitest.Plane{
			OnFinalize: func(event.ID, control.FinalizeRequest) (control.FinalizeAnswer, error) {
				return control.FinalizeAnswer{Status: "FAILED"}, nil
			},
			OnCleanup: func(control.CleanupRequest) (control.CleanupAnswer, error) {
				return control.CleanupAnswer{Executions: []event.ID{7}}, nil
			},
		}
		p.Put(x, `{"execution_id":612489553370251264}`, engine.StepOutcome{Name: "s", Status: "COMPLETED", Result: json.RawMessage(`{"event_id":1}`)})
		p.Append(x.ExecutionID, event.Event{
			EventID: 11, CatalogID: 9, ParentEventID: 3, ParentExecutionID: 4, Type: event.CallDone,
			Result: json.RawMessage(`{"context":{"event_id":612489553370251264}}`),
		})
		srv := newServer(t, p, func(o *api.Options) { o.StringIDs = asStrings })
		base := "/api/executions/" + big
		for _, ask1 := range []struct {
			method, path string
			keys         []string
		}{
			{"GET", "/api/executions", []string{"catalog_id", "execution_id", "parent_execution_id"}},
			{"GET", base, []string{"catalog_id", "event_id", "execution_id", "parent_event_id", "parent_execution_id"}},
			{"GET", base + "/events", []string{"catalog_id", "event_id", "execution_id", "parent_event_id", "parent_execution_id"}},
			{"GET", base + "/status", []string{"execution_id"}},
			{"GET", base + "/cancellation-check", []string{"execution_id"}},
			{"POST", base + "/finalize", []string{"execution_id"}},
			{"POST", "/api/executions/cleanup", []string{"execution_ids"}},
			{"POST", base + "/cancel", []string{"cancelled_executions", "execution_id"}},
		} {
			a := ask(t, srv, ask1.method, ask1.path, "").ok(t)
			want, got := map[string]string{}, map[string]string{}
			for _, key := range ask1.keys {
				if want[key] = "json.Number"; asStrings {
					want[key] = "string"
				}
			}
			idKinds(tree(t, a.body), got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("strings=%t %s (-want +got):\n%s", asStrings, ask1.path, diff)
			}
		}
		detail := ask(t, srv, "GET", base, "")
		for _, path := range [][]any{{"workload", "execution_id"}, {"steps", "s", "result", "event_id"}, {"events", 0, "result", "context", "event_id"}} {
			if _, number := detail.at(t, path...).(json.Number); !number {
				t.Errorf("the payload was rewritten at %v", path)
			}
		}
		if s, ok := detail.at(t, "execution_id_str").(string); !ok || s != big {
			t.Errorf("execution_id_str is %v", detail.at(t, "execution_id_str"))
		}
	}
}

func TestPagesOfAllowedOriginsMayReadWhereTheListGoesOn(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, func(o *api.Options) { o.AllowedOrigins = []string{"https://gui.example"} })
	req, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/api/executions", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://gui.example")
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header.Get("Access-Control-Expose-Headers"); !strings.Contains(got, "Link") || !strings.Contains(got, "X-Next-Before") {
		t.Errorf("exposed headers are %q", got)
	}
}

// What cannot be read of a query must not count as not said: the list would be
// that of another question.
func TestAMalformedQueryIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start("")
	for _, path := range []string{"/api/executions?path=100%", "/api/executions?status=FAILED;x", "/api/worker/pools?name=w%"} {
		if a := w.get(path); a.status != 400 || !strings.Contains(a.body, "malformed query") {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
}
