// Package groupcommit lets many callers share one commit: whoever waits while
// a commit is under way goes into the next one together. There is no timer and
// no added delay; an idle queue commits a lone item at once. It must not know
// what the items are or how they are made durable.
package groupcommit

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/noetl/noetl-go/internal/event"
)

// ErrClosed is what Submit returns after Close.
var ErrClosed = &event.Error{Code: event.Unavailable, Message: "store is closed", Reason: "closed"}

// Config says how a queue commits and how much it takes at a time.
type Config[T any] struct {
	// Commit makes the group durable. It sets errs[i] for each item that was
	// refused; items whose error stays nil are acknowledged. It runs in the
	// queue's only goroutine and must not keep either slice.
	Commit func(group []T, errs []error)
	// Size is the weight of an item in bytes; nil means weightless.
	Size func(T) int
	// MaxItems and MaxBytes bound one group; the first item is always taken.
	MaxItems int // 0 = 1024
	MaxBytes int // 0 = 8 MiB
	// Capacity bounds the items that wait; Submit blocks beyond it.
	Capacity int // 0 = 4096
}

func (c Config[T]) withDefaults() Config[T] {
	if c.MaxItems <= 0 {
		c.MaxItems = 1024
	}
	if c.MaxBytes <= 0 {
		c.MaxBytes = 8 << 20
	}
	if c.Capacity <= 0 {
		c.Capacity = 4096
	}
	if c.Size == nil {
		c.Size = func(T) int { return 0 }
	}
	return c
}

// Queue is a bounded queue with one committer. It owns its goroutine, which
// ends with Close.
type Queue[T any] struct {
	cfg     Config[T]
	waiting chan *entry[T]
	done    chan struct{} // closed when the committer has ended
	entries sync.Pool

	// closing guards the channel: submitters hold it shared while they send.
	closing sync.RWMutex
	closed  bool

	groups, items atomic.Int64
}

// entry is one waiting item. result has room for the verdict, so that the
// committer never waits for a caller that went away.
type entry[T any] struct {
	item   T
	result chan error
}

// New starts a queue.
func New[T any](cfg Config[T]) *Queue[T] {
	q := &Queue[T]{cfg: cfg.withDefaults(), done: make(chan struct{})}
	q.waiting = make(chan *entry[T], q.cfg.Capacity)
	q.entries.New = func() any { return &entry[T]{result: make(chan error, 1)} }
	go q.run()
	return q
}

// Submit hands over item and waits until it is durable or refused. When ctx
// ends first Submit returns its error, and whether the item was or will be
// committed is unknown to the caller.
func (q *Queue[T]) Submit(ctx context.Context, item T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e := q.entries.Get().(*entry[T])
	e.item = item
	if err := q.send(ctx, e); err != nil {
		return err
	}
	select {
	case err := <-e.result:
		q.entries.Put(e)
		return err
	case <-ctx.Done():
		return ctx.Err() // the committer still owns e
	}
}

func (q *Queue[T]) send(ctx context.Context, e *entry[T]) error {
	q.closing.RLock()
	defer q.closing.RUnlock()
	if q.closed {
		return ErrClosed
	}
	select {
	case q.waiting <- e:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close refuses further items, commits those that wait, and returns when the
// committer has ended. It may be called more than once.
func (q *Queue[T]) Close() {
	q.closing.Lock()
	if !q.closed {
		q.closed = true
		close(q.waiting)
	}
	q.closing.Unlock()
	<-q.done
}

// Stats returns how many groups were committed and how many items were in them.
func (q *Queue[T]) Stats() (groups, items int64) { return q.groups.Load(), q.items.Load() }

func (q *Queue[T]) run() {
	defer close(q.done)
	var g group[T]
	for first := range q.waiting {
		// Callers answered by the last commit are often about to submit again;
		// letting them run first makes one full group instead of two halves.
		runtime.Gosched()
		g.add(first)
		q.fill(&g)
		q.cfg.Commit(g.items, g.errs)
		q.groups.Add(1)
		q.items.Add(int64(len(g.items)))
		g.answer()
	}
}

// fill takes what waits right now, up to the bounds.
func (q *Queue[T]) fill(g *group[T]) {
	bytes := q.cfg.Size(g.items[0])
	for len(g.items) < q.cfg.MaxItems && bytes < q.cfg.MaxBytes {
		select {
		case e, ok := <-q.waiting:
			if !ok {
				return
			}
			g.add(e)
			bytes += q.cfg.Size(e.item)
		default:
			return
		}
	}
}

// group is the working memory of the committer, reused between commits.
type group[T any] struct {
	entries []*entry[T]
	items   []T
	errs    []error
}

func (g *group[T]) add(e *entry[T]) {
	g.entries = append(g.entries, e)
	g.items = append(g.items, e.item)
	g.errs = append(g.errs, nil)
}

// answer releases the callers and forgets the items, which may be large.
func (g *group[T]) answer() {
	var none T
	for i, e := range g.entries {
		e.item = none
		e.result <- g.errs[i]
	}
	clear(g.entries)
	clear(g.items)
	clear(g.errs)
	g.entries, g.items, g.errs = g.entries[:0], g.items[:0], g.errs[:0]
}
