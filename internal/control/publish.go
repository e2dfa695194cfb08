package control

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
)

const (
	publishQueue = 16384 // announcements that may wait for the bus
	publishBatch = 256
	publishTime  = 5 * time.Second
)

// announcement is a notification, or word of a cancelled execution.
type announcement struct {
	note      event.Notification
	cancelled event.ID
}

// publisher sends announcements in the background. What it cannot send is
// dropped: waiting commands are announced again by the sweep, and workers hear
// of cancellations with their next heartbeat.
type publisher struct {
	p     *Plane
	queue chan announcement
	down  bool // the last publication was not acknowledged; owned by run
}

func newPublisher(p *Plane) *publisher {
	return &publisher{p: p, queue: make(chan announcement, publishQueue)}
}

// offer queues an announcement and tells whether there was room.
func (b *publisher) offer(a announcement) bool {
	select {
	case b.queue <- a:
		return true
	default:
		return false
	}
}

// run sends until stop is closed, then sends what still waits.
func (b *publisher) run(stop <-chan struct{}) {
	for {
		select {
		case a := <-b.queue:
			b.send(a)
		case <-stop:
			for len(b.queue) > 0 && !b.down {
				b.send(<-b.queue)
			}
			return
		}
	}
}

// send publishes first and what waits behind it, up to a batch.
func (b *publisher) send(first announcement) {
	var notes []event.Notification
	for a := first; ; a = <-b.queue {
		if a.cancelled != 0 {
			b.try(func(ctx context.Context) error { return b.p.bus.PublishCancel(ctx, a.cancelled) })
		} else {
			notes = append(notes, a.note)
		}
		if len(notes) >= publishBatch || len(b.queue) == 0 {
			break
		}
	}
	_ = failpoint.Hit(failpoint.PublishBefore)
	if len(notes) == 0 {
		return
	}
	ok := b.try(func(ctx context.Context) error { return b.p.bus.Publish(ctx, notes...) })
	b.p.announced(notes, ok)
	if ok {
		_ = failpoint.Hit(failpoint.PublishAfter)
		b.p.counters.published.Add(int64(len(notes)))
	}
}

// try calls the bus and logs the beginning and the end of an outage.
func (b *publisher) try(f func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(b.p.work, publishTime)
	defer cancel()
	err := f(ctx)
	switch {
	case err != nil && !b.down:
		b.p.log.Warn("bus does not take notifications; commands are announced again later", "error", err)
	case err == nil && b.down:
		b.p.log.Info("bus takes notifications again")
	}
	b.down = err != nil
	return err == nil
}

// announce publishes commands this pass issued and nobody took. Each command
// handed over stands for one that a worker did not have to be woken for: as
// many stay unannounced, and the sweep announces them should they keep waiting.
func (ps *pass) announce() {
	left := ps.issued - ps.spared
	for _, c := range ps.plan.Issued {
		if left <= 0 {
			break
		}
		if c.Status == event.StatusPending {
			ps.p.out.offer(announcement{note: ps.note(c)})
			left--
		}
	}
	for _, c := range ps.released {
		if c.Status == event.StatusPending {
			n := ps.note(c)
			n.Attempt = ps.p.repeatNow(c.EventID, ps.env.Now)
			ps.p.out.offer(announcement{note: n})
		}
	}
}

func (ps *pass) note(c *engine.Command) event.Notification {
	return event.Notification{
		ExecutionID: ps.id, EventID: c.EventID, CommandID: c.ID, Step: c.Step,
		ServerURL: ps.p.o.ServerURL, Pool: ps.state.Pool(), Trace: ps.p.commandTrace(ps.state.Trace(), c.EventID), ToolKind: c.Kind,
	}
}
