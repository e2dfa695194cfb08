package control_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
)

func TestReportingTwiceIsHarmless(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		rep := success(r.ids.Next(), "w", 0, cmd)
		note := completed(r.ids.Next(), cmd)
		note.Type = event.CallDone
		rep.Events = append([]event.Incoming{note}, rep.Events...)

		first, err := p.Report(t.Context(), rep)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := p.Events(t.Context(), id, 0, 0)
		again, err := p.Report(t.Context(), rep)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.EventIDs, again.EventIDs); diff != "" || first.CommandsGenerated != 1 || again.CommandsGenerated != 0 {
			t.Errorf("answers differ: %+v, then %+v", first, again)
		}
		after, _ := p.Events(t.Context(), id, 0, 0)
		if len(before) != len(after) {
			t.Errorf("%d events became %d", len(before), len(after))
		}
		// The same end under another id, as from a worker that does not keep ids.
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w", 0, cmd)); err != nil {
			t.Fatal(err)
		}
		if later, _ := p.Events(t.Context(), id, 0, 0); len(later) != len(before) {
			t.Errorf("a second end was stored: %d events became %d", len(before), len(later))
		}
	})
}

func TestTheSameEventTwiceInOneReportIsStoredOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		note := event.Incoming{EventID: r.ids.Next(), Step: "start", Type: "custom.note"}
		answer, err := p.Report(t.Context(), event.Report{ExecutionID: id, Events: []event.Incoming{note, note}})
		if err != nil || len(answer.EventIDs) != 2 || answer.EventIDs[0] != answer.EventIDs[1] {
			t.Fatalf("answer is %+v, %v", answer, err)
		}
		events, _ := p.Events(t.Context(), id, 0, 0)
		n := 0
		for _, e := range events {
			if e.Type == "custom.note" {
				n++
			}
		}
		if n != 1 {
			t.Errorf("stored %d times", n)
		}
	})
}

func TestABadEventRefusesItsReportAndNothingElse(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		before, _ := p.Events(t.Context(), id, 0, 0)
		_, err := p.Report(t.Context(), event.Report{ExecutionID: id, Events: []event.Incoming{
			{Step: "start", Type: "custom.note"}, {Step: "start", Type: event.PlaybookCompleted},
		}})
		wantCode(t, err, event.Invalid, "")
		if after, _ := p.Events(t.Context(), id, 0, 0); len(after) != len(before) {
			t.Errorf("a part of the refused report was stored")
		}
		_, err = p.Report(t.Context(), event.Report{ExecutionID: 9, Events: []event.Incoming{{Type: "custom.note"}}})
		wantCode(t, err, event.NotFound, "")
		_, err = p.Report(t.Context(), event.Report{Events: []event.Incoming{{Type: "custom.note"}}})
		wantCode(t, err, event.Invalid, "")
		empty, err := p.Report(t.Context(), event.Report{})
		if err != nil || empty.Status != "ok" || empty.EventIDs == nil {
			t.Errorf("empty report: %+v, %v", empty, err)
		}
	})
}

func TestAWorkerThatWritesItsOwnClaimIsTreatedAsClaiming(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		row := r.pending()[0]
		claim := func(worker string) (event.ReportAnswer, error) {
			return p.Report(t.Context(), event.Report{ExecutionID: id, WorkerID: worker, Events: []event.Incoming{{
				Step: "start", Type: event.CommandClaimed,
				Payload: json.RawMessage(fmt.Sprintf(`{"command_id":%q}`, row.CommandID)),
			}}})
		}
		first, err := claim("w1")
		if err != nil || first.EventIDs[0] == 0 {
			t.Fatalf("claim: %+v, %v", first, err)
		}
		again, err := claim("w1")
		if err != nil || again.EventIDs[0] != 0 {
			t.Errorf("repeated claim: %+v, %v; want id 0", again, err)
		}
		_, err = claim("w2")
		wantCode(t, err, event.Conflict, "active_claim")
		held, err := r.store.Command(t.Context(), id, row.EventID)
		if err != nil || held.WorkerID != "w1" || held.Attempt != 1 || held.LeaseUntil.IsZero() {
			t.Errorf("row is %+v, %v", held, err)
		}
	})
}

func TestReportsAfterTheEndChangeNothing(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		rep := success(r.ids.Next(), "w", 1, cmd)
		for range 2 {
			if _, err := p.Report(t.Context(), rep); err != nil {
				t.Fatal(err)
			}
		}
		late := event.Report{ExecutionID: id, Events: []event.Incoming{{Type: "custom.note", Step: "start"}}}
		if _, err := p.Report(t.Context(), late); err != nil {
			t.Fatal(err)
		}
		if row, _ := p.Execution(t.Context(), id); row.Status != event.StatusCompleted {
			t.Errorf("row is %+v", row)
		}
		r.verify(id)
	})
}
