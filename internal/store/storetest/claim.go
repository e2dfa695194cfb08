package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newClaim(scope event.ID, key string) store.StartClaim {
	return store.StartClaim{Scope: scope, Key: key, Window: time.Minute, At: epoch}
}

// claimingStart is the start of an execution that can take the claim.
func claimingStart(s store.Store, c store.StartClaim) store.Batch {
	id := newID()
	for !s.Colocated(id, c) {
		id = newID()
	}
	b := newBatch(id, 0, 1)
	b.Claim = &c
	return b
}

// wantClaimed fails unless err names the holder of a claim.
func wantClaimed(t *testing.T, what string, err error, holder event.ID) {
	t.Helper()
	claimed, ok := errors.AsType[*store.ClaimedError](err)
	if !ok || claimed.ExecutionID != holder {
		t.Errorf("%s = %v, want a claim held by %d", what, err, holder)
	}
}

var claimTests = map[string]func(*testing.T, store.Store){
	"a claim lets one start through until its window is over": func(t *testing.T, s store.Store) {
		c := newClaim(newID(), "message ü 1")
		_, err := s.ClaimHolder(t.Context(), c)
		wantErr(t, "holder of a free claim", err, store.ErrNotFound)
		first := claimingStart(s, c)
		mustAppend(t, s, first)
		holder := first.Execution.ExecutionID
		for _, age := range []time.Duration{0, time.Second, time.Minute - time.Microsecond, -time.Hour} {
			c.At = epoch.Add(age)
			if got, err := s.ClaimHolder(t.Context(), c); err != nil || got != holder {
				t.Errorf("after %s: holder = %d, %v, want %d", age, got, err, holder)
			}
			again := claimingStart(s, c)
			wantClaimed(t, fmt.Sprint("a start after ", age), s.Append(t.Context(), again), holder)
			_, err = s.Execution(t.Context(), again.Execution.ExecutionID)
			wantErr(t, "row of the refused start", err, store.ErrNotFound)
			if events := must[[]event.Event](t)(s.Events(t.Context(), again.Execution.ExecutionID, 0, 0)); len(events) != 0 {
				t.Errorf("a refused start left %d events", len(events))
			}
		}
		c.At = epoch.Add(time.Minute)
		_, err = s.ClaimHolder(t.Context(), c)
		wantErr(t, "holder when the window is over", err, store.ErrNotFound)
		second := claimingStart(s, c)
		mustAppend(t, s, second)
		if got := must[event.ID](t)(s.ClaimHolder(t.Context(), c)); got != second.Execution.ExecutionID {
			t.Errorf("holder = %d, want the second execution %d", got, second.Execution.ExecutionID)
		}
	},
	"the window is that of who asks": func(t *testing.T, s store.Store) {
		c := newClaim(newID(), "k")
		first := claimingStart(s, c)
		mustAppend(t, s, first)
		c.At, c.Window = epoch.Add(time.Hour), 2*time.Hour
		if got := must[event.ID](t)(s.ClaimHolder(t.Context(), c)); got != first.Execution.ExecutionID {
			t.Errorf("holder = %d", got)
		}
		c.Window = 0
		_, err := s.ClaimHolder(t.Context(), c)
		wantErr(t, "holder without a window", err, store.ErrNotFound)
	},
	"claims differ by scope and key": func(t *testing.T, s store.Store) {
		scope := newID()
		for _, c := range []store.StartClaim{newClaim(scope, "a"), newClaim(scope, "A"), newClaim(scope, ""), newClaim(scope+1, "a"), newClaim(-scope, "a")} {
			mustAppend(t, s, claimingStart(s, c))
		}
	},
	"a conflict is found before a held claim": func(t *testing.T, s store.Store) {
		c := newClaim(newID(), "k")
		b := claimingStart(s, c)
		mustAppend(t, s, b)
		again := newBatch(b.Execution.ExecutionID, 0, 1)
		again.Claim = &c
		wantErr(t, "the same start again", s.Append(t.Context(), again), store.ErrConflict)
	},
	"only a start takes a claim": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		mustAppend(t, s, b)
		next := newBatch(b.Execution.ExecutionID, 1, 1)
		c := newClaim(newID(), "k")
		next.Claim = &c
		if err := s.Append(t.Context(), next); err == nil {
			t.Error("a later batch took a claim")
		}
	},
	"a start that fails leaves the claim free": func(t *testing.T, s store.Store) {
		c := newClaim(newID(), "k")
		b := claimingStart(s, c)
		b.Events = append(b.Events, b.Events[0])
		b.Events[1].Seq, b.Execution.LastSeq = 2, 2
		wantErr(t, "a start with an event twice", s.Append(t.Context(), b), store.ErrDuplicate)
		_, err := s.ClaimHolder(t.Context(), c)
		wantErr(t, "its claim", err, store.ErrNotFound)
		mustAppend(t, s, claimingStart(s, c))
	},
	"of many starts with one claim exactly one wins and the others learn which": func(t *testing.T, s store.Store) {
		const rounds, starters = 8, 16
		for round := range rounds {
			c := newClaim(newID(), fmt.Sprint(round))
			var (
				wg   sync.WaitGroup
				errs [starters]error
				ids  [starters]event.ID
			)
			for i := range starters {
				b := claimingStart(s, c)
				ids[i] = b.Execution.ExecutionID
				wg.Go(func() { errs[i] = s.Append(t.Context(), b) })
				// Bystanders in the same group must not notice.
				wg.Go(func() {
					if err := s.Append(t.Context(), newBatch(newID(), 0, 1)); err != nil {
						t.Errorf("a start without claim = %v", err)
					}
				})
			}
			wg.Wait()
			winner := must[event.ID](t)(s.ClaimHolder(t.Context(), c))
			for i, err := range errs {
				if ids[i] != winner {
					wantClaimed(t, "a loser", err, winner)
				} else if err != nil {
					t.Errorf("the winner got %v", err)
				}
			}
		}
	},
	"claims are purged when their window was over": func(t *testing.T, s store.Store) {
		scope := newID()
		var last event.ID
		for i := range 5 {
			c := newClaim(scope, fmt.Sprint(i))
			c.Window = time.Duration(i+1) * time.Minute
			b := claimingStart(s, c)
			mustAppend(t, s, b)
			last = b.Execution.ExecutionID
		}
		purge := func(minutes, limit int) int {
			return must[int](t)(s.PurgeClaims(t.Context(), epoch.Add(time.Duration(minutes)*time.Minute), limit))
		}
		wantSame(t, "none over before the first ends", 0, purge(1, 10))
		wantSame(t, "limited", 2, purge(5, 2))
		wantSame(t, "the rest", 2, purge(5, 10))
		if got := must[event.ID](t)(s.ClaimHolder(t.Context(), newClaim(scope, "4"))); got != last {
			t.Errorf("holder of the claim that is left = %d, want %d", got, last)
		}
		_, err := s.ClaimHolder(t.Context(), newClaim(scope, "3"))
		wantErr(t, "a purged claim", err, store.ErrNotFound)
	},
}
