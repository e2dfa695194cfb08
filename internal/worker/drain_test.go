package worker_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

func TestAnEndingWorkerLetsRunningCommandsFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, last(20*time.Second), nil)
		f.publish(t, 11, 21)
		synctest.Wait()
		f.publish(t, 31)
		begin := time.Now()
		f.stop()
		if took := time.Since(begin); took != 20*time.Second {
			t.Errorf("the worker ended after %v, want as long as its commands took", took)
		}
		got := p.outcomes()
		if len(got) != 2 || len(p.released) != 0 {
			t.Errorf("outcomes are %v and released %v, want two and none", got, p.released)
		}
		for _, r := range p.reports {
			if r.Eager != 0 {
				t.Error("an ending worker asked for another command")
			}
		}
		equal(t, "notifications left to others", f.waiting(t), []event.ID{31})
	})
}

func TestCommandsThatTakeTooLongAreGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		causes := make(chan error, 2)
		f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
			ev := last(time.Hour)(ctx, cmd)
			causes <- context.Cause(ctx)
			return ev
		}, nil)
		f.publish(t, 11)
		if !f.ReserveFor("noop") {
			t.Fatal("no free slot")
		}
		f.Deliver(command(21))
		synctest.Wait()
		begin := time.Now()
		f.stop()
		if took := time.Since(begin); took != 25*time.Second {
			t.Errorf("the worker ended after %v, want the drain time", took)
		}
		for range 2 {
			if cause := <-causes; cause != worker.ErrShutdown {
				t.Errorf("the cause is %v, want shutdown", cause)
			}
		}
		slices.Sort(p.released)
		equal(t, "released claims", p.released, []event.ID{11, 21})
		equal(t, "outcomes", p.outcomes(), nil)
		equal(t, "notifications left to others", f.waiting(t), []event.ID{11})
		if len(p.beats) == 0 {
			t.Error("leases were not renewed while the worker drained")
		}
	})
}

func TestACommandHandedOverWhileEndingIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// A plane that answers with a command although none was asked for.
		p := &plane{report: func(event.Report) (event.ReportAnswer, error) {
			return event.ReportAnswer{Commands: []*event.Command{command(12), command(13)}}, nil
		}}
		f := start(t, p, last(time.Second), nil)
		f.publish(t, 11)
		synctest.Wait()
		f.stop()
		equal(t, "outcomes", p.outcomes(), []outcome{done(11)})
		slices.Sort(p.released)
		equal(t, "released claims", p.released, []event.ID{12, 13})
	})
}

func TestAWorkerEndsAlthoughAToolDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		free := make(chan struct{})
		f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
			<-free
			return succeed(ctx, cmd)
		}, func(o *worker.Options) { o.Drain = -1 })
		f.publish(t, 11)
		synctest.Wait()
		begin := time.Now()
		f.stop()
		if took := time.Since(begin); took > 30*time.Second {
			t.Errorf("the worker took %v to end", took)
		}
		if len(p.released) != 0 {
			t.Error("the claim of a command that still runs was given back")
		}
		close(free)
		synctest.Wait()
	})
}

func TestAReservedSlotIsWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, succeed, nil)
		synctest.Wait()
		if !f.ReserveFor("noop") {
			t.Fatal("no free slot")
		}
		time.AfterFunc(time.Second, func() { f.Deliver(command(11)) })
		f.stop()
		equal(t, "outcomes", p.outcomes(), []outcome{done(11)})
	})
}
