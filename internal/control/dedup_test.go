package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

func keyed(path, key string) control.ExecuteRequest {
	return control.ExecuteRequest{Path: path, Dedup: &control.Dedup{Key: key, Window: 5 * time.Minute}}
}

// executions counts what the store holds.
func (r *rig) executions() int {
	r.t.Helper()
	rows, err := r.store.ListExecutions(context.Background(), store.ExecutionFilter{Limit: 1 << 20})
	if err != nil {
		r.t.Fatal(err)
	}
	return len(rows)
}

func TestManyRequestsWithOneKeyStartOneExecution(t *testing.T) {
	for name, faults := range map[string]memstore.Faults{
		"everything works":      {},
		"the store is flaky":    {Hook: memstore.Random(7, 0.3, 0.3, "Append", "ClaimHolder")},
		"no answer can be had":  {Hook: memstore.Random(8, 0.2, 0.4, "Append", "Events", "ClaimHolder")},
		"every append is doubt": {Hook: memstore.Random(9, 0, 1, "Append")},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				planes := []*running{r.plane(nil, quiet), r.plane(nil, quiet)}
				r.register(planes[0], single)
				r.store.Inject(faults)
				var mu sync.Mutex
				started, ids := 0, map[event.ID]int{}
				var wg sync.WaitGroup
				for i := range 64 {
					wg.Go(func() {
						answer, err := untilAnswered(t.Context(), planes[i%2], keyed("test/single", "k"))
						if err != nil {
							t.Errorf("request %d: %v", i, err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						ids[answer.ExecutionID]++
						switch {
						case answer.Status == "started" && answer.CommandsGenerated == 1:
							started++
						case answer.Status != "duplicate" || answer.CommandsGenerated != 0:
							t.Errorf("request %d: %+v", i, answer)
						}
					})
				}
				wg.Wait()
				r.store.Inject(memstore.Faults{})
				if len(ids) != 1 || started > 1 || r.executions() != 1 {
					t.Errorf("%d said started, ids %v, %d executions", started, ids, r.executions())
				}
				if faults.Hook == nil && started != 1 {
					t.Errorf("%d said started", started)
				}
			})
		})
	}
}

// untilAnswered sends a request again while the system is not available.
func untilAnswered(ctx context.Context, p *running, r control.ExecuteRequest) (control.ExecuteAnswer, error) {
	for {
		answer, err := p.Execute(ctx, r)
		if err == nil || event.CodeOf(err) != event.Unavailable {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func TestAKeyIsFreeAfterItsWindow(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		first, err := p.Execute(t.Context(), keyed("test/single", "k"))
		if err != nil || first.Status != "started" {
			t.Fatalf("%+v, %v", first, err)
		}
		time.Sleep(5*time.Minute - time.Second)
		if again, err := p.Execute(t.Context(), keyed("test/single", "k")); err != nil || again.Status != "duplicate" || again.ExecutionID != first.ExecutionID {
			t.Errorf("within the window: %+v, %v", again, err)
		}
		time.Sleep(2 * time.Second)
		if again, err := p.Execute(t.Context(), keyed("test/single", "k")); err != nil || again.Status != "started" || again.ExecutionID == first.ExecutionID {
			t.Errorf("after the window: %+v, %v", again, err)
		}
	})
}

func TestKeysOfUnrelatedCallersDoNotMix(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		linearID := r.register(p, linear).CatalogID
		long := strings.Repeat("x", 600)
		requests := []control.ExecuteRequest{
			keyed("test/single", "k"), keyed("test/linear", "k"), keyed("test/single", "K"),
			keyed("test/single", long), keyed("test/single", long+"y"), keyed("test/single", "a\x00b"), keyed("test/single", "a\x00c"),
			{CatalogID: linearID, Dedup: &control.Dedup{Key: "k", Window: time.Minute}},
			{Path: "test/single", ParentExecutionID: 5, Dedup: &control.Dedup{Key: "k", Window: time.Minute}},
			{Path: "test/single", ParentExecutionID: 6, Dedup: &control.Dedup{Key: "k", Window: time.Minute}},
			{Path: "test/single", Caller: "ann", Dedup: &control.Dedup{Key: "k", Window: time.Minute}},
		}
		for round, want := range []string{"started", "duplicate"} {
			for i, q := range requests {
				if a, err := p.Execute(t.Context(), q); err != nil || a.Status != want {
					t.Errorf("round %d, request %d: %+v, %v", round, i, a, err)
				}
			}
		}
		if a, err := p.Execute(t.Context(), keyed("/test/single/", "k")); err != nil || a.Status != "duplicate" {
			t.Errorf("the same path with slashes: %+v, %v", a, err)
		}
	})
}

func TestAStartThatFailsLeavesItsKeyFree(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		bad := keyed("test/single", "k")
		bad.Payload = json.RawMessage(`[]`)
		_, err := p.Execute(t.Context(), bad)
		wantCode(t, err, event.Invalid, "")
		_, err = p.Execute(t.Context(), keyed("test/nothing", "k"))
		wantCode(t, err, event.NotFound, "")
		r.store.Inject(memstore.Faults{Hook: memstore.Next("Append", memstore.Refuse)})
		_, err = p.Execute(t.Context(), keyed("test/single", "k"))
		wantCode(t, err, event.Unavailable, "")
		if a, err := p.Execute(t.Context(), keyed("test/single", "k")); err != nil || a.Status != "started" {
			t.Errorf("%+v, %v", a, err)
		}
	})
}

func TestAStartWhoseAcknowledgementWasLostIsNotItsOwnDuplicate(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		r.store.Inject(memstore.Faults{Hook: memstore.Next("Append", memstore.LoseAck)})
		a, err := p.Execute(t.Context(), keyed("test/single", "k"))
		if err != nil || a.Status != "started" || a.CommandsGenerated != 1 {
			t.Fatalf("%+v, %v", a, err)
		}
		b, err := p.Execute(t.Context(), keyed("test/single", "k"))
		if err != nil || b.Status != "duplicate" || b.ExecutionID != a.ExecutionID || r.executions() != 1 {
			t.Errorf("%+v, %v, %d executions", b, err, r.executions())
		}
	})
}

// repeating is a store that repeats an append whose answer it lost, and so is
// told by its own database that it comes too late.
type repeating struct{ *memstore.Store }

func (s repeating) Append(ctx context.Context, b store.Batch) error {
	if err := s.Store.Append(ctx, b); err != nil || b.Expected > 0 {
		return err
	}
	return store.ErrConflict
}

func TestAStartThatWasStoredUnnoticedIsNotMadeTwice(t *testing.T) {
	for name, q := range map[string]control.ExecuteRequest{"with a key": keyed("test/single", "k"), "without": {Path: "test/single"}} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, quiet, func(o *control.Options) { o.Store = repeating{r.store} })
				r.register(p, single)
				a, err := p.Execute(t.Context(), q)
				if err != nil || a.Status != "started" || a.CommandsGenerated != 1 || r.executions() != 1 {
					t.Errorf("%+v, %v, %d executions", a, err, r.executions())
				}
			})
		})
	}
}

func TestTheParentsLogTellsOfSuppressedStarts(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		parent := r.start(p, "test/single")
		q := keyed("test/single", "msg-1")
		q.ParentExecutionID = parent
		first, err := p.Execute(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Execute(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		events, err := p.Events(t.Context(), parent, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		last := events[len(events)-1]
		if last.Type != "subscription.message.deduplicated" || last.Status != "DEDUPLICATED" || last.NodeName != "ingress" {
			t.Fatalf("last event is %+v", last)
		}
		var got map[string]any
		if err := json.Unmarshal(last.Context, &got); err != nil {
			t.Fatal(err)
		}
		if got["subscription_id"] != parent.String() || got["dedup_key"] != "msg-1" || got["original_execution_id"] != first.ExecutionID.String() ||
			got["duplicate_suppressed"] != true || got["suppressed_execution_id"] == first.ExecutionID.String() || got["suppressed_execution_id"] == "0" {
			t.Errorf("context is %s", last.Context)
		}
		if _, err := r.store.Execution(t.Context(), mustID(t, got["suppressed_execution_id"])); err == nil {
			t.Error("the suppressed execution exists")
		}

		if _, err := p.Cancel(t.Context(), parent, control.CancelRequest{}); err != nil {
			t.Fatal(err)
		}
		before := r.fold(parent).Seq()
		if a, err := p.Execute(t.Context(), q); err != nil || a.Status != "duplicate" {
			t.Errorf("%+v, %v", a, err)
		}
		synctest.Wait()
		if after := r.fold(parent).Seq(); after != before {
			t.Errorf("an ended log grew from %d to %d", before, after)
		}
	})
}

func mustID(t *testing.T, v any) event.ID {
	t.Helper()
	id, err := event.ParseID(fmt.Sprint(v))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAnUnknownParentIsToldNothing(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		q := keyed("test/single", "k")
		q.ParentExecutionID = 12345
		for range 2 {
			if _, err := p.Execute(t.Context(), q); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if events, err := r.store.Events(t.Context(), 12345, 0, 0); err != nil || len(events) > 0 {
			t.Errorf("%d events, %v", len(events), err)
		}
	})
}

func TestDedupWithoutKeyOrWindowIsRefused(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		for _, d := range []control.Dedup{{Window: time.Minute}, {Key: "k"}, {Key: "k", Window: -1}, {Key: "k", Window: 31 * 24 * time.Hour}} {
			_, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", Dedup: &d})
			wantCode(t, err, event.Invalid, "")
		}
	})
}
