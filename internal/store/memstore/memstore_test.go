package memstore_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
	"github.com/noetl/noetl-go/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return memstore.New() })
}

func start(id event.ID) store.Batch {
	return store.Batch{
		Execution: store.Execution{ExecutionID: id, Status: event.StatusRunning, LastSeq: 1},
		Events:    []event.Event{{ExecutionID: id, Seq: 1, EventID: id + 1, Type: event.PlaybookStarted}},
	}
}

func TestARefusedAppendLeavesNothing(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	s.Inject(memstore.Faults{Hook: memstore.Next("Append", memstore.Refuse)})
	if err := s.Append(t.Context(), start(1)); event.CodeOf(err) != event.Unavailable {
		t.Errorf("Append = %v, want an unavailable error", err)
	}
	if _, err := s.Execution(t.Context(), 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Execution = %v, want ErrNotFound", err)
	}
	if err := s.Append(t.Context(), start(1)); err != nil {
		t.Errorf("Append after the fault = %v", err)
	}
}

func TestALostAcknowledgementReportsAnErrorAndStoresTheBatch(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	s := memstore.New()
	s.Inject(memstore.Faults{Hook: memstore.Next("Append", memstore.None, memstore.LoseAck), Err: lost})
	if err := s.Append(t.Context(), start(1)); err != nil {
		t.Errorf("first Append = %v", err)
	}
	if err := s.Append(t.Context(), start(10)); !errors.Is(err, lost) {
		t.Errorf("second Append = %v, want the injected error", err)
	}
	if events, err := s.Events(t.Context(), 10, 0, 0); err != nil || len(events) != 1 {
		t.Errorf("Events = %d events, %v, want the one of the lost append", len(events), err)
	}
}

func TestRandomFaultsRepeatWithTheirSeed(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) []memstore.Fault {
		hook := memstore.Random(seed, 0.3, 0.3, "Append")
		var out []memstore.Fault
		for range 200 {
			out = append(out, hook("Append"))
		}
		if f := hook("Events"); f != memstore.None {
			t.Errorf("fault %v for an operation that was not named", f)
		}
		return out
	}
	first := draw(7)
	if diff := cmp.Diff(first, draw(7)); diff != "" {
		t.Errorf("the same seed gave other faults:\n%s", diff)
	}
	count := map[memstore.Fault]int{}
	for _, f := range first {
		count[f]++
	}
	for _, f := range []memstore.Fault{memstore.None, memstore.Refuse, memstore.LoseAck} {
		if count[f] < 30 {
			t.Errorf("fault %v came %d times of 200", f, count[f])
		}
	}
	if cmp.Equal(first, draw(8)) {
		t.Error("another seed gave the same faults")
	}
}

func TestAReopenedStoreKeepsItsContentAndLosesItsFaults(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	if err := s.Append(t.Context(), start(1)); err != nil {
		t.Fatal(err)
	}
	s.Inject(memstore.Faults{Hook: func(string) memstore.Fault { return memstore.Refuse }})
	_ = s.Close()
	s.Reopen()
	if x, err := s.Execution(t.Context(), 1); err != nil || x.LastSeq != 1 {
		t.Errorf("Execution = %+v, %v", x, err)
	}
}
