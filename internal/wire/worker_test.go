package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// playbookOf is a playbook with the given steps, indented by two.
func playbookOf(path, steps string) string {
	return "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: " + path[strings.LastIndexByte(path, '/')+1:] + "\n  path: " + path +
		"\n  labels:\n    team: tests\nworkload:\n  who: nobody\n  city: Paris\nworkflow:\n" + steps
}

// step is a step of a tool nobody but the tests runs, followed by others.
func step(name string, next ...string) string {
	s := "  - step: " + name + "\n    tool:\n      kind: python\n      code: \"result = 1\"\n"
	if len(next) > 0 {
		s += "    next:\n      arcs:\n"
		for _, n := range next {
			s += "        - step: " + n + "\n"
		}
	}
	return s
}

// loopStep runs once for each item of an expression.
func loopStep(name, in, mode string, next ...string) string {
	return strings.Replace(step(name, next...), "    tool:", "    loop:\n      in: \""+in+"\"\n      iterator: item\n      spec:\n        mode: "+mode+"\n    tool:", 1)
}

// handled fails in its first step, which an arc takes care of.
const handled = `  - step: start
    tool:
      kind: python
      code: "1/0"
    next:
      arcs:
        - step: rescue
          when: "{{ event.name == 'call.error' }}"
` + "  - step: rescue\n    tool:\n      kind: python\n      code: \"result = 1\"\n"

var (
	twoSteps = playbookOf("demo/two", step("start", "finish")+step("finish"))
	oneStep  = playbookOf("demo/one", step("start"))
)

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w *world) register(yaml string) answer {
	w.t.Helper()
	return w.post("/api/catalog/register", `{"content":`+quote(yaml)+`}`).ok()
}

// start registers a playbook and starts it.
func (w *world) start(yaml string) event.ID {
	w.t.Helper()
	return w.again(w.register(yaml).text("path"), "")
}

// again starts what is registered; extra are further members of the request.
func (w *world) again(path, extra string) event.ID {
	w.t.Helper()
	return w.post("/api/execute", `{"path":`+quote(path)+extra+`}`).ok().id("execution_id")
}

// row is what tests look at in an event.
type row struct {
	EventID   event.ID        `json:"event_id"`
	CommandID string          `json:"-"`
	ParentID  event.ID        `json:"parent_event_id"`
	Type      string          `json:"event_type"`
	Node      string          `json:"node_name"`
	NodeType  string          `json:"node_type"`
	Status    string          `json:"status"`
	Worker    string          `json:"worker_id"`
	Context   json.RawMessage `json:"context"`
	Result    json.RawMessage `json:"result"`
	Meta      json.RawMessage `json:"meta"`
	Error     string          `json:"error"`
	Duration  float64         `json:"duration"`
	CreatedAt time.Time       `json:"created_at"`
}

// meta is one member of the meta, as text.
func (r row) meta(name string) string {
	var all map[string]any
	v, err := decodeTree(string(r.Meta))
	if err == nil {
		all, _ = v.(map[string]any)
	}
	return fmt.Sprint(all[name])
}

// log is all events of an execution, without those that are only shown.
func (w *world) log(id event.ID) []row {
	w.t.Helper()
	events, err := w.store.Events(context.WithoutCancel(w.t.Context()), id, 0, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	rows := make([]row, len(events))
	for i, e := range events {
		rows[i] = row{
			e.EventID, e.CommandID, e.ParentEventID, string(e.Type), e.NodeName, e.NodeType, e.Status, e.WorkerID, e.Context, e.Result, e.Meta,
			e.Error, e.Duration.Seconds(), e.CreatedAt,
		}
	}
	return rows
}

func only(rows []row, kind, node string) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.Type != kind || node != "" && r.Node != node })
}

// count is how many events of a type are in the log.
func (w *world) count(id event.ID, kind string) int {
	w.t.Helper()
	return len(only(w.log(id), kind, ""))
}

// counts checks how often types occur: "command.issued=2 playbook.completed=1".
func (w *world) counts(id event.ID, want string) {
	w.t.Helper()
	for pair := range strings.FieldsSeq(want) {
		kind, n, _ := strings.Cut(pair, "=")
		if got := strconv.Itoa(w.count(id, kind)); got != n {
			w.t.Errorf("%s of %s in the log, want %s", got, kind, n)
		}
	}
}

// command is the command of a step that was issued last.
func (w *world) command(id event.ID, step string) event.ID {
	w.t.Helper()
	rows := only(w.log(id), "command.issued", step)
	if len(rows) == 0 {
		w.t.Fatalf("%s has no command", step)
	}
	return rows[len(rows)-1].EventID
}

func (w *world) claim(command event.ID, worker string) answer {
	w.t.Helper()
	return w.post(fmt.Sprintf("/api/commands/%d/claim", command), `{"worker_id":`+quote(worker)+`}`)
}

// foreign is a worker of another make: ids are numbers, the data comes in
// call.done, and command.completed holds nothing but a lower-case status.
type foreign struct {
	*world
	name string
	ids  int64
}

func (w *world) worker(name string) *foreign { return &foreign{w, name, 1 << 40} }

// tell posts one event as that worker does.
func (f *foreign) tell(id event.ID, step, kind, status, payload string) answer {
	f.t.Helper()
	f.ids++
	return f.post("/api/events", fmt.Sprintf(
		`{"execution_id":%d,"step":%q,"event_type":%q,"payload":%s,"meta":{"attempts":1},"worker_id":%q,"result_kind":"data","actionable":true,"informative":true,"event_id":%d,"status":%q,"created_at":%q}`,
		id, step, kind, payload, f.name, f.ids, status, time.Now().UTC().Format(time.RFC3339Nano)))
}

// run claims a command, and reports it as done with data.
func (f *foreign) run(id, command event.ID, data string) answer {
	f.t.Helper()
	return f.end(id, f.claim(command, f.name).ok(), data)
}

// end reports a claimed command as done.
func (f *foreign) end(id event.ID, claim answer, data string) answer {
	f.t.Helper()
	step, commandID := claim.text("node_name"), claim.text("meta.command_id")
	f.tell(id, step, "command.started", "STARTED", `{"command_id":`+quote(commandID)+`}`).ok()
	f.tell(id, step, "call.done", "COMPLETED", fmt.Sprintf(
		`{"command_id":%q,"call_index":0,"result":{"status":"success","context":{"status":"success","data":%s,"duration_ms":12}}}`, commandID, data)).ok()
	return f.tell(id, step, "command.completed", "success", fmt.Sprintf(`{"command_id":%q,"status":"success"}`, commandID)).ok()
}

// fail reports a claimed command as failed.
func (f *foreign) fail(id event.ID, claim answer, message string) answer {
	f.t.Helper()
	step, commandID := claim.ok().text("node_name"), claim.text("meta.command_id")
	f.tell(id, step, "call.error", "FAILED", fmt.Sprintf(`{"command_id":%q,"call_index":0,"error":%q}`, commandID, message)).ok()
	return f.tell(id, step, "command.completed", "error", fmt.Sprintf(`{"command_id":%q,"status":"error"}`, commandID)).ok()
}

// finish runs every command until the execution has ended; each returns data.
func (f *foreign) finish(id event.ID, data string) {
	f.t.Helper()
	for range 200 {
		open := f.open(id)
		if len(open) == 0 {
			return
		}
		for _, command := range open {
			f.run(id, command, data)
		}
	}
	f.t.Fatal("the execution does not end")
}

// open are the commands that have not ended, in the order they were issued.
func (w *world) open(id event.ID) (commands []event.ID) {
	w.t.Helper()
	rows := w.log(id)
	ended := map[string]bool{}
	for _, r := range rows {
		if slices.Contains([]string{"command.completed", "command.failed", "command.cancelled"}, r.Type) {
			ended[r.CommandID] = true
		}
	}
	for _, r := range only(rows, "command.issued", "") {
		if !ended[r.CommandID] {
			commands = append(commands, r.EventID)
		}
	}
	return commands
}

// status is the status of an execution by all three answers that tell it.
func (w *world) status(id event.ID) string {
	w.t.Helper()
	status := w.get("/api/executions/%d/status", id).ok().text("status")
	if detail := w.get("/api/executions/%d", id).ok().text("status"); detail != status {
		w.t.Errorf("the detail says %s, the status %s", detail, status)
	}
	rows, _ := w.get("/api/executions?limit=100").ok().tree().([]any)
	for _, r := range rows {
		if m, _ := r.(map[string]any); fmt.Sprint(m["execution_id"]) == id.String() && m["status"] != status {
			w.t.Errorf("the list says %v, the status %s", m["status"], status)
		}
	}
	return status
}

func (w *world) wantStatus(id event.ID, want string) {
	w.t.Helper()
	if got := w.status(id); got != want {
		w.t.Errorf("the execution is %s, want %s", got, want)
	}
}

// TestWorkersOfBothMakesRunAPlaybook runs the same playbook with the events of
// other workers and with those of our own.
func TestWorkersOfBothMakesRunAPlaybook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.start(twoSteps)
	w.worker("rust-1").finish(other, `{"n":1}`)
	own := w.again("demo/two", "")
	for range 2 {
		claim := w.claim(w.open(own)[0], "go-1").ok()
		commandID := claim.text("meta.command_id")
		w.post("/api/events/batch", fmt.Sprintf(`{"execution_id":%d,"worker_id":"go-1","eager":0,"events":[{"step":%q,"event_type":"command.completed","status":"success",
			"meta":{"command_id":%q,"attempt":1},"payload":{"command_id":%q,"status":"success","result":{"status":"success","context":{"status":"success","data":{"n":1},"duration_ms":1}}}}]}`,
			own, claim.text("node_name"), commandID, commandID)).ok()
	}
	for _, id := range []event.ID{other, own} {
		w.wantStatus(id, "COMPLETED")
		for _, name := range []string{"start", "finish"} {
			w.get("/api/executions/%d", id).ok().equal("steps."+name+".result.n", "1")
		}
	}
}
