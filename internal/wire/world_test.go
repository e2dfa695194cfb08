package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/testkit/apicheck"
)

const (
	token = "the-internal-token"
	never = 24 * time.Hour
	soon  = 30 * time.Second // for what another goroutine does, on a busy machine
)

// world is one server on a database file, with a clock that can be set ahead.
// Nothing goes on in the background unless a test asks for it.
type world struct {
	t      *testing.T
	url    string
	server *api.Server
	store  store.Store
	bus    *membus.Bus
	http   *http.Client
	stop   func() // ends the plane and what runs beside it, and waits for them
	plane  *control.Plane
	ids    func() event.ID
	now    func() time.Time
	ahead  atomic.Int64
}

// setting changes what a world is made of.
type setting struct {
	plane func(*control.Options)
	api   func(*api.Options)
	store func(t *testing.T) store.Store
	bus   membus.Options
	// parts adds what the server is made of besides, from what is there; run goes
	// on until the world ends and may be nil.
	parts func(w *world, o *api.Options) (run func(context.Context) error)
}

// quick lets the background work happen at once.
func quick(o *control.Options) {
	o.Sweep, o.Republish, o.Recover = 10*time.Millisecond, time.Millisecond, 50*time.Millisecond
}

func newWorld(t *testing.T, settings ...setting) *world {
	t.Helper()
	w := &world{t: t}
	w.now = func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	w.ids = snowflake.New(1, w.now).Next
	o := control.Options{
		IDs: w.ids, Clock: w.now, Sweep: never, Republish: never, Recover: never, ServerURL: "http://noetl:8082",
	}
	a := api.Options{Version: "1.2.3", InternalToken: token, Clock: w.now}
	open, busOptions := openSQLite, membus.Options{}
	for _, s := range settings {
		if s.store != nil {
			open = s.store
		}
		if s.bus.Drop != nil {
			busOptions = s.bus
		}
	}
	w.store, w.bus = open(t), membus.New(busOptions)
	o.Store, o.Bus = w.store, w.bus
	for _, s := range settings {
		if s.plane != nil {
			s.plane(&o)
		}
	}
	a.Logs = w.bus
	a.Secrets, o.Secrets = keepers(t, o)
	plane, err := control.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.plane = plane
	runs := []func(context.Context) error{plane.Run}
	a.Plane, a.Keychain, a.Metrics = plane, plane, o.Metrics
	for _, s := range settings {
		if s.api != nil {
			s.api(&a)
		}
		if s.parts != nil {
			runs = append(runs, s.parts(w, &a))
		}
	}
	w.stop = w.run(runs)
	if w.server, err = api.New(a); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(checked(t, w.server))
	w.url, w.http = srv.URL, srv.Client()
	t.Cleanup(func() {
		srv.Close()
		w.stop()
		_ = w.bus.Close()
		_ = w.store.Close()
	})
	return w
}

// run starts what goes on beside the requests; stop ends it and waits.
func (w *world) run(parts []func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range parts {
		if run == nil {
			continue
		}
		running.Go(func() {
			if err := run(ctx); err != nil {
				w.t.Error(err)
			}
		})
	}
	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

// checked holds every answer of a server against its own description.
func checked(t *testing.T, s *api.Server) http.Handler {
	t.Helper()
	check, err := apicheck.Of(s)
	if err != nil {
		t.Fatal(err)
	}
	return check.Handler(t, s.Handler())
}

func openSQLite(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "noetl.db"), sqlite.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pass lets time go by for the server.
func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

// answer is what came back.
type answer struct {
	t      *testing.T
	what   string
	status int
	header http.Header
	body   string
}

// send makes a request. Headers are "Name: value"; there is no content type
// unless one is given.
func (w *world) send(method, path, body string, headers ...string) answer {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := w.http.Do(req)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{w.t, method + " " + path, resp.StatusCode, resp.Header, string(b)}
}

func (w *world) get(format string, args ...any) answer {
	w.t.Helper()
	return w.send("GET", fmt.Sprintf(format, args...), "")
}

func (w *world) post(path, body string) answer {
	w.t.Helper()
	return w.send("POST", path, body, "Content-Type: application/json")
}

// internal calls a route that needs the internal token.
func (w *world) internal(method, path, body string) answer {
	w.t.Helper()
	return w.send(method, path, body, "Authorization: Bearer "+token)
}

func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s: %d, want %d: %s", a.what, a.status, status, a.body)
	}
	return a
}

func (a answer) ok() answer { a.t.Helper(); return a.want(http.StatusOK) }

// refused checks the body every refusal has.
func (a answer) refused(status int, part string) answer {
	a.t.Helper()
	a.want(status)
	var f struct {
		Error  string `json:"error"`
		Status int    `json:"status"`
	}
	if err := json.Unmarshal([]byte(a.body), &f); err != nil || f.Status != status || f.Error == "" || !strings.Contains(f.Error, part) {
		a.t.Errorf("%s: refused with %s, want error and status, and %q in it", a.what, a.body, part)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/json" {
		a.t.Errorf("%s: a refusal of type %q", a.what, ct)
	}
	return a
}

// shaped checks the body.
func (a answer) shaped(s string) answer {
	a.t.Helper()
	for _, complaint := range parseShape(a.t, s).check(a.tree(), "") {
		a.t.Errorf("%s: %s\n%s", a.what, complaint, a.body)
	}
	return a
}

// tree is the body with numbers as they are written.
func (a answer) tree() any {
	a.t.Helper()
	v, err := decodeTree(a.body)
	if err != nil {
		a.t.Fatalf("%s: no JSON: %v\n%s", a.what, err, a.body)
	}
	return v
}

func decodeTree(text string) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// at finds a value by keys and list indexes joined with dots; nil when absent.
func (a answer) at(path string) any {
	a.t.Helper()
	v := a.tree()
	if path == "" {
		return v
	}
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(in) {
				return nil
			}
			v = in[n]
		default:
			return nil
		}
	}
	return v
}

func (a answer) text(path string) string { a.t.Helper(); return fmt.Sprint(a.at(path)) }

func (a answer) id(path string) event.ID {
	a.t.Helper()
	id, err := event.ParseID(a.text(path))
	if err != nil {
		a.t.Fatalf("%s: no id at %s: %s", a.what, path, a.body)
	}
	return id
}

// equal checks one value of the body by its text.
func (a answer) equal(path, want string) answer {
	a.t.Helper()
	if got := a.text(path); got != want {
		a.t.Errorf("%s: %s is %s, want %s: %s", a.what, path, got, want, a.body)
	}
	return a
}
