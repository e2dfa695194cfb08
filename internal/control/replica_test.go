package control_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// wide joins after a fan-out, so that two replicas compete for one execution.
const wide = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: wide, path: test/wide}
workflow:
  - step: start
    tool: {kind: noop}
    next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}
  - step: a
    tool: {kind: noop}
    next: {arcs: [{step: join}]}
  - step: b
    tool: {kind: noop}
    next: {arcs: [{step: join}]}
  - step: c
    tool: {kind: noop}
    next: {arcs: [{step: join}]}
  - step: join
    tool: {kind: noop}
`

// startMany starts n executions, from several goroutines and on all planes in
// turn, repeating starts that the store did not take.
func (r *rig) startMany(n int, path string, planes ...*running) []event.ID {
	r.t.Helper()
	const starters = 8
	ids := make([]event.ID, n)
	var wg sync.WaitGroup
	for s := range starters {
		wg.Go(func() {
			for i := s; i < n; i += starters {
				p := planes[i%len(planes)]
				for ids[i] == 0 {
					a, err := p.Execute(context.Background(), control.ExecuteRequest{Path: path})
					switch {
					case err == nil:
						ids[i] = a.ExecutionID
					case event.CodeOf(err) != event.Unavailable:
						r.t.Errorf("execute: %v", err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	return ids
}

func (r *rig) allComplete(p *running, ids []event.ID) {
	r.t.Helper()
	for _, id := range ids {
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			r.t.Errorf("execution %s: %+v", id, row)
		}
		r.verify(id)
	}
}

func TestTwoReplicasWorkTheSameExecutions(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		a, b := r.plane(nil), r.plane(nil)
		r.register(a, wide)
		r.hire("w1", 6, 0, a, b)
		r.hire("w2", 6, 1, a, b)
		ids := r.startMany(500, "test/wide", a, b)
		r.allComplete(a, ids)
		t.Logf("a: %+v, b: %+v", a.Stats(), b.Stats())
	})
}

func TestEverythingCompletesAlthoughTheStoreFailsAtRandom(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				a, b := r.plane(nil, tolerant), r.plane(nil, tolerant)
				r.register(a, wide)
				r.store.Inject(memstore.Faults{Hook: memstore.Random(seed, 0.05, 0.05)})
				r.hire("w1", 4, 1, a, b)
				r.hire("w2", 4, 0, a, b)
				ids := r.startMany(60, "test/wide", a, b)
				for _, id := range ids {
					r.await(a, id)
				}
				r.store.Inject(memstore.Faults{})
				// A start whose acknowledgement was lost may have happened all the same.
				everything, err := r.store.ListExecutions(t.Context(), store.ExecutionFilter{Limit: 10_000})
				if err != nil {
					t.Fatal(err)
				}
				ids = ids[:0]
				for _, x := range everything {
					ids = append(ids, x.ExecutionID)
				}
				r.allComplete(a, ids)
				t.Logf("%d executions, a: %+v, b: %+v", len(ids), a.Stats(), b.Stats())
			})
		})
	}
}

// tolerant lets commands be lost more often than the default before they fail.
func tolerant(o *control.Options) { o.Lease = 10 * time.Second }

func TestANewPlaneFinishesWhatACrashedOneBegan(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		// To everybody else, a plane that cannot reach the store is dead. The
		// worker dies with it, holding every other command it was given.
		dying := &severed{Store: r.store}
		first := r.plane(nil, func(o *control.Options) { o.Store = dying })
		r.register(first, wide)
		ids := r.startMany(40, "test/wide", first)
		half := &crew{r: r, id: "dying", eager: 2, planes: []*control.Plane{first.Plane}}
		n := 0
		half.drop = func(*event.Command) bool {
			if n++; n == 60 {
				dying.cut.Store(true)
			}
			return n%2 == 0
		}
		r.employ(half, 1)
		time.Sleep(time.Second)
		if !dying.cut.Load() {
			t.Fatal("the plane did not die half-way")
		}

		second := r.plane(nil)
		r.hire("w2", 4, 1, second)
		r.allComplete(second, ids)
	})
}

// severed is a store that can be cut off from one plane.
type severed struct {
	*memstore.Store
	cut atomic.Bool
}

var errCut = event.Errorf(event.Unavailable, "cut off")

func (s *severed) Append(ctx context.Context, b store.Batch) error {
	if s.cut.Load() {
		return errCut
	}
	return s.Store.Append(ctx, b)
}

func (s *severed) Events(ctx context.Context, id event.ID, after int64, limit int) ([]event.Event, error) {
	if s.cut.Load() {
		return nil, errCut
	}
	return s.Store.Events(ctx, id, after, limit)
}

func (s *severed) PendingCommands(ctx context.Context, before time.Time, limit int) ([]store.Command, error) {
	if s.cut.Load() {
		return nil, errCut
	}
	return s.Store.PendingCommands(ctx, before, limit)
}

func (s *severed) ExpiredCommands(ctx context.Context, now time.Time, limit int) ([]store.Command, error) {
	if s.cut.Load() {
		return nil, errCut
	}
	return s.Store.ExpiredCommands(ctx, now, limit)
}

func TestAnExecutionWithoutItsDecisionIsRecovered(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		p.stop()

		// Somebody appends the end of the command and dies before deciding.
		s := r.fold(id)
		rep := completed(r.ids.Next(), cmd)
		if err := appendUndecided(r, s, rep); err != nil {
			t.Fatal(err)
		}
		q := r.plane(nil)
		r.hire("w2", 1, 1, q)
		if row := r.await(q, id); row.Status != event.StatusCompleted {
			t.Errorf("row is %+v", row)
		}
		r.verify(id)
	})
}
