package control_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/testkit"
)

// backend is a store that writes for good and tells how often it did.
type backend interface {
	store.Store
	Commits() int64
}

// onBackends runs f on each kind of database, in real time.
func onBackends(t *testing.T, f func(t *testing.T, b backend)) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) (backend, error){
		"sqlite": func(t *testing.T) (backend, error) {
			return sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "noetl.db"), sqlite.Options{})
		},
		"postgres": func(t *testing.T) (backend, error) {
			return postgres.Open(t.Context(), postgres.Options{DSN: testkit.Postgres(t)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = b.Close() })
			f(t, b)
		})
	}
}

// replica is a plane over a backend, with ids of its own.
func replica(t *testing.T, b backend, machine int) *control.Plane {
	t.Helper()
	bus := membus.New(membus.Options{})
	p, err := control.New(control.Options{Store: b, Bus: bus, IDs: snowflake.New(machine, time.Now).Next, Sweep: time.Hour, Recover: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		_ = bus.Close()
	})
	return p
}

func TestABatchOfAThousandCostsAHandfulOfCommits(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		p := replica(t, b, 1)
		if _, err := p.Register(t.Context(), control.RegisterRequest{Content: single}); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"plain", "keyed", "keyed again"} {
			requests := make([]control.ExecuteRequest, 1000)
			for i := range requests {
				requests[i] = control.ExecuteRequest{Path: "test/single"}
				if kind != "plain" {
					requests[i] = keyed("test/single", fmt.Sprint("message ", i))
				}
			}
			before := b.Commits()
			results := p.ExecuteBatch(t.Context(), requests)
			commits := b.Commits() - before
			want := "started"
			if kind == "keyed again" {
				want = "duplicate"
			}
			for i, res := range results {
				if res.Err != nil || res.Status != want {
					t.Fatalf("%s: result %d: %+v", kind, i, res)
				}
			}
			t.Logf("%s: %d commits", kind, commits)
			if commits > 100 { // fewer where the machine is quick enough to gather more
				t.Errorf("%s: %d commits", kind, commits)
			}
		}
	})
}

func TestReplicasStartOneExecutionPerKey(t *testing.T) {
	onBackends(t, func(t *testing.T, b backend) {
		replicas := []*control.Plane{replica(t, b, 1), replica(t, b, 2)}
		if _, err := replicas[0].Register(t.Context(), control.RegisterRequest{Content: single}); err != nil {
			t.Fatal(err)
		}
		const keys, tries = 20, 10
		var mu sync.Mutex
		started, ids := map[string]int{}, map[string]map[event.ID]bool{}
		var wg sync.WaitGroup
		for i := range keys * tries {
			wg.Go(func() {
				key := fmt.Sprint(i % keys)
				a, err := replicas[i/keys%2].Execute(t.Context(), keyed("test/single", key))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if ids[key] == nil {
					ids[key] = map[event.ID]bool{}
				}
				ids[key][a.ExecutionID] = true
				if a.Status == "started" {
					started[key]++
				}
			})
		}
		wg.Wait()
		for key, n := range started {
			if n != 1 || len(ids[key]) != 1 {
				t.Errorf("key %s: %d started, ids %v", key, n, ids[key])
			}
		}
		counts, err := b.CountExecutions(t.Context())
		if err != nil || len(started) != keys || counts[event.StatusRunning] != keys {
			t.Errorf("%d keys started, counts %v, %v", len(started), counts, err)
		}
	})
}
