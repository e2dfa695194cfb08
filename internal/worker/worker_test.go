package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestANotifiedCommandIsClaimedRunAndReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, succeed, nil)
		f.publish(t, 11)
		synctest.Wait()
		equal(t, "claims", p.claimed(), []event.ID{11})
		equal(t, "outcomes", p.outcomes(), []outcome{done(11)})
		r := p.reports[0]
		if r.ExecutionID != 1 || r.WorkerID != "w1" || r.Eager != 1 || r.Events[0].EventID == 0 {
			t.Errorf("report is %+v", r)
		}
		f.stop()
		equal(t, "notifications left", f.waiting(t), nil)
	})
}

func TestFollowingCommandsRunOnTheSameSlotWithoutAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		p.report = func(event.Report) (event.ReportAnswer, error) {
			if n := len(p.reports); n < 4 {
				return event.ReportAnswer{Commands: []*event.Command{command(event.ID(11 + n))}}, nil
			}
			return event.ReportAnswer{}, nil
		}
		f := start(t, p, succeed, func(o *worker.Options) { o.Slots = 1 })
		f.publish(t, 11)
		synctest.Wait()
		equal(t, "claims", p.claimed(), []event.ID{11})
		equal(t, "outcomes", p.outcomes(), []outcome{done(11), done(12), done(13), done(14)})
	})
}

func TestACommandThatReachesTheWorkerTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		notified time.Duration // when the notification of 12 comes; 11 ends, and hands 12 over, after a minute
	}{
		{"first by notification", 30 * time.Second},
		{"first in an answer", 90 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &plane{}
				p.report = func(event.Report) (event.ReportAnswer, error) {
					if len(p.reports) > 1 {
						return event.ReportAnswer{}, nil
					}
					return event.ReportAnswer{Commands: []*event.Command{command(12)}}, nil
				}
				f := start(t, p, last(time.Minute), nil)
				f.publish(t, 11)
				elapse(tc.notified)
				f.publish(t, 12)
				elapse(5 * time.Minute)
				equal(t, "claims", p.claimed(), []event.ID{11, 12})
				equal(t, "outcomes", p.outcomes(), []outcome{done(11), done(12)})
				f.stop()
				equal(t, "notifications left", f.waiting(t), nil)
			})
		})
	}
}

func TestNoMoreCommandsRunThanThereAreSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, last(time.Minute), nil)
		f.publish(t, 11, 21, 31, 41, 51)
		synctest.Wait()
		if got := f.InFlight(); got != 2 {
			t.Errorf("%d commands run on two slots", got)
		}
		equal(t, "notifications left to others", f.waiting(t), []event.ID{31, 41, 51})
		elapse(3 * time.Minute)
		if got := len(p.outcomes()); got != 5 {
			t.Errorf("%d commands were reported, want 5", got)
		}
	})
}

func TestARefusedClaimIsForgotten(t *testing.T) {
	t.Parallel()
	for _, code := range []event.Code{event.Conflict, event.NotFound} {
		synctest.Test(t, func(t *testing.T) {
			p := &plane{claim: func(event.ClaimRequest) (*event.Command, error) {
				return nil, event.Errorf(code, "not for you")
			}}
			f := start(t, p, succeed, nil)
			f.publish(t, 11, 21)
			elapse(time.Hour)
			if got := len(p.claimed()); got != 2 {
				t.Errorf("%s: %d claims for two commands", code, got)
			}
			f.stop()
			equal(t, "notifications left", f.waiting(t), nil)
		})
	}
}

func TestAClaimIsTriedAgainWhenThePlaneIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start0 := time.Now()
		p := &plane{claim: func(r event.ClaimRequest) (*event.Command, error) {
			switch away := time.Since(start0); {
			case away < 10*time.Second:
				return nil, errors.New("connection refused")
			case away < 20*time.Second:
				return nil, event.Errorf(event.Unavailable, "try again")
			}
			return command(r.EventID), nil
		}}
		f := start(t, p, succeed, nil)
		f.publish(t, 11)
		elapse(2 * time.Minute)
		equal(t, "outcomes", p.outcomes(), []outcome{done(11)})
		if got := len(p.claimed()); got > 5 {
			t.Errorf("%d claims while the plane was away for 20 s", got)
		}
	})
}

func TestALongCommandIsNotDeliveredAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, last(10*time.Minute), nil)
		f.publish(t, 11)
		elapse(11 * time.Minute)
		equal(t, "claims", p.claimed(), []event.ID{11})
		equal(t, "outcomes", p.outcomes(), []outcome{done(11)})
	})
}

func TestDeliveredCommandsUseReservedSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		var freed atomic.Int32
		f := start(t, p, last(time.Second), func(o *worker.Options) {
			o.Bus, o.Pools, o.OnFree = nil, nil, func() { freed.Add(1) }
		})
		for range 2 {
			if !f.ReserveFor("noop") {
				t.Fatal("two free slots could not be reserved")
			}
		}
		if f.ReserveFor("noop") {
			t.Fatal("a third of two slots was reserved")
		}
		f.UnreserveFor("noop")
		if !f.ReserveFor("noop") {
			t.Fatal("a slot that was given back could not be reserved")
		}
		freed.Store(0)
		f.Deliver(command(11))
		f.Deliver(command(21))
		elapse(2 * time.Second)
		if got := freed.Load(); got != 2 {
			t.Errorf("%d slots were reported free, want 2", got)
		}
		if got := len(p.outcomes()); got != 2 || len(p.claimed()) != 0 {
			t.Errorf("%d outcomes and %d claims, want 2 and none", got, len(p.claimed()))
		}
		f.stop()
		if f.ReserveFor("noop") {
			t.Error("an ended worker gave a slot")
		}
	})
}

func TestAPanicIsTheFailureOfItsCommandOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
			if cmd.EventID == 11 {
				panic("boom")
			}
			return succeed(ctx, cmd)
		}, func(o *worker.Options) { o.Slots = 1 })
		f.publish(t, 11, 21)
		synctest.Wait()
		equal(t, "outcomes", p.outcomes(), []outcome{{commandID(11), event.CommandFailed, event.StatusFailed}, done(21)})
		ev := p.reports[0].Events[0]
		if !strings.Contains(string(ev.Payload), `"kind":"internal"`) || !strings.Contains(string(ev.Payload), "boom") {
			t.Errorf("payload is %s", ev.Payload)
		}
		equal(t, "meta", string(ev.Meta), `{"command_id":"1:step:11"}`)
	})
}

func TestABusThatRefusesTheWorkerEndsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := refusing{membus.New(membus.Options{})}
		w, err := worker.New(worker.Options{
			ID: "w", Pools: []string{"shared"}, Plane: &plane{}, Runner: runner(succeed), Bus: b, IDs: func() event.ID { return 1 },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, &event.Error{Code: event.Conflict}) {
			t.Errorf("run gave %v, want the conflict of the bus", err)
		}
		if err := w.Run(t.Context()); err == nil {
			t.Error("a second run was allowed")
		}
	})
}

func TestIncompleteOptionsAreRefused(t *testing.T) {
	t.Parallel()
	whole := worker.Options{
		ID: "w", Pools: []string{"shared"}, Plane: &plane{}, Runner: runner(succeed),
		Bus: membus.New(membus.Options{}), IDs: func() event.ID { return 1 },
	}
	if _, err := worker.New(whole); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*worker.Options){
		"no id":           func(o *worker.Options) { o.ID = "" },
		"no plane":        func(o *worker.Options) { o.Plane = nil },
		"no runner":       func(o *worker.Options) { o.Runner = nil },
		"no ids":          func(o *worker.Options) { o.IDs = nil },
		"no pools":        func(o *worker.Options) { o.Pools = nil },
		"negative number": func(o *worker.Options) { o.Slots = -1 },
	} {
		o := whole
		spoil(&o)
		if _, err := worker.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkDeliveredNoop(b *testing.B) {
	freed := make(chan struct{}, 8)
	w, err := worker.New(worker.Options{
		ID: "w", Slots: 8, Plane: eager{}, Runner: runner(succeed), IDs: func() event.ID { return 1 },
		OnFree: func() { freed <- struct{}{} },
	})
	if err != nil {
		b.Fatal(err)
	}
	cmd := command(11)
	b.ReportAllocs()
	for b.Loop() {
		w.ReserveFor(cmd.Action)
		w.Deliver(cmd)
		<-freed
	}
}
