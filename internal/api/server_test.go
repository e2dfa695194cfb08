package api_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHealthReportsTheDependencies(t *testing.T) {
	t.Parallel()
	up := true
	p := &apitest.Plane{OnHealth: func() control.Health {
		return control.Health{Database: up, NATS: false, Uptime: 90 * time.Second}
	}}
	srv := newServer(t, p, nil)
	ask(t, srv, "GET", "/health", "").want(t, 200, `{"status":"ok"}`)
	ask(t, srv, "GET", "/api/health", "").want(t, 200,
		`{"status":"ok","database":"connected","nats":"disconnected","uptime_seconds":90,"version":"1.2.3"}`)
	up = false
	ask(t, srv, "GET", "/api/health", "").want(t, 503,
		`{"status":"unhealthy","database":"disconnected","nats":"disconnected","uptime_seconds":90,"version":"1.2.3"}`)
}

func TestUnknownRoutesAndMethodsAnswerJSON(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, nil)
	ask(t, srv, "GET", "/api/nothing", "").wantError(t, 404, "no such route")
	ask(t, srv, "GET", "/favicon.ico", "").wantError(t, 404, "no such route")
	a := ask(t, srv, "GET", "/api/execute", "")
	a.wantError(t, 405, "use POST")
	if got := a.header.Get("Allow"); got != "POST" {
		t.Errorf("Allow %q", got)
	}
	a = ask(t, srv, "DELETE", "/api/executions/5", "")
	a.wantError(t, 405, "use GET")
}

func TestPageIsServedOutsideTheAPI(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, nil)
	if a := ask(t, srv, "GET", "/", ""); a.status != 200 || !strings.Contains(a.body, "/page.js") {
		t.Errorf("built-in page: %d %s", a.status, a.body)
	}
	if a := ask(t, srv, "GET", "/page.js", ""); a.status != 200 || !strings.Contains(a.body, "EventSource") {
		t.Errorf("script of the built-in page: %d %s", a.status, a.body)
	}
	own := newServer(t, &apitest.Plane{}, func(o *api.Options) {
		o.Page = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page "+r.URL.Path) })
	})
	if a := ask(t, own, "GET", "/runs/7", ""); a.body != "page /runs/7" {
		t.Errorf("own page: %s", a.body)
	}
	ask(t, own, "GET", "/api/nothing", "").wantError(t, 404, "no such route")
}

func TestUnreadableBodiesAreRefusedWithTheirPlace(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, func(o *api.Options) { o.MaxBody = 200 })
	for _, tc := range []struct {
		name, body string
		status     int
		part       string
	}{
		{"syntax error", "{\n \"path\": }", 400, "line 2, column 10"},
		{"cut off", `{"path": "a`, 400, "malformed JSON"},
		{"two values", `{"path":"a"} {}`, 400, "malformed JSON"},
		{"empty", ``, 400, "empty"},
		{"list instead of object", `[]`, 422, "want a JSON object"},
		{"number instead of string", `{"path": 5}`, 422, "path: want a string, got number"},
		{"float id", `{"catalog_id": 1.5}`, 422, "invalid id 1.5"},
		{"list as id", `{"catalog_id": [1]}`, 422, "invalid id"},
		{"word as id", `{"catalog_id": "abc"}`, 422, "invalid id"},
		{"payload is a list", `{"path":"a","payload":[]}`, 422, "want a JSON object, got a list"},
		{"too large", `{"path":"` + strings.Repeat("x", 300) + `"}`, 413, "larger than 200 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			ask(t, srv, "POST", "/api/execute", tc.body).wantError(t, tc.status, tc.part)
		})
	}
}

func TestABodyThatComesTooSlowlyMayBeSentAgain(t *testing.T) {
	t.Parallel()
	s, err := api.New(api.Options{Plane: &apitest.Plane{}, Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()
	defer func() { stop(); <-served }()

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /api/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Header.Get("Retry-After") == "" {
		t.Errorf("%v, header %v", err, resp.Header)
	}
	answer{resp.StatusCode, resp.Header, string(body)}.wantError(t, 503, "took too long to arrive")
}

func TestErrorsCarryCodeReasonAndRemedy(t *testing.T) {
	t.Parallel()
	var fail error
	p := &apitest.Plane{OnExecute: func(control.ExecuteRequest) (control.ExecuteAnswer, error) { return control.ExecuteAnswer{}, fail }}
	var log bytes.Buffer
	srv := newServer(t, p, func(o *api.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	post := func() answer { return ask(t, srv, "POST", "/api/execute", `{"path":"a"}`) }

	fail = &event.Error{Code: event.Invalid, Message: "no", Remedy: "try", Reason: "why"}
	post().want(t, 422, `{"error":"no","status":422,"code":"invalid","reason":"why","remedy":"try"}`)
	fail = event.Errorf(event.Unavailable, "busy")
	a := post()
	a.wantError(t, 503, "busy")
	if a.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	for code, status := range map[event.Code]int{
		event.BadRequest: 400, event.NotFound: 404, event.Conflict: 409, event.Unauthorized: 401,
		event.Forbidden: 403, event.Limit: 413, event.Internal: 500,
	} {
		fail = event.Errorf(code, "as coded")
		post().wantError(t, status, "as coded")
	}
	fail = errors.New("password is hunter2")
	a = post()
	a.wantError(t, 500, "internal error")
	id, _ := a.field(t, "id").(string)
	if strings.Contains(a.body, "hunter2") || id == "" || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "hunter2") {
		t.Errorf("the cause belongs into the log under the id, not into the answer: %s\n%s", a.body, log.String())
	}
}

func TestPanickingHandlerLeavesTheServerAlive(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{OnExecute: func(control.ExecuteRequest) (control.ExecuteAnswer, error) { panic("boom") }}
	var log bytes.Buffer
	srv := newServer(t, p, func(o *api.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	a := ask(t, srv, "POST", "/api/execute", `{"path":"a"}`)
	a.wantError(t, 500, "internal error")
	if id, _ := a.field(t, "id").(string); id == "" || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), "boom") {
		t.Errorf("log lacks the panic under id %q", id)
	}
	ask(t, srv, "GET", "/health", "").want(t, 200, `{"status":"ok"}`)
}

func TestRequestTimeoutBecomesUnavailable(t *testing.T) {
	t.Parallel()
	p := &apitest.Plane{OnClaim: func(ctx context.Context, _ event.ClaimRequest) (*event.Command, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	srv := newServer(t, p, func(o *api.Options) { o.Timeout = time.Millisecond })
	ask(t, srv, "POST", "/api/commands/1/claim", `{"worker_id":"w"}`).wantError(t, 503, "took too long")
}

func TestBrowserRequestsOfOtherOriginsAreRefused(t *testing.T) {
	t.Parallel()
	srv := newServer(t, &apitest.Plane{}, func(o *api.Options) {
		o.AllowedOrigins = []string{"https://gui.example"}
		o.AllowedHosts = []string{"127.0.0.1", "localhost"}
	})
	send := func(method, origin, host string) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), method, srv.URL+"/api/catalog/list", nil)
		req.Header.Set("Origin", origin)
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		if method == http.MethodOptions {
			req.Header.Set("Access-Control-Request-Method", "POST")
		}
		req.Host = host
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if got := send("POST", "https://evil.example", "localhost:80").StatusCode; got != 403 {
		t.Errorf("foreign origin: %d", got)
	}
	if got := send("POST", "https://gui.example", "evil.example").StatusCode; got != 403 {
		t.Errorf("foreign host name: %d", got)
	}
	ok := send("POST", "https://gui.example", "localhost:80")
	if ok.StatusCode != 200 || ok.Header.Get("Access-Control-Allow-Origin") != "https://gui.example" {
		t.Errorf("allowed origin: %d %v", ok.StatusCode, ok.Header)
	}
	if got := send("OPTIONS", "https://gui.example", "localhost").StatusCode; got != 204 {
		t.Errorf("preflight: %d", got)
	}
	if got := send("OPTIONS", "https://evil.example", "localhost").Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("preflight of a foreign origin allowed: %q", got)
	}
	if _, err := api.New(api.Options{Plane: &apitest.Plane{}, AllowedOrigins: []string{"nonsense"}}); event.CodeOf(err) != event.Invalid {
		t.Errorf("malformed origin accepted: %v", err)
	}
}

func TestServeDrainsRequestsAndEndsStreams(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	p := &apitest.Plane{OnExecute: func(control.ExecuteRequest) (control.ExecuteAnswer, error) {
		close(entered)
		<-release
		return control.ExecuteAnswer{ExecutionID: 5, Status: "started"}, nil
	}}
	p.Put(store.Execution{ExecutionID: 7, Status: event.StatusRunning}, `{}`)
	p.Append(7, event.Event{Type: event.PlaybookStarted})
	s, err := api.New(api.Options{Plane: p})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, ln) }()

	base := "http://" + ln.Addr().String()
	web := &http.Client{Transport: &http.Transport{}}
	defer web.CloseIdleConnections()
	stream, err := web.Get(base + "/api/executions/7/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	running := make(chan int, 1)
	go func() {
		resp, err := web.Post(base+"/api/execute", "", strings.NewReader(`{"path":"a"}`))
		if err != nil {
			running <- 0
			return
		}
		resp.Body.Close()
		running <- resp.StatusCode
	}()
	<-entered
	stop()
	text, err := io.ReadAll(stream.Body)
	if err != nil || !strings.Contains(string(text), "id: 1\n") || strings.Contains(string(text), "event: end") {
		t.Errorf("stream at shutdown: %v\n%s", err, text)
	}
	select {
	case err := <-served:
		t.Fatalf("Serve returned %v although a request is running", err)
	default:
	}
	close(release)
	if got := <-running; got != 200 {
		t.Errorf("running request was answered %d", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := web.Get(base + "/health"); err == nil {
		t.Error("the server still accepts connections")
	}
}

// The page names every type it listens for: one that is missing would not show.
func TestThePageShowsEveryTypeOfEvent(t *testing.T) {
	t.Parallel()
	vocabulary, err := os.ReadFile("../event/vocabulary.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("page.js")
	if err != nil {
		t.Fatal(err)
	}
	types := regexp.MustCompile(`Type = "([a-z_.]+)"`).FindAllSubmatch(vocabulary, -1)
	if len(types) < 20 {
		t.Fatalf("found %d types of events", len(types))
	}
	for _, m := range types {
		if name := string(m[1]); name != string(event.CommandHeartbeat) && !bytes.Contains(page, []byte(`"`+name+`"`)) {
			t.Errorf("the page does not show %s", name)
		}
	}
}
