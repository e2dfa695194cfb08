package apicheck_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/testkit/apicheck"
)

const document = `{"openapi":"3.1.1","paths":{"/api/a/{id}":{
	"get":{"operationId":"get","parameters":[{"name":"q","in":"query","schema":{}}],"responses":{
		"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}},"default":{"$ref":"#/components/responses/Error"}}},
	"post":{"operationId":"post","requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}}}},
		"responses":{"204":{"description":"done"},"default":{"$ref":"#/components/responses/Error"}}}},
	"/api/s":{"get":{"operationId":"stream","responses":{"200":{"content":{"text/event-stream":{"schema":{"type":"string"},"x-noetl-events":{"end":{"$ref":"#/components/schemas/A"}}}}}}}}},
	"components":{"schemas":{
		"A":{"type":"object","required":["id"],"properties":{"id":{"type":"integer"},"in":{"type":"object","properties":{"x":{"type":"string"}}}}},
		"Error":{"type":"object","required":["error"],"properties":{"error":{"type":"string"}}}}}}`

// complaints collects what a checker says.
type complaints struct{ list []string }

func (c *complaints) Helper() {}
func (c *complaints) Errorf(format string, args ...any) {
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

func TestWhatTheDocumentDoesNotDescribeIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, path, body string
		status                   int
		kind, answer             string
		want                     string // "" = nothing is wrong
	}{
		{"good", "GET", "/api/a/1?q=1", "", 200, "application/json", `{"id":1,"in":{"x":"y"}}`, ""},
		{"type", "GET", "/api/a/1", "", 200, "application/json", `{"id":"1"}`, "got string, want integer"},
		{"missing", "GET", "/api/a/1", "", 200, "application/json", `{}`, "missing property"},
		{"unknown member", "GET", "/api/a/1", "", 200, "application/json", `{"id":1,"more":1}`, "additional properties"},
		{"unknown member inside", "GET", "/api/a/1", "", 200, "application/json", `{"id":1,"in":{"y":1}}`, "additional properties"},
		{"content type", "GET", "/api/a/1", "", 200, "text/plain", `{"id":1}`, `type "text/plain"`},
		{"status", "GET", "/api/a/1", "", 202, "application/json", `{"id":1}`, "status 202 is not described"},
		{"parameter", "GET", "/api/a/1?r=1", "", 200, "application/json", `{"id":1}`, "parameter r"},
		{"error", "GET", "/api/a/1?r=1", "", 404, "application/json", `{"error":"no"}`, ""},
		{"odd error", "GET", "/api/a/1", "", 404, "application/json", `{"detail":"no"}`, "error does not fit"},
		{"error as text", "GET", "/api/a/1", "", 500, "text/plain", `no`, "error of type"},
		{"request", "POST", "/api/a/1", `{"n":1,"more":true}`, 204, "", "", ""},
		{"odd request", "POST", "/api/a/1", `{"n":"x"}`, 204, "", "", "accepted that does not fit"},
		{"no request", "POST", "/api/a/1", ``, 204, "", "", "without a body was accepted"},
		{"odd request refused", "POST", "/api/a/1", `{"n":"x"}`, 422, "application/json", `{"error":"no"}`, ""},
		{"no operation", "GET", "/api/b", "", 200, "application/json", `{}`, "no such operation"},
		{"stream", "GET", "/api/s", "", 200, "text/event-stream", "event: end\ndata: {\"id\":1}\n\n: beat\n\n", ""},
		{"odd stream", "GET", "/api/s", "", 200, "text/event-stream", "event: end\ndata: {\"id\":\"x\"}\n\n", "event end does not fit"},
		{"unknown event", "GET", "/api/s", "", 200, "text/event-stream", "event: log\ndata: {}\n\n", "not described"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			check, err := apicheck.New([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			server := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.answer)
			})
			said := &complaints{}
			srv := httptest.NewServer(check.Handler(said, server))
			defer srv.Close()
			outside := &complaints{}
			client := &http.Client{Transport: check.Transport(outside, srv.Client().Transport)}
			req, err := http.NewRequestWithContext(t.Context(), c.method, srv.URL+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			srv.Close() // the handler has ended
			for where, got := range map[string]*complaints{"server": said, "client": outside} {
				text := strings.Join(got.list, "\n")
				if c.want == "" && text != "" || !strings.Contains(text, c.want) {
					t.Errorf("the %s's side says %q, want %q", where, text, c.want)
				}
			}
		})
	}
}

func TestExamplesOnlyChangeWithWhatTheySay(t *testing.T) {
	t.Parallel()
	example := func(body, answer string) map[string]apicheck.Example {
		return apicheck.Steady(map[string]apicheck.Example{"get": {
			Path: "/api/a/612489553370251264", Body: []byte(body), Status: 200, Answer: []byte(answer), Content: "application/json",
		}})
	}
	written := example(`{"token":"noetl_pat_`+strings.Repeat("7", 70)+`"}`, `{"id":612489553370251264,"at":"2026-05-06T07:08:09Z","took":1.5,"list":[1]}`)["get"]
	if got := written.Path + string(written.Body) + string(written.Answer); got != `/api/a/612489553370251201{"token":"noetl_pat_…"}{"at":"2026-01-02T15:04:05.123Z","id":612489553370251201,"list":[1],"took":1.5}` {
		t.Errorf("written %s", got)
	}
	for _, c := range []struct {
		answer string
		stays  bool
	}{
		{`{"id":712489553370251264,"at":"2027-05-06T07:08:09Z","took":2,"list":[3]}`, true},
		{`{"id":"712489553370251264","at":"2027-05-06T07:08:09Z","took":2,"list":[3]}`, false},
		{`{"id":712489553370251264,"at":"2027-05-06T07:08:09Z","took":2,"list":[]}`, false},
		{`{"id":712489553370251264,"at":"2027-05-06T07:08:09Z","took":2,"list":[3],"more":null}`, false},
	} {
		fresh := example(`{"token":"x"}`, c.answer)
		got := apicheck.Renewed(map[string]apicheck.Example{"get": written, "gone": written}, fresh)
		if stays := string(got["get"].Answer) == string(written.Answer); stays != c.stays || len(got) != 1 {
			t.Errorf("%s: %d examples, stays %v", c.answer, len(got), stays)
		}
	}
}
