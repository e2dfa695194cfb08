package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
)

func (w *world) statusOf(id event.ID) any {
	w.t.Helper()
	return w.get(fmt.Sprintf("/api/executions/%d/status", id)).ok(w.t).at(w.t, "status")
}

func TestACancelledExecutionIsOverEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, running := w.start("")
	child, _ := w.start(`,"parent_execution_id":"` + id.String() + `"`)
	claim := w.claim(running, "w1")
	path := fmt.Sprintf("/api/executions/%d", id)
	if a := w.get(path + "/cancellation-check").ok(t); a.at(t, "is_cancelled") != false || a.at(t, "status") != "RUNNING" {
		t.Errorf("before: %s", a.body)
	}
	w.post(path+"/cancel", `{"reason":"enough"}`).want(t, 200, fmt.Sprintf(
		`{"execution_id":%d,"execution_id_str":"%d","status":"cancelled","message":"Execution %d cancelled","cancelled_executions":[%d,%d]}`, id, id, id, id, child))
	w.post(path+"/stop", "").wantError(t, 422, "Cannot cancel execution in CANCELLED state")
	w.get(path+"/cancellation-check").want(t, 200, fmt.Sprintf(
		`{"execution_id":%d,"is_cancelled":true,"status":"CANCELLED","event_type":"playbook.cancelled","cancelled":true,"completed":false,"failed":false}`, id))

	w.complete(id, claim, `{"late":true}`) // comes too late and changes nothing
	w.claim(running, "w2").wantError(t, 409, "")
	rows := w.rows(id)
	if count(rows, event.PlaybookCancelled) != 1 || count(rows, event.CommandIssued) != 1 || count(rows, event.PlaybookCompleted) != 0 {
		t.Errorf("the log is %+v", rows)
	}
	for _, r := range rows {
		var meta struct{ Reason string }
		if r.Type == event.PlaybookCancelled && (json.Unmarshal(r.Meta, &meta) != nil || meta.Reason != "enough") {
			t.Errorf("the reason is lost: %s", r.Meta)
		}
	}
	if got := w.statusOf(child); got != "CANCELLED" {
		t.Errorf("the child is %v", got)
	}
	if a := w.get("/api/executions?status=cancelled").ok(t); a.id(t, 1, "execution_id") != id || a.at(t, 1, "completed_at") == nil {
		t.Errorf("listed: %s", a.body)
	}
	if a := w.get(path).ok(t); a.at(t, "status") != "CANCELLED" {
		t.Errorf("detail: %s", a.body)
	}
	w.post("/api/executions/5/cancel", "").wantError(t, 404, "Execution not found: 5")
	if a := w.get("/api/executions/5/cancellation-check").ok(t); a.at(t, "is_cancelled") != false {
		t.Errorf("unknown: %s", a.body)
	}
}

func TestACancellationWithoutCascadeLeavesTheChildren(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, _ := w.start("")
	child, _ := w.start(`,"parent_execution_id":"` + id.String() + `"`)
	w.post(fmt.Sprintf("/api/executions/%d/cancel", id), `{"cascade":false}`).ok(t)
	if got := w.statusOf(child); got != "RUNNING" {
		t.Errorf("the child is %v", got)
	}
}

func TestAnExecutionIsEndedByHandOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, tc := range []struct{ body, status, failure string }{
		{`{"status":"COMPLETED"}`, "COMPLETED", ""},
		{`{"status":"failed","error":"gave up"}`, "FAILED", "gave up"},
		{`{"reason":"abandoned"}`, "FAILED", "abandoned"},
		{``, "FAILED", "ended by hand"},
	} {
		id, command := w.start("")
		w.claim(command, "w1").ok(t)
		path := fmt.Sprintf("/api/executions/%d", id)
		for i, outcome := range []string{"finalized", "already_completed"} {
			a := w.post(path+"/finalize", tc.body).ok(t)
			if a.at(t, "status") != tc.status || a.at(t, "outcome") != outcome || a.id(t, "execution_id") != id {
				t.Errorf("%s, call %d: %s", tc.body, i, a.body)
			}
		}
		a := w.get(path + "/status").ok(t)
		failure, _ := a.at(t, "error").(string)
		if a.at(t, "status") != tc.status || failure != tc.failure {
			t.Errorf("%s: %s", tc.body, a.body)
		}
		rows := w.rows(id)
		if n := count(rows, event.PlaybookCompleted) + count(rows, event.PlaybookFailed); n != 1 || count(rows, event.CommandCancelled) != 1 {
			t.Errorf("%s: the log is %+v", tc.body, rows)
		}
		w.claim(command, "w2").wantError(t, 409, "")
	}
	done := w.run(`{}`)
	if a := w.post(fmt.Sprintf("/api/executions/%d/finalize", done), `{"status":"FAILED"}`).ok(t); a.at(t, "status") != "COMPLETED" || a.at(t, "outcome") != "already_completed" {
		t.Errorf("after a real end: %s", a.body)
	}
	w.post(fmt.Sprintf("/api/executions/%d/finalize", done), `{"status":"RUNNING"}`).wantError(t, 422, "Invalid finalization status: RUNNING")
	w.post("/api/executions/5/finalize", "").wantError(t, 404, "Execution not found: 5")
}

// cleaned is which executions a cleanup found.
func cleaned(t *testing.T, a answer) []event.ID {
	t.Helper()
	var v struct {
		IDs []event.ID `json:"execution_ids"`
	}
	if err := json.Unmarshal([]byte(a.ok(t).body), &v); err != nil {
		t.Fatal(err)
	}
	return v.IDs
}

func TestCleanupCancelsOnlyWhatStandsStillWithoutAReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stuck, _ := w.start("")
	busy, command := w.start("")
	claim := w.claim(command, "w1")
	parent, command := w.start("")
	commandID := w.claim(command, "w1").ok(t).at(t, "meta", "command_id").(string)
	w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.parked","worker_id":"w1",
		"payload":{"command_id":%q,"park":{"child":{"path":"demo/two","wait":true}}}}`, parent, commandID)).ok(t)
	child := w.childOf(parent)
	w.claim(w.lastCommand(child), "w1").ok(t)
	done := w.run(`{}`)
	w.pass(10 * time.Minute)
	fresh, _ := w.start("")

	if got := cleaned(t, w.post("/api/executions/cleanup", `{"older_than_minutes":11}`)); len(got) != 0 {
		t.Errorf("too early: %v", got)
	}
	if a := w.post("/api/executions/cleanup", `{"older_than_minutes":"5"}`); a.status != 422 || !strings.Contains(a.body, "want a number, got string") {
		t.Errorf("a text for a number: %d %s", a.status, a.body)
	}
	dry := w.post("/api/executions/cleanup", `{"dry_run":true}`)
	if diff := cmp.Diff([]event.ID{stuck}, cleaned(t, dry)); diff != "" || dry.id(t, "cancelled_count") != 0 || w.statusOf(stuck) != "RUNNING" {
		t.Errorf("dry run %s (-want +got):\n%s", dry.body, diff)
	}
	a := w.post("/api/executions/cleanup", "")
	if diff := cmp.Diff([]event.ID{stuck}, cleaned(t, a)); diff != "" || a.id(t, "cancelled_count") != 1 {
		t.Errorf("cleanup %s (-want +got):\n%s", a.body, diff)
	}
	for id, want := range map[event.ID]string{stuck: "CANCELLED", busy: "RUNNING", parent: "RUNNING", child: "RUNNING", done: "COMPLETED", fresh: "RUNNING"} {
		if got := w.statusOf(id); got != want {
			t.Errorf("execution %d is %v, want %s", id, got, want)
		}
	}
	w.complete(busy, claim, `{}`)

	// Once the worker is lost, nothing accounts for the silence any more.
	w.pass(time.Hour)
	if diff := cmp.Diff([]event.ID{busy, parent, child, fresh}, cleaned(t, w.post("/api/executions/cleanup", ""))); diff != "" {
		t.Errorf("cleanup of the lost (-want +got):\n%s", diff)
	}
	for _, bad := range []string{`{"older_than_minutes":0}`, `{"older_than_minutes":-1}`, `{"older_than_minutes":1e30}`, `{"older_than_minutes":"x"}`} {
		w.post("/api/executions/cleanup", bad).wantError(t, 422, "older_than_minutes")
	}
}

// childOf waits for the execution that another one started.
func (w *world) childOf(parent event.ID) event.ID {
	w.t.Helper()
	for range 200 {
		a := w.get("/api/executions?parent_execution_id=" + parent.String()).ok(w.t)
		if list, _ := tree(w.t, a.body).([]any); len(list) > 0 {
			return a.id(w.t, 0, "execution_id")
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-w.t.Context().Done():
		}
	}
	w.t.Fatal("the child did not start")
	return 0
}
