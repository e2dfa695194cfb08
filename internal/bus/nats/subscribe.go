package nats

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

// holdTime is how long a delivery may wait for somebody to call Next before it
// is given back to the other workers.
const holdTime = time.Second

// subscription merges the deliveries of several pools. Each pool has a feed
// that asks the broker for as many messages as may still be handed out; with
// several pools that can be a few too many, which holdTime takes care of.
type subscription struct {
	bus *Bus
	max int

	done  chan struct{} // closed by Stop
	feeds sync.WaitGroup
	// wake tells waiting calls of Next that there may be something for them.
	// Whoever takes the signal passes it on if more is left.
	wake chan struct{}

	mu        sync.Mutex // guards everything below
	stopped   bool
	pools     []*feed
	turn      int // index of the pool that is served next
	buffered  int
	unsettled map[*delivery]struct{}
	idle      bool                // a delivery was given back and nobody called Next since
	ailing    map[*feed]time.Time // pools whose consumer is being mended, and since when
	rejoined  map[string]int      // how often, by reason
}

// Subscribe joins the consumer group of each pool.
func (b *Bus) Subscribe(ctx context.Context, pools []string, maxPending int) (bus.Subscription, error) {
	if len(pools) == 0 {
		e := event.Errorf(event.Invalid, "no worker pool to subscribe to")
		e.Remedy = "name at least one, for example " + DefaultPool
		return nil, e
	}
	pools = slices.Compact(slices.Sorted(slices.Values(pools)))
	for _, pool := range pools {
		if err := event.CheckPool(pool); err != nil {
			return nil, err
		}
		if err := b.ensureConsumer(ctx, pool); err != nil {
			return nil, err
		}
	}
	s := &subscription{
		bus: b, max: max(maxPending, 1),
		done: make(chan struct{}), wake: make(chan struct{}, 1),
		unsettled: make(map[*delivery]struct{}),
		ailing:    map[*feed]time.Time{}, rejoined: map[string]int{},
	}
	for _, pool := range pools {
		f, err := newFeed(s, pool)
		if err != nil {
			s.closeFeeds()
			return nil, b.unavailable("subscribe to worker pool "+pool, err)
		}
		s.pools = append(s.pools, f)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		s.closeFeeds()
		return nil, errClosed()
	}
	b.subs[s] = struct{}{}
	for _, f := range s.pools {
		s.feeds.Go(f.run)
	}
	return s, nil
}

func (s *subscription) closeFeeds() {
	for _, f := range s.pools {
		f.sub.Unsubscribe()
	}
}

func errClosed() error { return event.Errorf(event.Unavailable, "the NATS connection is closed") }

// Next waits for the next delivery. It returns an unavailable error after Stop.
func (s *subscription) Next(ctx context.Context) (bus.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			s.pass()
			return nil, err
		}
		d, err := s.take()
		if d != nil || err != nil {
			return d, err
		}
		select {
		case <-s.wake:
		case <-s.done:
		case <-ctx.Done():
		}
	}
}

// take is the next buffered delivery, the pools taking turns, or nil.
func (s *subscription) take() (bus.Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil, event.Errorf(event.Unavailable, "the subscription has ended")
	}
	if s.idle {
		s.idle = false
		s.pokeLocked()
	}
	if len(s.unsettled) >= s.max {
		return nil, nil
	}
	for range s.pools {
		f := s.pools[s.turn]
		s.turn = (s.turn + 1) % len(s.pools)
		if len(f.queue) == 0 {
			continue
		}
		d := f.queue[0]
		f.queue = slices.Delete(f.queue, 0, 1)
		s.buffered--
		s.unsettled[d] = struct{}{}
		s.passLocked()
		return d, nil
	}
	return nil, nil
}

// pass wakes another call of Next if there is something for it.
func (s *subscription) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passLocked()
}

func (s *subscription) passLocked() {
	if s.buffered > 0 && len(s.unsettled) < s.max {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// pokeLocked makes every feed look at the demand again.
func (s *subscription) pokeLocked() {
	for _, f := range s.pools {
		select {
		case f.poke <- struct{}{}:
		default:
		}
	}
}

// push offers a delivery to Next.
func (s *subscription) push(f *feed, d *delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.queue = append(f.queue, d)
	s.buffered++
	s.passLocked()
}

// demand is how many more deliveries the subscription can use.
func (s *subscription) demand() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle || s.stopped {
		return 0
	}
	return s.max - len(s.unsettled) - s.buffered
}

// stale removes the deliveries of f that nobody took in time. Pulling pauses
// until somebody calls Next again, else they would come straight back.
func (s *subscription) stale(f *feed, now time.Time) (old []*delivery, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for n < len(f.queue) && now.Sub(f.queue[n].arrived) >= holdTime {
		n++
	}
	if n > 0 {
		old = slices.Clone(f.queue[:n])
		f.queue = slices.Delete(f.queue, 0, n)
		s.buffered -= n
		s.idle = true
	}
	if len(f.queue) > 0 {
		next = holdTime - now.Sub(f.queue[0].arrived)
	}
	return old, next
}

// settled makes room after a delivery was acknowledged or given back. It is
// false when that happened before.
func (s *subscription) settled(d *delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.unsettled[d]; !ok {
		return false
	}
	delete(s.unsettled, d)
	s.pokeLocked()
	s.passLocked()
	return true
}

// Why a subscription had to take its place anew.
const (
	rejoinedConnection = "connection"
	rejoinedConsumer   = "consumer"
	rejoinedSilence    = "silence"
)

// Health tells whether the consumers are there.
func (s *subscription) Health() bus.Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := bus.Health{Ready: len(s.ailing) == 0 && !s.stopped, Rejoined: maps.Clone(s.rejoined)}
	for _, since := range s.ailing {
		if h.Since.IsZero() || since.Before(h.Since) {
			h.Since = since
		}
	}
	return h
}

// lost notes that the consumer of f does not answer.
func (s *subscription) lost(f *feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.ailing[f]; !known {
		s.ailing[f] = time.Now()
	}
}

// found notes that it is there again.
func (s *subscription) found(f *feed, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ailing, f)
	s.rejoined[reason]++
}

// reset tells the feeds that the broker forgot their requests.
func (s *subscription) reset() {
	s.mu.Lock()
	s.rejoined[rejoinedConnection]++
	s.mu.Unlock()
	for _, f := range s.pools {
		select {
		case f.forgot <- struct{}{}:
		default:
		}
	}
}

// Stop ends the subscription and gives back everything that is not settled.
func (s *subscription) Stop() {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		s.feeds.Wait()
		return
	}
	s.stopped = true
	close(s.done)
	s.mu.Unlock()

	s.feeds.Wait() // from here on nobody pushes

	s.mu.Lock()
	var back []*delivery
	for d := range s.unsettled {
		back = append(back, d)
	}
	for _, f := range s.pools {
		back = append(back, f.queue...)
		f.queue = nil
	}
	clear(s.unsettled)
	s.buffered = 0
	s.mu.Unlock()

	for _, d := range back {
		d.send(nak(0)) // on failure the ack wait does the same, only later
	}
	s.bus.conn.FlushTimeout(time.Second)
	s.bus.mu.Lock()
	delete(s.bus.subs, s)
	s.bus.mu.Unlock()
}
