package wire

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/testkit"
)

func TestOfTwoWorkersOneGetsTheCommand(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := a.replica(2)
	for range 5 {
		id := a.start(oneStep)
		command := a.command(id, "start")
		var all sync.WaitGroup
		var statuses [2]int
		for i, w := range []*world{a, b} {
			all.Go(func() { statuses[i] = w.claim(command, fmt.Sprint("w", i)).status })
		}
		all.Wait()
		if statuses != [2]int{200, 409} && statuses != [2]int{409, 200} {
			t.Errorf("the two hear %v", statuses)
		}
		a.counts(id, "command.claimed=1")
	}
}

func TestTheSameEventThreeTimesIsOneEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	claim := w.claim(w.command(id, "start"), "w").ok()
	body := fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","event_id":4711,"worker_id":"w","status":"success","payload":{"command_id":%q,"status":"success"}}`, id, claim.text("meta.command_id"))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { w.post("/api/events", body).ok().equal("event_id", "4711") })
	}
	all.Wait()
	w.counts(id, "command.completed=1 command.issued=2")
}

func TestFiftyParallelEndsOfALoopAreFollowedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(playbookOf("demo/fifty", loopStep("start", "{{ range(50) | list }}", "parallel", "finish")+step("finish")))
	commands := only(w.log(id), "command.issued", "start")
	if len(commands) != 50 {
		t.Fatalf("%d commands", len(commands))
	}
	var all sync.WaitGroup
	for i, c := range commands {
		claim := w.claim(c.EventID, "w").ok()
		all.Go(func() {
			w.post("/api/events", fmt.Sprintf(`{"execution_id":%d,"step":"start","event_type":"command.completed","event_id":%d,"worker_id":"w","status":"success","payload":{"command_id":%q}}`, id, 5000+i, claim.text("meta.command_id"))).ok()
		})
	}
	all.Wait()
	// The end of a loop is loop.done, which says what step.exit says elsewhere.
	w.counts(id, "command.completed=50 loop.done=1 command.issued=51")
	w.worker("w2").finish(id, `1`)
	w.counts(id, "playbook.completed=1")
}

// TestABrokerThatIsKilledLosesNothing kills a real NATS server, starts an
// execution, and finds its command in the stream of the next server.
func TestABrokerThatIsKilledLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broker := testkit.StartNATS(t, 0, dir)
	u, err := url.Parse(broker.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	b, err := nats.Connect(t.Context(), nats.Options{URL: broker.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	w := newWorld(t, setting{plane: func(o *control.Options) { quick(o); o.Bus, o.Sweep = b, 50*time.Millisecond }})
	w.register(oneStep)
	broker.Kill()
	id := w.again("demo/one", "")
	w.counts(id, "playbook_started=1 command.issued=1")
	broker = testkit.StartNATS(t, port, dir)
	conn, err := natsgo.Connect(broker.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	var m *jetstream.RawStreamMsg
	testkit.Eventually(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		stream, err := js.Stream(ctx, nats.DefaultStream)
		if err != nil {
			return err
		}
		m, err = stream.GetLastMsgForSubject(ctx, "noetl.commands.shared."+id.String())
		return err
	}, soon)
	a := answer{t: t, what: "notification", body: string(m.Data)}
	a.shaped(`{execution_id: id, event_id: id, command_id: text, step: "start", server_url: "http://noetl:8082", execution_pool: "shared"}`)
	if !strings.HasPrefix(m.Header.Get("Nats-Msg-Id"), "cmd-"+a.text("event_id")) {
		t.Errorf("the message is called %q", m.Header.Get("Nats-Msg-Id"))
	}
	w.worker("w").run(id, a.id("event_id"), `1`)
	w.wantStatus(id, "COMPLETED")
}

func TestTheCommandOfADeadWorkerIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: quick})
	id := w.start(twoSteps)
	command := w.command(id, "start")
	first := w.claim(command, "dead").ok().equal("meta.attempt", "1")
	w.pass(31 * time.Minute) // longer than the lease of a worker that never beats
	n := w.heard("shared", func(n event.Notification) bool { return n.EventID == command && n.Attempt > 1 })
	second := w.claim(n.EventID, "alive").ok().equal("meta.attempt", "2")
	w.worker("alive").end(id, second, `{"by":"alive"}`)
	w.worker("dead").end(id, first, `{"by":"dead"}`) // it was only slow
	w.worker("alive2").finish(id, `1`)
	w.wantStatus(id, "COMPLETED")
	w.counts(id, "command.issued=2 playbook.completed=1")
	w.get("/api/executions/%d", id).ok().equal("steps.start.result.by", "alive")
}

func TestACancelledFamilyIsOverEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(playbookOf("demo/pair", loopStep("start", "{{ [1, 2] }}", "parallel", "finish")+step("finish")))
	child := w.again("demo/pair", `,"parent_execution_id":`+id.String())
	commands := only(w.log(id), "command.issued", "")
	running, pending := commands[0].EventID, commands[1].EventID
	claim := w.claim(running, "w").ok()
	w.post("/api/executions/"+id.String()+"/cancel", `{"reason":"enough"}`).ok().
		shaped(`{status: "cancelled", cancelled_executions: [id+]}`)
	for _, c := range []event.ID{running, pending, w.command(child, "start")} {
		w.claim(c, "other").refused(409, "")
	}
	w.claim(running, "w").refused(409, "cancelled")
	before := len(only(w.log(id), "command.issued", ""))
	w.worker("w").end(id, claim, `{"late":true}`)
	for _, x := range []event.ID{id, child} {
		w.wantStatus(x, "CANCELLED")
		w.get("/api/executions/%d/cancellation-check", x).ok().equal("is_cancelled", "true")
		w.get("/api/executions/%d/status", x).ok().equal("is_cancelled", "true")
		w.get("/api/replay/state?execution_id=%d", x).ok().equal("execution.status", "CANCELLED")
		w.counts(x, "playbook.cancelled=1 playbook.completed=0")
		for _, r := range only(w.log(x), "command.issued", "") {
			if row := w.commandRow(x, r.EventID); row.Status != "CANCELLED" {
				t.Errorf("the row of a command is %s", row.Status)
			}
		}
	}
	if after := len(only(w.log(id), "command.issued", "")); after != before {
		t.Errorf("the late end issues %d commands", after-before)
	}
	w.get("/api/executions?status=CANCELLED").ok().shaped(`[{status: "CANCELLED", completed_at: time}+]`)
	w.internal("POST", "/api/db/verify", "").ok().equal("clean", "true")
}

// TestResultsKeepTheirShape posts whatever clients think a result is; what is
// stored has a status, and beside it nothing but a reference and a context.
func TestResultsKeepTheirShape(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(oneStep)
	for _, body := range []string{
		`"payload":{"kind":"data","data":1}`, `"payload":7`, `"payload":[1]`, `"payload":{"status":5,"reference":"text","context":[1]}`, `"payload":"x","result_kind":"ref"`,
		`"result_kind":"ref","result_uri":"gs://b/o"`, `"result_kind":"refs","event_ids":[1,"2"]`, `"payload":null,"status":"odd"`,
	} {
		r := w.note(id, `"step":"s","event_type":"note",`+body)
		a := answer{t: t, what: body, body: string(r.Result)}
		a.shaped(`{status: text, reference?: {*: any}, context?: {*: any}}`)
		m, _ := a.tree().(map[string]any)
		for key := range m {
			if key != "status" && key != "reference" && key != "context" {
				t.Errorf("%s is stored as %s", body, r.Result)
			}
		}
	}
}

func TestAShuffledLogReplaysToTheSameState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.start(twoSteps)
	w.worker("w").finish(id, `{"n":1}`)
	a := w.get("/api/replay/state?execution_id=%d", id).ok()
	events, err := w.store.Events(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	records := make([]replay.Record, len(events))
	for i := range events {
		records[i] = replay.RecordOf(&events[i])
	}
	projection, err := replay.ParseProjection("all")
	if err != nil {
		t.Fatal(err)
	}
	o := replay.Options{TenantID: "default", OrganizationID: "default", ExecutionID: id, Projection: projection}
	for seed := range uint64(10) {
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
		s := replay.Records(records, o)
		a.equal("checksum.value", s.Checksum.Value).equal("projection_checksums.command.value", s.Checksums.Command.Value)
	}
	w.get("/api/replay/state?execution_id=%d", id).ok().equal("checksum.value", a.text("checksum.value"))
}

func TestHashesAreThoseOfOtherServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, v := range []struct {
		id            int64
		shards, index int
	}{{320816801799737344, 16, 14}, {1, 4, 1}, {42, 4, 3}, {325, 4, 0}, {325, 8, 4}, {9223372036854775807, 4, 0}} {
		w.get("/api/runtime/shard-info?execution_id=%d&shard_count=%d", v.id, v.shards).ok().equal("shard_index", fmt.Sprint(v.index)).equal("execution_id", fmt.Sprint(v.id))
	}
	for host, want := range map[string]int{"noetl-server-pod-0": 984, "": 805, "a": 140} {
		if got, err := snowflake.MachineID("", host); err != nil || got != want {
			t.Errorf("the machine id of %q is %d, want %d: %v", host, got, want, err)
		}
	}
	if _, err := snowflake.MachineID("1024", "a"); err == nil {
		t.Error("a machine id above 1023 is accepted")
	}
}

func TestFailedRowsOfTheOutboxWaitLongerAndLonger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setting{plane: func(o *control.Options) { o.Outbox.On = true }})
	w.start(oneStep)
	box := w.internal("POST", "/api/internal/outbox/claim", `{"limit":1}`).ok().text("rows.0.outbox_id")
	for _, v := range []struct{ more, wait string }{
		{`,"attempts":0`, "1"},
		{`,"attempts":1`, "1"},
		{``, "1"},
		{`,"attempts":2`, "2"},
		{`,"attempts":5`, "16"},
		{`,"attempts":9`, "256"},
		{`,"attempts":20`, "256"},
		{`,"attempts":5,"max_delay_seconds":10`, "10"},
	} {
		w.internal("POST", "/api/internal/outbox/mark-failed", `{"outbox_id":`+box+`,"error":"`+strings.Repeat("e", 3000)+`"`+v.more+`}`).ok().equal("available_at_in", v.wait)
	}
	w.internal("POST", "/api/internal/outbox/mark-failed", `{"outbox_id":`+box+`,"error":""}`).refused(400, "")
}

func TestTwoDrainersNeverGetTheSameRow(t *testing.T) {
	t.Parallel()
	publishing := setting{plane: func(o *control.Options) { o.Outbox.On = true }}
	w := newWorld(t, publishing)
	w.register(oneStep)
	for range 20 {
		w.again("demo/one", "")
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				a := w.internal("POST", "/api/internal/outbox/claim", `{"limit":7}`).ok()
				rows, _ := a.at("rows").([]any)
				var ids []string
				for _, r := range rows {
					ids = append(ids, fmt.Sprint(r.(map[string]any)["outbox_id"]))
				}
				mu.Lock()
				for _, id := range ids {
					seen[id]++
				}
				mu.Unlock()
				if len(ids) == 0 {
					return
				}
				w.internal("POST", "/api/internal/outbox/mark-published", `{"outbox_ids":[`+strings.Join(ids, ",")+`],"fencing_token":`+quote(a.text("fencing_token"))+`}`).ok().equal("marked", fmt.Sprint(len(ids)))
			}
		})
	}
	all.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("row %s was given out %d times", id, n)
		}
	}
	w.internal("GET", "/api/internal/outbox/pending-count", "").ok().equal("pending", "0")
	if len(seen) < 60 {
		t.Errorf("%d rows", len(seen))
	}
}
