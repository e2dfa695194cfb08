package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

const testToken = "sesame"

// living is the API over the control plane itself, spoken to in plain HTTP.
type living struct {
	*httptest.Server
	plane *control.Plane
	store *memstore.Store
	ahead atomic.Int64 // of the clock, in nanoseconds
}

func (l *living) now() time.Time { return time.Now().Add(time.Duration(l.ahead.Load())) }

// pass lets time go by.
func (l *living) pass(d time.Duration) { l.ahead.Add(int64(d)) }

func newLiving(t *testing.T, b bus.Bus, change func(*control.Options, *api.Options)) *living {
	t.Helper()
	l := &living{store: memstore.New()}
	if b == nil {
		b = membus.New(membus.Options{})
	}
	metrics := control.NewMetrics("1.2.3")
	co := control.Options{Store: l.store, Bus: b, IDs: snowflake.New(1, time.Now).Next, Clock: l.now, Metrics: metrics}
	ao := api.Options{Version: "1.2.3", Clock: l.now, Metrics: metrics, InternalToken: testToken}
	if change != nil {
		change(&co, &ao)
	}
	l.Server, l.plane = serve(t, co, ao)
	return l
}

// internal asks with the internal token.
func (l *living) internal(t *testing.T, path, body string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+testToken)
	return do(t, l.Server, req)
}

// register stores a document and returns its catalog id.
func (l *living) register(t *testing.T, doc string) string {
	t.Helper()
	a := ask(t, l.Server, "POST", "/api/catalog/register", object(t, "content", doc))
	id, ok := a.field(t, "catalog_id").(string)
	if !ok {
		t.Fatalf("register: %s", a.body)
	}
	return id
}

// execute starts the playbook of a path and returns the execution's id.
func (l *living) execute(t *testing.T, path string) string {
	t.Helper()
	a := ask(t, l.Server, "POST", "/api/execute", object(t, "path", path))
	id, ok := a.field(t, "execution_id").(string)
	if !ok {
		t.Fatalf("execute: %s", a.body)
	}
	return id
}

// command is the id of the first command of an execution.
func (l *living) command(t *testing.T, execution string) event.ID {
	t.Helper()
	id, err := event.ParseID(execution)
	if err != nil {
		t.Fatal(err)
	}
	log, err := l.plane.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range log {
		if e.Type == event.CommandIssued {
			return e.EventID
		}
	}
	t.Fatalf("no command was issued: %+v", log)
	return 0
}
