package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

// refusing is a bus whose consumers have other settings than we need.
type refusing struct{ *membus.Bus }

func (refusing) Subscribe(context.Context, []string, int) (bus.Subscription, error) {
	return nil, event.Errorf(event.Conflict, "other settings")
}

// eager is a plane that agrees to everything at no cost.
type eager struct{}

func (eager) Claim(context.Context, event.ClaimRequest) (*event.Command, error) { return nil, nil }
func (eager) Report(context.Context, event.Report) (event.ReportAnswer, error) {
	return event.ReportAnswer{}, nil
}

func (eager) Heartbeat(context.Context, []event.Heartbeat) ([]event.HeartbeatAnswer, error) {
	return nil, nil
}
func (eager) Release(context.Context, event.Heartbeat) error { return nil }

func TestAReportIsRepeatedWithTheSameEventID(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		p.report = func(event.Report) (event.ReportAnswer, error) {
			if len(p.reports) < 4 {
				return event.ReportAnswer{}, errors.New("connection reset")
			}
			return event.ReportAnswer{}, nil
		}
		f := start(t, p, succeed, nil)
		f.publish(t, 11)
		elapse(30 * time.Second)
		if len(p.reports) != 4 {
			t.Fatalf("%d reports, want 4", len(p.reports))
		}
		for _, r := range p.reports[1:] {
			if r.Events[0].EventID != p.reports[0].Events[0].EventID {
				t.Error("a repeated report has another event id")
			}
		}
		f.stop()
		equal(t, "notifications left", f.waiting(t), nil)
	})
}

func TestAReportIsGivenUpWhenTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{
			report: func(event.Report) (event.ReportAnswer, error) {
				return event.ReportAnswer{}, event.Errorf(event.Unavailable, "away")
			},
			beat: func(event.Heartbeat) event.HeartbeatAnswer { return event.HeartbeatAnswer{Cancel: true} },
		}
		f := start(t, p, succeed, func(o *worker.Options) { o.Heartbeat = time.Hour })
		f.publish(t, 11)
		elapse(50 * time.Second)
		if f.InFlight() != 1 {
			t.Error("the report was given up before the lease ended")
		}
		elapse(15 * time.Second)
		if f.InFlight() != 0 {
			t.Error("the report is still tried after the lease ended")
		}
	})
}

func TestHeartbeatsKeepAReportAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := &plane{report: func(event.Report) (event.ReportAnswer, error) {
			if time.Since(begin) < 5*time.Minute {
				return event.ReportAnswer{}, event.Errorf(event.Unavailable, "away")
			}
			return event.ReportAnswer{}, nil
		}}
		f := start(t, p, succeed, nil)
		f.publish(t, 11)
		elapse(6 * time.Minute)
		f.stop()
		if f.InFlight() != 0 {
			t.Error("the report did not get through")
		}
		equal(t, "notifications left", f.waiting(t), nil)
	})
}

func TestARefusedResultFailsTheCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		p.report = func(r event.Report) (event.ReportAnswer, error) {
			if r.Events[0].Type == event.CommandCompleted {
				return event.ReportAnswer{}, event.Errorf(event.Limit, "the result is too large")
			}
			return event.ReportAnswer{}, nil
		}
		f := start(t, p, succeed, nil)
		f.publish(t, 11)
		synctest.Wait()
		equal(t, "outcomes", p.outcomes(), []outcome{done(11), {commandID(11), event.CommandFailed, event.StatusFailed}})
		if got := string(p.reports[1].Events[0].Payload); !strings.Contains(got, "too large") {
			t.Errorf("payload %s does not say why", got)
		}
	})
}

func TestAReportThePlaneDoesNotWantIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{report: func(event.Report) (event.ReportAnswer, error) {
			return event.ReportAnswer{}, event.Errorf(event.Conflict, "fenced")
		}}
		f := start(t, p, succeed, nil)
		f.publish(t, 11)
		elapse(time.Hour)
		if len(p.reports) != 1 || f.InFlight() != 0 {
			t.Errorf("%d reports and %d commands in flight, want 1 and none", len(p.reports), f.InFlight())
		}
	})
}

func TestOneHeartbeatCarriesAllRunningCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, last(40*time.Second), nil)
		f.publish(t, 11, 21)
		elapse(31 * time.Second)
		if len(p.beats) != 2 || len(p.beats[0]) != 2 {
			t.Fatalf("heartbeats are %v, want two of two commands each", p.beats)
		}
		b := p.beats[0][0]
		if b.WorkerID != "w1" || b.Attempt != 2 || b.ExecutionID != b.EventID/10 {
			t.Errorf("heartbeat is %+v", b)
		}
		elapse(time.Hour)
		if len(p.beats) != 2 {
			t.Errorf("%d heartbeats although nothing ran", len(p.beats))
		}
	})
}

func TestShortLeasesAreRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{claim: func(r event.ClaimRequest) (*event.Command, error) {
			cmd := command(r.EventID)
			cmd.LeaseUntil = time.Now().Add(6 * time.Second)
			return cmd, nil
		}}
		f := start(t, p, last(7*time.Second), func(o *worker.Options) { o.Heartbeat = time.Hour })
		f.publish(t, 11)
		elapse(8 * time.Second)
		if len(p.beats) != 3 {
			t.Errorf("%d heartbeats in seven seconds of a lease of six, want one every two", len(p.beats))
		}
	})
}

func TestALostClaimStopsTheCommandWithoutAReport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{beat: func(b event.Heartbeat) event.HeartbeatAnswer {
			if b.EventID == 11 {
				return event.HeartbeatAnswer{Cancel: true}
			}
			return event.HeartbeatAnswer{LeaseUntil: time.Now().Add(time.Minute)}
		}}
		var cause atomic.Value
		f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
			ev := last(time.Minute)(ctx, cmd)
			if cmd.EventID == 11 {
				cause.Store(context.Cause(ctx))
			}
			return ev
		}, nil)
		f.publish(t, 11, 21)
		elapse(2 * time.Minute)
		equal(t, "outcomes", p.outcomes(), []outcome{done(21)})
		if got := cause.Load(); got != worker.ErrClaimLost {
			t.Errorf("the cause is %v, want a lost claim", got)
		}
		if len(p.released) != 0 {
			t.Errorf("claims %v were given back although they were lost", p.released)
		}
	})
}

func TestACancelledExecutionStopsItsCommands(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(t *testing.T, f *fixture){
		"by heartbeat": func(*testing.T, *fixture) {},
		"by the bus at once": func(t *testing.T, f *fixture) {
			if err := f.bus.PublishCancel(t.Context(), 1); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			if f.InFlight() != 1 {
				t.Errorf("%d commands run, want the one of the other execution", f.InFlight())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &plane{beat: func(b event.Heartbeat) event.HeartbeatAnswer {
					return event.HeartbeatAnswer{LeaseUntil: time.Now().Add(time.Minute), Cancel: b.ExecutionID == 1}
				}}
				f := start(t, p, last(time.Minute), nil)
				f.publish(t, 11, 21)
				synctest.Wait()
				cancel(t, f)
				elapse(2 * time.Minute)
				equal(t, "outcomes", p.outcomes(), []outcome{{commandID(11), event.CommandCancelled, event.StatusCancelled}, done(21)})
			})
		})
	}
}

func TestAResultThatCameBeforeTheCancellationIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
			<-ctx.Done()
			return succeed(ctx, cmd)
		}, nil)
		f.publish(t, 11)
		synctest.Wait()
		if err := f.bus.PublishCancel(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		equal(t, "outcomes", p.outcomes(), []outcome{done(11)})
	})
}
