package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
	"github.com/noetl/noetl-go/internal/store"
)

const draining = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: draining, path: test/draining}
workflow:
  - step: start
    loop:
      cursor: {kind: postgres, auth: pg, claim: "SELECT 1"}
      iterator: row
      spec: {mode: cursor, frame: {max_rows: 2}}
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
`

// drained answers the claims of a cursor with two rows, one row, and none.
func drained(cmd *event.Command) *event.Incoming {
	at := cmd.Meta.Cursor
	if at == nil || at.Phase != "claim" {
		return nil
	}
	rows := []string{`[{"id":1},{"id":2}]`, `[{"id":3}]`, `[]`}[min(at.Frame, 2)]
	in := completed(0, cmd)
	in.Payload = json.RawMessage(fmt.Sprintf(`{"command_id":%q,"status":"success","data":%s}`, cmd.Meta.CommandID, rows))
	return &in
}

// ran is an execution that has ended.
func ran(t *testing.T, playbook, path string) (*rig, *running, event.ID) {
	r := newRig(t)
	p := r.plane(nil)
	r.employ(&crew{r: r, id: "w1", eager: 1, planes: []*control.Plane{p.Plane}, says: drained}, 2)
	r.register(p, playbook)
	id := r.start(p, path)
	if row := r.await(p, id); row.Status != event.StatusCompleted {
		t.Fatalf("row is %+v", row)
	}
	return r, p, id
}

func (r *rig) replay(p *running, q control.ReplayRequest) control.ReplayAnswer {
	r.t.Helper()
	a, err := p.Replay(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func TestEveryPrefixOfALogIsReplayed(t *testing.T) {
	for path, playbook := range map[string]string{"test/linear": linear, "test/fanout": fanout, "test/draining": draining} {
		t.Run(path, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r, p, id := ran(t, playbook, path)
				log, err := r.store.Events(t.Context(), id, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				f := replay.NewFold(replay.Options{TenantID: "default", OrganizationID: "default", ExecutionID: id})
				for i := range log {
					f.ApplyEvent(&log[i])
					want := f.State()
					byID := r.replay(p, control.ReplayRequest{ExecutionID: id, AsOfEventID: &log[i].EventID})
					byPosition := r.replay(p, control.ReplayRequest{ExecutionID: id, AsOfPosition: &log[i].EventID})
					cut := r.replay(p, control.ReplayRequest{ExecutionID: id, Limit: i + 1})
					for name, a := range map[string]control.ReplayAnswer{"id": byID, "position": byPosition, "limit": cut} {
						if *a.Checksum != *want.Checksum || a.EventCount != int64(i)+1 {
							t.Fatalf("event %d by %s: %d events, checksum %s; want %s", i, name, a.EventCount, a.Checksum.Value, want.Checksum.Value)
						}
					}
					more := i+1 < len(log)
					if byID.Truncated || cut.Truncated != more || more && cut.NextAfterEventID != log[i].EventID {
						t.Errorf("event %d: truncated %t, next after %s", i, cut.Truncated, cut.NextAfterEventID)
					}
				}
				if whole := r.replay(p, control.ReplayRequest{ExecutionID: id}); whole.Execution.Status != event.StatusCompleted || whole.EventCount != int64(len(log)) {
					t.Errorf("whole log: %s after %d events", whole.Execution.Status, whole.EventCount)
				}
				if diff, err := p.ReplayParity(t.Context(), id); err != nil || len(diff) > 0 {
					t.Errorf("log and rows differ: %q, %v", diff, err)
				}
			})
		})
	}
}

func TestALoopIsAStageWithItsIterations(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, p, id := ran(t, fanout, "test/fanout")
		a := r.replay(p, control.ReplayRequest{ExecutionID: id})
		if len(a.Stages) != 1 || len(a.Loops) != 1 || len(a.Commands) != 11 || len(a.Frames) != 0 {
			t.Fatalf("%d stages, %d loops, %d commands, %d frames", len(a.Stages), len(a.Loops), len(a.Commands), len(a.Frames))
		}
		for key, st := range a.Stages {
			if st.Kind != "loop" || st.StepName != "start" || st.Status != event.StatusCompleted || st.RowCount != 10 || st.FailedCount != 0 ||
				st.OpenedEventID.String() != key || st.ClosedEventID == 0 {
				t.Errorf("stage is %+v", *st)
			}
			if l := a.Loops[key]; l == nil || l.Done != 10 || l.Failed != 0 || !l.Completed || l.Total == nil || *l.Total != 10 || l.StepName != "start" {
				t.Errorf("loop is %+v", l)
			}
		}
		inside := 0
		for _, c := range a.Commands {
			if c.IssuedEventID == 0 || c.TerminalEventID == 0 || c.WorkerID != "w1" {
				t.Errorf("command is %+v", *c)
			}
			if c.StageID != "" {
				inside++
			}
		}
		if inside != 10 {
			t.Errorf("%d commands belong to the loop, want 10", inside)
		}
	})
}

func TestACursorLoopIsAStageWithFrames(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, p, id := ran(t, draining, "test/draining")
		a := r.replay(p, control.ReplayRequest{ExecutionID: id})
		if len(a.Stages) != 1 || len(a.Frames) != 3 || len(a.Loops) != 1 {
			t.Fatalf("%d stages, %d frames, %d loops", len(a.Stages), len(a.Frames), len(a.Loops))
		}
		for key, st := range a.Stages {
			if st.Kind != "cursor" || st.Status != event.StatusCompleted || st.RowCount != 3 || st.FrameCount != 3 || st.ClosedEventID == 0 {
				t.Errorf("stage is %+v", *st)
			}
			if l := a.Loops[key]; l == nil || l.Done != 3 || !l.Completed || l.Total != nil {
				t.Errorf("loop is %+v", l)
			}
			for i, rows := range []int64{2, 1, 0} {
				fr := a.Frames[fmt.Sprint(key, "/", i)]
				if fr == nil || fr.Status != event.StatusCompleted || fr.RowCount != rows || fr.StageID != key || fr.Attempts != 1 ||
					fr.ClaimedEventID == 0 || fr.TerminalEventID == 0 || a.Commands[fr.CommandID].ClaimedEventID == 0 && a.Commands[fr.CommandID].IssuedEventID != fr.ClaimedEventID {
					t.Errorf("frame %d is %+v", i, fr)
				}
			}
		}
	})
}

func TestReplayRequestsThatMakeNoSense(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id, now := event.ID(3), time.Now()
		for _, q := range []control.ReplayRequest{
			{AsOfEventID: &id, AsOfPosition: &id},
			{AsOfEventID: &id, AsOfTime: &now},
			{AsOfPosition: &id, AsOfTime: &now},
			{AsOfEventID: &id, AsOfPosition: &id, AsOfTime: &now},
		} {
			_, err := p.Replay(t.Context(), q)
			if event.CodeOf(err) != event.BadRequest || !strings.Contains(err.Error(), "only one of as_of_event_id, as_of_position and as_of_time") {
				t.Errorf("%+v: %v", q, err)
			}
		}
		if _, err := p.Replay(t.Context(), control.ReplayRequest{Projection: "everything"}); event.CodeOf(err) != event.BadRequest {
			t.Errorf("unknown projection: %v", err)
		}
		a := r.replay(p, control.ReplayRequest{ExecutionID: 404, TenantID: "acme", Projection: "stage"})
		if a.EventCount != 0 || a.Execution.Status != "UNKNOWN" || a.TenantID != "acme" || a.OrganizationID != "default" || a.Projection != "stage" || a.Checksum == nil {
			t.Errorf("unknown execution: %+v", a.State)
		}
		if _, err := p.ReplayParity(t.Context(), 404); event.CodeOf(err) != event.NotFound {
			t.Errorf("parity of an unknown execution: %v", err)
		}
	})
}

// long stores a log of n events a second apart that no engine decided and no
// engine shall look at.
func (r *rig) long(n int) (event.ID, []event.Event) {
	r.unproven = true
	r.t.Helper()
	r.t.Cleanup(func() { _ = r.store.Close() })
	id := r.ids.Next()
	began := time.Now().UTC().Add(-time.Duration(n) * time.Second).Truncate(time.Second)
	types := []event.Type{event.CommandIssued, event.CommandClaimed, event.CommandStarted, event.CommandCompleted}
	log := make([]event.Event, n)
	for i := range log {
		r.ids.Next() // leave ids between those of the events
		log[i] = event.Event{
			ExecutionID: id, Seq: int64(i) + 1, EventID: r.ids.Next(), Type: types[i%4], NodeName: "work", WorkerID: "w",
			CommandID: fmt.Sprintf("%s:work:%d", id, i/4%100), CreatedAt: began.Add(time.Duration(i) * time.Second),
			Result: json.RawMessage(`{"status":"ok"}`),
		}
	}
	for at := 0; at < n; at += 500 {
		part := log[at:min(at+500, n)]
		err := r.store.Append(r.t.Context(), store.Batch{
			Execution: store.Execution{ExecutionID: id, Status: event.StatusCompleted, LastSeq: part[len(part)-1].Seq, LastEventID: part[len(part)-1].EventID, StartedAt: began},
			Expected:  int64(at), Events: append([]event.Event(nil), part...),
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return id, log
}

func TestASnapshotChangesNothingButTheWork(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id, log := r.long(2500)
		find := func() store.Snapshot {
			s, err := r.store.Snapshot(t.Context(), id, replay.SnapshotType, replay.SnapshotID(id))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		first := r.replay(p, control.ReplayRequest{ExecutionID: id})
		snap := find()
		if age := time.Since(log[snap.Seq-1].CreatedAt); age < 30*time.Second || snap.Version != log[snap.Seq-1].EventID || snap.Seq < 2400 {
			t.Fatalf("snapshot at %d, %v old", snap.Seq, age)
		}
		named := r.replay(p, control.ReplayRequest{ExecutionID: id, Snapshot: true})
		if named.Snapshot == nil || named.Snapshot.Version != snap.Version || named.Snapshot.AggregateID != fmt.Sprintf("execution/%s/all", id) ||
			*named.Checksum == *first.Checksum || *named.Checksums != *first.Checksums {
			t.Errorf("named snapshot: %+v", named.Snapshot)
		}
		sameAsFolded(t, r, p, id, log)

		// Whatever is wrong with it, the answer is the same.
		for name, spoil := range map[string]func(*store.Snapshot){
			"another checksum": func(s *store.Snapshot) { s.Checksum = strings.Repeat("0", 64) },
			"no state":         func(s *store.Snapshot) { s.State = []byte(`{}`) },
			"no meta":          func(s *store.Snapshot) { s.Meta = nil },
			"another place":    func(s *store.Snapshot) { s.Version = log[5].EventID },
		} {
			bad := snap
			spoil(&bad)
			if err := r.store.PutSnapshot(t.Context(), bad); err != nil {
				t.Fatal(err)
			}
			if a := r.replay(p, control.ReplayRequest{ExecutionID: id, Snapshot: true}); *a.Checksum != *first.Checksum || a.Snapshot != nil {
				t.Errorf("%s: checksum %s, snapshot %+v", name, a.Checksum.Value, a.Snapshot)
			}
		}
	})
}

// sameAsFolded compares replays by every kind of cutoff, around the snapshot
// and far from it, with folds of what they let in.
func sameAsFolded(t *testing.T, r *rig, p *running, id event.ID, log []event.Event) {
	t.Helper()
	f := replay.NewFold(replay.Options{TenantID: "default", OrganizationID: "default", ExecutionID: id})
	for i := range log {
		f.ApplyEvent(&log[i])
		if i%250 != 0 && i < len(log)-40 {
			continue
		}
		want := f.State()
		between, zone := log[i].EventID, time.FixedZone("east", 5*3600)
		at := log[i].CreatedAt.Add(300 * time.Millisecond).In(zone)
		if between++; i+1 < len(log) && between >= log[i+1].EventID {
			t.Fatalf("there is no id between %s and the next", log[i].EventID)
		}
		for name, q := range map[string]control.ReplayRequest{
			"id":          {AsOfEventID: &log[i].EventID},
			"another id":  {AsOfEventID: &between},
			"time":        {AsOfTime: &at},
			"same moment": {AsOfTime: &log[i].CreatedAt},
			"limit":       {Limit: i + 1},
		} {
			q.ExecutionID = id
			if a := r.replay(p, q); *a.Checksum != *want.Checksum {
				t.Fatalf("event %d by %s: %d events, want %d", i, name, a.EventCount, want.EventCount)
			}
		}
	}
}

func TestYoungEventsStayOutOfSnapshots(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id, _ := r.long(2010)
		r.replay(p, control.ReplayRequest{ExecutionID: id})
		if s, err := r.store.Snapshot(t.Context(), id, replay.SnapshotType, replay.SnapshotID(id)); event.CodeOf(err) != event.NotFound {
			t.Errorf("a snapshot at %d for less than 2000 old events: %v", s.Seq, err)
		}
	})
}

func TestLimitsAreCut(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id, log := r.long(12_000)
		for limit, want := range map[int]int64{-5: 1, 0: 10_000, 1: 1, 11_999: 11_999, 1_000_000_000: 12_000} {
			a := r.replay(p, control.ReplayRequest{ExecutionID: id, Limit: limit})
			if a.EventCount != want || a.Truncated != (want < 12_000) {
				t.Errorf("limit %d: %d events, truncated %t", limit, a.EventCount, a.Truncated)
			}
		}
		zero := event.ID(0)
		if a := r.replay(p, control.ReplayRequest{ExecutionID: id, AsOfEventID: &zero}); a.EventCount != 0 || a.Truncated {
			t.Errorf("before the beginning: %d events", a.EventCount)
		}
		early := log[0].CreatedAt.Add(-time.Second)
		if a := r.replay(p, control.ReplayRequest{ExecutionID: id, AsOfTime: &early}); a.EventCount != 0 || a.Truncated {
			t.Errorf("before the start: %d events", a.EventCount)
		}
	})
}

func TestReferencesAreResolvedWithoutShowingValues(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		var ref string
		w := &crew{r: r, id: "w1", planes: []*control.Plane{p.Plane}, says: func(cmd *event.Command) *event.Incoming {
			at, err := p.PutResult(t.Context(), cmd.ExecutionID, "start", json.RawMessage(`{"token":"s3cret","rows":[1,2]}`))
			if err != nil {
				t.Error(err)
			}
			ref = at.Ref
			in := completed(0, cmd)
			in.Payload = json.RawMessage(fmt.Sprintf(`{"command_id":%q,"status":"success","result":{"status":"success","context":{"data":{"_ref":%[2]q}},"reference":{"ref":%[2]q,"store":"db","sha256":"abc"}}}`, cmd.Meta.CommandID, at.Ref))
			return &in
		}}
		r.employ(w, 1)
		r.register(p, single)
		id := r.start(p, "test/single")
		r.await(p, id)
		plain := r.replay(p, control.ReplayRequest{ExecutionID: id})
		a := r.replay(p, control.ReplayRequest{ExecutionID: id, ResolvePayloads: true, Only: true, Projection: "loop"})
		if len(plain.Execution.PayloadRefs) != 1 || *plain.Execution.PayloadRefs[0].Summary.Ref != ref {
			t.Fatalf("references are %+v", plain.Execution.PayloadRefs)
		}
		if *a.Checksums != *plain.Checksums || len(a.Commands) != 0 || len(plain.Commands) == 0 || plain.Resolved != nil {
			t.Errorf("resolving or leaving out changed the state: %d commands", len(a.Commands))
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "s3cret") {
			t.Errorf("the answer shows the value: %s", text)
		}
		if s := a.Resolved; s == nil || s.Total != 1 || !s.AllResolved || s.UniqueRefs != 1 {
			t.Fatalf("summary is %+v", s)
		}
		size := int64(len(`{"rows":[1,2],"token":"s3cret"}`))
		if diff := cmp.Diff(&size, a.Resolutions[0].Found.SizeBytes); diff != "" || *a.Resolutions[0].Found.ValueType != "object" {
			t.Errorf("resolution is %+v", a.Resolutions[0])
		}
	})
}

func TestParityNamesARowThatIsWrong(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r, p, id := ran(t, single, "test/single")
		r.unproven = true
		row, err := r.store.Execution(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		commands, err := r.store.CommandsOf(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		row.Status, commands[0].Status = event.StatusFailed, event.StatusFailed
		if err := r.store.Reproject(t.Context(), row, commands); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.store.Close() }) // nobody else shall complain
		diff, err := p.ReplayParity(t.Context(), id)
		if err != nil || len(diff) != 2 || !strings.Contains(diff[0], "the log says the execution is COMPLETED") || !strings.Contains(diff[1], "its row says FAILED") {
			t.Errorf("differences are %q, %v", diff, err)
		}
	})
}
