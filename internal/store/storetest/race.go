package storetest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

var raceTests = map[string]func(*testing.T, store.Store){
	"of many appenders to one execution exactly one wins each sequence": func(t *testing.T, s store.Store) {
		const appenders, target = 16, 60
		x := newID()
		var (
			wg   sync.WaitGroup
			mu   sync.Mutex
			wins = map[int64]event.ID{} // by sequence
		)
		for range appenders {
			wg.Go(func() {
				for expected := int64(0); expected < target; {
					b := newBatch(x, expected, 1+int(expected%2))
					err := s.Append(t.Context(), b)
					if err != nil && !errors.Is(err, store.ErrConflict) {
						t.Errorf("Append = %v", err)
						return
					}
					if err == nil {
						mu.Lock()
						for _, e := range b.Events {
							if other, taken := wins[e.Seq]; taken {
								t.Errorf("sequence %d was won by events %d and %d", e.Seq, other, e.EventID)
							}
							wins[e.Seq] = e.EventID
						}
						mu.Unlock()
					}
					row, err := s.Execution(t.Context(), x)
					if err != nil {
						t.Errorf("Execution = %v", err)
						return
					}
					expected = row.LastSeq
				}
			})
		}
		wg.Wait()
		got := must[[]event.Event](t)(s.Events(t.Context(), x, 0, 0))
		if len(got) != len(wins) {
			t.Errorf("%d events stored, %d acknowledged", len(got), len(wins))
		}
		for i, e := range got {
			if e.Seq != int64(i)+1 || wins[e.Seq] != e.EventID {
				t.Fatalf("event %d has seq %d and id %d, want id %d", i, e.Seq, e.EventID, wins[e.Seq])
			}
		}
	},
	"a conflict or duplicate in a group fails only its own caller": func(t *testing.T, s store.Store) {
		const executions, rounds = 32, 12
		var (
			wg               sync.WaitGroup
			conflicts, dups  atomic.Int64
			ids              [executions]event.ID
			acknowledged     [executions]int64
			wantErrors       = int64(executions / 4 * rounds)
			expectOnly, dupe = 1, 2 // what every fourth execution does wrong
		)
		for i := range executions {
			ids[i] = newID()
			wg.Go(func() {
				var known event.ID
				for range rounds {
					b := newBatch(ids[i], acknowledged[i], 2)
					if err := s.Append(t.Context(), b); err != nil {
						t.Errorf("Append of execution %d = %v", i, err)
						return
					}
					known = b.Events[0].EventID
					acknowledged[i] += 2
					switch i % 4 {
					case expectOnly:
						if err := s.Append(t.Context(), newBatch(ids[i], acknowledged[i]-1, 1)); errors.Is(err, store.ErrConflict) {
							conflicts.Add(1)
						}
					case dupe:
						b := newBatch(ids[i], acknowledged[i], 2)
						b.Events[1].EventID = known
						if err := s.Append(t.Context(), b); errors.Is(err, store.ErrDuplicate) {
							dups.Add(1)
						}
					}
				}
			})
		}
		wg.Wait()
		if conflicts.Load() != wantErrors || dups.Load() != wantErrors {
			t.Errorf("%d conflicts and %d duplicates, want %d each", conflicts.Load(), dups.Load(), wantErrors)
		}
		for i, id := range ids {
			got := seqs(must[[]event.Event](t)(s.Events(t.Context(), id, 0, 0)))
			if int64(len(got)) != acknowledged[i] || !slices.IsSorted(got) {
				t.Errorf("execution %d has %d events, %d acknowledged", i, len(got), acknowledged[i])
			}
		}
	},
	"leases are renewed while rows are written anew": func(t *testing.T, s store.Store) {
		const rounds = 150
		c := heldCommand(t, s, "w", 1, after(60))
		x := must[store.Execution](t)(s.Execution(t.Context(), c.ExecutionID))
		beat := []event.Heartbeat{{ExecutionID: c.ExecutionID, EventID: c.EventID, WorkerID: "w", Attempt: 1}}
		var rebuilding sync.WaitGroup
		rebuilding.Go(func() {
			for range rounds {
				if err := s.Reproject(t.Context(), x, []store.Command{c}); err != nil {
					t.Errorf("Reproject = %v", err)
				}
			}
		})
		for i := range rounds * 2 {
			if renewed, err := s.RenewLeases(t.Context(), beat, after(60+i)); err != nil || !renewed[0] {
				t.Errorf("RenewLeases = %v, %v: who holds a command would give it up", renewed, err)
				break
			}
		}
		rebuilding.Wait()
	},
	"catalog versions are given out once each under concurrency": func(t *testing.T, s store.Store) {
		const adders = 24
		var (
			wg   sync.WaitGroup
			seen [adders + 1]atomic.Int64
		)
		for range adders {
			wg.Go(func() {
				e, err := s.AddEntry(t.Context(), newEntry("examples/race"))
				if err != nil || e.Version < 1 || e.Version > adders {
					t.Errorf("AddEntry = version %d, %v", e.Version, err)
					return
				}
				seen[e.Version].Add(1)
			})
		}
		wg.Wait()
		for v := 1; v <= adders; v++ {
			if n := seen[v].Load(); n != 1 {
				t.Errorf("version %d was given out %d times", v, n)
			}
		}
	},
}
