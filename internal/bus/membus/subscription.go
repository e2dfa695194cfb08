package membus

import (
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

// subscription is guarded by the mutex of its bus.
type subscription struct {
	bus       *Bus
	pools     []string
	turn      int // index of the pool that is served next
	max       int
	unsettled map[*delivery]struct{}
	stopped   bool
	// wake is closed, and replaced, when Next should look again.
	wake chan struct{}
}

// Subscribe joins the consumer group of each pool.
func (b *Bus) Subscribe(ctx context.Context, pools []string, maxPending int) (bus.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, event.Errorf(event.Unavailable, "subscribe: %w", err)
	}
	if len(pools) == 0 {
		e := event.Errorf(event.Invalid, "no worker pool to subscribe to")
		e.Remedy = "name at least one, for example " + defaultPool
		return nil, e
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed()
	}
	s := &subscription{
		bus: b, pools: slices.Clone(pools), max: max(maxPending, 1),
		unsettled: map[*delivery]struct{}{}, wake: make(chan struct{}),
	}
	b.subs[s] = struct{}{}
	return s, nil
}

// Next waits for the next delivery. It returns an unavailable error after Stop.
func (s *subscription) Next(ctx context.Context) (bus.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, wake, err := s.take()
		if d != nil || err != nil {
			return d, err
		}
		select {
		case <-wake:
		case <-ctx.Done():
		}
	}
}

// take is the next delivery, the pools taking turns, or a channel to wait on.
func (s *subscription) take() (bus.Delivery, <-chan struct{}, error) {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	if s.stopped {
		return nil, nil, event.Errorf(event.Unavailable, "the subscription has ended")
	}
	if len(s.unsettled) >= s.max {
		return nil, s.wake, nil
	}
	for range s.pools {
		q := s.bus.poolLocked(s.pools[s.turn])
		s.turn = (s.turn + 1) % len(s.pools)
		if len(q.waiting) == 0 {
			continue
		}
		d := &delivery{s: s, note: q.waiting[0]}
		q.waiting = slices.Delete(q.waiting, 0, 1)
		s.unsettled[d] = struct{}{}
		d.timer = time.AfterFunc(s.bus.options.AckWait, d.expire)
		return d, nil, nil
	}
	return nil, s.wake, nil
}

func (s *subscription) wakeLocked() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// Stop ends the subscription; others get what it did not settle.
func (s *subscription) Stop() {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	s.stopLocked()
}

func (s *subscription) stopLocked() {
	if s.stopped {
		return
	}
	s.stopped = true
	delete(s.bus.subs, s)
	for d := range s.unsettled {
		d.timer.Stop()
		s.bus.enqueueLocked(d.note)
	}
	clear(s.unsettled)
	s.wakeLocked()
}

// delivery is one message until it is settled.
type delivery struct {
	s     *subscription
	note  event.Notification
	timer *time.Timer
}

func (d *delivery) Notification() event.Notification { return d.note }

func (d *delivery) Ack() error {
	d.s.bus.mu.Lock()
	defer d.s.bus.mu.Unlock()
	return d.settleLocked()
}

func (d *delivery) Nak(delay time.Duration) error {
	d.s.bus.mu.Lock()
	defer d.s.bus.mu.Unlock()
	if err := d.settleLocked(); err != nil {
		return err
	}
	if delay <= 0 {
		d.s.bus.enqueueLocked(d.note)
		return nil
	}
	time.AfterFunc(delay, d.requeue)
	return nil
}

func (d *delivery) requeue() {
	d.s.bus.mu.Lock()
	defer d.s.bus.mu.Unlock()
	if !d.s.bus.closed {
		d.s.bus.enqueueLocked(d.note)
	}
}

func (d *delivery) InProgress() error {
	d.s.bus.mu.Lock()
	defer d.s.bus.mu.Unlock()
	if _, ok := d.s.unsettled[d]; !ok {
		return d.settledError()
	}
	d.timer.Reset(d.s.bus.options.AckWait)
	return nil
}

// expire repeats a delivery whose receiver has been silent for too long.
func (d *delivery) expire() { d.Nak(0) }

// settleLocked makes room for another delivery. A second settlement, or one
// after the subscription was stopped, is a conflict.
func (d *delivery) settleLocked() error {
	if _, ok := d.s.unsettled[d]; !ok {
		return d.settledError()
	}
	d.timer.Stop()
	delete(d.s.unsettled, d)
	d.s.wakeLocked()
	return nil
}

func (d *delivery) settledError() error {
	return event.Errorf(event.Conflict, "the delivery of command %s is settled already", d.note.CommandID)
}
