package wire

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/testkit"
)

// Every end of a command read the whole log and parsed the playbook anew.
func TestDefect_01_ATriggerReadsTheWholeLog(t *testing.T) {
	t.Parallel()
	var s watched
	w := newWorld(t, watching(&s))
	w.register(playbookOf("demo/many", loopStep("start", "{{ range(30) | list }}", "parallel", "finish")+step("finish")))
	id := w.again("demo/many", "")
	f := w.worker("w")
	claims := make([]answer, 0, 30)
	for _, c := range only(w.log(id), "command.issued", "") {
		claims = append(claims, f.claim(c.EventID, "w").ok())
	}
	s.events.Store(0)
	s.entries.Store(0)
	for _, c := range claims {
		f.end(id, c, `1`)
	}
	if events, entries := s.events.Load(), s.entries.Load(); events > 0 || entries > 1 {
		t.Errorf("30 ends read %d events and looked up the playbook %d times", events, entries)
	}
	f.finish(id, `1`)
	w.wantStatus(id, "COMPLETED")
}

// Snapshots were taken by the distance of ids, which is always large, and not by
// the number of events.
func TestDefect_02_SnapshotsAreTakenByDistanceOfIds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	replayed := func() error {
		t.Helper()
		w.pass(time.Minute) // fresh events stay out of snapshots anyway
		w.get("/api/replay/state?execution_id=%d", id).ok()
		_, err := w.store.Snapshot(t.Context(), id, replay.SnapshotType, replay.SnapshotID(id))
		return err
	}
	w.note(id, `"step":"x","event_type":"note","event_id":1`)
	w.note(id, `"step":"x","event_type":"note","event_id":9000000000000000000`)
	if err := replayed(); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a few events are worth a snapshot: %v", err)
	}
	items := strings.TrimSuffix(strings.Repeat(`{"step":"x","event_type":"note"},`, 1000), ",")
	for range 2 {
		w.post("/api/events/batch", fmt.Sprintf(`{"execution_id":%d,"events":[%s]}`, id, items)).ok()
	}
	if err := replayed(); err != nil {
		t.Errorf("many events are not: %v", err)
	}
}

// Replicas without a common lock both issued the next step and both ended the execution.
func TestDefect_03_ConcurrentEndsOnTwoReplicasAreFollowedTwice(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := a.replica(2)
	id := a.start(playbookOf("demo/wide", loopStep("start", "{{ range(12) | list }}", "parallel", "finish")+step("finish")))
	var all sync.WaitGroup
	for i, c := range only(a.log(id), "command.issued", "") {
		here, there := a, b
		if i%2 == 1 {
			here, there = b, a
		}
		all.Go(func() {
			f := there.worker(fmt.Sprint("w", i))
			f.ids += int64(i) * 1000
			f.end(id, here.claim(c.EventID, f.name).ok(), `1`)
		})
	}
	all.Wait()
	a.counts(id, "command.issued=13 command.completed=12 loop.done=1")
	last := a.command(id, "finish")
	claim := b.claim(last, "w").ok()
	for _, w := range []*world{a, b, a, b} {
		all.Go(func() {
			w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"finish","event_type":"command.completed","worker_id":"w","payload":{"command_id":%q}}`, id, claim.text("meta.command_id"))).ok()
		})
	}
	all.Wait()
	a.counts(id, "playbook.completed=1 playbook.failed=0 command.completed=13")
}

// An event was stored, its evaluation failed, and the answer was 200 all the
// same: a wake-up nobody repeated.
func TestDefect_04_AFailedEvaluationIsALostWakeUp(t *testing.T) {
	t.Parallel()
	var s watched
	w := newWorld(t, watching(&s))
	id := w.start(twoSteps)
	claim := w.claim(w.command(id, "start"), "w").ok()
	end := fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","event_id":4711,"worker_id":"w","payload":{"command_id":%q}}`, id, claim.text("meta.command_id"))
	s.broken.Store(true)
	a := w.post("/api/events", end)
	a.refused(503, "")
	if a.header.Get("Retry-After") == "" {
		t.Error("nobody is told to try again")
	}
	w.counts(id, "command.completed=0 command.issued=1")
	s.broken.Store(false)
	w.post("/api/events", end).ok().shaped(`{event_id: 4711, commands_generated: 1}`)
	w.counts(id, "command.completed=1 command.issued=2")
	// What can never be evaluated ends the execution instead of leaving it open.
	broken := w.start(playbookOf("demo/broken", step("start", "finish")+"          when: \"{{ 1 / 0 }}\"\n"+step("finish")))
	w.worker("w").run(broken, w.command(broken, "start"), `1`)
	w.wantStatus(broken, "FAILED")
	w.counts(broken, "playbook.failed=1")
}

// Only two types of events drove the engine, and no answer told of new commands.
func TestDefect_05_EventsDoNotDriveTheEngine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.worker("w")
	for _, kind := range []string{"command.completed", "command.failed", "command.cancelled"} {
		id := w.start(playbookOf("demo/next", `  - step: start
    tool: {kind: python, code: "result = 1"}
    next:
      arcs:
        - step: good
          when: "{{ event.name != 'call.error' }}"
        - step: bad
          when: "{{ event.name == 'call.error' }}"
`+step("good")+step("bad")))
		claim := f.claim(w.command(id, "start"), "w").ok()
		f.tell(id, "start", kind, "", fmt.Sprintf(`{"command_id":%q,"error":"e"}`, claim.text("meta.command_id"))).ok().equal("commands_generated", "1")
		w.counts(id, "command.issued=2")
	}
}

// An end that the reader did not see yet was taken for a success.
func TestDefect_06_AFailureSeenByAnotherReplicaCountsAsSuccess(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := a.replica(2)
	for _, kind := range []string{"command.failed", "command.completed"} {
		id := a.start(twoSteps)
		claim := a.claim(a.command(id, "start"), "w").ok()
		// The other replica has never heard of this execution.
		b.worker("w").tell(id, "start", kind, map[string]string{"command.failed": "FAILED", "command.completed": "timeout"}[kind],
			fmt.Sprintf(`{"command_id":%q,"error":"too late"}`, claim.text("meta.command_id"))).ok()
		a.wantStatus(id, "FAILED")
		a.counts(id, "command.issued=1 playbook.failed=1")
	}
}

// Events of the engine were stored without their result and error.
func TestDefect_07_EventsOfTheEngineLoseResultAndError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	f := w.worker("w")
	f.fail(id, f.claim(w.command(id, "start"), "w"), "no luck")
	failed := only(w.log(id), "playbook.failed", "")[0]
	if failed.Error != "Failed steps: start: no luck" || string(failed.Result) != `{"status":"FAILED","context":{"error":"Failed steps: start: no luck"}}` {
		t.Errorf("error %q, result %s", failed.Error, failed.Result)
	}
	w.get("/api/executions/%d/status", id).ok().equal("error", "Failed steps: start: no luck")
	for _, r := range w.log(id) { // and every result has the shape readers count on
		if v, err := decodeTree(string(r.Result)); len(r.Result) > 0 && err == nil {
			m, _ := v.(map[string]any)
			for key := range m {
				if key != "status" && key != "context" && key != "reference" {
					t.Errorf("%s has a result with %q", r.Type, key)
				}
			}
		}
	}
}

// Columns that could not be read came back as zero, empty or now.
func TestDefect_08_UnreadableRowsLookEmpty(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "noetl.db")
	w := newWorld(t, setting{store: func(t *testing.T) store.Store {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{Relaxed: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}})
	id := w.start(oneStep)
	w.get("/api/executions/%d/events", id).ok()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "ALTER TABLE event RENAME COLUMN created_at TO happened_at"); err != nil {
		t.Fatal(err)
	}
	w.get("/api/executions/%d/events", id).refused(503, "event store did not answer")
}

// A first step that loops over nothing hung.
func TestDefect_09_AnEmptyLoopAtTheStartHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, mode := range []string{"parallel", "sequential"} {
		id := w.start(playbookOf("demo/nothing", loopStep("start", "{{ [] }}", mode, "finish")+step("finish")))
		w.counts(id, "loop.done=1 command.issued=1")
		w.worker("w").finish(id, `1`)
		w.wantStatus(id, "COMPLETED")
		alone := w.start(playbookOf("demo/alone", loopStep("start", "{{ [] }}", mode)))
		w.wantStatus(alone, "COMPLETED")
	}
	w.register(playbookOf("demo/items", loopStep("start", "{{ ['a', 'b', 'c'] }}", "sequential")))
	// The answer counts items, as clients expect; the log has what was issued.
	a := w.post("/api/execute", `{"path":"demo/items"}`).ok().equal("commands_generated", "3")
	w.counts(a.id("execution_id"), "command.issued=1")
}

// Loops were read in two ways. They still are, but each says so: the first step
// refuses at the start what is no list, later ones say how they read it.
func TestDefect_10_LoopsReadTheirItemsInTwoWays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for in, got := range map[string]string{"{{ 'a,b' }}": "string", "{{ 3 }}": "number", "{{ {'a': 1} }}": "object", "{{ none }}": "null", "{{ true }}": "boolean"} {
		w.register(playbookOf("demo/first", loopStep("start", in, "parallel")))
		w.post("/api/execute", `{"path":"demo/first"}`).refused(422, "start step loop.in must resolve to a JSON array, got: "+got)
		id := w.start(playbookOf("demo/later", step("start", "each")+loopStep("each", in, "parallel")))
		w.worker("w").run(id, w.command(id, "start"), `1`)
		want := map[string]string{"string": "2", "number": "3", "object": "1"}[got]
		if want == "" {
			w.wantStatus(id, "FAILED")
		} else if n := fmt.Sprint(len(only(w.log(id), "command.issued", "each"))); n != want {
			t.Errorf("%s gives %s items, want %s", in, n, want)
		}
	}
	if rows := w.get("/api/executions?path=demo/first").ok().tree(); len(rows.([]any)) != 0 {
		t.Error("a refused start left an execution behind")
	}
}

// Results of a loop stood in the order they arrived in, and without data.
func TestDefect_11_ResultsOfALoopAreInOrderOfArrival(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(playbookOf("demo/order", loopStep("start", "{{ ['a', 'b', 'c'] }}", "parallel", "finish")+
		"  - step: finish\n    tool:\n      kind: python\n      args:\n        all: \"{{ start }}\"\n      code: \"result = 1\"\n"))
	f := w.worker("w")
	commands := only(w.log(id), "command.issued", "start")
	for _, i := range []int{2, 0, 1} {
		claim := f.claim(commands[i].EventID, "w").ok().equal("meta.iteration_index", fmt.Sprint(i))
		f.end(id, claim, fmt.Sprintf(`{"index":%d}`, i))
	}
	a := w.claim(w.command(id, "finish"), "w").ok()
	for i := range 3 {
		if got := a.text(fmt.Sprintf("context.render_context.start.%d.index", i)); got != fmt.Sprint(i) {
			t.Errorf("item %d is %s: %s", i, got, a.body)
		}
	}
}

// Attempts were written down in two places and bounded in none.
func TestDefect_12_AttemptsAreNotCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: func(o *control.Options) { quick(o); o.MaxAttempts = 3 }})
	id := w.start(oneStep)
	command := w.command(id, "start")
	for attempt := 1; attempt <= 3; attempt++ {
		w.claim(command, fmt.Sprint("w", attempt)).ok().equal("meta.attempt", fmt.Sprint(attempt)).equal("meta.max_attempts", "3")
		if row := w.commandRow(id, command); row.Attempt != attempt {
			t.Errorf("the row says attempt %d, want %d", row.Attempt, attempt)
		}
		w.pass(time.Hour)
	}
	testkit.Eventually(t, func() bool { return w.get("/api/executions/%d/status", id).text("status") == "FAILED" }, soon)
	w.claim(command, "w4").refused(409, "")
	w.counts(id, "command.claimed=3 command.failed=1")
}

// A step that waits to be called back was over at once.
func TestDefect_13_AParkedStepIsOverAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, payload := range []string{
		`{"command_id":%q,"status":"success","pending_callback":true}`,
		`{"command_id":%q,"result":{"status":"success","context":{"status":"success","pending_callback":true,"data":{"job_name":"j"}}}}`,
	} {
		id := w.start(playbookOf("demo/job", "  - step: start\n    tool: {kind: container, image: busybox}\n    next:\n      arcs:\n        - step: finish\n"+step("finish")))
		claim := w.claim(w.command(id, "start"), "w").ok()
		w.worker("w").tell(id, "start", "command.completed", "success", fmt.Sprintf(payload, claim.text("meta.command_id"))).ok().equal("commands_generated", "0")
		w.wantStatus(id, "RUNNING")
		w.counts(id, "command.issued=1")
		w.internal("POST", fmt.Sprintf("/api/internal/container-callback/%d/start", id), `{"state":"succeeded","job_name":"j"}`).want(202).equal("status", "accepted_in_flight")
		w.counts(id, "command.issued=2")
	}
}

// References that lead to references were followed without end.
func TestDefect_14_ReferencesToReferencesNeverEnd(t *testing.T) {
	t.Parallel()
	var s watched
	w := newWorld(t, watching(&s))
	id := w.start(twoSteps)
	put := func(data string) string {
		return w.send("PUT", fmt.Sprintf("/api/result/%d", id), `{"name":"start","data":`+data+`}`).ok().text("ref")
	}
	ref := put(`{"rows":[1]}`)
	for range 20 {
		ref = put(`{"_ref":` + quote(ref) + `}`)
	}
	// One that leads to itself can only come from another server.
	circle := fmt.Sprintf("noetl://execution/%d/result/start/1", id)
	if err := w.store.PutResult(t.Context(), store.Result{ExecutionID: id, Ref: circle, Name: "start", Data: []byte(`{"_ref":` + quote(circle) + `}`), CreatedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{ref, circle} {
		w.note(id, `"step":"x","event_type":"call.done","payload":{"command_id":"x","result":{"status":"success","reference":{"kind":"result_ref","ref":`+quote(ref)+`}}}`)
	}
	f := w.worker("w")
	claim := f.claim(w.command(id, "start"), "w").ok()
	commandID := claim.text("meta.command_id")
	f.tell(id, "start", "call.done", "COMPLETED", fmt.Sprintf(
		`{"command_id":%q,"call_index":0,"result":{"status":"success","context":{"data":{"_ref":%q}},"reference":{"kind":"result_ref","ref":%q,"store":"db"}}}`, commandID, ref, ref)).ok()
	f.tell(id, "start", "command.completed", "success", fmt.Sprintf(`{"command_id":%q,"status":"success"}`, commandID)).ok()
	s.results.Store(0)
	w.get("/api/executions/%d", id).ok()
	if n := s.results.Load(); n > 6 {
		t.Errorf("one answer looked up %d values", n)
	}
	f.finish(id, `1`)
	w.wantStatus(id, "COMPLETED")
	w.get("/api/result/resolve?ref=%s", ref).ok().shaped(`{_ref: text}`) // one reference, one value
}
