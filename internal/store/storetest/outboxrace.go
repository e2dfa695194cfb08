package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// ledger checks what claimers of the outbox are handed.
type ledger struct {
	t    *testing.T
	mu   sync.Mutex
	held map[int64]string    // token by row
	last map[event.ID]int64  // highest sequence published by execution
	open map[event.ID]string // token by execution with rows in flight
	n    int                 // published
}

// take notes rows handed out under a token.
func (l *ledger) take(token string, rows []store.OutboxRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[event.ID]int64{}
	for _, r := range rows {
		if other, held := l.held[r.ID]; held {
			l.t.Errorf("row %d was handed to %s while %s holds it", r.ID, token, other)
		}
		x := r.Event.ExecutionID
		if other, open := l.open[x]; open && other != token {
			l.t.Errorf("execution %d was handed to %s while %s publishes it", x, token, other)
		}
		if want := max(next[x], l.last[x]) + 1; r.Event.Seq != want {
			l.t.Errorf("execution %d: sequence %d was handed out, want %d", x, r.Event.Seq, want)
		}
		l.held[r.ID], l.open[x], next[x] = token, token, r.Event.Seq
	}
}

// settle notes that a claim is about to end: the first n rows are published.
func (l *ledger) settle(rows []store.OutboxRow, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range rows {
		delete(l.held, r.ID)
		delete(l.open, r.Event.ExecutionID)
		if i < n {
			l.last[r.Event.ExecutionID] = r.Event.Seq
			l.n++
		}
	}
}

// outboxRace lets claimers publish what appenders append, failing now and then.
func outboxRace(t *testing.T, s store.Store) {
	const appenders, claimers, batches, perBatch = 4, 4, 15, 3
	l := &ledger{t: t, held: map[int64]string{}, last: map[event.ID]int64{}, open: map[event.ID]string{}}
	var appending, claiming sync.WaitGroup
	for range appenders {
		appending.Go(func() {
			x := newID()
			for i := range int64(batches) {
				b := newBatch(x, i*perBatch, perBatch)
				b.Publish = true
				if err := s.Append(t.Context(), b); err != nil {
					t.Errorf("Append = %v", err)
				}
			}
		})
	}
	done := make(chan struct{})
	for i := range claimers {
		claiming.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 7))
			for round := 0; ; round++ {
				select {
				case <-done:
					return
				default:
				}
				if err := l.round(s, fmt.Sprint("claimer", i, "-", round), rng); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	appending.Wait()
	for {
		counts, err := s.CountOutbox(t.Context(), epoch, outboxClaim("", 0).Lease)
		if err != nil || t.Failed() || counts.Published == appenders*batches*perBatch {
			break
		}
	}
	close(done)
	claiming.Wait()
	if l.n != appenders*batches*perBatch {
		t.Errorf("%d rows were published, want %d", l.n, appenders*batches*perBatch)
	}
}

// round claims, publishes a part and gives the rest back.
func (l *ledger) round(s store.Store, token string, rng *rand.Rand) error {
	ctx := l.t.Context()
	c := outboxClaim(token, 0)
	c.Limit = 1 + rng.IntN(7)
	rows, err := s.ClaimOutbox(ctx, c)
	if err != nil || len(rows) == 0 {
		return err
	}
	l.take(token, rows)
	n := rng.IntN(len(rows) + 1)
	// What was published has to end before the rest is given back, or somebody
	// could be handed the rest while the beginning still looks claimed.
	l.settle(rows, n)
	ids := rowIDs(rows)
	if marked, err := s.MarkPublished(ctx, token, ids[:n], epoch); err != nil || marked != n {
		return fmt.Errorf("MarkPublished = %d of %d, %w", marked, n, err)
	}
	if n == len(rows) {
		return nil
	}
	if released, err := s.ReleaseOutbox(ctx, token, ids[n:]); err != nil || released != len(rows)-n {
		return fmt.Errorf("ReleaseOutbox = %d of %d, %w", released, len(rows)-n, err)
	}
	return nil
}
