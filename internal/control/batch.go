package control

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
)

// batchParallel is how many starts of a batch are under way at a time: enough
// for the store to write many of them with one commit.
const batchParallel = 256

// BatchResult is what one request of a batch came to.
type BatchResult struct {
	ExecuteAnswer
	Err error // nil when it was started or is a duplicate
}

// ExecuteBatch starts many executions. Each request stands alone: one that
// fails keeps no other from starting. Results are in the order of the requests.
// Of requests with the same key the first one starts. When ctx ends, what was
// not under way is not started.
func (p *Plane) ExecuteBatch(ctx context.Context, requests []ExecuteRequest) []BatchResult {
	results := make([]BatchResult, len(requests))
	memory := &batchMemory{p: p, entries: map[EntryRef]found[*runnable]{}, traces: map[event.ID]found[json.RawMessage]{}}
	chains := byKey(requests)
	// All keys are looked up before anything starts, so that the starts come
	// close together and share commits.
	wishes := make([]*wish, len(chains))
	sideBySide(len(chains), func(c int) {
		if ctx.Err() == nil {
			wishes[c] = p.consider(ctx, requests[chains[c][0]])
		}
	})
	sideBySide(len(chains), func(c int) {
		for n, i := range chains[c] {
			switch err := ctx.Err(); {
			case err != nil:
				results[i].Err = notBegun(err)
			case n > 0 || wishes[c] == nil:
				results[i].ExecuteAnswer, results[i].Err = p.execute(ctx, requests[i], memory)
			case wishes[c].answered():
				results[i] = BatchResult{wishes[c].answer, wishes[c].err}
			default:
				results[i].ExecuteAnswer, results[i].Err = p.follow(ctx, wishes[c], memory)
			}
		}
	})
	p.askedMany(results)
	return results
}

// sideBySide calls f for 0 … n-1, many at a time.
func sideBySide(n int, f func(i int)) {
	work := make(chan int)
	var workers sync.WaitGroup
	for range min(batchParallel, n) {
		workers.Go(func() {
			for i := range work {
				f(i)
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	workers.Wait()
}

func notBegun(err error) error {
	return &event.Error{
		Code: event.Unavailable, Message: "the request ended before this execution was started", Remedy: "send it again", Err: err,
	}
}

// byKey puts requests that start under the same key one behind the other.
func byKey(requests []ExecuteRequest) [][]int {
	type key struct {
		scope event.ID
		key   string
	}
	chains := make([][]int, 0, len(requests))
	at := map[key]int{}
	for i, r := range requests {
		if r.Dedup == nil {
			chains = append(chains, []int{i})
			continue
		}
		k := key{scopeOf(r), r.Dedup.Key}
		if c, seen := at[k]; seen {
			chains[c] = append(chains[c], i)
			continue
		}
		at[k] = len(chains)
		chains = append(chains, []int{i})
	}
	return chains
}

// found is a value that is looked up once, by whoever needs it first.
type found[T any] func() (T, error)

// batchMemory spares a batch to look the same things up again and again.
type batchMemory struct {
	p       *Plane
	mu      sync.Mutex // guards the maps
	entries map[EntryRef]found[*runnable]
	traces  map[event.ID]found[json.RawMessage]
}

func (m *batchMemory) runnable(ctx context.Context, ref EntryRef) (*runnable, error) {
	return remembered(m, m.entries, ref, func() (*runnable, error) { return m.p.runnable(ctx, ref) })
}

func (m *batchMemory) traceOf(ctx context.Context, id event.ID) (json.RawMessage, error) {
	return remembered(m, m.traces, id, func() (json.RawMessage, error) { return m.p.traceOf(ctx, id) })
}

func remembered[K comparable, T any](m *batchMemory, of map[K]found[T], key K, look func() (T, error)) (T, error) {
	m.mu.Lock()
	f, ok := of[key]
	if !ok {
		f = sync.OnceValues(look)
		of[key] = f
	}
	m.mu.Unlock()
	return f()
}
