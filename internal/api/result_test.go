package api_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/event"
)

func resolve(ref string) string { return "/api/result/resolve?ref=" + url.QueryEscape(ref) }

func TestAResultIsPutAsideAndResolved(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ body, name, data string }{
		"the least":           {`{"name":"fetch","data":{"rows":[1,2]}}`, "fetch", `{"rows":[1,2]}`},
		"all a worker sends":  {`{"name":"fetch","data":"x","scope":"step","source_step":"fetch","store":"db","ttl":"1h","correlation":{"a":1},"compress":true}`, "fetch", `"x"`},
		"unknown members":     {`{"name":"fetch","data":[],"scope":null,"later":1}`, "fetch", `[]`},
		"null is a value":     {`{"name":"fetch","data":null}`, "fetch", `null`},
		"numbers stay":        {`{"name":"fetch","data":` + big + `.50}`, "fetch", big + `.50`},
		"a name to be quoted": {`{"name":"a b/c%","data":1}`, "a b/c%", `1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := newServer(t, started(612489553370251264), nil)
			a := ask(t, srv, "PUT", "/api/result/"+big, tc.body)
			ref, _ := a.field(t, "ref").(string)
			want, err := json.Marshal(event.StoredResult{Ref: ref, Store: "db", Scope: "execution", Bytes: int64(len(tc.data)), SHA256: "sum"})
			if err != nil {
				t.Fatal(err)
			}
			a.want(t, 200, string(want))
			at, err := event.ParseResultRef(ref)
			if err != nil || at.Execution != 612489553370251264 || at.Name != tc.name {
				t.Fatalf("reference %s is %+v, %v", ref, at, err)
			}
			got := ask(t, srv, "GET", resolve(ref), "")
			if got.status != 200 || got.body != tc.data || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("resolved to %d %s", got.status, got.body)
			}
		})
	}
}

func TestResultsThatAreRefused(t *testing.T) {
	t.Parallel()
	srv := newServer(t, started(7), nil)
	for _, tc := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/api/result/7", `{"data":1}`, 422, "name is missing"},
		{"/api/result/7", `{"name":"n"}`, 422, "data is missing"},
		{"/api/result/7", `{"name":3,"data":1}`, 422, "name: want a string, got number"},
		{"/api/result/7", `{"name":"n","data":1,"scope":"galaxy"}`, 422, "scope: want step, execution, workflow or permanent"},
		{"/api/result/7", `{"name":"n","data":}`, 400, "malformed JSON at line 1"},
		{"/api/result/7", ``, 400, "empty"},
		{"/api/result/x", `{"name":"n","data":1}`, 400, "decimal id"},
		{"/api/result/8", `{"name":"n","data":1}`, 404, "Execution not found: 8"},
	} {
		ask(t, srv, "PUT", tc.path, tc.body).wantError(t, tc.status, tc.want)
	}
	for ref, status := range map[string]int{
		"noetl://execution/7/result/n/99": 404, "": 400, "n": 400, "noetl://execution/7/result/n": 400,
		"noetl://tenant/project/results/7/step/0/0/1": 400,
	} {
		want := map[int]string{404: "result not found", 400: "ref"}[status]
		ask(t, srv, "GET", resolve(ref), "").wantError(t, status, want)
	}
	ask(t, srv, "POST", "/api/result/7", `{}`).wantError(t, 405, "use PUT")
}

func TestOnlyResultsMayBeLarge(t *testing.T) {
	t.Parallel()
	var stored int
	p := started(7)
	p.OnPutResult = func(_ event.ID, _ string, data json.RawMessage) (event.StoredResult, error) {
		stored = len(data)
		return event.StoredResult{}, nil
	}
	srv := newServer(t, p, func(o *api.Options) { o.MaxBody = 1 << 10 })
	large := `{"step":"s","event_type":"call.done","execution_id":7,"name":"n","data":"` + strings.Repeat("x", 5<<20) + `"}`
	ask(t, srv, "POST", "/api/events", large).wantError(t, 413, "larger than 1024 bytes")
	if a := ask(t, srv, "PUT", "/api/result/7", large); a.status != 200 || stored != 5<<20+2 {
		t.Errorf("a large result: %d %s, %d bytes stored", a.status, a.body, stored)
	}
	ask(t, srv, "PUT", "/api/result/7", strings.Repeat(" ", 64<<20)+`{"name":"n","data":1}`).wantError(t, 413, "larger than 67108864 bytes")
}

func TestAResultLivesInTheControlPlaneOverHTTP(t *testing.T) {
	t.Parallel()
	c := realServer(t)
	if _, err := c.Register(t.Context(), twoSteps); err != nil {
		t.Fatal(err)
	}
	run, err := c.Execute(t.Context(), client.ExecuteRequest{Path: "demo/two"})
	if err != nil {
		t.Fatal(err)
	}
	data := json.RawMessage(`{"rows":["` + strings.Repeat("x", 3<<20) + `"]}`)
	stored, err := c.PutResult(t.Context(), run.ExecutionID, "my step", data)
	if err != nil || stored.Bytes != int64(len(data)) || len(stored.SHA256) != 64 {
		t.Fatalf("%+v: %v", stored, err)
	}
	if got, err := c.Result(t.Context(), stored.Ref); err != nil || string(got) != string(data) {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if _, err := c.PutResult(t.Context(), 1, "s", data); event.CodeOf(err) != event.NotFound {
		t.Errorf("unknown execution: %v", err)
	}
	if _, err := c.Result(t.Context(), stored.Ref+"1"); event.CodeOf(err) != event.NotFound {
		t.Errorf("unknown result: %v", err)
	}
	if _, err := c.Result(t.Context(), "x"); event.CodeOf(err) != event.BadRequest {
		t.Errorf("no reference: %v", err)
	}
}
