package control_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

func TestABatchAnswersEachRequestInItsPlace(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		r.register(p, fanout)
		results := p.ExecuteBatch(t.Context(), []control.ExecuteRequest{
			{Path: "test/single"},
			{Path: "test/nothing"},
			keyed("test/single", "k"),
			{Path: "test/fanout"},
			keyed("test/single", "k"),
			{Path: "test/single", Payload: json.RawMessage(`[]`)},
			keyed("test/single", "k"),
		})
		want := []string{"started", "not_found", "started", "started", "duplicate", "invalid", "duplicate"}
		for i, res := range results {
			got := res.Status
			if res.Err != nil {
				got = string(event.CodeOf(res.Err))
			}
			if got != want[i] {
				t.Errorf("result %d is %s, want %s: %+v", i, got, want[i], res)
			}
		}
		if results[4].ExecutionID != results[2].ExecutionID || results[6].ExecutionID != results[2].ExecutionID {
			t.Errorf("duplicates are %v and %v of %v", results[4].ExecutionID, results[6].ExecutionID, results[2].ExecutionID)
		}
		if results[3].CommandsGenerated != 10 || r.executions() != 3 {
			t.Errorf("%+v, %d executions", results[3], r.executions())
		}
		if got := p.ExecuteBatch(t.Context(), nil); len(got) != 0 {
			t.Errorf("nothing gives %v", got)
		}
	})
}

// counting counts look-ups and may end a request in the middle of a batch.
type counting struct {
	*memstore.Store
	entries, appends atomic.Int64
	onAppend         func(n int64)
}

func (s *counting) EntryByPath(ctx context.Context, path string, version int) (store.Entry, error) {
	s.entries.Add(1)
	return s.Store.EntryByPath(ctx, path, version)
}

func (s *counting) Append(ctx context.Context, b store.Batch) error {
	if n := s.appends.Add(1); s.onAppend != nil {
		s.onAppend(n)
	}
	return s.Store.Append(ctx, b)
}

func TestABatchLooksEachPlaybookUpOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		count := &counting{Store: r.store}
		p := r.plane(nil, quiet, func(o *control.Options) { o.Store = count })
		r.register(p, single)
		r.register(p, linear)
		requests := make([]control.ExecuteRequest, 500)
		for i := range requests {
			requests[i].Path = []string{"test/single", "test/linear"}[i%2]
		}
		for i, res := range p.ExecuteBatch(t.Context(), requests) {
			if res.Err != nil || res.Status != "started" {
				t.Fatalf("result %d: %+v", i, res)
			}
		}
		if n := count.entries.Load(); n != 2 {
			t.Errorf("%d look-ups", n)
		}
	})
}

func TestABatchWhoseRequestEndsStartsNoMore(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		count := &counting{Store: r.store}
		p := r.plane(nil, quiet, func(o *control.Options) { o.Store = count })
		r.register(p, single)
		count.onAppend = func(n int64) {
			if n == 10 {
				cancel()
			}
		}
		requests := make([]control.ExecuteRequest, 1000)
		for i := range requests {
			requests[i].Path = "test/single"
		}
		results := p.ExecuteBatch(ctx, requests)
		started, refused := 0, 0
		for _, res := range results {
			switch {
			case res.Err == nil:
				started++
			case event.CodeOf(res.Err) == event.Unavailable:
				refused++
			default:
				t.Errorf("%+v", res)
			}
		}
		p.stop() // what was under way has ended
		if n := r.executions(); started+refused != 1000 || n < started || n > 300 {
			t.Errorf("%d started, %d refused, %d executions", started, refused, n)
		}
	})
}
