package worker_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

// registry notes what it is told.
type registry struct {
	mu    sync.Mutex
	calls []string
	fail  error // of every call
	beat  error // of heartbeats
	hang  bool  // until the caller gives up
}

func (r *registry) note(ctx context.Context, call string) error {
	r.mu.Lock()
	r.calls = append(r.calls, call)
	err, hang := r.fail, r.hang
	r.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (r *registry) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

func (r *registry) set(fail, beat error, hang bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail, r.beat, r.hang = fail, beat, hang
}

func (r *registry) Enlist(ctx context.Context, reg event.Registration) (event.Registered, error) {
	return event.Registered{}, r.note(ctx, "enlist "+reg.Kind+" "+reg.Name+" "+reg.Status)
}

func (r *registry) Beat(ctx context.Context, b event.Pulse) (event.PulseAnswer, error) {
	err := r.note(ctx, "beat "+b.Name)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case b.Commands == nil:
		r.calls = append(r.calls, "a pulse without a list of commands renews them all")
	case b.Registration == nil:
		r.calls = append(r.calls, "no registration")
	case r.beat != nil:
		err = r.beat
	}
	return event.PulseAnswer{}, err
}

func (r *registry) Leave(ctx context.Context, kind, name string) (bool, error) {
	return true, r.note(ctx, "leave "+kind+" "+name)
}

func TestAWorkerIsInTheRegistryWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := &registry{}
		w := newIdle(t, reg)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := reg.take(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", when, got, want)
			}
		}
		expect("at the start", "enlist worker_pool w1 ready")
		time.Sleep(31 * time.Second)
		expect("after half a minute", "beat w1", "beat w1")
		reg.set(nil, event.Errorf(event.NotFound, "who?"), false)
		time.Sleep(15 * time.Second)
		expect("when it was forgotten", "beat w1", "enlist worker_pool w1 ready")
		reg.set(errors.New("down"), nil, false)
		time.Sleep(15 * time.Second)
		expect("when the registry is down", "beat w1")
		reg.set(nil, nil, false)
		time.Sleep(15 * time.Second)
		expect("when it is back", "beat w1")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		expect("at the end", "leave worker_pool w1")
	})
}

func TestARegistryThatHangsDoesNotKeepAWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := &registry{}
		w := newIdle(t, reg)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		reg.set(nil, nil, true)
		time.Sleep(20 * time.Second)
		began := time.Now()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the worker stayed for %s", took)
		}
	})
}

func newIdle(t *testing.T, reg worker.Registry) *worker.Worker {
	t.Helper()
	w, err := worker.New(worker.Options{
		ID: "w1", Plane: &plane{}, Runner: runner(succeed), IDs: func() event.ID { return 1 },
		Registry: reg, Registration: event.Registration{Status: "ready"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}
