package simulation

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

const (
	// tick is longer than any pause a pass makes before it tries again, so
	// that those who draw their pauses all go on at the next tick.
	tick         = 100 * time.Millisecond
	lease        = 10 * time.Second
	sweepEvery   = time.Second
	recoverEvery = 10 * time.Second
	converge     = 5 * time.Minute // from the last fault to the end of everything
	mostTurns    = 50_000          // of one run; far more than any needs
)

// odds are the probabilities of what goes wrong while things go wrong.
type odds struct {
	refuse, loseAck, stall float64 // per operation of the store
	crash                  float64 // the same, of the plane that makes it
	drop, double           float64 // per notification
	kill, outage           float64 // per tick, of a worker and of the store
	misbehave              float64 // scales what workers do wrong
}

func randomOdds(r *rand.Rand) odds {
	some := func(p float64) float64 { // often nothing of a kind, sometimes a lot
		return p * max(0, r.Float64()*3-1)
	}
	return odds{
		refuse: some(0.06), loseAck: some(0.06), stall: some(0.04), crash: some(0.012),
		drop: some(0.5), double: some(0.5), kill: some(0.01), outage: some(0.005), misbehave: some(1),
	}
}

// world is one run.
type world struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand // the driver's; nobody else draws from it
	odds  odds
	began time.Time

	playbook string
	store    *memstore.Store
	bus      *membus.Bus
	ids      *snowflake.Generator // of clients; used by whoever has the turn
	turns    turnstile
	fault    atomic.Int32 // of the operation that has the turn
	calm     atomic.Bool  // nothing goes wrong any more
	local    bool         // planes have workers of their own
	alone    bool         // one plane at a time: it ends the leases of the worker that died with the last
	limits   control.Options
	reborn   map[int]int // tick at which a plane is started -> how many
	admitted int         // turns so far
	reopen   int         // tick at which a closed store opens again

	mu       sync.Mutex // guards what follows
	planes   []*plane   // those that live
	mail     []bus.Delivery
	history  []string
	problems []string

	born    int // planes so far
	hired   int // workers so far
	workers []*worker
	jobs    atomic.Int64   // requests and runs under way
	ends    sync.WaitGroup // of all goroutines
}

// simulate makes one run from a seed and returns it with what it found.
func simulate(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	w := &world{
		t: t, seed: seed, r: r, odds: randomOdds(r), began: time.Now(), playbook: randomPlaybook(r),
		store: memstore.New(), ids: snowflake.New(1000, nil), reborn: map[int]int{}, local: r.IntN(3) == 0,
		limits: control.Options{
			CacheExecutions: 1 + r.IntN(2)*63, CachePrograms: 1 + r.IntN(2), MailboxLimit: 3 + r.IntN(2)*100,
		},
	}
	w.alone = w.local && r.IntN(2) == 0
	w.inject()
	w.bus = membus.New(membus.Options{
		AckWait:   15 * time.Second,
		Drop:      func(n event.Notification) bool { return w.chance(w.odds.drop, "drop", n.EventID, n.Attempt) },
		Duplicate: func(n event.Notification) bool { return w.chance(w.odds.double, "double", n.EventID, n.Attempt) },
	})
	w.run()
	return w
}

// chance decides by the seed and the name of the thing, whoever asks and when.
func (w *world) chance(p float64, what ...any) bool {
	return !w.calm.Load() && w.dice(what...).Float64() < p
}

// dice are random numbers that depend on the seed and a name.
func (w *world) dice(what ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, fmt.Sprintf("%8.1fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// inject makes the store ask the driver what happens to an operation.
func (w *world) inject() {
	w.store.Inject(memstore.Faults{Hook: func(string) memstore.Fault { return memstore.Fault(w.fault.Swap(int32(memstore.None))) }})
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	w.register(ctx)
	sub, err := w.bus.Subscribe(ctx, []string{"shared"}, 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ends.Go(func() { w.collect(ctx, sub) })
	w.startPlane()
	if !w.alone && w.r.IntN(2) == 0 {
		w.startPlane()
	}
	for range 1 + w.r.IntN(3) {
		w.hire()
	}
	w.sendClients(ctx)
	w.drive()
	for _, x := range w.workers {
		x.quit()
	}
	cancel()
	if len(w.problems) > 0 { // who does not get anywhere would not leave either
		for _, p := range slices.Clone(w.planes) {
			w.crash(p, nil, 0)
		}
	}
	for _, p := range w.planes {
		p.stop()
	}
	w.leave()
	_ = w.bus.Close()
	w.checkSlots()
}

// leave serves those who still wait until all have gone.
func (w *world) leave() {
	gone := make(chan struct{})
	go func() {
		w.ends.Wait()
		close(gone)
	}()
	for {
		w.settle(0)
		select {
		case <-gone:
			return
		case <-time.After(tick):
		}
	}
}

// register puts the playbook into the catalog before anything goes wrong.
func (w *world) register(ctx context.Context) {
	p, err := control.New(control.Options{Store: w.store, Bus: w.bus, IDs: snowflake.New(999, nil).Next})
	if err == nil {
		_, err = p.Register(ctx, control.RegisterRequest{Content: w.playbook})
	}
	if err != nil {
		w.t.Fatalf("seed %d: register: %v\n%s", w.seed, err, w.playbook)
	}
}

// collect takes what the bus delivers; the driver hands it out.
func (w *world) collect(ctx context.Context, sub bus.Subscription) {
	defer sub.Stop()
	for {
		d, err := sub.Next(ctx)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.mail = append(w.mail, d)
		w.mu.Unlock()
	}
}

// drive lets time pass until everything has ended, or should have.
func (w *world) drive() {
	noisy := 20 + w.r.IntN(500)
	for now := 0; ; now++ {
		if now == noisy {
			w.quieten()
		}
		w.settle(now)
		switch {
		case w.admitted > mostTurns:
			w.problem("not everything has ended after %d turns; %d requests and runs are under way", w.admitted, w.jobs.Load())
			return
		case now <= noisy:
			w.mischief(now)
		case w.over():
			return
		case time.Since(w.began) > time.Duration(noisy)*tick+converge:
			w.problem("not everything has ended %v after the last fault; %d requests and runs are under way", converge, w.jobs.Load())
			return
		}
		for range w.reborn[now] {
			w.startPlane()
		}
		time.Sleep(tick)
	}
}

// quieten ends all faults.
func (w *world) quieten() {
	w.calm.Store(true)
	w.store.Reopen()
	w.inject()
	w.note("no more faults")
}

func (w *world) over() bool {
	open, err := w.store.OpenExecutions(context.Background(), 0, time.Now().Add(time.Hour), 0)
	return err == nil && len(open) == 0 && w.jobs.Load() == 0 && w.turns.quiet()
}

// settle lets everybody who waits go, one at a time, until nobody does.
func (w *world) settle(now int) {
	for {
		synctest.Wait()
		if w.handOut() {
			continue
		}
		ready := w.turns.ready(time.Now())
		if len(ready) == 0 || w.admitted > mostTurns {
			return
		}
		w.admitted++
		w.admit(ready[w.r.IntN(len(ready))], now)
	}
}

// handOut gives one delivery to one of the workers.
func (w *world) handOut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mail) == 0 || len(w.workers) == 0 {
		return false
	}
	slices.SortStableFunc(w.mail, func(a, b bus.Delivery) int {
		x, y := a.Notification(), b.Notification()
		return cmp.Or(cmp.Compare(x.EventID, y.EventID), cmp.Compare(x.Attempt, y.Attempt))
	})
	d := w.mail[0]
	w.mail = w.mail[1:]
	x := w.workers[w.r.IntN(len(w.workers))]
	x.employ(fmt.Sprint(d.Notification().EventID, d.Notification().Attempt), func(j *job) { j.take(d) })
	return true
}

// admit lets one go, with what goes wrong on the way.
func (w *world) admit(t *turn, now int) {
	var v verdict
	if !w.calm.Load() {
		if !t.stalled && w.r.Float64() < w.odds.stall {
			t.stalled = true
			pause := 1 + w.r.IntN(20)
			if t.op == "Append" && w.r.IntN(4) == 0 {
				pause += 300 // longer than a pass waits
			}
			t.notBefore = time.Now().Add(time.Duration(pause) * tick)
			w.note("%s is stalled for %v", t.name, time.Duration(pause)*tick)
			return
		}
		v = w.draw(t)
	}
	w.fault.Store(int32(v.fault))
	if v.die != lives && !t.abandoned {
		w.note("%s: crash, %v", t.name, map[death]string{diesBefore: "before it took effect", diesAfter: "after it took effect"}[v.die])
		w.crash(t.plane, t, now)
	}
	if late := w.turns.admit(t, v); late != nil {
		w.note("%s takes effect although nobody waits for it", t.name)
		w.fault.Store(int32(memstore.None))
		late()
	}
}

// draw decides what becomes of an operation of the store.
func (w *world) draw(t *turn) (v verdict) {
	if t.plane == nil || t.abandoned {
		return v
	}
	switch p := w.r.Float64(); {
	case p < w.odds.refuse:
		v.fault = memstore.Refuse
		w.note("%s is refused", t.name)
	case p < w.odds.refuse+w.odds.loseAck:
		v.fault = memstore.LoseAck
		w.note("%s loses its acknowledgement", t.name)
	}
	if w.r.Float64() < w.odds.crash {
		v.die = diesBefore + death(w.r.IntN(2))
	}
	return v
}

// mischief is what goes wrong by itself, at any tick.
func (w *world) mischief(now int) {
	if w.reopen == now {
		w.store.Reopen()
		w.inject()
	}
	if w.calm.Load() {
		return
	}
	if w.reopen < now && w.r.Float64() < w.odds.outage {
		w.reopen = now + 1 + w.r.IntN(50)
		_ = w.store.Close()
		w.note("the store is gone for %v", time.Duration(w.reopen-now)*tick)
	}
	if w.r.Float64() < w.odds.kill {
		i := w.r.IntN(len(w.workers))
		w.note("worker %s is killed", w.workers[i].name)
		w.workers[i].quit()
		w.workers = slices.Delete(w.workers, i, i+1)
		w.hire()
	}
	if len(w.planes) > 0 && w.r.Float64() < w.odds.crash {
		p := w.planes[w.r.IntN(len(w.planes))]
		w.note("%s: crash", p.name)
		w.crash(p, nil, now)
	}
}

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
	p := &plane{name: fmt.Sprintf("plane%02d", w.born), swept: map[string]time.Time{}}
	p.life, p.stop = context.WithCancel(context.Background())
	o := w.limits
	o.Store, o.Bus, o.IDs = &gate{w: w, p: p}, mouth{w.bus, p}, snowflake.New(w.born, nil).Next
	o.Lease, o.QuietLease, o.Sweep, o.Recover = lease, 2*lease, sweepEvery, recoverEvery
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
			w.problem("%s: Run: %v", p.name, err)
		}
	})
	w.note("%s starts", p.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.planes = append(w.planes, p)
}

// crash ends a plane without any cleanup that others could notice. What is
// under way to the store may arrive later, save for the operation in which it
// dies. A new plane comes soon.
func (w *world) crash(p *plane, in *turn, now int) {
	p.dead.Store(true)
	w.mu.Lock()
	w.planes = slices.DeleteFunc(w.planes, func(q *plane) bool { return q == p })
	w.mu.Unlock()
	for _, t := range w.turns.of(p) {
		switch {
		case t == in:
		case t.late != nil && w.r.IntN(2) == 0:
			t.notBefore = time.Now().Add(time.Duration(w.r.IntN(30)) * tick)
			w.turns.abandon(t)
		default:
			w.turns.admit(t, verdict{die: diesBefore})
		}
	}
	if p.desk != nil {
		p.desk.quit()
	}
	p.stop()
	w.reborn[now+w.r.IntN(30)]++
}

// somePlane is a plane that lives, or nil.
func (w *world) somePlane(r *rand.Rand) *plane {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.planes) == 0 {
		return nil
	}
	return w.planes[r.IntN(len(w.planes))]
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
	d.p.desk.employ(fmt.Sprint(c.EventID, c.Meta.Attempt), func(j *job) {
		defer d.Unreserve()
		j.run(c)
	})
}

// checkSlots finds slots of local workers that were never given back.
func (w *world) checkSlots() {
	for _, p := range w.planes {
		if n := p.slots.Load(); n != 0 {
			w.problem("%s: %d slots of its worker are still reserved", p.name, n)
		}
	}
}

// executions lists everything that was started, the oldest first.
func (w *world) executions() []store.Execution {
	rows, err := w.store.ListExecutions(context.Background(), store.ExecutionFilter{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(rows)
	return rows
}
