package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
)

// plane is one life of a control plane.
type plane struct {
	*control.Plane
	name  string
	dead  atomic.Bool
	desk  *worker // nil without a worker of its own
	slots atomic.Int64
	life  context.Context
	stop  context.CancelFunc

	mu    sync.Mutex // guards swept
	swept map[string]time.Time
}

func (w *world) startPlane() {
	w.born++
	// The first look at timers comes after a pause, which is drawn like the others.
	p := &plane{name: fmt.Sprintf("plane%02d", w.born), swept: map[string]time.Time{"DueExecutions": time.Now()}}
	p.life, p.stop = context.WithCancel(context.Background())
	o := control.Options{
		Store: &gate{Store: still{}, w: w, p: p}, Bus: mouth{w.bus, p}, IDs: snowflake.New(w.born, nil).Next,
		Lease: lease, QuietLease: 2 * lease, Sweep: sweepEvery, Recover: recoverEvery,
		Outbox: w.outboxOptions(p), CacheExecutions: w.cache, CachePrograms: w.cache, MailboxLimit: w.mailbox, Errands: 1,
	}
	var err error
	if p.Plane, err = control.New(o); err != nil {
		w.t.Fatal(err)
	}
	if w.local {
		p.desk = w.newWorker(localPrefix+p.name, p)
		p.SetLocal(desk{p})
	}
	if w.alone {
		if _, err := w.store.ExpireLeases(context.Background(), localPrefix, time.Now()); err != nil {
			w.note("leases are left to end by themselves: %v", err)
		}
	}
	w.ends.Go(func() {
		if err := p.Run(p.life); err != nil {
			w.problem(answers, "%s: Run: %v", p.name, err)
		}
	})
	w.note("%s starts", p.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives = append(w.lives, p)
}

// crash ends a plane without any cleanup that others could notice. What is
// under way to the store may arrive later, save for the operation in which it
// dies. A new plane comes soon.
func (w *world) crash(p *plane, in *turn, now int) {
	dice := w.dice("crash", p.name)
	w.note("%s: crash", p.name)
	p.dead.Store(true)
	w.mu.Lock()
	w.lives = slices.DeleteFunc(w.lives, func(q *plane) bool { return q == p })
	w.mu.Unlock()
	for _, t := range w.turns.of(p) {
		switch {
		case t == in:
		case t.late != nil && dice.IntN(2) == 0:
			t.notBefore = time.Now().Add(time.Duration(dice.IntN(30)) * tick)
			w.turns.abandon(t)
		default:
			w.turns.admit(t, verdict{die: diesBefore})
		}
	}
	if p.desk != nil {
		p.desk.quit()
	}
	p.stop()
	w.reborn[now+dice.IntN(30)]++
}

// somePlane is a plane that lives, or nil.
func (w *world) somePlane(r *rand.Rand) *plane {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.lives) == 0 {
		return nil
	}
	return w.lives[r.IntN(len(w.lives))]
}

// desk is the local worker of a plane.
type desk struct{ p *plane }

const (
	deskSlots   = 2
	localPrefix = "local-"
)

func (d desk) ID() string              { return d.p.desk.name }
func (d desk) Serves(pool string) bool { return pool == "shared" }
func (d desk) Unreserve()              { d.p.slots.Add(-1) }

func (d desk) Reserve() bool {
	if d.p.slots.Add(1) <= deskSlots {
		return true
	}
	d.p.slots.Add(-1)
	return false
}

func (d desk) Deliver(c *event.Command) {
	d.p.desk.employ(fmt.Sprintf("%s, attempt %d", d.p.desk.w.name(c.EventID), c.Meta.Attempt), func(j *job) {
		defer d.Unreserve()
		j.run(c)
	})
}

// checkSlots finds slots of local workers that were never given back.
func (w *world) checkSlots() {
	for _, p := range w.lives {
		if n := p.slots.Load(); n != 0 {
			w.problem(slots, "%s: %d slots of its worker are still reserved", p.name, n)
		}
	}
}
