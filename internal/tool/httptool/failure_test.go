package httptool_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/httptool"
)

// fails runs a call that must fail with an *Error, and returns both.
func fails(t *testing.T, opts httptool.Options, config map[string]any) (*tool.Result, *tool.Error) {
	t.Helper()
	res, err := newTool(t, opts).Run(t.Context(), callOf(config))
	e, ok := errors.AsType[*tool.Error](err)
	if !ok {
		t.Fatalf("error is %T (%v), want *tool.Error", err, err)
	}
	if strings.Contains(e.Message, "hunter2") {
		t.Errorf("message shows the password: %s", e.Message)
	}
	return res, e
}

func TestStatusesAreClassified(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &code)
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"why":"test"}`)
	}))
	t.Cleanup(srv.Close)
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	for name, tc := range map[string]struct {
		path string
		want tool.Error
	}{
		"429 with seconds":                 {"/429?after=7", tool.Error{Kind: "rate_limit", Code: "HTTP_429", HTTPStatus: 429, Retryable: true, RetryAfter: 7 * time.Second}},
		"503 with a date":                  {"/503?after=" + strings.ReplaceAll(date, " ", "+"), tool.Error{Kind: "server_error", Code: "HTTP_503", HTTPStatus: 503, Retryable: true, RetryAfter: time.Hour}},
		"500 with nonsense as Retry-After": {"/500?after=soon", tool.Error{Kind: "server_error", Code: "HTTP_500", HTTPStatus: 500, Retryable: true}},
		"401":                              {"/401", tool.Error{Kind: "auth", Code: "HTTP_401", HTTPStatus: 401}},
		"403":                              {"/403", tool.Error{Kind: "auth", Code: "HTTP_403", HTTPStatus: 403}},
		"404":                              {"/404", tool.Error{Kind: "not_found", Code: "HTTP_404", HTTPStatus: 404}},
		"422":                              {"/422", tool.Error{Kind: "client_error", Code: "HTTP_422", HTTPStatus: 422}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, e := fails(t, httptool.Options{}, map[string]any{"url": srv.URL + tc.path})
			durations := cmp.Comparer(func(a, b time.Duration) bool { return (a - b).Abs() < 30*time.Second })
			if diff := cmp.Diff(tc.want, *e, durations, cmpopts.IgnoreFields(tool.Error{}, "Message")); diff != "" {
				t.Error(diff)
			}
			if res == nil || !strings.Contains(string(res.Data), `"data":{"why":"test"}`) || res.HTTP.Status != tc.want.HTTPStatus {
				t.Errorf("the answer is missing beside the error: %+v", res)
			}
			if !strings.Contains(e.Message, fmt.Sprintf("HTTP %d", tc.want.HTTPStatus)) {
				t.Errorf("message %q", e.Message)
			}
		})
	}
}

// raw serves one connection by hand and returns its address.
func raw(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			_, _ = c.Read(buf)
			serve(c)
			c.Close()
		}
	}()
	return l.Addr().String()
}

func TestMissingAnswersAreClassified(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	reset := raw(t, func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) })
	short := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc") })
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	t.Cleanup(loop.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)

	for name, tc := range map[string]struct {
		url       string
		kind      string
		code      string
		retryable bool
		says      string
	}{
		"a refused port":            {"http://u:hunter2@" + closed.Addr().String() + "/x?key=hunter2", "connection", "CONN_REFUSED", true, "GET http://" + closed.Addr().String() + "/x?…: connection refused (is the service running and the port right?)"},
		"an unknown host":           {"http://u:hunter2@nowhere.invalid/", "connection", "DNS_ERROR", true, `host "nowhere.invalid" cannot be found`},
		"a reset connection":        {"http://u:hunter2@" + reset, "connection", "CONN_ERROR", true, "the server"},
		"a cut answer":              {"http://u:hunter2@" + short, "connection", "CONN_ERROR", true, "before the answer was complete"},
		"a redirect loop":           {loop.URL, "client_error", "TOO_MANY_REDIRECTS", false, "more than 10 redirects"},
		"an unknown certificate":    {secure.URL, "connection", "TLS_ERROR", false, "verify_ssl: false"},
		"TLS to a plain port":       {strings.Replace(loop.URL, "http:", "https:", 1), "connection", "TLS_ERROR", false, "should the url start with http://"},
		"an unescaped password":     {"http://u:hunter2%zz@host/", "config", "CONFIG", false, "url is not valid"},
		"a scheme nobody speaks":    {"ftp://u:hunter2@host/", "config", "CONFIG", false, "url ftp://host/ must start with http://"},
		"a url that rendered empty": {" ", "config", "CONFIG", false, "needs a url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, e := fails(t, httptool.Options{}, map[string]any{"url": tc.url})
			if e.Kind != tc.kind || e.Code != tc.code || e.Retryable != tc.retryable || !strings.Contains(e.Message, tc.says) {
				t.Errorf("got %s/%s retryable=%v %q\nwant %s/%s retryable=%v %q", e.Kind, e.Code, e.Retryable, e.Message, tc.kind, tc.code, tc.retryable, tc.says)
			}
			if res != nil {
				t.Errorf("result %+v without an answer", res)
			}
		})
	}
}

func TestOwnTimeoutIsReportedAsSuch(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(srv.Close)
	_, e := fails(t, httptool.Options{}, map[string]any{"url": srv.URL, "timeout": 0.05})
	if e.Kind != "timeout" || e.Code != "CONN_TIMEOUT" || !e.Retryable || !strings.Contains(e.Message, "did not finish within 50ms") {
		t.Errorf("got %+v", e)
	}
}

func TestLargeAnswersAreRefused(t *testing.T) {
	t.Parallel()
	const limit = 1 << 16
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := bytes.Repeat([]byte("x"), limit)
		switch r.URL.Path {
		case "/announced":
			_, _ = w.Write(append(body, 'x'))
		case "/streamed":
			_, _ = w.Write(body)
			w.(http.Flusher).Flush()
			_, _ = w.Write([]byte("x"))
		case "/packed":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 16 {
				_, _ = z.Write(body)
			}
			_ = z.Close()
		case "/exact":
			_, _ = w.Write(body)
		}
	}))
	t.Cleanup(srv.Close)
	opts := httptool.Options{MaxResponseBytes: limit}
	for _, path := range []string{"/announced", "/streamed", "/packed"} {
		_, e := fails(t, opts, map[string]any{"url": srv.URL + path})
		if e.Kind != "resource_limit" || e.Code != "RESPONSE_TOO_LARGE" || e.Retryable {
			t.Errorf("%s: got %+v", path, e)
		}
	}
	if _, err := newTool(t, opts).Run(t.Context(), callOf(map[string]any{"url": srv.URL + "/exact"})); err != nil {
		t.Errorf("an answer of exactly the limit: %v", err)
	}
}

func TestRedirectsKeepSecretsHome(t *testing.T) {
	t.Parallel()
	other := echo(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
	}))
	t.Cleanup(srv.Close)
	config := map[string]any{"url": srv.URL, "auth": map[string]any{"type": "api_key", "header": "X-Key", "value": "k"}}
	res, err := newTool(t, httptool.Options{}).Run(t.Context(), callOf(config))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(res.Data), `"Key":""`) {
		t.Errorf("the key travelled to another host: %s", res.Data)
	}

	config["follow_redirects"] = false
	res, e := fails(t, httptool.Options{}, config)
	if e.Code != "HTTP_302" || e.Kind != "client_error" || res.HTTP.Headers["location"] == "" {
		t.Errorf("unfollowed redirect: %+v %+v", e, res)
	}
}

func TestVerificationCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	for _, name := range []string{"verify_ssl", "verify"} {
		if _, err := newTool(t, httptool.Options{}).Run(t.Context(), callOf(map[string]any{"url": srv.URL, name: false})); err != nil {
			t.Errorf("%s: false: %v", name, err)
		}
	}
}

func TestUnresolvedAuthIsAConfigError(t *testing.T) {
	t.Parallel()
	for want, auth := range map[string]any{
		"auth has no token":           map[string]any{"type": "bearer"},
		"username and password":       map[string]any{"type": "basic"},
		`"kerberos" is not available`: map[string]any{"type": "kerberos", "token": "t"},
	} {
		_, e := fails(t, httptool.Options{}, map[string]any{"url": "http://127.0.0.1:1", "auth": auth})
		if e.Kind != "config" || !strings.Contains(e.Message, want) {
			t.Errorf("got %s %q, want %q", e.Kind, e.Message, want)
		}
	}
}
