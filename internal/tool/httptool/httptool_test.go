package httptool_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/httptool"
	"github.com/noetl/noetl-go/internal/tool/tooltest"
)

// seen is a request as the server got it.
type seen struct {
	Method, Query, Body, ContentType, Auth, Key, Host string
}

// echo answers with what it was sent.
func echo(t *testing.T) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(seen{
			r.Method, r.URL.RawQuery, string(body), r.Header.Get("Content-Type"),
			r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.Host,
		})
	}))
	t.Cleanup(srv.Close)
	return srv
}

func newTool(t *testing.T, opts httptool.Options) *httptool.Tool {
	t.Helper()
	tl := httptool.New(opts)
	t.Cleanup(func() { _ = tl.Close() })
	return tl
}

func callOf(config map[string]any) *tool.Call { return &tool.Call{Config: config, Log: io.Discard} }

func TestConformance(t *testing.T) {
	var base string
	entered := make(chan chan struct{}, 1)
	tooltest.Run(t, tooltest.Suite{
		Open: func(t *testing.T) (tool.Tool, func()) {
			srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					select {
					case started := <-entered:
						close(started)
					default:
					}
					<-r.Context().Done()
				}
			}))
			base = srv.URL
			tl := httptool.New(httptool.Options{})
			return tl, func() {
				_ = tl.Close()
				srv.Close()
			}
		},
		Quick: func() *tool.Call { return callOf(map[string]any{"url": base}) },
		Slow: func(*testing.T) (*tool.Call, <-chan struct{}) {
			started := make(chan struct{})
			entered <- started
			return callOf(map[string]any{"url": base + "/slow"}), started
		},
		Broken: func() *tool.Call { return callOf(map[string]any{"url": "example.com/x"}) },
	})
}

func TestRequestsAreMadeAsConfigured(t *testing.T) {
	t.Parallel()
	srv := echo(t)
	m := func(kv ...any) map[string]any {
		out := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			out[kv[i].(string)] = kv[i+1]
		}
		return out
	}
	for name, tc := range map[string]struct {
		config map[string]any
		want   seen
	}{
		"GET is the default":              {m(), seen{Method: "GET"}},
		"params join the url's own query": {m("url", srv.URL+"/?a=1", "params", m("n", int64(2), "gone", nil, "l", []any{int64(1), "x"}, "o", m("k", true))), seen{Method: "GET", Query: `a=1&l=1&l=x&n=2&o=%7B%22k%22%3Atrue%7D`}},
		"json wins over the other bodies": {m("method", "post", "json", m("a", int64(1)), "form", m("b", int64(2)), "body", "c"), seen{Method: "POST", Body: `{"a":1}`, ContentType: "application/json"}},
		"form is urlencoded":              {m("method", "POST", "form", m("a", "x y", "b", int64(2))), seen{Method: "POST", Body: "a=x+y&b=2", ContentType: "application/x-www-form-urlencoded"}},
		"a text body is sent raw":         {m("method", "PUT", "payload", "<x/>", "headers", m("content-type", "text/xml")), seen{Method: "PUT", Body: "<x/>", ContentType: "text/xml"}},
		"a map body follows Content-Type": {m("method", "POST", "body", m("a", int64(1)), "headers", m("Content-Type", "application/x-www-form-urlencoded")), seen{Method: "POST", Body: "a=1", ContentType: "application/x-www-form-urlencoded"}},
		"data is the query of a GET":      {m("data", m("q", "x")), seen{Method: "GET", Query: "q=x"}},
		"data is the body of a POST":      {m("method", "POST", "data", m("q", "x")), seen{Method: "POST", Body: `{"q":"x"}`, ContentType: "application/json"}},
		"data may name query and body":    {m("method", "POST", "data", m("query", m("a", int64(1)), "body", m("b", int64(2)))), seen{Method: "POST", Query: "a=1", Body: `{"b":2}`, ContentType: "application/json"}},
		"bearer":                          {m("auth", m("type", "bearer", "token", "t0k")), seen{Method: "GET", Auth: "Bearer t0k"}},
		"basic":                           {m("auth", m("type", "basic", "username", "u", "password", "p")), seen{Method: "GET", Auth: "Basic dTpw"}},
		"api key in its own header":       {m("auth", m("type", "api_key", "header", "X-Key", "value", "k")), seen{Method: "GET", Key: "k"}},
		"a header by hand wins over auth": {m("auth", m("type", "bearer", "token", "t"), "headers", m("authorization", "mine")), seen{Method: "GET", Auth: "mine"}},
		"Host can be set":                 {m("headers", m("Host", "other.test")), seen{Method: "GET", Host: "other.test"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.config["url"] == nil {
				tc.config["endpoint"] = srv.URL
			}
			res, err := newTool(t, httptool.Options{}).Run(t.Context(), callOf(tc.config))
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Data seen }
			if err := json.Unmarshal(res.Data, &got); err != nil {
				t.Fatal(err)
			}
			if tc.want.Host == "" {
				tc.want.Host = strings.TrimPrefix(srv.URL, "http://")
			}
			if diff := cmp.Diff(tc.want, got.Data); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMultipartBodyCarriesItsFields(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.FormValue("a") + "|" + r.FormValue("b")
	}))
	t.Cleanup(srv.Close)
	_, err := newTool(t, httptool.Options{}).Run(t.Context(), callOf(map[string]any{
		"url": srv.URL, "method": "POST", "body": map[string]any{"a": "x y", "b": int64(7)},
		"headers": map[string]any{"Content-Type": "multipart/form-data"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if fields := <-got; fields != "x y|7" {
		t.Errorf("server got %q", fields)
	}
}

func TestAnswersKeepTheirBytes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		body, contentType, respType, want string
	}{
		"JSON keeps order and digits":  {` {"b":12345678901234567890,"a":1.50,"t":"<&>"} `, "application/json", "", `{"b":12345678901234567890,"a":1.50,"t":"<&>"}`},
		"text that is not JSON":        {"plain <text>", "text/plain", "", `"plain <text>"`},
		"broken JSON is text":          {`{"a":`, "application/json", "", `"{\"a\":"`},
		"an empty body is null":        {"", "", "", "null"},
		"text is asked for":            {"[1]", "application/json", "text", `"[1]"`},
		"binary":                       {"\x00\xff", "application/octet-stream", "binary", `{"base64":"AP8=","size":2}`},
		"Latin-1 becomes UTF-8":        {"caf\xe9", "text/plain; charset=ISO-8859-1", "", `"café"`},
		"a byte order mark is dropped": {"\xef\xbb\xbf[1]", "application/json", "", `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.contentType)
				w.Header().Add("X-Two", "1")
				w.Header().Add("X-Two", "2")
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(srv.Close)
			config := map[string]any{"url": strings.Replace(srv.URL, "http://", "http://user:hunter2@", 1) + "/p?q=1", "response_type": tc.respType}
			res, err := newTool(t, httptool.Options{}).Run(t.Context(), callOf(config))
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				StatusCode int `json:"status_code"`
				Data, Body json.RawMessage
				Headers    map[string]string
				URL        string
				Elapsed    float64
			}
			if err := json.Unmarshal(res.Data, &got); err != nil {
				t.Fatalf("%v in %s", err, res.Data)
			}
			if string(got.Data) != tc.want || string(got.Body) != tc.want {
				t.Errorf("data %s, body %s, want %s", got.Data, got.Body, tc.want)
			}
			if got.StatusCode != 200 || got.URL != srv.URL+"/p?q=1" || got.Elapsed <= 0 || got.Headers["x-two"] != "1, 2" {
				t.Errorf("data %s", res.Data)
			}
			if res.HTTP.Status != 200 || res.HTTP.Headers["x-two"] != "1, 2" {
				t.Errorf("http %+v", res.HTTP)
			}
		})
	}
}
