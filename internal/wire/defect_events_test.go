package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// note posts an event and returns how it is stored; body are its members
// beside execution and worker.
func (w *world) note(id event.ID, body string) row {
	w.t.Helper()
	stored := w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"worker_id":"w",%s}`, id, body)).ok().id("event_id")
	for _, r := range w.log(id) {
		if r.EventID == stored {
			return r
		}
	}
	w.t.Fatalf("event %d is not stored: %s", stored, body)
	return row{}
}

func sameJSON(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	g, err := decodeTree(string(got))
	if err != nil {
		t.Fatalf("%s: %v: %s", what, err, got)
	}
	w, err := decodeTree(want)
	if err != nil {
		t.Fatal(err)
	}
	if show(g) != show(w) {
		t.Errorf("%s is %s, want %s", what, show(g), show(w))
	}
}

// A worker that repeated itself was given an error until it gave up.
func TestDefect_25_ARepeatedEventIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	claim := w.claim(w.command(id, "start"), "w").ok()
	for range 3 {
		w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","event_id":500,"worker_id":"w","payload":{"command_id":%q}}`, id, claim.text("meta.command_id"))).ok().equal("event_id", "500")
	}
	w.counts(id, "command.completed=1 command.issued=2")
	// Another event under the same id is another event, and is not dropped.
	if r := w.note(id, `"step":"x","event_type":"note","event_id":500`); r.EventID == 500 || r.Type != "note" {
		t.Errorf("stored is %+v", r)
	}
}

// An unknown execution was an internal error.
func TestDefect_26_AnUnknownExecutionIsAnInternalError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, body := range []string{`{"execution_id":7,"step":"s","event_type":"command.completed"}`, `{"execution_id":7,"step":"s","event_type":"command.claimed","worker_id":"w","payload":{"command_id":"7:s:8"}}`} {
		w.post("/api/events", body).refused(404, "Execution not found: 7")
	}
	w.post("/api/events/batch", `{"execution_id":7,"events":[{"step":"s","event_type":"note"}]}`).refused(404, "Execution not found: 7")
}

// A batch dropped what its items said of themselves and did not go on after a failure.
func TestDefect_27_ABatchDropsWhatItsItemsSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(playbookOf("demo/handled", handled))
	commandID := w.claim(w.command(id, "start"), "w").ok().text("meta.command_id")
	w.post("/api/events/batch", fmt.Sprintf(`{"execution_id":%d,"worker_id":"w","events":[
		{"step":"start","event_type":"command.started","payload":{"command_id":%q},"event_id":"501","status":"STARTED","meta":{"k":1},"created_at":"2026-01-02T03:04:05Z"},
		{"step":"start","name":"command.failed","context":{"command_id":%q,"error":"boom"},"event_id":502,"actionable":true}]}`, id, commandID, commandID)).ok().
		shaped(`{status: "ok", event_ids: [501|502+], commands_generated: 1}`)
	started := only(w.log(id), "command.started", "")[0]
	if started.EventID != 501 || started.Status != "STARTED" || started.meta("k") != "1" || started.meta("actionable") != "false" || !started.CreatedAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("stored is %+v", started)
	}
	if failed := only(w.log(id), "command.failed", "")[0]; failed.EventID != 502 || failed.meta("actionable") != "true" || failed.Error != "boom" {
		t.Errorf("stored is %+v", failed)
	}
	w.counts(id, "command.issued=2")
	if single := w.note(id, `"step":"x","event_type":"note"`); single.meta("actionable") != "true" || single.meta("informative") != "true" {
		t.Errorf("a single event has the meta %s", single.Meta)
	}
}

// What a producer said of the time decided what was latest, in some answers.
func TestDefect_28_TheClockOfAProducerDecidesWhatIsLatest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	w.note(id, `"step":"start","event_type":"note.late","created_at":"2099-01-01T00:00:00"`)
	w.note(id, `"step":"start","event_type":"note.early","created_at":"2001-01-01T00:00:00+02:00"`)
	w.worker("w").run(id, w.command(id, "start"), `1`)
	a := w.get("/api/executions/%d/status", id).ok().equal("current_step", "finish")
	if started := a.text("start_time"); !strings.HasPrefix(started, time.Now().UTC().Format("2006")) {
		t.Errorf("it started at %s", started)
	}
	var order []string
	events, _ := w.get("/api/executions/%d/events?limit=1000", id).ok().at("events").([]any)
	for _, e := range events {
		if m := e.(map[string]any); strings.HasPrefix(m["event_type"].(string), "note.") {
			order = append(order, m["event_type"].(string)+" "+m["created_at"].(string)[:10])
		}
	}
	// A moment that has not come yet is taken for now.
	if want := []string{"note.late " + time.Now().UTC().Format(time.DateOnly), "note.early 2000-12-31"}; !slices.Equal(order, want) {
		t.Errorf("the log is %q, want %q", order, want)
	}
	w.get("/api/executions/%d/events?since_event_id=%d", id, only(w.log(id), "note.late", "")[0].EventID).ok().equal("events.0.event_type", "note.early")
}

// A payload that is no object was lost.
func TestDefect_29_APayloadThatIsNoObjectIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	for payload, want := range map[string]string{
		`7`: `{"value":7}`, `"text"`: `{"value":"text"}`, `[1,{"a":2}]`: `{"value":[1,{"a":2}]}`, `false`: `{"value":false}`, `{"a":1}`: `{"a":1}`,
	} {
		r := w.note(id, `"step":"s","event_type":"note","payload":`+payload)
		sameJSON(t, "the result of "+payload, r.Result, `{"status":"RUNNING","context":`+want+`}`)
	}
	sameJSON(t, "the result of nothing", w.note(id, `"step":"s","event_type":"note","payload":null`).Result, `{"status":"RUNNING"}`)
}

// Columns beside the payload stayed empty.
func TestDefect_30_ColumnsOfEventsStayEmpty(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	claim := w.claim(w.command(id, "start"), "w").ok()
	r := w.note(id, `"step":"start","event_type":"call.error","payload":{"command_id":`+quote(claim.text("meta.command_id"))+`,"error":{"kind":"timeout","message":"too slow"},"result":{"status":"error","context":{"duration_ms":1500}}}`)
	if r.Worker != "w" || r.Error != "too slow" || r.Duration != 1.5 || r.NodeType != "python" || r.ParentID == 0 {
		t.Errorf("stored is %+v", r)
	}
	w.get("/api/executions/%d/events?event_type=call.error", id).ok().
		shaped(`{events: [{worker_id: "w", error: "too slow", duration: real, node_type: "python", parent_event_id: id, node_id: "start"}+]}`)
}

// A claim that came as an event knew no rules.
func TestDefect_31_AClaimAsAnEventBreaksTheRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	command := w.command(id, "start")
	commandID := w.get("/api/commands/%d", command).ok().text("meta.command_id")
	claim := func(member, who string) answer {
		t.Helper()
		return w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.claimed","worker_id":%q,%q:{"command_id":%q}}`, id, who, member, commandID))
	}
	if claim("payload", "w").ok().text("event_id") == "0" {
		t.Error("the first claim is not stored")
	}
	claim("meta", "w").ok().equal("event_id", "0")
	claim("payload", "other").refused(409, "Command already claimed by w")
	if a := claim("payload", ""); a.status == 200 && a.text("event_id") != "0" {
		t.Errorf("a claim by nobody is taken: %s", a.body)
	}
	w.claim(command, "other").refused(409, "Command already claimed by w")
	w.counts(id, "command.claimed=1")
	w.post("/api/executions/"+id.String()+"/cancel", "").ok()
	claim("payload", "other").refused(409, "cancelled")
	claim("payload", "w").ok().equal("event_id", "0") // it says again what was so
	w.counts(id, "command.claimed=1")
}

// The status of an event was guessed from parts of its name.
func TestDefect_32_TheStatusIsGuessedFromPartsOfTheName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	for kind, want := range map[string]string{
		"frame.abandoned": "ABANDONED", "my.cancelled": "CANCELLED", "subscription.message.dead_lettered": "FAILED", "my.done": "COMPLETED",
		"my.completed": "COMPLETED", "my.failed": "FAILED", "my.error": "FAILED", "my.started": "RUNNING", "undone.business": "RUNNING",
	} {
		if got := w.note(id, `"step":"s","event_type":`+quote(kind)).Status; got != want {
			t.Errorf("%s is %s, want %s", kind, got, want)
		}
	}
	if got := w.note(id, `"step":"s","event_type":"my.failed","status":"FINE"`).Status; got != "FINE" {
		t.Errorf("a given status becomes %s", got)
	}
}
