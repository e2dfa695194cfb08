package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
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
	mostTurns    = 15_000          // of one run; far more than any needs
)

// world is one run.
type world struct {
	scenario
	t     *testing.T
	r     *rand.Rand // the driver's; nobody else draws from it
	began time.Time

	store    *memstore.Store
	bus      *membus.Bus
	ids      *snowflake.Generator // of clients; used by whoever has the turn
	turns    turnstile
	fault    atomic.Int32   // of the operation that has the turn
	calm     atomic.Bool    // nothing goes wrong any more
	reborn   map[int]int    // tick at which a plane is started -> how many
	admitted int            // turns so far
	taken    map[string]int // the same, by name
	reopen   int            // tick at which a closed store opens again
	born     int            // planes so far
	hired    int            // workers so far
	staff    []*worker      // those that live
	jobs     atomic.Int64   // requests and runs under way
	ends     sync.WaitGroup
	life     context.Context // of those who are not killed: clients and callers

	mu       sync.Mutex // guards what follows
	lives    []*plane   // planes that live
	mail     []bus.Delivery
	history  []string
	problems []problem
	faults   []mishap
	places   map[string]int                    // faults drawn so far, by name
	names    map[event.ID]string               // of executions and commands
	issues   map[string]int                    // commands so far, by name
	started  int                               // executions so far
	heads    map[event.ID][]int64              // where batches begin
	seqs     map[event.ID]int64                // of events
	stream   []bus.EventMessage                // what was published
	sendings map[string]int                    // how often an event was sent
	granted  map[string]event.ID               // what clients with a key were told
	seen     map[event.ID][]engine.StepOutcome // what planes said of ended executions
}

// simulate makes one run and returns it with what it found.
func simulate(t *testing.T, sc scenario) *world {
	w := &world{
		scenario: sc, t: t, r: rand.New(rand.NewPCG(sc.seed, 0xd1ce)), began: time.Now(),
		store: memstore.New(), ids: snowflake.New(1000, nil), reborn: map[int]int{},
		names: map[event.ID]string{}, issues: map[string]int{}, heads: map[event.ID][]int64{},
		seqs: map[event.ID]int64{}, granted: map[string]event.ID{},
		seen: map[event.ID][]engine.StepOutcome{},
	}
	w.inject()
	w.bus = membus.New(membus.Options{
		AckWait: 15 * time.Second,
		Drop: func(n event.Notification) bool {
			return w.strike(w.dice("drop", w.name(n.EventID), n.Attempt), w.odds.drop, "announcement %d of %s is lost", n.Attempt, w.name(n.EventID))
		},
		Duplicate: func(n event.Notification) bool {
			return w.strike(w.dice("double", w.name(n.EventID), n.Attempt), w.odds.double, "announcement %d of %s comes twice", n.Attempt, w.name(n.EventID))
		},
	})
	w.run()
	return w
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, fmt.Sprintf("%8.1fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// inject makes the store ask the driver what happens to an operation.
func (w *world) inject() {
	w.store.Inject(memstore.Faults{Hook: func(string) memstore.Fault { return memstore.Fault(w.fault.Swap(int32(memstore.None))) }})
}

func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	w.life = ctx
	w.register(ctx)
	sub, err := w.bus.Subscribe(ctx, []string{"shared"}, 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	w.ends.Go(func() { w.collect(ctx, sub) })
	w.startPlane()
	for range w.planes - 1 {
		w.startPlane()
	}
	for range w.workers {
		w.hire()
	}
	w.sendClients(ctx)
	w.drive()
	for _, x := range w.staff {
		x.quit()
	}
	cancel()
	if len(w.problems) > 0 { // who does not get anywhere would not leave either
		for _, p := range slices.Clone(w.lives) {
			w.crash(p, nil, 0)
		}
	}
	for _, p := range w.lives {
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
	texts := []string{w.book.String()}
	if w.book.hasChildren() {
		for i := range childPaths {
			texts = append(texts, childBook.at(fmt.Sprint(childPath, i)))
		}
	}
	for _, text := range texts {
		if err == nil {
			_, err = p.Register(ctx, control.RegisterRequest{Content: text})
		}
	}
	if err != nil {
		w.t.Fatalf("seed %d: register: %v\n%s", w.seed, err, w.book)
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

// executions lists everything that was started, the oldest first.
func (w *world) executions() []store.Execution {
	rows, err := w.store.ListExecutions(context.Background(), store.ExecutionFilter{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(rows)
	return rows
}
