package simulation

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/store/memstore"
)

// turnstile is where everybody waits to be let through, one at a time: workers
// before each request, planes before each operation of the store. Who is next
// is drawn by the driver from those who wait when nobody moves any more.
type turnstile struct {
	mu      sync.Mutex // guards waiting and the abandoned flag of its members
	waiting []*turn
}

// turn is one who waits.
type turn struct {
	name      string // says who wants what; tells those who wait at one time apart
	plane     *plane // whose operation it is; nil for a worker's request
	op        string
	notBefore time.Time
	stalled   bool // the driver let it wait once already
	pass      chan verdict

	// late is the operation when it can take effect although nobody waits for
	// it any more, as a request that is under way to a database does.
	late      func()
	abandoned bool
}

// verdict is what becomes of a turn.
type verdict struct {
	fault memstore.Fault
	die   death
}

// death tells whether the plane dies in this very operation.
type death int

const (
	lives death = iota
	diesBefore
	diesAfter // it took effect, and there is nobody left to tell
)

// enter waits for the verdict, or for the end of ctx.
func (ts *turnstile) enter(ctx context.Context, t *turn) (verdict, error) {
	t.pass = make(chan verdict, 1)
	ts.mu.Lock()
	ts.waiting = append(ts.waiting, t)
	ts.mu.Unlock()
	select {
	case v := <-t.pass:
		return v, nil
	case <-ctx.Done():
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	i := slices.Index(ts.waiting, t)
	if i < 0 { // let through at the same moment
		return <-t.pass, nil
	}
	if t.late != nil {
		t.abandoned = true
	} else {
		ts.waiting = slices.Delete(ts.waiting, i, i+1)
	}
	return verdict{}, ctx.Err()
}

// ready lists who may go now, in an order that does not depend on goroutines.
func (ts *turnstile) ready(now time.Time) []*turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var out []*turn
	for _, t := range ts.waiting {
		if !now.Before(t.notBefore) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *turn) int { return cmp.Compare(a.name, b.name) })
	return out
}

// admit lets t through. It returns what is left to do when nobody waits for it.
func (ts *turnstile) admit(t *turn, v verdict) (late func()) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.waiting = slices.DeleteFunc(ts.waiting, func(w *turn) bool { return w == t })
	if t.abandoned {
		return t.late
	}
	t.pass <- v
	return nil
}

// of lists what waits on behalf of a plane, in order.
func (ts *turnstile) of(p *plane) []*turn {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	var out []*turn
	for _, t := range ts.waiting {
		if t.plane == p && !t.abandoned {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *turn) int { return cmp.Compare(a.name, b.name) })
	return out
}

// abandon leaves t under way and lets whoever waited for it go.
func (ts *turnstile) abandon(t *turn) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t.abandoned = true
	t.pass <- verdict{die: diesBefore}
}

// quiet tells whether nothing is under way on nobody's behalf.
func (ts *turnstile) quiet() bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return !slices.ContainsFunc(ts.waiting, func(t *turn) bool { return t.abandoned })
}
