package replay_test

import (
	"encoding/json"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
)

// ours folds events as the engine writes them; their ids are their places.
func ours(log ...event.Event) *replay.State {
	f := replay.NewFold(harness)
	for i := range log {
		log[i].Seq, log[i].EventID = int64(i+1), event.ID(i+1)
		f.ApplyEvent(&log[i])
	}
	return f.State()
}

func of(t event.Type, command, worker, status string, parent event.ID, meta string) event.Event {
	return event.Event{Type: t, NodeName: "each", CommandID: command, WorkerID: worker, Status: status, ParentEventID: parent, Meta: json.RawMessage(meta)}
}

func step(t event.Type, status string, parent event.ID, detail string) event.Event {
	return event.Event{Type: t, NodeName: "each", Status: status, ParentEventID: parent, Result: json.RawMessage(`{"status":"` + status + `","context":` + detail + `}`)}
}

func TestALoopCountsEachCommandOnce(t *testing.T) {
	t.Parallel()
	s := ours(
		step(event.StepEnter, "ENTERED", 0, `{"gen":1,"iterations_expected":3}`),
		of(event.CommandIssued, "a", "w", "PENDING", 1, `{"gen":1,"iteration_index":0}`),
		of(event.CommandIssued, "b", "", "PENDING", 1, `{"gen":1,"iteration_index":1}`),
		of(event.CommandIssued, "c", "", "PENDING", 1, `{"gen":1,"iteration_index":2}`),
		of(event.CommandCompleted, "a", "w", "success", 2, `{"command_id":"a"}`),
		of(event.CommandCompleted, "a", "late", "success", 2, `{"command_id":"a"}`),
		of(event.CommandCompleted, "b", "w", "error", 3, `{"command_id":"b"}`),
		of(event.CommandFailed, "c", "", "FAILED", 4, ``),
		step(event.StepFailed, "FAILED", 1, `{"gen":1,"failed":2}`),
		of(event.CommandCompleted, "x", "w", "success", 0, ``), // of no loop
	)
	l, st := s.Loops["1"], s.Stages["1"]
	if l == nil || l.Done != 1 || l.Failed != 2 || l.Completed || *l.Total != 3 || l.LastEventID != 9 {
		t.Errorf("loop is %+v", l)
	}
	if st == nil || st.Status != "FAILED" || st.FailedCount != 2 || st.ClosedEventID != 9 || st.LoopEventID != "1" || st.Kind != "loop" {
		t.Errorf("stage is %+v", st)
	}
	if len(s.Loops) != 1 || len(s.Stages) != 1 || len(s.Commands) != 4 || s.Commands["a"].StageID != "1" || s.Commands["x"].StageID != "" {
		t.Errorf("state is %v", wire(t, s))
	}
}

func TestTwoRunsOfALoopAreTwoStages(t *testing.T) {
	t.Parallel()
	s := ours(
		step(event.StepEnter, "ENTERED", 0, `{"gen":1,"iterations_expected":1}`),
		of(event.CommandIssued, "a", "", "PENDING", 1, ``),
		step(event.StepFailed, "FAILED", 1, `{"gen":1}`),
		step(event.StepEnter, "ENTERED", 0, `{"gen":2,"iterations_expected":1}`),
		of(event.CommandIssued, "b", "", "PENDING", 4, ``),
		of(event.CommandCompleted, "a", "w", "success", 2, ``), // late
		of(event.CommandCompleted, "b", "w", "success", 5, ``),
		step(event.LoopDone, "COMPLETED", 4, `{"gen":2,"iterations":1}`),
	)
	if a, b := s.Loops["1"], s.Loops["4"]; a.Done != 1 || b.Done != 1 || a.Completed || !b.Completed {
		t.Errorf("loops are %+v and %+v", a, b)
	}
	if a, b := s.Stages["1"], s.Stages["4"]; a.Status != "FAILED" || b.Status != "COMPLETED" || b.RowCount != 1 {
		t.Errorf("stages are %+v and %+v", a, b)
	}
}

func TestAnEventThatNamesItsStageIsTakenAtItsWord(t *testing.T) {
	t.Parallel()
	s := ours(
		event.Event{Type: event.StepEnter, NodeName: "each", Meta: json.RawMessage(`{"stage_id":"theirs"}`), Result: json.RawMessage(`{"context":{"iterations_expected":1}}`)},
		step(event.StepEnter, "ENTERED", 0, `{"gen":1}`), // no loop
		event.Event{Type: "stage.opened", WorkerID: "w", Meta: json.RawMessage(`{"stage_id":"noted"}`)},
		event.Event{Type: event.FrameCommitted, WorkerID: "w", Meta: json.RawMessage(`{"frame_id":"f","row_count":4}`)},
	)
	if len(s.Stages) != 2 || s.Stages["theirs"] == nil || s.Stages["noted"].Status != "OPEN" || len(s.Loops) != 0 || s.Frames["f"].RowCount != 4 {
		t.Errorf("state is %v", wire(t, s))
	}
}

func TestAWorkersReferenceIsFoundInItsReport(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{"status":"success","context":{"result":{"reference":{"ref":"r"}}}}`:                           "r",
		`{"status":"success","context":{"reference":{"ref":"r"}}}`:                                      "r",
		`{"status":"success","reference":{"ref":"top"},"context":{"result":{"reference":{"ref":"r"}}}}`: "top",
		`{"status":"success","context":{"result":{"reference":null}}}`:                                  "",
		`{"status":"success","context":{"result":{"context":{"data":"reference"}}}}`:                    "",
	} {
		s := ours(event.Event{Type: event.CommandCompleted, CommandID: "a", Result: json.RawMessage(result)})
		got := ""
		for _, r := range s.Execution.PayloadRefs {
			got = *r.Summary.Ref
		}
		if got != want {
			t.Errorf("%s: %q, want %q", result, got, want)
		}
	}
}

// FuzzFold holds the fold to survive whatever a log says, and to go on from a
// snapshot of it as if nothing had happened.
func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"event_type":"frame.committed","frame_id":1,"meta":{"row_count":2,"business_object":{"type":"a","id":{},"state":{"x":[1.0]}}},"result":{"reference":{"ref":1}}}`))
	f.Add([]byte(`{"event_type":"command.completed","command_id":"a","aggregate_type":"business_object","aggregate_id":"//","meta":[],"payload_ref":"x"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var r replay.Record
		if json.Unmarshal(raw, &r) != nil {
			return
		}
		fold := replay.NewFold(harness)
		fold.Apply(&r)
		state, sum := fold.Freeze()
		fold.Apply(&r)
		base, err := replay.Thaw(state, sum)
		if err != nil {
			t.Fatal(err)
		}
		o := harness
		o.Base = base
		again := replay.NewFold(o)
		again.Apply(&r)
		if want, got := fold.State(), again.State(); *want.Checksum != *got.Checksum {
			t.Fatalf("%s: folded on a snapshot it is %v, otherwise %v", raw, got, want)
		}
	})
}
