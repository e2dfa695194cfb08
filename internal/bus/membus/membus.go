// Package membus is the bus inside one process, without a broker. It serves
// simulations and tests: time is the standard library's, so it follows a
// synctest bubble, and messages can be lost or doubled on purpose. It must not
// know the store or what a command does.
package membus

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

var _ bus.Bus = (*Bus)(nil)

// Options say how the bus behaves. The zero value is a bus without faults. The
// functions run inside the bus and must not call it.
type Options struct {
	// Drop loses the notification when it returns true. Publish succeeds.
	Drop func(event.Notification) bool
	// Duplicate delivers the notification twice when it returns true.
	Duplicate func(event.Notification) bool
	// RefuseEvent refuses the message with the error it returns.
	RefuseEvent func(bus.EventMessage) error

	AckWait         time.Duration // silence after which a delivery is repeated; default 60 s
	DuplicateWindow time.Duration // equal publications within it are one; default 2 min
	MaxLogs         int           // bytes of live output kept; default 64 MiB
	MaxExecutionLog int           // bytes of it of one execution; default 10 MiB
	MaxQueue        int           // notifications kept per pool, the newest; default 65,536
}

const defaultPool = "shared"

// Bus is an in-memory bus.
type Bus struct {
	options Options

	mu       sync.Mutex // guards everything below
	closed   bool
	pools    map[string]*queue
	subs     map[*subscription]struct{}
	watchers map[*watcher]struct{}
	recent   map[string]time.Time // message id -> when it was published
	order    []string             // the keys of recent, oldest first
	events   events
	logs     logs
}

// queue holds what waits for a delivery in one pool.
type queue struct{ waiting []event.Notification }

// watcher is one WatchCancel; a pointer so that two with one f stay apart.
type watcher struct{ f func(event.ID) }

// New makes a bus.
func New(o Options) *Bus {
	if o.AckWait == 0 {
		o.AckWait = 60 * time.Second
	}
	if o.DuplicateWindow == 0 {
		o.DuplicateWindow = 2 * time.Minute
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = 1 << 16
	}
	if o.MaxLogs == 0 {
		o.MaxLogs = 64 << 20
	}
	if o.MaxExecutionLog == 0 {
		o.MaxExecutionLog = 10 << 20
	}
	return &Bus{
		options: o, pools: map[string]*queue{}, subs: map[*subscription]struct{}{},
		watchers: map[*watcher]struct{}{}, recent: map[string]time.Time{},
	}
}

func errClosed() error { return event.Errorf(event.Unavailable, "the bus is closed") }

// Publish announces commands.
func (b *Bus) Publish(ctx context.Context, notes ...event.Notification) error {
	if err := ctx.Err(); err != nil {
		return event.Errorf(event.Unavailable, "publish notifications: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed()
	}
	now := time.Now()
	for _, n := range notes {
		if b.seenLocked(n, now) || b.options.Drop != nil && b.options.Drop(n) {
			continue
		}
		b.enqueueLocked(n)
		if b.options.Duplicate != nil && b.options.Duplicate(n) {
			b.enqueueLocked(n)
		}
	}
	return nil
}

// seenLocked tells whether an equal publication came within the window, and
// forgets the older ones. A re-publication counts as another message.
func (b *Bus) seenLocked(n event.Notification, now time.Time) bool {
	old := 0
	for old < len(b.order) && (now.Sub(b.recent[b.order[old]]) >= b.options.DuplicateWindow || len(b.order)-old > b.options.MaxQueue) {
		delete(b.recent, b.order[old])
		old++
	}
	b.order = slices.Delete(b.order, 0, old)
	id := n.EventID.String() + "/" + strconv.Itoa(max(n.Attempt, 1))
	if _, seen := b.recent[id]; seen {
		return true
	}
	b.recent[id] = now
	b.order = append(b.order, id)
	return false
}

func (b *Bus) enqueueLocked(n event.Notification) {
	pool := n.Pool
	if pool == "" {
		pool = defaultPool
	}
	q := b.poolLocked(pool)
	q.waiting = append(q.waiting, n)
	if over := len(q.waiting) - b.options.MaxQueue; over > 0 {
		q.waiting = slices.Delete(q.waiting, 0, over)
	}
	b.wakeLocked()
}

func (b *Bus) poolLocked(pool string) *queue {
	q := b.pools[pool]
	if q == nil {
		q = &queue{}
		b.pools[pool] = q
	}
	return q
}

// wakeLocked lets every subscription look again.
func (b *Bus) wakeLocked() {
	for s := range b.subs {
		s.wakeLocked()
	}
}

// PublishCancel tells all watchers that an execution was cancelled.
func (b *Bus) PublishCancel(ctx context.Context, execution event.ID) error {
	if err := ctx.Err(); err != nil {
		return event.Errorf(event.Unavailable, "publish cancellation: %w", err)
	}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return errClosed()
	}
	watchers := make([]*watcher, 0, len(b.watchers))
	for w := range b.watchers {
		watchers = append(watchers, w)
	}
	b.mu.Unlock()
	for _, w := range watchers {
		w.f(execution)
	}
	return nil
}

// WatchCancel calls f for each cancellation, on the publisher's goroutine.
func (b *Bus) WatchCancel(f func(execution event.ID)) (stop func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, errClosed()
	}
	w := &watcher{f}
	b.watchers[w] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, w)
	}, nil
}

// Connected is true until Close.
func (b *Bus) Connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.closed
}

// Close ends all subscriptions.
func (b *Bus) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for s := range b.subs {
		s.stopLocked()
	}
	return nil
}
