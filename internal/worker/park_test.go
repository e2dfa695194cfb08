package worker_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// park is the event of a command that goes on elsewhere.
func park(cmd *event.Command) event.Incoming {
	return event.Incoming{
		Type: event.CommandParked, Status: event.StatusWaiting,
		Payload: json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `","park":{"delay_seconds":60}}`),
	}
}

// parked is how the plane hears of it.
func parked(id event.ID) outcome {
	return outcome{commandID(id), event.CommandParked, event.StatusWaiting}
}

func TestAParkedCommandHoldsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, func(_ context.Context, cmd *event.Command) event.Incoming { return park(cmd) }, nil)
		f.publish(t, 11, 21, 31)
		synctest.Wait()
		if got := p.outcomes(); len(got) != 3 || f.InFlight() != 0 {
			t.Errorf("outcomes are %v while %d commands are held", got, f.InFlight())
		}
		f.stop()
		equal(t, "notifications left", f.waiting(t), nil)
	})
}

func TestAParkIsReportedEvenWhenTheWorkerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
			<-ctx.Done()
			return park(cmd)
		}, nil)
		f.publish(t, 11)
		synctest.Wait()
		f.stop()
		equal(t, "outcomes", p.outcomes(), []outcome{parked(11)})
		if len(p.released) > 0 {
			t.Errorf("released %v", p.released)
		}
	})
}

func TestACancelledExecutionParksNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &plane{}
		f := start(t, p, func(ctx context.Context, cmd *event.Command) event.Incoming {
			<-ctx.Done()
			return park(cmd)
		}, nil)
		f.publish(t, 11)
		synctest.Wait()
		if err := f.bus.PublishCancel(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		elapse(time.Second)
		equal(t, "outcomes", p.outcomes(), []outcome{{commandID(11), event.CommandCancelled, event.StatusCancelled}})
	})
}
