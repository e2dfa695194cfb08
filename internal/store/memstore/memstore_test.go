package memstore_test

import (
	"errors"
	"testing"
	"time"

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

// Every operation that writes beside the log can be refused and can lose its
// acknowledgement, under the name of its method.
func TestFaultsReachWhatIsKeptBesideTheLog(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	claim := store.OutboxClaim{Token: "t", Now: now, Lease: time.Minute, Limit: 10}
	inFlight := func(s *memstore.Store) int64 {
		c, err := s.CountOutbox(t.Context(), now, time.Minute)
		if err != nil {
			t.Error(err)
		}
		return c.InFlight
	}
	published := func(s *memstore.Store) int64 {
		c, _ := s.CountOutbox(t.Context(), now, time.Minute)
		return c.Published
	}
	for op, c := range map[string]struct {
		call   func(*memstore.Store) error
		effect func(*memstore.Store) int64 // 0 without, 1 with
	}{
		"ClaimOutbox": {func(s *memstore.Store) error { _, err := s.ClaimOutbox(t.Context(), claim); return err }, inFlight},
		"MarkPublished": {func(s *memstore.Store) error {
			_, err := s.MarkPublished(t.Context(), "", []int64{1}, now)
			return err
		}, published},
		"SetVariables": {func(s *memstore.Store) error {
			return s.SetVariables(t.Context(), 1, []store.Variable{{Name: "v"}})
		}, func(s *memstore.Store) int64 { v, _ := s.Variables(t.Context(), 1); return int64(len(v)) }},
		"PutRuntime": {func(s *memstore.Store) error {
			_, err := s.PutRuntime(t.Context(), store.Runtime{RuntimeID: 1, Kind: "k", Name: "n"})
			return err
		}, func(s *memstore.Store) int64 {
			r, _ := s.ListRuntimes(t.Context(), store.RuntimeFilter{})
			return int64(len(r))
		}},
		"PutSnapshot": {func(s *memstore.Store) error {
			return s.PutSnapshot(t.Context(), store.Snapshot{ExecutionID: 1, Type: "t", ID: "i", Seq: 1})
		}, func(s *memstore.Store) int64 { snap, _ := s.Snapshot(t.Context(), 1, "t", "i"); return snap.Seq }},
		"Reproject": {func(s *memstore.Store) error {
			return s.Reproject(t.Context(), store.Execution{ExecutionID: 1, LastSeq: 1, StepsTotal: 1}, nil)
		}, func(s *memstore.Store) int64 { x, _ := s.Execution(t.Context(), 1); return int64(x.StepsTotal) }},
	} {
		for fault, want := range map[memstore.Fault]int64{memstore.Refuse: 0, memstore.LoseAck: 1} {
			s := memstore.New()
			b := start(1)
			b.Publish = true
			if err := s.Append(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			s.Inject(memstore.Faults{Hook: memstore.Next(op, fault)})
			if err := c.call(s); event.CodeOf(err) != event.Unavailable {
				t.Errorf("%s with fault %v = %v, want an unavailable error", op, fault, err)
			}
			if got := c.effect(s); got != want {
				t.Errorf("%s with fault %v: effect %d, want %d", op, fault, got, want)
			}
		}
	}
}
