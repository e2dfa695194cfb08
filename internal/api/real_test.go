package api_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// world is the API over the control plane itself, with a clock of its own and
// nothing going on in the background.
type world struct {
	*httptest.Server
	t     *testing.T
	plane *control.Plane
	ahead atomic.Int64 // of the wall clock
}

func newWorld(t *testing.T, change ...func(*api.Options)) *world {
	t.Helper()
	w := &world{t: t}
	now := func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	o := api.Options{Clock: now}
	for _, f := range change {
		f(&o)
	}
	w.Server, w.plane = serve(t, control.Options{
		Store: memstore.New(), Bus: membus.New(membus.Options{}), IDs: snowflake.New(1, now).Next, Clock: now,
		Sweep: 24 * time.Hour, Republish: 24 * time.Hour, Recover: 24 * time.Hour,
	}, o)
	w.register(twoSteps)
	return w
}

// pass lets time go by for the server.
func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

func (w *world) register(yaml string) {
	w.t.Helper()
	body, _ := json.Marshal(map[string]string{"content": yaml})
	w.post("/api/catalog/register", string(body)).ok(w.t)
}

func (w *world) get(path string) answer { w.t.Helper(); return ask(w.t, w.Server, "GET", path, "") }

func (w *world) post(path, body string) answer {
	w.t.Helper()
	return ask(w.t, w.Server, "POST", path, body)
}

func (a answer) ok(t *testing.T) answer {
	t.Helper()
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	return a
}

// at finds a value below keys and list indexes.
func (a answer) at(t *testing.T, path ...any) any {
	t.Helper()
	v := tree(t, a.body)
	for _, p := range path {
		switch k := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				t.Fatalf("no item %d in %s", k, a.body)
			}
			v = l[k]
		}
	}
	return v
}

func (a answer) id(t *testing.T, path ...any) event.ID {
	t.Helper()
	n, err := strconv.ParseInt(fmt.Sprint(a.at(t, path...)), 10, 64)
	if err != nil {
		t.Fatalf("%v: no id in %s", path, a.body)
	}
	return event.ID(n)
}

// start starts the playbook with two steps and returns the execution and its
// first command.
func (w *world) start(extra string) (execution, command event.ID) {
	w.t.Helper()
	execution = w.post("/api/execute", `{"path":"demo/two"`+extra+`}`).ok(w.t).id(w.t, "execution_id")
	return execution, w.lastCommand(execution)
}

// rows reads the log.
func (w *world) rows(execution event.ID) []row {
	w.t.Helper()
	var a struct {
		Events []row `json:"events"`
	}
	if err := json.Unmarshal([]byte(w.get(fmt.Sprintf("/api/executions/%d/events", execution)).ok(w.t).body), &a); err != nil {
		w.t.Fatal(err)
	}
	return a.Events
}

// row is what the tests look at in an event.
type row struct {
	EventID   event.ID        `json:"event_id"`
	Type      event.Type      `json:"event_type"`
	Node      string          `json:"node_name"`
	NodeType  string          `json:"node_type"`
	Status    string          `json:"status"`
	Worker    string          `json:"worker_id"`
	Result    json.RawMessage `json:"result"`
	Meta      json.RawMessage `json:"meta"`
	Error     string          `json:"error"`
	Duration  float64         `json:"duration"`
	CreatedAt time.Time       `json:"created_at"`
	Derived   bool            `json:"derived"`
}

func count(rows []row, t event.Type) (n int) {
	for _, r := range rows {
		if r.Type == t {
			n++
		}
	}
	return n
}

// lastCommand is the command issued last.
func (w *world) lastCommand(execution event.ID) (id event.ID) {
	w.t.Helper()
	for _, r := range w.rows(execution) {
		if r.Type == event.CommandIssued {
			id = r.EventID
		}
	}
	if id == 0 {
		w.t.Fatal("no command was issued")
	}
	return id
}

func (w *world) claim(command event.ID, worker string) answer {
	w.t.Helper()
	return w.post(fmt.Sprintf("/api/commands/%d/claim", command), fmt.Sprintf(`{"worker_id":%q}`, worker))
}

// complete ends a claimed command as the worker of this project does.
func (w *world) complete(execution event.ID, claim answer, data string) answer {
	w.t.Helper()
	id := claim.ok(w.t).at(w.t, "meta", "command_id").(string)
	return w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"s","event_type":"command.completed","status":"success","worker_id":"w1","meta":{"command_id":%q},
		"payload":{"command_id":%q,"call_index":0,"status":"success","result":{"status":"success","context":{"status":"success","data":%s,"duration_ms":1500}}}}`, execution, id, id, data)).ok(w.t)
}

// run takes an execution to its end; each step returns data.
func (w *world) run(data string) event.ID {
	w.t.Helper()
	id, command := w.start("")
	w.complete(id, w.claim(command, "w1"), data)
	w.complete(id, w.claim(w.lastCommand(id), "w1"), data)
	return id
}
