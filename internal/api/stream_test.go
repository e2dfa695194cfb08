package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/api/apitest"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// follow opens a stream and returns its frames line by line.
func follow(t *testing.T, srv *httptest.Server, path, lastID string) (lines <-chan string, closed func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Fatalf("content type %q", ct)
	}
	out := make(chan string, 4096)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		for s := bufio.NewScanner(resp.Body); s.Scan(); {
			out <- s.Text()
		}
	}()
	return out, cancel
}

// ids collects the id lines up to the end of a stream, and how it ended.
func ids(lines <-chan string) (list []string, ended bool) {
	for l := range lines {
		if id, ok := strings.CutPrefix(l, "id: "); ok {
			list = append(list, id)
		}
		ended = ended || l == "event: end"
	}
	return list, ended
}

func started(id event.ID) *apitest.Plane {
	p := &apitest.Plane{}
	p.Put(store.Execution{ExecutionID: id, Status: event.StatusRunning}, `{}`)
	p.Append(id, event.Event{Type: event.PlaybookStarted, NodeName: "demo"})
	return p
}

func TestStreamFollowsTheLogToItsEnd(t *testing.T) {
	t.Parallel()
	p := started(5)
	srv := newServer(t, p, nil)
	lines, stop := follow(t, srv, "/api/executions/5/stream", "")
	defer stop()
	for l := range lines {
		if strings.HasPrefix(l, "data: ") { // the first event arrived: the stream waits now
			break
		}
	}
	p.Append(5, event.Event{Type: "step\nenter", NodeName: "s", Context: json.RawMessage("{\n \"a\":\r\n 1}")})
	p.Append(5, event.Event{Type: event.PlaybookCompleted, Status: event.StatusCompleted})
	var got []string
	for l := range lines {
		if l != "" {
			got = append(got, l)
		}
	}
	if len(got) != 8 {
		t.Fatalf("want two events and the end, got:\n%s", strings.Join(got, "\n"))
	}
	want := []string{"id: 2", "event: step enter", "id: 3", "event: playbook.completed", "event: end", `data: {"execution_id":5,"status":"COMPLETED","error":null}`}
	if diff := cmp.Diff(want, []string{got[0], got[1], got[3], got[4], got[6], got[7]}); diff != "" {
		t.Error(diff)
	}
	ev, _ := tree(t, strings.TrimPrefix(got[2], "data: ")).(map[string]any)
	if diff := cmp.Diff(tree(t, `{"a":1}`), ev["context"]); diff != "" {
		t.Errorf("a payload with line breaks must stay one frame: %s", diff)
	}
}

func TestStreamResumesExactly(t *testing.T) {
	t.Parallel()
	p := started(5)
	p.Append(5, make([]event.Event, 700)...)
	p.Append(5, event.Event{Type: event.PlaybookFailed}, event.Event{Type: "late"})
	srv := newServer(t, p, nil)
	for _, tc := range []struct {
		name, path, header, first string
		count                     int
	}{
		{"from the start", "", "", "1", 703},
		{"by query", "?after=700", "", "701", 3},
		{"by header, which is newer", "?after=3", "702", "703", 1},
		{"behind the end", "?after=703", "", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			lines, stop := follow(t, srv, "/api/executions/5/stream"+tc.path, tc.header)
			defer stop()
			list, ended := ids(lines)
			if len(list) != tc.count || !ended || (tc.count > 0 && list[0] != tc.first) {
				t.Errorf("%d events, ended %t, first %v", len(list), ended, list[:min(1, len(list))])
			}
		})
	}
}

func TestStreamRefusesWhatItCannotServe(t *testing.T) {
	t.Parallel()
	p := started(5)
	srv := newServer(t, p, func(o *api.Options) { o.MaxStreams = 1 })
	ask(t, srv, "GET", "/api/executions/404/stream", "").wantError(t, 404, "Execution not found: 404")
	ask(t, srv, "GET", "/api/executions/5/stream?after=x", "").wantError(t, 422, "after")
	lines, stop := follow(t, srv, "/api/executions/5/stream", "")
	ask(t, srv, "GET", "/api/executions/5/stream", "").wantError(t, 503, "too many event streams")
	stop()
	for range lines {
	}
}

// slowWriter is a client that accepts what limit allows and then blocks until
// its write deadline.
type slowWriter struct {
	mu       sync.Mutex
	header   http.Header
	text     strings.Builder
	limit    int
	deadline time.Time
}

func (w *slowWriter) Header() http.Header                { return w.header }
func (w *slowWriter) WriteHeader(int)                    {}
func (w *slowWriter) Flush()                             {}
func (w *slowWriter) SetReadDeadline(time.Time) error    { return nil }
func (w *slowWriter) SetWriteDeadline(t time.Time) error { w.deadline = t; return nil }

func (w *slowWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text.Len()+len(b) > w.limit {
		time.Sleep(time.Until(w.deadline)) // in the bubble's time
		return 0, os.ErrDeadlineExceeded
	}
	return w.text.Write(b)
}

func (w *slowWriter) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

func handlerOf(t *testing.T, p api.Plane) http.Handler {
	t.Helper()
	s, err := api.New(api.Options{Plane: p})
	if err != nil {
		t.Fatal(err)
	}
	return s.Handler()
}

func TestQuietStreamSendsHeartbeatsAndPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := started(5)
		// A plane that never wakes anybody stands for another replica's appends.
		h := handlerOf(t, deaf{p})
		w := &slowWriter{header: http.Header{}, limit: 1 << 20}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/executions/5/stream", nil))
		}()
		time.Sleep(46 * time.Second)
		if n := strings.Count(w.String(), ": heartbeat\n\n"); n != 3 {
			t.Errorf("%d heartbeats in 46 s, want 3", n)
		}
		p.Append(5, event.Event{Type: event.PlaybookCompleted})
		began := time.Now()
		<-done
		if waited := time.Since(began); waited > 500*time.Millisecond || !strings.Contains(w.String(), "event: end") {
			t.Errorf("end noticed after %v:\n%s", waited, w.String())
		}
	})
}

// deaf hides local appends from watchers.
type deaf struct{ *apitest.Plane }

func (deaf) Watch(event.ID) (wake <-chan struct{}, stop func()) { return nil, func() {} }

func TestSlowClientIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := started(5)
		h := handlerOf(t, p)
		w := &slowWriter{header: http.Header{}, limit: 1000}
		p.Append(5, make([]event.Event, 50)...)
		began := time.Now()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/executions/5/stream", nil))
		if waited := time.Since(began); waited != 10*time.Second {
			t.Errorf("dropped after %v, want 10s", waited)
		}
		if n := p.Watching(5); n != 0 {
			t.Errorf("%d watches left behind", n)
		}
	})
}

func TestHeadOfAStreamReturnsAtOnce(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	handlerOf(t, started(5)).ServeHTTP(w, httptest.NewRequest(http.MethodHead, "/api/executions/5/stream", nil))
	if body, _ := io.ReadAll(w.Body); w.Code != 200 || len(body) != 0 {
		t.Errorf("%d %q", w.Code, body)
	}
}
