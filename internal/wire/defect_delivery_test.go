package wire

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// A broker that was away made an error of a start that had happened, and left a
// command nobody was told about.
func TestDefect_15_AnErrorOfTheBrokerFailsAStartThatHappened(t *testing.T) {
	t.Parallel()
	var b flaky
	w := newWorld(t, through(&b))
	w.register(oneStep)
	b.down.Store(true)
	id := w.again("demo/one", "")
	w.counts(id, "playbook_started=1 command.issued=1")
	if row := w.commandRow(id, w.command(id, "start")); row.Status != "PENDING" {
		t.Errorf("the command is %s", row.Status)
	}
	b.down.Store(false)
	n := w.heard("shared", always)
	if n.ExecutionID != id || n.ServerURL != "http://noetl:8082" {
		t.Errorf("announced is %+v", n)
	}
	w.worker("w").run(id, n.EventID, `1`)
	w.wantStatus(id, "COMPLETED")
}

// Without a broker nobody was told, and nobody told of that.
func TestDefect_16_AMissingBrokerIsSilent(t *testing.T) {
	t.Parallel()
	var b flaky
	w := newWorld(t, through(&b))
	w.register(oneStep)
	b.down.Store(true)
	w.get("/api/health").ok().shaped(`{status: "ok", nats: "disconnected"}`)
	id := w.again("demo/one", "")
	w.pass(time.Minute)
	// The command waits where everybody can see it, and can be had without a broker.
	w.get("/api/runtime/sweeps").ok().equal("counts.pending", "1").equal("pending.0.execution_id", id.String())
	w.worker("w").run(id, w.command(id, "start"), `1`)
	w.wantStatus(id, "COMPLETED")
	b.down.Store(false)
	w.get("/api/health").ok().shaped(`{nats: "connected"}`)
}

// The outbox was drained but never filled, and rows of a publisher that died
// were never seen again.
func TestDefect_17_TheOutboxIsEmptyOrStuck(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: func(o *control.Options) { o.Outbox.On = true }})
	id := w.start(oneStep)
	claim := func() answer {
		t.Helper()
		return w.internal("POST", "/api/internal/outbox/claim", `{"limit":100}`).ok()
	}
	first := claim()
	rows := w.log(id)
	first.equal("claimed", fmt.Sprint(len(rows)))
	for i, r := range rows {
		if got := first.id(fmt.Sprintf("rows.%d.event_id", i)); got != r.EventID {
			t.Errorf("row %d is event %d, want %d", i, got, r.EventID)
		}
	}
	claim().equal("claimed", "0")
	w.pass(2 * time.Minute) // the publisher has died
	second := claim().equal("claimed", fmt.Sprint(len(rows))).equal("rows.0.attempts", "2")
	// Whoever comes back from the dead cannot mark what others have.
	w.internal("POST", "/api/internal/outbox/mark-published", fmt.Sprintf(`{"outbox_ids":[%s],"fencing_token":%q}`, first.text("rows.0.outbox_id"), first.text("fencing_token"))).ok().equal("marked", "0")
	w.internal("POST", "/api/internal/outbox/mark-published", fmt.Sprintf(`{"outbox_ids":[%s],"fencing_token":%q}`, second.text("rows.0.outbox_id"), second.text("fencing_token"))).ok().equal("marked", "1")
	w.internal("GET", "/api/internal/outbox/pending-count", "").ok().equal("pending", "0")
}

// Nobody noticed that a worker died after its claim; or healthy ones were taken
// for dead.
func TestDefect_18_ADeadWorkerLeavesItsExecutionRunning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: quick})
	id := w.start(oneStep)
	command := w.command(id, "start")
	w.post("/api/worker/pool/register", `{"name":"healthy","status":"ready"}`).ok()
	w.claim(command, "healthy").ok()
	for range 5 { // a long step whose worker is alive
		w.post("/api/worker/pool/heartbeat", `{"name":"healthy"}`).ok()
		w.pass(90 * time.Second)
	}
	w.post("/api/worker/pool/heartbeat", `{"name":"healthy"}`).ok()
	w.claim(command, "other").refused(409, "already claimed by healthy")
	w.counts(id, "command.claimed=1 playbook.failed=0")
	w.pass(10 * time.Minute) // now it is silent
	n := w.heard("shared", func(n event.Notification) bool { return n.EventID == command && n.Attempt > 1 })
	claim := w.claim(n.EventID, "other").ok().equal("meta.attempt", "2")
	claims := only(w.log(id), "command.claimed", "")
	if last := claims[len(claims)-1]; last.meta("reclaimed") != "true" || last.meta("reclaimed_from_worker") != "healthy" || last.meta("reclaimed_reason") == "<nil>" {
		t.Errorf("why it was taken over is not in the log: %s", last.Meta)
	}
	w.worker("other").end(id, claim, `1`)
	w.wantStatus(id, "COMPLETED")
}

// Workers that asked at the same time heard 409, which is final for them.
func TestDefect_19_ContentionLosesTheCommand(t *testing.T) {
	t.Parallel()
	var s watched
	w := newWorld(t, watching(&s))
	id := w.start(oneStep)
	command := w.command(id, "start")
	s.broken.Store(true)
	if a := w.claim(command, "w").refused(503, ""); a.header.Get("Retry-After") == "" {
		t.Error("nobody is told to try again")
	}
	s.broken.Store(false)
	var all sync.WaitGroup
	for range 8 { // one worker, asked again and again by its broker
		all.Go(func() { w.claim(command, "w").ok() })
	}
	all.Wait()
	w.counts(id, "command.claimed=1")
	if a := w.claim(command, "other").refused(409, "already claimed by w"); a.header.Get("Retry-After") == "" {
		t.Error("a claim that may end is final")
	}
}

// A finished command that was delivered again was run again.
func TestDefect_20_AFinishedCommandIsGivenOutAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	command := w.command(id, "start")
	w.worker("w").run(id, command, `1`)
	for _, who := range []string{"w", "other"} {
		w.claim(command, who).refused(409, "Command already reached terminal state")
	}
	w.counts(id, "command.claimed=1")
}

// The same worker claimed twice and ran twice. The claim stays one: the same
// attempt, by which a worker knows that it has the command already.
func TestDefect_21_ARepeatedClaimIsASecondRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	first := w.claim(w.command(id, "start"), "w").ok()
	second := w.claim(w.command(id, "start"), "w").ok()
	if first.body != second.body {
		t.Errorf("the answers differ:\n%s\n%s", first.body, second.body)
	}
	w.counts(id, "command.claimed=1")
}

// The rows of commands stood still at PENDING.
func TestDefect_22_RowsOfCommandsStandStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	command := w.command(id, "start")
	want := func(status string) {
		t.Helper()
		if row := w.commandRow(id, command); row.Status != status || (row.EndedAt.IsZero() != (status != "COMPLETED")) {
			t.Errorf("the row says %s, ended %v, want %s", row.Status, row.EndedAt, status)
		}
	}
	want("PENDING")
	claim := w.claim(command, "w").ok()
	want("CLAIMED")
	f := w.worker("w")
	f.tell(id, "start", "command.started", "STARTED", `{"command_id":`+quote(claim.text("meta.command_id"))+`}`).ok()
	want("RUNNING")
	f.end(id, claim, `1`)
	want("COMPLETED")
	purge := func() answer {
		return w.internal("POST", "/api/internal/cleanup/purge", `{"command_retention_days":7}`).ok()
	}
	purge().equal("commands_purged", "0")
	w.pass(8 * 24 * time.Hour)
	purge().equal("commands_purged", "1")
}

// The pool was chosen by a path that only some documents have.
func TestDefect_23_ThePoolComesFromTheDocumentAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, pool := range map[string]string{"system/clean": "system", "subscription/orders": "subscription", "demo/plain": "shared"} {
		// The document has no path: the catalog takes its name.
		yaml := "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata:\n  name: " + name + "\nworkflow:\n" + step("start")
		id := w.start(yaml)
		if row := w.commandRow(id, w.command(id, "start")); row.Pool != pool {
			t.Errorf("%s goes to %s, want %s", name, row.Pool, pool)
		}
		given := w.again(name, `,"execution_pool":"special"`)
		if n := w.heard("special", func(n event.Notification) bool { return n.ExecutionID == given }); n.Pool != "special" {
			t.Errorf("announced is %+v", n)
		}
	}
}

// Readers of the stream could not tell to which execution an event belongs
// without trouble: neither the subject nor a string said so.
func TestDefect_24_EventsOfTheStreamDoNotNameTheirExecution(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: func(o *control.Options) { o.Outbox.On = true }})
	id := w.start(oneStep)
	a := w.internal("POST", "/api/internal/outbox/claim", ``).ok()
	for i, r := range w.log(id) {
		row := fmt.Sprintf("rows.%d.", i)
		a.equal(row+"subject", "noetl.events."+r.Type).equal(row+"payload.execution_id_str", id.String()).equal(row+"payload.execution_id", id.String())
	}
	a.shaped(`{rows: [{execution_id: id, payload: {execution_id: id, execution_id_str: sid, event_id: id}}+]}`)
}
