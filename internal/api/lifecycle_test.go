package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
)

// endEvent is the body of a command's end with an id of the sender's.
func endEvent(execution event.ID, commandID, kind string, id int64) string {
	return fmt.Sprintf(`{"execution_id":"%d","step":"start","event_type":%q,"worker_id":"w1","event_id":"%d","payload":{"command_id":%q,"status":"success"}}`,
		execution, kind, id, commandID)
}

func TestAnEventPostedAgainIsStoredOnceAndFollowedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	commandID := w.claim(command, "w1").ok(t).at(t, "meta", "command_id").(string)
	for range 3 {
		if got := w.post("/api/events", endEvent(id, commandID, "command.completed", 4242)).ok(t).id(t, "event_id"); got != 4242 {
			t.Errorf("the answer names %d", got)
		}
	}
	// One end per command: another one is answered with the first.
	for _, kind := range []string{"command.completed", "command.failed", "command.cancelled"} {
		if got := w.post("/api/events", endEvent(id, commandID, kind, 4343)).ok(t).id(t, "event_id"); got != 4242 {
			t.Errorf("%s after the end is answered with %d", kind, got)
		}
	}
	rows := w.rows(id)
	if ends, issued := count(rows, event.CommandCompleted), count(rows, event.CommandIssued); ends != 1 || issued != 2 || count(rows, event.CommandFailed) != 0 {
		t.Errorf("%d ends, %d commands", ends, issued)
	}
}

func TestADifferentEventUnderATakenIdIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.start("")
	post := func(kind, step string) event.ID {
		return w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":%q,"event_type":%q,"event_id":77,"worker_id":"w1"}`, id, step, kind)).ok(t).id(t, "event_id")
	}
	if first, again, other := post("note.a", "s"), post("note.a", "s"), post("note.b", "s"); first != 77 || again != 77 || other == 77 {
		t.Errorf("ids are %d, %d and %d", first, again, other)
	}
	a := w.post("/api/events/batch", fmt.Sprintf(`{"execution_id":%d,"worker_id":"w1","events":[
		{"step":"x","event_type":"note.c","event_id":88},{"step":"y","event_type":"note.c","event_id":88},{"step":"x","event_type":"note.c","event_id":88}]}`, id)).ok(t)
	if one, two, three := a.id(t, "event_ids", 0), a.id(t, "event_ids", 1), a.id(t, "event_ids", 2); one != 88 || two == 88 || three != 88 {
		t.Errorf("ids in one batch are %d, %d and %d", one, two, three)
	}
	if rows := w.rows(id); count(rows, "note.a") != 1 || count(rows, "note.b") != 1 || count(rows, "note.c") != 2 {
		t.Errorf("stored are %+v", rows)
	}
}

func TestEventsFillTheirColumns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	commandID := w.claim(command, "w1").ok(t).at(t, "meta", "command_id").(string)
	last := func(body string) row {
		t.Helper()
		a := w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"worker_id":"w1",%s}`, id, body)).ok(t)
		for _, r := range w.rows(id) {
			if r.EventID == a.id(t, "event_id") {
				return r
			}
		}
		t.Fatalf("not stored: %s", a.body)
		return row{}
	}
	result := func(r row, want string) {
		t.Helper()
		if diff := cmp.Diff(tree(t, want), tree(t, string(r.Result))); diff != "" {
			t.Errorf("result of %s (-want +got):\n%s", r.Type, diff)
		}
	}
	result(last(`"step":"","event_type":"note","payload":[1,2]`), `{"status":"RUNNING","context":{"value":[1,2]}}`)
	result(last(`"step":"s","name":"note.done","context":"x"`), `{"status":"COMPLETED","context":{"value":"x"}}`)
	result(last(`"step":"s","event_type":"note","payload":null`), `{"status":"RUNNING"}`)
	result(last(`"step":"s","event_type":"note","status":"OK","result_kind":"ref","result_uri":"gs://b/o"`), `{"status":"OK","reference":{"store_tier":"gcs","logical_uri":"gs://b/o"}}`)
	result(last(`"step":"s","event_type":"note","result_kind":"ref","result_uri":"s3://b/o"`), `{"status":"RUNNING","reference":{"store_tier":"s3","logical_uri":"s3://b/o"}}`)
	result(last(`"step":"s","event_type":"note","result_kind":"ref","result_uri":"file:/x"`), `{"status":"RUNNING","reference":{"store_tier":"artifact","logical_uri":"file:/x"}}`)
	result(last(`"step":"s","event_type":"note","result_kind":"refs","event_ids":[1,"`+big+`"]`), `{"status":"RUNNING","reference":{"event_ids":[1,`+big+`],"total_parts":2}}`)
	for kind, want := range map[string]string{"frame.abandoned": "ABANDONED", "subscription.message.dead_lettered": "FAILED", "my.cancelled": "CANCELLED", "my.error": "FAILED"} {
		if got := last(`"step":"s","event_type":"` + kind + `"`).Status; got != want {
			t.Errorf("%s derives %s, want %s", kind, got, want)
		}
	}
	r := last(`"step":"start","event_type":"call.error","created_at":"2026-01-02 03:04:05.5","meta":7,"payload":{"command_id":"` + commandID + `","error":{"message":"no luck"},"result":{"context":{"duration_ms":1500.5}}}`)
	if r.Error != "no luck" || r.Duration != 1.5005 || r.Worker != "w1" || r.NodeType != "noop" || !r.CreatedAt.Equal(time.Date(2026, 1, 2, 3, 4, 5, 5e8, time.UTC)) {
		t.Errorf("columns are %+v", r)
	}
	if diff := cmp.Diff(tree(t, `{"command_id":"`+commandID+`","value":7,"actionable":true,"informative":true}`), tree(t, string(r.Meta))); diff != "" {
		t.Errorf("meta (-want +got):\n%s", diff)
	}
	w.post("/api/events", `{"execution_id":5,"step":"s","event_type":"note"}`).wantError(t, 404, "Execution not found: 5")
}

func TestABatchGoesOnAfterAFailureAndIgnoresTheIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	commandID := w.claim(command, "w1").ok(t).at(t, "meta", "command_id").(string)
	body := fmt.Sprintf(`{"execution_id":"%d","worker_id":"w1","events":[
		{"step":"start","name":"command.started","context":{"command_id":%q},"event_id":"501","status":"STARTED","meta":{"k":1},"created_at":"2026-01-02T03:04:05Z"},
		{"step":"start","event_type":"command.failed","payload":{"command_id":%q,"error":"boom"},"event_id":502}]}`, id, commandID, commandID)
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/api/events/batch", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k1")
		resp, err := w.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var a struct {
			IDs []event.ID `json:"event_ids"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%d: %v", resp.StatusCode, err)
		}
		_ = resp.Body.Close()
		if diff := cmp.Diff([]event.ID{501, 502}, a.IDs); diff != "" {
			t.Error(diff)
		}
	}
	rows := w.rows(id)
	if count(rows, event.CommandFailed) != 1 || count(rows, event.PlaybookFailed) != 1 {
		t.Errorf("stored are %+v", rows)
	}
	for _, r := range rows {
		if r.EventID == 501 && (r.Status != "STARTED" || !strings.Contains(string(r.Meta), `"actionable":false`) || !strings.Contains(string(r.Meta), `"k":1`) || r.CreatedAt.Year() != 2026 || r.CreatedAt.Month() != 1) {
			t.Errorf("the item's own words are lost: %+v", r)
		}
	}
}

func TestAClaimReportedAsAnEventObeysTheRulesOfClaims(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	commandID := w.get(fmt.Sprintf("/api/commands/%d", command)).ok(t).at(t, "meta", "command_id").(string)
	claim := func(worker string) answer {
		return w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.claimed","worker_id":%q,"payload":{"command_id":%q}}`, id, worker, commandID))
	}
	if first := claim("w1").ok(t).id(t, "event_id"); first == 0 {
		t.Error("the first claim was not stored")
	}
	if again := claim("w1").ok(t).id(t, "event_id"); again != 0 {
		t.Errorf("the repeated claim is event %d", again)
	}
	claim("w2").wantError(t, 409, "Command already claimed by w1")
	w.claim(command, "w1").ok(t)
	w.claim(command, "w2").wantError(t, 409, "Command already claimed by w1")
	if n := count(w.rows(id), event.CommandClaimed); n != 1 {
		t.Errorf("%d claims", n)
	}
	w.post(fmt.Sprintf("/api/executions/%d/cancel", id), "").ok(t)
	claim("w2").wantError(t, 409, "cancelled")
}

func TestOfManyWorkersOneGetsTheCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	var all sync.WaitGroup
	answers := make([]answer, 8)
	for i := range answers {
		all.Go(func() { answers[i] = w.claim(command, fmt.Sprint("w", i)) })
	}
	all.Wait()
	won := 0
	for _, a := range answers {
		switch a.status {
		case 200:
			won++
		case 409:
			if a.header.Get("Retry-After") == "" {
				t.Error("a live claim may end: want Retry-After")
			}
		default:
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := count(w.rows(id), event.CommandClaimed); won != 1 || n != 1 {
		t.Errorf("%d workers won, the log has %d claims", won, n)
	}
}

func TestManyCommandsAreClaimedInOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, a := w.start("")
	_, b := w.start("")
	_, c := w.start("")
	w.claim(b, "w2").ok(t)
	w.complete(first, w.claim(a, "w1"), `{}`)
	d := w.lastCommand(first)
	got := w.post("/api/commands/claim", fmt.Sprintf(`{"worker_id":"w1","commands":[
		{"event_id":"%d"},{"event_id":%d,"execution_id":5},{"event_id":%d},{"event_id":1},{"event_id":%d,"execution_id":"%d"},{"event_id":%d}]}`, a, b, c, d, first, c)).ok(t)
	for i, want := range []string{"conflict", "conflict", "ok", "not_found", "ok", "ok"} {
		if s := got.at(t, "results", i, "status"); s != want {
			t.Errorf("claim %d: %v, want %s: %s", i, s, want, got.body)
		}
	}
	if got.id(t, "results", 2, "command", "event_id") != c || got.at(t, "results", 4, "command", "node_name") != "finish" ||
		got.at(t, "results", 0, "reason") != "already_terminal" || got.at(t, "results", 1, "error") != "Command already claimed by w2" {
		t.Errorf("results are %s", got.body)
	}
	w.post("/api/commands/claim", `{"worker_id":"w1","commands":[]}`).want(t, 200, `{"results":[]}`)
	w.post("/api/commands/claim", `{"commands":[{"event_id":1}]}`).wantError(t, 422, "worker_id")
	w.post("/api/commands/claim", `{"worker_id":"w","commands":[{}]}`).wantError(t, 422, "commands[0]: event_id")
	w.post("/api/commands/claim", `{"worker_id":"w","commands":[{"event_id":1.5}]}`).wantError(t, 422, "commands[0].event_id")
	w.post("/api/commands/claim", `{"worker_id":"w","commands":[`+strings.Repeat(`{"event_id":1},`, 256)+`{"event_id":1}]}`).wantError(t, 422, "at most 256")
}

func TestAClaimIsLostGivenBackAndFenced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	path := fmt.Sprintf("/api/commands/%d", command)
	w.post(path+"/claim", `{"worker_id":"w1","heartbeats":true,"execution_id":99}`).ok(t) // a wrong hint costs nothing
	w.post(path+"/heartbeat", `{"worker_id":"w1","attempt":1}`).ok(t)
	w.post(path+"/release", `{"worker_id":"w1","attempt":1}`).ok(t)
	w.post(path+"/heartbeat", `{"worker_id":"w1","attempt":1}`).wantError(t, 409, "claim was lost")
	if a := w.claim(command, "w2"); a.ok(t).at(t, "meta", "attempt") != json.Number("2") {
		t.Errorf("the second attempt is %s", a.body)
	}
	commandID := w.get(path).ok(t).at(t, "meta", "command_id").(string)
	// The report of the first holder comes late and must not end the command.
	w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","worker_id":"w1","meta":{"attempt":1},"payload":{"command_id":%q}}`, id, commandID)).ok(t)
	a := w.post("/api/commands/heartbeat", fmt.Sprintf(`{"worker_id":"w2","commands":[{"event_id":%d},{"event_id":%d,"worker_id":"w1","attempt":1}]}`, command, command)).ok(t)
	if a.at(t, "answers", 0, "cancel") != false || a.at(t, "answers", 1, "cancel") != true || a.at(t, "answers", 1, "lease_until") != nil {
		t.Errorf("heartbeats are answered with %s", a.body)
	}
	w.post(fmt.Sprintf("/api/executions/%d/cancel", id), "").ok(t)
	if a := w.post("/api/commands/heartbeat", fmt.Sprintf(`{"worker_id":"w2","commands":[{"event_id":%d}]}`, command)).ok(t); a.at(t, "answers", 0, "cancel") != true {
		t.Errorf("the worker of a cancelled execution is not told to stop: %s", a.body)
	}
}

func TestAFinishedCommandIsNotGivenToItsWorkerAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	w.complete(id, w.claim(command, "w1"), `{}`)
	w.claim(command, "w1").wantError(t, 409, "Command already reached terminal state")
	a := w.get(fmt.Sprintf("/api/commands/%d", command)).ok(t)
	if a.at(t, "action") != "noop" || a.at(t, "node_name") != "start" || a.id(t, "execution_id") != id {
		t.Errorf("a finished command is shown as %s", a.body)
	}
	w.get("/api/commands/5").wantError(t, 404, "command.issued event not found: 5")
}

func TestStatusGoesUpAndDownWithTheWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, command := w.start("")
	status := func() answer { return w.get(fmt.Sprintf("/api/executions/%d/status", id)).ok(t) }
	progress := func(total, completed, running int, current string) {
		t.Helper()
		a := status()
		want := tree(t, fmt.Sprintf(`{"total_steps":%d,"completed_steps":%d,"running_steps":%d,"failed_steps":0}`, total, completed, running))
		if diff := cmp.Diff(want, a.at(t, "progress")); diff != "" || current != "" && a.at(t, "current_step") != current {
			t.Errorf("at %v (-want +got):\n%s", a.at(t, "current_step"), diff)
		}
	}
	progress(1, 0, 1, "start")
	w.complete(id, w.claim(command, "w1"), `{}`)
	progress(2, 1, 1, "finish")
	w.complete(id, w.claim(w.lastCommand(id), "w1"), `{}`)
	progress(2, 2, 0, "")
	a := status()
	if a.at(t, "status") != "COMPLETED" || a.at(t, "completed") != true || a.at(t, "end_time") == nil || a.at(t, "source") != "execution" {
		t.Errorf("status is %s", a.body)
	}
	if diff := cmp.Diff([]any{"start", "finish"}, a.at(t, "completed_steps")); diff != "" {
		t.Error(diff)
	}
	for path, where := range map[string][]any{"/api/executions": {0, "status"}, fmt.Sprintf("/api/executions/%d", id): {"status"}} {
		if got := w.get(path).ok(t).at(t, where...); got != "COMPLETED" {
			t.Errorf("%s says %v", path, got)
		}
	}
}

const wideLoop = `apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: wide
  path: demo/wide
workflow:
  - step: start
    loop:
      in: "{{ range(50) | list }}"
      iterator: n
      spec:
        mode: parallel
    tool:
      kind: noop
    next:
      arcs:
        - step: finish
  - step: finish
    tool:
      kind: noop
`

func TestParallelEndsOfALoopAreFollowedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(wideLoop)
	id := w.post("/api/execute", `{"path":"demo/wide"}`).ok(t).id(t, "execution_id")
	var items []string
	for _, r := range w.rows(id) {
		if r.Type == event.CommandIssued {
			items = append(items, fmt.Sprintf(`{"event_id":%d}`, r.EventID))
		}
	}
	claims := w.post("/api/commands/claim", `{"worker_id":"w1","commands":[`+strings.Join(items, ",")+`]}`).ok(t)
	var all sync.WaitGroup
	for i := range items {
		all.Go(func() {
			commandID, _ := claims.at(t, "results", i, "command", "meta", "command_id").(string)
			w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","status":"success","worker_id":"w1","payload":{"command_id":%q}}`, id, commandID))
		})
	}
	all.Wait()
	rows := w.rows(id)
	exits := 0
	for _, r := range rows {
		if (r.Type == event.LoopDone || r.Type == event.StepExit) && r.Node == "start" {
			exits++
		}
	}
	if issued := count(rows, event.CommandIssued); len(items) != 50 || exits != 1 || issued != 51 || count(rows, event.CommandCompleted) != 50 {
		t.Errorf("%d items, %d exits, %d commands", len(items), exits, issued)
	}
}
