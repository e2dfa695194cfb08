package api_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
)

// big is an id that does not fit a JavaScript number.
const big = "612489553370251264"

func newServer(t *testing.T, p *apitest.Plane, change func(*api.Options)) *httptest.Server {
	t.Helper()
	o := api.Options{Plane: p, Version: "1.2.3", Clock: func() time.Time { return apitest.Epoch.Add(time.Minute) }}
	if change != nil {
		change(&o)
	}
	s, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(checked(t, s))
	t.Cleanup(srv.Close)
	return srv
}

type answer struct {
	status int
	header http.Header
	body   string
}

func ask(t *testing.T, srv *httptest.Server, method, path, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return do(t, srv, req)
}

func do(t *testing.T, srv *httptest.Server, req *http.Request) answer {
	t.Helper()
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

// tree decodes JSON with numbers kept as they are written.
func tree(t *testing.T, s string) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, s)
	}
	return v
}

func (a answer) want(t *testing.T, status int, body string) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	if diff := cmp.Diff(tree(t, body), tree(t, a.body)); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
}

// wantError checks an error body without its exact wording.
func (a answer) wantError(t *testing.T, status int, part string) {
	t.Helper()
	var f struct {
		Error  string `json:"error"`
		Status int    `json:"status"`
	}
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Fatalf("error body is not JSON: %s", a.body)
	}
	if a.status != status || f.Status != status || !strings.Contains(f.Error, part) {
		t.Errorf("answer %d %s, want %d with %q", a.status, a.body, status, part)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type %q", ct)
	}
}

func (a answer) field(t *testing.T, name string) any {
	t.Helper()
	m, ok := tree(t, a.body).(map[string]any)
	if !ok {
		t.Fatalf("not an object: %s", a.body)
	}
	return m[name]
}

// object is a JSON object with one member that is text.
func object(t *testing.T, name, text string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{name: text})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
