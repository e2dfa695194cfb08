package control_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

func TestAReportWhoseAcknowledgementWasLostIsAnsweredFromTheLog(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		r.store.Inject(memstore.Faults{Hook: memstore.Next("Append", memstore.LoseAck)})
		answer, err := p.Report(t.Context(), success(r.ids.Next(), "w", 1, cmd))
		if err != nil || len(answer.Commands) != 1 || answer.Commands[0].NodeName != "b" {
			t.Fatalf("answer is %+v, %v", answer, err)
		}
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w", 0, answer.Commands[0])); err != nil {
			t.Fatal(err)
		}
		if row, _ := p.Execution(t.Context(), id); row.CurrentStep != "c" {
			t.Errorf("row is %+v", row)
		}
	})
}

func TestAReportOfUnknownOutcomeCanBeRepeated(t *testing.T) {
	for name, fault := range map[string]memstore.Fault{"it was lost": memstore.Refuse, "it was stored": memstore.LoseAck} {
		t.Run(name, func(t *testing.T) {
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

				// Neither the append nor the look at the log is answered.
				appends, reads := memstore.Next("Append", fault), memstore.Next("Events", memstore.Refuse)
				r.store.Inject(memstore.Faults{Hook: func(op string) memstore.Fault { return max(appends(op), reads(op)) }})
				_, err := p.Report(t.Context(), rep)
				wantCode(t, err, event.Unavailable, "")
				answer, err := p.Report(t.Context(), rep)
				if err != nil || answer.EventIDs[1] != rep.Events[1].EventID {
					t.Fatalf("repeated report: %+v, %v", answer, err)
				}
				events, err := p.Events(t.Context(), id, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				counts := map[event.Type]int{}
				for _, e := range events {
					counts[e.Type]++
				}
				if counts[event.CallDone] != 1 || counts[event.CommandCompleted] != 1 || counts[event.CommandIssued] != 2 {
					t.Errorf("events are %v", counts)
				}
			})
		})
	}
}

func TestSlotsReservedForAFailedAppendAreGivenBack(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		d := newDesk(r, 4)
		p := r.plane(d, quiet)
		r.register(p, fanout)
		r.store.Inject(memstore.Faults{Hook: memstore.Next("Append", memstore.Refuse)})
		_, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/fanout"})
		wantCode(t, err, event.Unavailable, "")
		if len(d.slots) != 0 || len(d.got) != 0 {
			t.Errorf("%d slots taken, %d commands delivered, want none", len(d.slots), len(d.got))
		}
		r.start(p, "test/fanout")
		if len(d.slots) != 4 || len(d.got) != 4 {
			t.Errorf("%d slots taken, %d commands delivered, want 4", len(d.slots), len(d.got))
		}
	})
}

// fussy refuses batches that hold an event of a type, for what is in them.
type fussy struct {
	slowStore
	armed atomic.Bool
}

func (s *fussy) Append(ctx context.Context, b store.Batch) error {
	for i := range b.Events {
		if b.Events[i].Type == "custom.huge" {
			return event.Errorf(event.Limit, "the event is too large")
		}
	}
	if !s.armed.Load() {
		return s.Store.Append(ctx, b)
	}
	return s.slowStore.Append(ctx, b)
}

func TestAnInputTheStoreRefusesDoesNotSpoilItsNeighbours(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		s := &fussy{slowStore: slowStore{Store: r.store, entered: make(chan struct{}), leave: make(chan struct{})}}
		p := r.plane(nil, quiet, func(o *control.Options) { o.Store = s })
		r.register(p, linear)
		id := r.start(p, "test/linear")
		s.armed.Store(true)
		send := func(typ event.Type) <-chan error {
			done := make(chan error, 1)
			go func() {
				_, err := p.Report(context.Background(), event.Report{ExecutionID: id, Events: []event.Incoming{{Type: typ}}})
				done <- err
			}()
			return done
		}
		first := send("custom.note")
		<-s.entered // those behind it share the next pass
		huge, good := send("custom.huge"), send("custom.note")
		synctest.Wait()
		s.armed.Store(false)
		close(s.leave)
		for _, ch := range []<-chan error{first, good} {
			if err := <-ch; err != nil {
				t.Errorf("report: %v", err)
			}
		}
		wantCode(t, <-huge, event.Limit, "")
	})
}

func TestClaimsOfOnePassDoNotOverrideEachOther(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		s := &fussy{slowStore: slowStore{Store: r.store, entered: make(chan struct{}), leave: make(chan struct{})}}
		p := r.plane(nil, quiet, func(o *control.Options) { o.Store = s })
		r.register(p, single)
		id := r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		s.armed.Store(true)
		go func() {
			_, _ = p.Report(context.Background(), event.Report{ExecutionID: id, Events: []event.Incoming{{Type: "custom.note"}}})
		}()
		<-s.entered
		results := make(chan error, 8)
		for i := range cap(results) {
			go func() {
				_, err := p.Claim(context.Background(), event.ClaimRequest{
					EventID: eventID, ExecutionID: id, WorkerID: string(rune('a' + i)), Heartbeats: true,
				})
				results <- err
			}()
		}
		synctest.Wait() // all wait for the same pass
		s.armed.Store(false)
		close(s.leave)
		won := 0
		for range cap(results) {
			if err := <-results; err == nil {
				won++
			} else {
				wantCode(t, err, event.Conflict, "active_claim")
			}
		}
		if won != 1 {
			t.Errorf("%d workers hold the command", won)
		}
	})
}
