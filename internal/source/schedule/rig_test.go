package schedule_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/source/schedule"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// executions stands for the control plane: a start takes the claim of its key.
type executions struct {
	mu      sync.Mutex
	started []*execution
	byKey   map[string]*execution
	takes   time.Duration // how long an execution runs; 0 = for ever
	fails   func(n int) bool
	fault   func() memstore.Fault
	refuse  error
}

type execution struct {
	id event.ID
	schedule.Start
	at, ended time.Time
	status    string
	tick      struct {
		ID, Name, Kind, Tick, Local, Timezone string
		Previous                              *string
	}
}

func newExecutions() *executions { return &executions{byKey: map[string]*execution{}} }

func (x *executions) faulty() memstore.Fault {
	if x.fault == nil {
		return memstore.None
	}
	return x.fault()
}

var errAway = event.Errorf(event.Unavailable, "the control plane is away")

func (x *executions) Start(_ context.Context, s schedule.Start) (event.ID, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refuse != nil {
		return 0, false, x.refuse
	}
	fault := x.faulty()
	if fault == memstore.Refuse {
		return 0, false, errAway
	}
	key := fmt.Sprint(s.Schedule, "/", s.Path, "/", s.Key)
	e, known := x.byKey[key]
	if !known || time.Since(e.at) > s.Window {
		e = &execution{id: event.ID(len(x.started) + 1), Start: s, at: time.Now(), status: "RUNNING"}
		var payload struct{ Schedule any }
		payload.Schedule = &e.tick
		if err := json.Unmarshal(s.Payload, &payload); err != nil {
			return 0, false, err
		}
		x.started, x.byKey[key] = append(x.started, e), e
	}
	if fault == memstore.LoseAck {
		return 0, false, errAway
	}
	return e.id, !known, nil
}

func (x *executions) Status(_ context.Context, id event.ID) (string, time.Time, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.faulty() != memstore.None {
		return "", time.Time{}, errAway
	}
	e := x.started[id-1]
	if end := e.at.Add(x.takes); x.takes > 0 && e.status == "RUNNING" && !time.Now().Before(end) {
		e.status, e.ended = "COMPLETED", end
		if x.fails != nil && x.fails(int(id)) {
			e.status = "FAILED"
		}
	}
	return e.status, e.ended, nil
}

func (x *executions) Cancel(_ context.Context, id event.ID, _ string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.started[id-1]; e.status == "RUNNING" {
		e.status, e.ended = "CANCELLED", time.Now()
	}
	return nil
}

// seen are the executions by tick, and how many each tick has.
func (x *executions) seen() (order []string, count map[string]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	count = map[string]int{}
	for _, e := range x.started {
		order, count[e.tick.Tick] = append(order, e.tick.Tick), count[e.tick.Tick]+1
	}
	return order, count
}

// rig is schedulers on one store in virtual time.
type rig struct {
	t     *testing.T
	store *memstore.Store
	x     *executions
	ids   atomic.Int64
	all   sync.WaitGroup
}

// virtual runs a test in a bubble.
func virtual(t *testing.T, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, store: memstore.New(), x: newExecutions()}
		f(t, r)
		r.all.Wait()
	})
}

// service is a replica whose clock is off by skew.
func (r *rig) service(skew time.Duration) *schedule.Service {
	return schedule.New(schedule.Options{
		Store: r.store, Executions: r.x, IDs: func() event.ID { return event.ID(1000 + r.ids.Add(1)) },
		Clock: func() time.Time { return time.Now().Add(skew) },
	})
}

// run runs a replica until stopped.
func (r *rig) run(s *schedule.Service) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	done := make(chan struct{})
	r.all.Go(func() {
		defer close(done)
		if err := s.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	return func() { cancel(); <-done }
}

// sleep lets virtual time pass.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) create(s *schedule.Service, spec event.ScheduleSpec) event.ScheduleView {
	r.t.Helper()
	if spec.Path == "" {
		spec.Path = "etl/job"
	}
	v, err := s.Create(r.t.Context(), spec)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// states counts the runs of a schedule by state.
func (r *rig) states(s *schedule.Service, ref string) map[string]int {
	r.t.Helper()
	runs, err := s.Runs(r.t.Context(), ref, time.Time{}, 1000)
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]int{}
	for _, run := range runs {
		out[run.State] += run.Ticks
	}
	return out
}

func (r *rig) get(s *schedule.Service, ref string) event.ScheduleView {
	r.t.Helper()
	v, err := s.Get(r.t.Context(), ref)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// chance gives faults at random.
func chance(rng *rand.Rand, p float64) func() memstore.Fault {
	return func() memstore.Fault {
		switch v := rng.Float64(); {
		case v < p:
			return memstore.Refuse
		case v < 2*p:
			return memstore.LoseAck
		}
		return memstore.None
	}
}

var _ store.Schedules = (*memstore.Store)(nil)

func schedulesOf(path string) schedule.Filter { return schedule.Filter{Path: path} }
