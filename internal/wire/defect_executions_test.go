package wire

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// A cancelled execution went on, because writers and readers spelled it
// differently.
func TestDefect_33_ACancelledExecutionGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	w.post("/api/executions/"+id.String()+"/cancel", "").ok()
	w.claim(w.command(id, "start"), "w").refused(409, "cancelled")
	w.get("/api/replay/state?execution_id=%d", id).ok().equal("execution.status", "CANCELLED")
	w.wantStatus(id, "CANCELLED")
	for i, spelling := range []event.Type{"playbook_cancelled", "execution.cancelled", "playbook.cancelled"} {
		id := w.again("demo/one", "")
		w.written(id, event.Event{EventID: 900 + event.ID(i), Type: spelling, NodeName: "playbook", Status: "CANCELLED"})
		reader := w.replica(2 + i)
		reader.get("/api/replay/state?execution_id=%d", id).ok().equal("execution.status", "CANCELLED")
		reader.claim(w.command(id, "start"), "w").refused(409, "")
		reader.post("/api/executions/"+id.String()+"/cancel", "").refused(422, "CANCELLED")
		reader.wantStatus(id, "CANCELLED")
	}
}

// written puts an event into the log as another server would, which also ends
// the execution.
func (w *world) written(id event.ID, e event.Event) {
	w.t.Helper()
	x, err := w.store.Execution(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	e.ExecutionID, e.CatalogID, e.Seq, e.CreatedAt = id, x.CatalogID, x.LastSeq+1, time.Now()
	b := store.Batch{Execution: x, Expected: x.LastSeq, Events: []event.Event{e}}
	b.Execution.LastSeq, b.Execution.LastEventID, b.Execution.LastEventType = e.Seq, e.EventID, e.Type
	b.Execution.Status, b.Execution.EndedAt = e.Status, e.CreatedAt
	if err := w.store.Append(w.t.Context(), b); err != nil {
		w.t.Fatal(err)
	}
}

// Cancelling forgot why, forgot the children, and did not stop the engine.
func TestDefect_34_CancellingStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	child := w.again("demo/two", `,"parent_execution_id":`+id.String())
	grandchild := w.again("demo/two", `,"parent_execution_id":"`+child.String()+`"`)
	claim := w.claim(w.command(id, "start"), "w").ok()
	w.post("/api/executions/"+id.String()+"/cancel", `{"reason":"enough"}`).ok()
	end := only(w.log(id), "playbook.cancelled", "")[0]
	if end.meta("reason") != "enough" {
		t.Errorf("the reason is lost: %s", end.Meta)
	}
	w.worker("w").end(id, claim, `1`)
	w.counts(id, "command.issued=1 playbook.completed=0 playbook.cancelled=1")
	for _, x := range []event.ID{id, child, grandchild} {
		w.wantStatus(x, "CANCELLED")
	}
	alone := w.again("demo/two", "")
	left := w.again("demo/two", `,"parent_execution_id":`+alone.String())
	w.post("/api/executions/"+alone.String()+"/cancel", `{"cascade":false}`).ok()
	w.wantStatus(left, "RUNNING")
}

// An error the playbook takes care of made the whole execution FAILED.
func TestDefect_35_AHandledErrorFailsTheExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.worker("w")
	id := w.start(playbookOf("demo/handled", handled))
	f.fail(id, f.claim(w.command(id, "start"), "w"), "boom")
	w.wantStatus(id, "RUNNING")
	f.finish(id, `1`)
	w.wantStatus(id, "COMPLETED")
	other := w.again("demo/handled", "")
	f.fail(other, f.claim(w.command(other, "start"), "w"), "boom")
	w.post("/api/executions/"+other.String()+"/cancel", "").ok()
	w.wantStatus(other, "CANCELLED")
}

// List, detail and status had three opinions.
func TestDefect_36_ListDetailAndStatusDisagree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.worker("w")
	ends := map[string]func(id event.ID){
		"COMPLETED": func(id event.ID) { f.finish(id, `1`) },
		"FAILED":    func(id event.ID) { f.fail(id, f.claim(w.command(id, "start"), "w"), "boom") },
		"CANCELLED": func(id event.ID) { w.post("/api/executions/"+id.String()+"/cancel", "").ok() },
		"RUNNING":   func(id event.ID) { f.run(id, w.command(id, "start"), `1`) },
	}
	for want, end := range ends {
		id := w.start(twoSteps)
		w.wantStatus(id, "RUNNING")
		end(id)
		// Ends that come too late change nothing, wherever one looks.
		for _, late := range []string{"playbook.completed", "playbook_failed", "execution.cancelled", "command.failed"} {
			if want != "RUNNING" {
				w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"playbook","event_type":%q,"worker_id":"w"}`, id, late))
			}
		}
		w.wantStatus(id, want)
		w.get("/api/executions?status=%s", strings.ToLower(want)).ok().equal("0.execution_id", id.String())
		w.get("/api/executions/%d/cancellation-check", id).ok().equal("is_cancelled", fmt.Sprint(want == "CANCELLED"))
	}
}

// An execution that runs had an end.
func TestDefect_37_ARunningExecutionHasAnEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	w.worker("w").run(id, w.command(id, "start"), `1`)
	const open = `{status: "RUNNING", completed_at: null, end_time: null}`
	w.get("/api/executions").ok().shaped(`[` + open + `+]`)
	w.get("/api/executions/%d", id).ok().shaped(open)
	w.get("/api/executions/%d/status", id).ok().shaped(open)
	w.worker("w2").finish(id, `1`)
	a, b := w.get("/api/executions").ok().text("0.completed_at"), w.get("/api/executions/%d", id).ok().text("completed_at")
	if a != b || a == "<nil>" {
		t.Errorf("the list says %s, the detail %s", a, b)
	}
}

// Executions of other servers began with another word and were not found.
func TestDefect_38_AStartOfAnotherSpellingIsNotFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := w.register(oneStep).id("catalog_id")
	for i, spelling := range []event.Type{"playbook_started", "playbook.started", "playbook.initialized"} {
		id, at := event.ID(400000000000000000+i), time.Now()
		e := event.Event{EventID: id + 100, ExecutionID: id, CatalogID: catalog, Seq: 1, Type: spelling, NodeName: "demo/one", Status: "STARTED", CreatedAt: at, Context: []byte(`{"workload":{"n":1}}`)}
		if err := w.store.Append(context.Background(), store.Batch{
			Execution: store.Execution{
				ExecutionID: id, CatalogID: catalog, Path: "demo/one", Version: 1, Status: "RUNNING", LastSeq: 1,
				LastEventID: e.EventID, LastEventType: spelling, StartedAt: at, UpdatedAt: at,
			}, Events: []event.Event{e},
		}); err != nil {
			t.Fatal(err)
		}
		w.get("/api/executions").ok().equal("0.execution_id", id.String())
		w.get("/api/executions/%d", id).ok().equal("status", "RUNNING").equal("events.0.event_type", string(spelling)).equal("workload.n", "1")
		w.get("/api/executions/%d/status", id).ok().equal("status", "RUNNING")
	}
}

// Counters of steps went up and never down, and missed the first.
func TestDefect_39_CountersOfStepsOnlyGrow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	progress := func(want string) {
		t.Helper()
		p := w.get("/api/executions/%d/status", id).ok()
		got := fmt.Sprintf("%s/%s/%s/%s", p.text("progress.total_steps"), p.text("progress.completed_steps"), p.text("progress.running_steps"), p.text("progress.failed_steps"))
		if got != want {
			t.Errorf("total/completed/running/failed are %s, want %s", got, want)
		}
	}
	f := w.worker("w")
	progress("1/0/1/0")
	f.run(id, w.command(id, "start"), `1`)
	progress("2/1/1/0")
	f.run(id, w.command(id, "finish"), `1`)
	progress("2/2/0/0")
}

// Pages of the list shifted under their reader, and filters hid older matches.
func TestDefect_40_PagesOfTheListShift(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(oneStep)
	w.register(playbookOf("other/rare", step("start")))
	rare := w.again("other/rare", "")
	var ids []event.ID
	for range 6 {
		ids = append(ids, w.again("demo/one", ""))
	}
	w.get("/api/executions?path=RARE&limit=1").ok().equal("0.execution_id", rare.String())
	page := w.get("/api/executions?limit=3").ok().equal("2.execution_id", ids[3].String())
	w.again("demo/one", "") // shifts pages that are counted
	w.get("/api/executions?limit=3&before=%s", page.header.Get("X-Next-Before")).ok().equal("0.execution_id", ids[2].String()).equal("2.execution_id", ids[0].String())
}

// The list read all events there are.
func TestDefect_41_TheListReadsAllEvents(t *testing.T) {
	t.Parallel()
	var s watched
	w := newWorld(t, watching(&s))
	id := w.start(oneStep)
	w.worker("w").finish(id, `1`)
	s.events.Store(0)
	w.get("/api/executions").ok().equal("0.status", "COMPLETED")
	w.get("/api/executions?status=COMPLETED&path=one").ok().equal("0.status", "COMPLETED")
	w.get("/api/dashboard/stats").ok()
	if n := s.events.Load(); n > 0 {
		t.Errorf("lists read %d events", n)
	}
}

// Of a long log only the end could be read, and early results were out of reach.
func TestDefect_42_EarlyEventsAreOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	w.worker("w").run(id, w.command(id, "start"), `{"early":true}`)
	items := strings.TrimSuffix(strings.Repeat(`{"step":"finish","event_type":"note"},`, 1000), ",")
	for range 3 {
		w.post("/api/events/batch", fmt.Sprintf(`{"execution_id":%d,"worker_id":"w","events":[%s]}`, id, items)).ok()
	}
	detail := w.get("/api/executions/%d", id).ok()
	events, _ := detail.at("events").([]any)
	if first := detail.text("events.0.event_type"); len(events) < 2000 || len(events) > 2100 {
		t.Errorf("%d events, the first %s", len(events), first)
	}
	for _, query := range []string{"?event_type=call.done", "/events?event_type=call.done", "?page=1&page_size=100&event_type=call.done"} {
		if a := w.get("/api/executions/%d%s", id, query).ok(); !strings.Contains(a.body, `"early":true`) {
			t.Errorf("%s does not show the early result", query)
		}
	}
	w.get("/api/executions/%d/events?page=1&page_size=10", id).ok().equal("events.0.event_type", "playbook_started").equal("pagination.has_next", "true")
}

// Every call added one more end.
func TestDefect_43_AnExecutionCanBeEndedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	path := "/api/executions/" + id.String() + "/finalize"
	w.post(path, `{"status":"COMPLETED"}`).ok().equal("status", "COMPLETED")
	before := len(w.log(id))
	w.post(path, `{"status":"FAILED","error":"no, it failed"}`).ok().equal("status", "COMPLETED")
	w.post(path, `{"status":"COMPLETED"}`).ok()
	if after := len(w.log(id)); after != before {
		t.Errorf("%d events more", after-before)
	}
	w.wantStatus(id, "COMPLETED")
}

// The row of an execution stood still.
func TestDefect_44_TheRowOfAnExecutionStandsStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	row := func() store.Execution {
		t.Helper()
		x, err := w.store.Execution(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		log := w.log(id)
		if last := log[len(log)-1]; x.LastSeq != int64(len(log)) || x.LastEventID != last.EventID || string(x.LastEventType) != last.Type {
			t.Errorf("the row says %d %s, the log %d %s", x.LastSeq, x.LastEventType, len(log), last.Type)
		}
		return x
	}
	row()
	w.worker("w").run(id, w.command(id, "start"), `1`)
	if x := row(); x.Status != "RUNNING" || x.CurrentStep != "finish" || !x.EndedAt.IsZero() {
		t.Errorf("the row is %+v", x)
	}
	w.worker("w2").finish(id, `1`)
	if x := row(); x.Status != "COMPLETED" || x.EndedAt.IsZero() || x.StartedAt.IsZero() {
		t.Errorf("the row is %+v", x)
	}
	w.internal("POST", "/api/db/verify", "").ok().equal("clean", "true")
}

// Clients called routes that did not exist.
func TestDefect_45_RoutesClientsCallAreMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	path := "/api/executions/" + id.String()
	again := w.post(path+"/rerun", `{"workload":{"who":"again"}}`).ok().shaped(`@started`).id("execution_id")
	w.get("/api/executions/%d", again).ok().equal("workload.who", "again").equal("workload.city", "Paris")
	w.get("%s/events", path).ok().shaped(`{events: [@event+]}`)
	w.post(path+"/stop", "").ok().equal("status", "cancelled")
	w.pass(time.Hour)
	w.post("/api/executions/cleanup", `{"older_than_minutes":5}`).ok().shaped(`{cancelled_count: int, execution_ids: [id], message: text}`)
}
