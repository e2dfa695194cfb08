package control_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func (r *rig) project(p *running, events ...event.Event) control.Taken {
	r.t.Helper()
	taken, err := p.Project(r.t.Context(), events)
	if err != nil {
		r.t.Fatal(err)
	}
	return taken
}

func TestOurOwnEventsComeBackAsDuplicates(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil)
		r.register(p, linear)
		r.hire("w", 1, 0, p)
		id := r.start(p, "test/linear")
		r.await(p, id)
		log, err := r.store.Events(t.Context(), id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := control.Taken{Duplicates: len(log)}
		if diff := cmp.Diff(want, r.project(p, log...)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		r.verify(id)
	})
}

func TestAForeignEnvelopeGoesIntoTheLogAsItIs(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		entry := r.register(p, single)
		id := r.start(p, "test/single")
		at := time.Now().UTC().Add(-time.Minute).Truncate(time.Microsecond)
		e := event.Event{
			ExecutionID: id, EventID: 4711, ParentEventID: 9, ParentExecutionID: 8, Type: "frame.note", NodeName: "start", NodeType: "http",
			Status: "ODD", Context: json.RawMessage(`{"a":1}`), Result: json.RawMessage(`{"status":"ok","reference":{"x":1}}`),
			Meta: json.RawMessage(`{"k":"v"}`), Error: "bad", WorkerID: "far-1", Duration: 1500 * time.Millisecond, CreatedAt: at,
		}
		if got := r.project(p, e, e); got.Stored != 1 || got.Duplicates != 1 || len(got.Rejected) != 0 {
			t.Errorf("taken %+v", got)
		}
		if got := r.project(p, e); got.Stored != 0 || got.Duplicates != 1 {
			t.Errorf("taken again %+v", got)
		}
		stored, err := r.store.Event(t.Context(), id, 4711)
		if err != nil {
			t.Fatal(err)
		}
		e.CatalogID, e.Seq = entry.CatalogID, stored.Seq
		if diff := cmp.Diff(e, stored); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

func TestAnEndThatIsProjectedMovesTheExecutionOn(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, single)
		id := r.start(p, "test/single")
		cmd := r.pending()[0]
		end := event.Event{
			ExecutionID: id, EventID: 77, Type: event.CommandCompleted, NodeName: "start", WorkerID: "far-1",
			Result: json.RawMessage(`{"status":"COMPLETED","context":{"command_id":"` + cmd.CommandID + `","status":"success","data":{"n":1}}}`),
		}
		late := end
		late.EventID = 78
		if got := r.project(p, end, late); got.Stored != 1 || got.Duplicates != 1 {
			t.Errorf("taken %+v: a command ends once", got)
		}
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("the execution is %s", row.Status)
		}
		r.verify(id)
	})
}

func TestOneBadEnvelopeDoesNotHinderTheOthers(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, single)
		one, two := r.start(p, "test/single"), r.start(p, "test/single")
		note := func(execution, id event.ID, kind event.Type) event.Event {
			return event.Event{ExecutionID: execution, EventID: id, Type: kind, NodeName: "start"}
		}
		got := r.project(p,
			note(one, 100, "a.note"), note(0, 101, "a.note"), note(999, 102, "a.note"), note(one, 0, "a.note"), note(one, 103, ""),
			note(one, 104, event.PlaybookCompleted), note(one, 105, event.CommandIssued), note(one, 106, event.CommandHeartbeat), note(two, 107, "a.note"),
			note(one, 108, event.StepReused), note(one, 109, event.RerunPrepared))
		if got.Stored != 2 || got.Duplicates != 1 {
			t.Errorf("taken %+v, want two notes and a heartbeat without news", got)
		}
		want := map[int]string{
			1: "execution_id is missing", 2: "Execution not found: 999", 3: "event_id is missing", 4: "event_type is missing",
			5: "written by the control plane only", 6: "written by the control plane only",
			9: "written by the control plane only", 10: "written by the control plane only",
		}
		if len(got.Rejected) != len(want) {
			t.Errorf("rejected %+v", got.Rejected)
		}
		for _, rejection := range got.Rejected {
			if !strings.Contains(rejection.Error, want[rejection.Index]) || want[rejection.Index] == "" {
				t.Errorf("event %d was rejected with %q, want %q", rejection.Index, rejection.Error, want[rejection.Index])
			}
		}
	})
}

func TestResultsAreBroughtIntoShape(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, single)
		id := r.start(p, "test/single")
		for i, c := range []struct{ given, want string }{
			{``, `{"status":"S"}`},
			{`null`, `{"status":"S"}`},
			{`{"status":"x"}`, `{"status":"x"}`},
			{`{"context":{"a":1}}`, `{"context":{"a":1},"status":"S"}`},
			{`{"status":"x","other":1}`, `{"context":{"status":"x","other":1},"status":"S"}`},
			{`{"status":3}`, `{"context":{"status":3},"status":"S"}`},
			{`{"reference":"r"}`, `{"context":{"reference":"r"},"status":"S"}`},
			{`[1]`, `{"context":{"value":[1]},"status":"S"}`},
		} {
			e := event.Event{ExecutionID: id, EventID: event.ID(500 + i), Type: "a.note", Status: "S", NodeName: "start", Result: json.RawMessage(c.given)}
			if got := r.project(p, e); got.Stored != 1 {
				t.Errorf("%s: taken %+v", c.given, got)
			}
			stored, err := r.store.Event(t.Context(), id, e.EventID)
			if err != nil || string(stored.Result) != c.want {
				t.Errorf("%s is stored as %s, want %s; %v", c.given, stored.Result, c.want, err)
			}
		}
	})
}

func TestProjectionsAndLooksThatAreRefusedAsAWhole(t *testing.T) {
	simulate(t, func(t *testing.T) {
		p := newRig(t).plane(nil)
		_, err := p.Project(t.Context(), nil)
		wantCode(t, err, event.BadRequest, "")
		_, err = p.Project(t.Context(), make([]event.Event, 1001))
		wantCode(t, err, event.Limit, "")
		_, _, err = p.Advance(t.Context(), nil)
		wantCode(t, err, event.BadRequest, "")
		_, err = p.Purge(t.Context(), control.PurgeRequest{EventDays: -1})
		wantCode(t, err, event.Invalid, "")
		_, err = p.Purge(t.Context(), control.PurgeRequest{CommandDays: -1})
		wantCode(t, err, event.Invalid, "")
	})
}

func TestAdvanceLooksAgain(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, single)
		id := r.start(p, "test/single")
		row, err := r.store.Execution(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		advanced, failed, err := p.Advance(t.Context(), []event.ID{id, 999})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]control.Advanced{{ExecutionID: id, Version: row.LastSeq}}, advanced); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(failed) != 1 || failed[0].ExecutionID != 999 || !strings.Contains(failed[0].Error, "not found") {
			t.Errorf("failed %+v", failed)
		}
	})
}

func TestPurgeRemovesWhatHasServedItsTime(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, external, func(o *control.Options) { o.Sweep = time.Minute })
		r.register(p, single)
		r.hire("w", 1, 0, p)
		old := r.runMany(p, "test/single", 1)
		if _, err := r.store.PutRuntime(t.Context(), store.Runtime{RuntimeID: 1, Kind: "worker_pool", Name: "gone", Heartbeat: time.Now()}); err != nil {
			t.Fatal(err)
		}
		batch, err := p.ClaimOutbox(t.Context(), 1000)
		if err != nil {
			t.Fatal(err)
		}
		ids := make([]int64, len(batch.Rows))
		for i, row := range batch.Rows {
			ids[i] = row.OutboxID
		}
		if n, err := p.MarkPublished(t.Context(), batch.Token, ids); n != len(ids) || err != nil {
			t.Fatalf("marked %d of %d, %v", n, len(ids), err)
		}
		time.Sleep(8*24*time.Hour - maintenance)
		r.runMany(p, "test/single", 1)
		none, err := p.Purge(t.Context(), control.PurgeRequest{})
		if err != nil || none.Commands+none.Runtimes != 0 {
			t.Errorf("purged %+v with nothing asked for, %v", none, err)
		}
		got, err := p.Purge(t.Context(), control.PurgeRequest{CommandDays: 7, RuntimeMinutes: 60})
		if err != nil || got.Commands != 1 || got.Runtimes != 1 || got.Events != 0 {
			t.Errorf("purged %+v, %v", got, err)
		}
		if events, err := r.store.Events(t.Context(), old[0], 0, 0); err != nil || len(events) == 0 {
			t.Errorf("the log of the old execution has %d events, %v", len(events), err)
		}
	})
}

const maintenance = time.Minute

const container = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: job, path: test/job}
workflow:
  - {step: build, tool: {kind: container, image: busybox}}
`

func TestAJobCallsBackOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, container)
		id := r.start(p, "test/job")
		row := r.pending()[0]
		cmd, err := p.Claim(t.Context(), event.ClaimRequest{EventID: row.EventID, ExecutionID: id, WorkerID: "w", Heartbeats: true})
		if err != nil {
			t.Fatal(err)
		}
		park := func(nth event.ID) {
			_, err := p.Report(t.Context(), event.Report{ExecutionID: id, WorkerID: "w", Events: []event.Incoming{{
				EventID: 900 + nth, Step: "build", Type: event.CommandParked,
				Payload: json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `","park":{"callback":"job","resume":{"n":1}}}`),
				Meta:    json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `","attempt":` + nth.String() + `}`),
			}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		end := func(execution event.ID, step, uid string) event.ID {
			t.Helper()
			told, err := p.CallBack(t.Context(), execution, event.Incoming{
				Step: step, Type: event.CallDone, Status: event.StatusCompleted,
				Payload: json.RawMessage(`{"status":"success","result":{"status":"success","context":{"terminal_state":"succeeded","job_uid":"` + uid + `"}}}`),
			}, uid)
			if err != nil {
				t.Fatal(err)
			}
			return told
		}
		park(1)
		if end(999, "build", "u1") != 0 || end(id, "nowhere", "u1") != 0 {
			t.Error("somebody heard of a job nobody waits for")
		}
		if end(id, "build", "u1") == 0 {
			t.Fatal("nobody heard of the end of the job")
		}
		// The worker goes on and waits for a second job.
		if cmd, err = p.Claim(t.Context(), event.ClaimRequest{EventID: row.EventID, ExecutionID: id, WorkerID: "w", Heartbeats: true}); err != nil {
			t.Fatal(err)
		}
		park(event.ID(cmd.Meta.Attempt))
		if end(id, "build", "u1") != 0 {
			t.Error("the end of the first job was taken for that of the second")
		}
		if end(id, "build", "u2") == 0 {
			t.Error("nobody heard of the end of the second job")
		}
	})
}
