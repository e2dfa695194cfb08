package postgres

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

type poolKey = [sha256.Size]byte

// pools keeps connections between commands: one pool for each way to log in,
// and a bound on all of them together.
type pools struct {
	most     int // connections over all pools
	attempts int

	mu      sync.Mutex
	byKey   map[poolKey]*pool
	open    int       // connections, and those being made
	waiters []*waiter // first come, first served
	closed  bool
	sweeper *time.Timer // nil when nothing rests
}

// pool is the connections to one place.
type pool struct {
	key  poolKey
	spec poolSpec
	idle []*conn // the last one is the freshest
	open int
	used time.Time
	kinds
}

// waiter is a command without a connection. It is given one to use, or the
// right to make one (nil).
type waiter struct {
	pool  *pool
	ready chan *conn
}

func newPools(most, attempts int) *pools {
	return &pools{most: most, attempts: attempts, byKey: map[poolKey]*pool{}}
}

// acquire gives a connection for one command, kept or new.
func (ps *pools) acquire(ctx context.Context, p *plan) (*conn, error) {
	if p.pool.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.pool.Timeout, errPoolTimeout)
		defer cancel()
	}
	home, c, err := ps.reserve(ctx, p)
	if err != nil {
		return nil, err
	}
	if c != nil {
		return c, nil
	}
	c, err = connect(ctx, p.target, ps.attempts)
	if err != nil {
		ps.forget(home)
		return nil, err
	}
	c.home = home
	return c, nil
}

// reserve finds a connection at rest, or the right to make one, and waits for
// either.
func (ps *pools) reserve(ctx context.Context, p *plan) (*pool, *conn, error) {
	ps.mu.Lock()
	if ps.closed {
		ps.mu.Unlock()
		return nil, nil, &tool.Error{Kind: tool.KindDBConnection, Code: "CLOSED", Message: "this worker is stopping", Retryable: true}
	}
	home := ps.pool(p)
	home.used = time.Now()
	w := &waiter{pool: home, ready: make(chan *conn, 1)}
	if !ps.serve(w) {
		if waiting := ps.waiting(home); waiting >= home.spec.Waiting {
			ps.mu.Unlock()
			return nil, nil, &tool.Error{
				Kind: tool.KindDBConnection, Code: "POOL_FULL", Retryable: true,
				Message: fmt.Sprintf("all %d connections are in use and %d commands wait for one already (raise pool.max_size or pool.max_waiting, or run fewer steps at once)", home.spec.Max, waiting),
			}
		}
		ps.waiters = append(ps.waiters, w)
	}
	ps.mu.Unlock()
	select {
	case c := <-w.ready:
		return home, c, nil
	case <-ctx.Done():
	}
	ps.giveUp(w)
	return nil, nil, context.Cause(ctx)
}

func (ps *pools) pool(p *plan) *pool {
	key := p.target.key(p.pool)
	home := ps.byKey[key]
	if home == nil {
		home = &pool{key: key, spec: p.pool, kinds: newKinds()}
		ps.byKey[key] = home
	}
	return home
}

// serve gives a waiter what it needs, if that is to be had. A connection that
// rests elsewhere makes room when there are too many.
func (ps *pools) serve(w *waiter) bool {
	for len(w.pool.idle) > 0 {
		last := len(w.pool.idle) - 1
		c := w.pool.idle[last]
		w.pool.idle = w.pool.idle[:last]
		if time.Since(c.made) < w.pool.spec.Lifetime {
			w.ready <- c
			return true
		}
		ps.drop(c)
	}
	if w.pool.open >= w.pool.spec.Max {
		return false
	}
	if ps.open >= ps.most && !ps.evict() {
		return false
	}
	w.pool.open++
	ps.open++
	w.ready <- nil
	return true
}

// evict closes the connection that has rested longest.
func (ps *pools) evict() bool {
	var oldest *conn
	for _, p := range ps.byKey {
		if len(p.idle) > 0 && (oldest == nil || p.idle[0].rests.Before(oldest.rests)) {
			oldest = p.idle[0]
		}
	}
	if oldest == nil {
		return false
	}
	oldest.home.idle = oldest.home.idle[1:]
	ps.drop(oldest)
	return true
}

// drop closes a connection that is in no list any more.
func (ps *pools) drop(c *conn) {
	c.home.open--
	ps.open--
	c.close()
}

func (ps *pools) waiting(home *pool) (n int) {
	for _, w := range ps.waiters {
		if w.pool == home {
			n++
		}
	}
	return n
}

// giveUp ends a wait. What was handed over at the last moment goes to the next.
func (ps *pools) giveUp(w *waiter) {
	ps.mu.Lock()
	i := slices.Index(ps.waiters, w)
	if i >= 0 {
		ps.waiters = slices.Delete(ps.waiters, i, i+1)
	}
	ps.mu.Unlock()
	if i >= 0 {
		return
	}
	if c := <-w.ready; c != nil {
		ps.rest(c)
	} else {
		ps.forget(w.pool)
	}
}

// release takes a connection back after a command: cleaned for the next one, or
// closed when it cannot be.
func (ps *pools) release(c *conn) {
	if c.home.spec.Single || !c.clean() {
		c.close()
		ps.forget(c.home)
		return
	}
	ps.rest(c)
}

func (ps *pools) rest(c *conn) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	c.rests = time.Now()
	c.home.used = c.rests
	if ps.closed {
		ps.drop(c)
		return
	}
	c.home.idle = append(c.home.idle, c)
	ps.pass()
	ps.schedule()
}

// forget gives up the place of a connection that is closed or was never made.
func (ps *pools) forget(home *pool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	home.open--
	ps.open--
	ps.pass()
	if home.open == 0 && ps.waiting(home) == 0 && home.spec.Single {
		delete(ps.byKey, home.key)
	}
	ps.schedule()
}

// pass serves those who wait, in their order.
func (ps *pools) pass() {
	ps.waiters = slices.DeleteFunc(ps.waiters, ps.serve)
}

// schedule has the next sweep come when something may have rested too long.
func (ps *pools) schedule() {
	if ps.sweeper != nil || ps.closed || len(ps.byKey) == 0 {
		return
	}
	soon := time.Minute
	for _, p := range ps.byKey {
		soon = min(soon, max(p.spec.Idle/2, 50*time.Millisecond))
	}
	ps.sweeper = time.AfterFunc(soon, ps.sweep)
}

// sweep closes connections that rested too long, save the few a pool in use
// keeps, and forgets pools that nobody uses.
func (ps *pools) sweep() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.sweeper = nil
	now := time.Now()
	for key, p := range ps.byKey {
		keep := p.spec.Min
		if now.Sub(p.used) >= p.spec.Idle {
			keep = 0
		}
		for len(p.idle) > 0 && p.open > keep && now.Sub(p.idle[0].rests) >= p.spec.Idle {
			c := p.idle[0]
			p.idle = p.idle[1:]
			ps.drop(c)
		}
		if p.open == 0 && keep == 0 && ps.waiting(p) == 0 {
			delete(ps.byKey, key)
		}
	}
	ps.pass()
	ps.schedule()
}

// close ends the connections at rest; those in use end with their commands.
func (ps *pools) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.closed = true
	if ps.sweeper != nil {
		ps.sweeper.Stop()
	}
	for _, p := range ps.byKey {
		for _, c := range p.idle {
			p.open--
			ps.open--
			c.close()
		}
		p.idle = nil
	}
}
