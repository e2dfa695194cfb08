package worker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/worker"
)

func wantMetrics(t *testing.T, r *obs.Registry, lines ...string) {
	t.Helper()
	var out strings.Builder
	if err := r.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if !strings.Contains(out.String(), line+"\n") {
			t.Errorf("metrics lack %q", line)
		}
	}
}

// probe is what the worker's health address answers.
func probe(f *fixture, r *obs.Registry, path string) (int, string) {
	rec := httptest.NewRecorder()
	f.Handler(r).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
	return rec.Code, rec.Body.String()
}

// moody is a bus whose broker comes and goes, and whose subscription tells how
// it fares.
type moody struct {
	*membus.Bus
	away atomic.Bool
	lost atomic.Int64 // when the consumer was lost, in unix nanoseconds; 0 when it is there
	hung atomic.Bool  // Next never returns
}

func (m *moody) Connected() bool { return !m.away.Load() }

func (m *moody) Subscribe(ctx context.Context, pools []string, n int) (bus.Subscription, error) {
	s, err := m.Bus.Subscribe(ctx, pools, n)
	return moodySubscription{s, m}, err
}

type moodySubscription struct {
	bus.Subscription
	m *moody
}

func (s moodySubscription) Health() bus.Health {
	h := bus.Health{Ready: s.m.lost.Load() == 0, Rejoined: map[string]int{"consumer": 3}}
	if !h.Ready {
		h.Since = time.Unix(0, s.m.lost.Load())
	}
	return h
}

func (s moodySubscription) Next(ctx context.Context) (bus.Delivery, error) {
	if s.m.hung.Load() {
		<-time.After(time.Hour)
	}
	return s.Subscription.Next(ctx)
}

// watched starts a worker on a moody bus.
func watched(t *testing.T, p *plane, r runner, more func(*worker.Options)) (*fixture, *moody, *obs.Registry) {
	t.Helper()
	m, registry := &moody{}, &obs.Registry{}
	f := start(t, p, r, func(o *worker.Options) {
		m.Bus = o.Bus.(*membus.Bus)
		o.Bus, o.Metrics = m, obs.NewWorker(registry, obs.WorkerVocabulary{ToolKinds: []string{"noop"}, Version: "9.9"})
		if more != nil {
			more(o)
		}
	})
	return f, m, registry
}

func TestHealthFollowsTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, m, r := watched(t, &plane{}, last(10*time.Second), nil)
		want := func(path string, code int, says string) {
			t.Helper()
			if got, body := probe(f, r, path); got != code || !strings.Contains(body, says) {
				t.Errorf("%s: %d %q, want %d with %q", path, got, body, code, says)
			}
		}
		synctest.Wait()
		want("/readyz", 200, "ok")
		want("/healthz", 200, "ok")
		want("/livez", 200, "ok")
		elapse(time.Hour) // an idle worker is a live one
		want("/livez", 200, "ok")

		m.away.Store(true)
		want("/readyz", 503, "broker is away")
		elapse(10 * time.Minute)
		want("/livez", 200, "ok") // a restart would not help
		m.away.Store(false)
		want("/readyz", 200, "ok")

		m.lost.Store(time.Now().UnixNano())
		want("/readyz", 503, "being mended")
		want("/livez", 200, "ok")
		elapse(3 * time.Minute)
		want("/livez", 503, "unusable")
		m.lost.Store(0)
		want("/livez", 200, "ok")

		m.hung.Store(true)
		elapse(time.Minute)
		want("/livez", 200, "ok")
		elapse(3 * time.Minute)
		want("/livez", 503, "no progress")
		m.hung.Store(false)
		elapse(time.Hour)

		f.publish(t, 11)
		synctest.Wait()
		wantMetrics(t, r, "noetl_worker_concurrent_dispatches 1", "noetl_worker_ready 1", `noetl_worker_command_loop_reconnect_total{reason="consumer"} 3`)
		stopped := make(chan struct{})
		go func() { defer close(stopped); f.stop() }()
		synctest.Wait()
		want("/readyz", 503, "draining")
		want("/livez", 200, "ok")
		want("/metrics", 200, "noetl_worker_ready 0\n")
		<-stopped
		wantMetrics(t, r, "noetl_worker_claim_succeeded_total 1", `noetl_worker_dispatch_duration_seconds_count{tool_kind="noop"} 1`,
			`noetl_worker_pulls_total{outcome="delivered"} 1`, `noetl_worker_build_info{version="9.9"} 1`)
	})
}

func TestAWorkerIsNotReadyBeforeItIsRegistered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := &book{}
		reg.fail.Store(true)
		f, _, r := watched(t, &plane{}, succeed, func(o *worker.Options) { o.Registry = reg })
		synctest.Wait()
		if code, body := probe(f, r, "/readyz"); code != 503 || !strings.Contains(body, "not registered") {
			t.Errorf("%d %q", code, body)
		}
		reg.fail.Store(false)
		elapse(16 * time.Second)
		if code, body := probe(f, r, "/readyz"); code != 200 {
			t.Errorf("%d %q", code, body)
		}
	})
}

// book is a registry that notes the statuses it was told.
type book struct {
	fail     atomic.Bool
	statuses atomic.Pointer[[]event.Registration]
}

func (b *book) Enlist(_ context.Context, r event.Registration) (event.Registered, error) {
	if b.fail.Load() {
		return event.Registered{}, event.Errorf(event.Unavailable, "away")
	}
	var all []event.Registration
	if old := b.statuses.Load(); old != nil {
		all = *old
	}
	all = append(all, r)
	b.statuses.Store(&all)
	return event.Registered{}, nil
}

func (b *book) Beat(context.Context, event.Pulse) (event.PulseAnswer, error) {
	return event.PulseAnswer{}, nil
}
func (b *book) Leave(context.Context, string, string) (bool, error) { return true, nil }

func TestTheRegistryHearsOfDraining(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := &book{}
		f := start(t, &plane{}, last(10*time.Second), func(o *worker.Options) {
			o.Registry, o.Registration = reg, event.Registration{Status: "ready"}
		})
		f.publish(t, 11)
		synctest.Wait()
		f.stop()
		var got []string
		for _, r := range *reg.statuses.Load() {
			got = append(got, r.Status)
		}
		equal(t, "statuses", got, []string{"ready", "draining"})
	})
}

func TestALateRegistrationSaysThatWorkHasBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reg := &book{}
		reg.fail.Store(true)
		start(t, &plane{}, succeed, func(o *worker.Options) {
			o.Registry, o.Registration = reg, event.Registration{Runtime: []byte(`{"boot_id":"b"}`)}
		})
		elapse(time.Second)
		reg.fail.Store(false)
		elapse(20 * time.Second)
		equal(t, "runtime", string((*reg.statuses.Load())[0].Runtime), `{"boot_id":"b","resumed":true}`)
	})
}

func TestACancellationIsHeardSoonWhenTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Bool
		p := &plane{beat: func(event.Heartbeat) event.HeartbeatAnswer {
			return event.HeartbeatAnswer{LeaseUntil: time.Now().Add(time.Minute), Cancel: cancelled.Load()}
		}}
		f, m, _ := watched(t, p, last(time.Hour), nil)
		f.publish(t, 11)
		elapse(10 * time.Second)
		p.mu.Lock()
		if len(p.beats) != 0 {
			t.Error("leases are renewed too often while the broker is there")
		}
		p.mu.Unlock()
		m.away.Store(true)
		elapse(5 * time.Second)
		cancelled.Store(true)
		elapse(2 * time.Second)
		equal(t, "outcomes", p.outcomes(), []outcome{{commandID(11), event.CommandCancelled, event.StatusCancelled}})
	})
}

func TestASecondSignalHurriesTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, last(time.Hour), nil)
		f.publish(t, 11)
		synctest.Wait()
		begin := time.Now()
		time.AfterFunc(3*time.Second, func() { f.Hurry(); f.Hurry() })
		f.stop()
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("the worker ended after %v, want as soon as it was hurried", took)
		}
		equal(t, "released claims", p.released, []event.ID{11})
	})
}
