package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Counted is a store that counts its transactions.
type Counted interface {
	store.Store
	Commits() int64
}

// benchEvents is the number of events in one append of the benchmark: what a
// step of a chain reports and causes.
const benchEvents = 4

// BenchmarkAppend measures durable appends by 1, 64 and 256 concurrent callers
// and reports events per second and commits per append. Each append holds four
// events with payloads, ends one command and issues the next; an execution has
// ten such steps.
func BenchmarkAppend(b *testing.B, open func(b *testing.B) Counted) {
	for _, appenders := range []int{1, 64, 256} {
		b.Run(fmt.Sprint(appenders), func(b *testing.B) {
			s := open(b)
			commits := s.Commits()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range appenders {
				n := b.N / appenders
				if i < b.N%appenders {
					n++
				}
				wg.Go(func() {
					if err := appendSteps(context.Background(), s, n); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(benchEvents*b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(s.Commits()-commits)/float64(b.N), "commits/append")
		})
	}
}

var benchPayload = json.RawMessage(`{"status":"ok","context":{"data":"` + strings.Repeat("x", 240) + `"}}`)

// appendSteps appends n steps, in chains of ten.
func appendSteps(ctx context.Context, s store.Store, n int) error {
	const chain = 10
	var (
		x    event.ID
		held store.Command
	)
	for i := range n {
		step := i % chain
		if step == 0 {
			x, held = newID(), store.Command{}
		}
		b := newBatch(x, int64(step*benchEvents), benchEvents)
		for j := range b.Events {
			b.Events[j].Meta = nil
		}
		b.Events[0].Result = benchPayload
		b.Events[3].Context = benchPayload
		if held.EventID != 0 {
			held.Status, held.EndedAt = event.StatusCompleted, epoch
			b.Commands = append(b.Commands, held)
		}
		if step == chain-1 {
			b.Execution.Status = event.StatusCompleted
		} else {
			held = newCommand(&b, event.StatusRunning)
			held.EventID, held.WorkerID, held.Attempt, held.LeaseUntil = b.Events[3].EventID, "worker-1", 1, epoch
			b.Commands = append(b.Commands, held)
		}
		if err := s.Append(ctx, b); err != nil {
			return err
		}
	}
	return nil
}
