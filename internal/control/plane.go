// Package control is the control plane: the use cases of NoETL, and the only
// place where the engine, a store, a bus and a clock meet. Every live execution
// has a mailbox whose goroutine turns the waiting inputs into one append, so
// that no lock between replicas is needed: the store's compare-and-set decides
// who was first, and the loser reloads and decides again.
//
// It must not know how requests arrive (HTTP, in-process), how a backend keeps
// its rows, or what a tool does.
package control

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/lru"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/result"
	"github.com/noetl/noetl-go/internal/store"
)

// standing is how many goroutines stay to serve mailboxes. When all are busy,
// further mailboxes get goroutines that end with them.
const standing = 16

// Options configure a Plane. Store, Bus and IDs are required; zero fields get
// the defaults named beside them.
type Options struct {
	Store   store.Store
	Bus     bus.Bus
	IDs     func() event.ID
	Clock   func() time.Time // time.Now
	Logger  *slog.Logger     // discards
	Metrics *obs.Metrics     // counted where nobody looks
	Tracer  *obs.Tracer      // nil makes no spans

	ServerURL   string            // put into notifications: where workers claim
	TemplateEnv map[string]string // what the templates of workloads see as env

	Lease           time.Duration    // 60 s: how long a claim holds without a heartbeat
	QuietLease      time.Duration    // 30 min: the lease of a worker that sends no heartbeats
	PoolLease       time.Duration    // 2 min: the lease of a registered worker that beats only for itself
	HardTimeout     time.Duration    // 30 min: how long such a worker keeps a command at most
	Republish       time.Duration    // 2 s: age after which a pending command is announced again
	Sweep           time.Duration    // 1 s: how often pending and expired commands are looked for
	Recover         time.Duration    // 30 s: silence after which an open execution is decided again
	Drain           time.Duration    // 30 s: how long Run waits for unfinished passes once it is told to end
	CacheExecutions int              // 4096 folded states kept
	CachePrograms   int              // 256 compiled playbooks kept
	MailboxLimit    int              // 4096 inputs may wait per execution
	MaxAttempts     int              // 3 claims of one command, then it is given up
	Errands         int              // 8 messages between executions under way at a time
	Outbox          OutboxOptions    // whether and by whom events are published
	Stall           StallOptions     // what becomes of executions that do not get on
	Results         ResultOptions    // where large values are kept, and how long
	Retention       RetentionOptions // how long executions are kept

	Secrets *SecretOptions // nil keeps no credentials
}

func (o Options) withDefaults() Options {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Lease = orDefault(o.Lease, time.Minute)
	o.QuietLease = orDefault(o.QuietLease, 30*time.Minute)
	o.PoolLease = orDefault(o.PoolLease, 2*time.Minute)
	o.HardTimeout = orDefault(o.HardTimeout, 30*time.Minute)
	o.Republish = orDefault(o.Republish, 2*time.Second)
	o.Sweep = orDefault(o.Sweep, time.Second)
	o.Recover = orDefault(o.Recover, 30*time.Second)
	o.Drain = orDefault(o.Drain, 30*time.Second)
	o.CacheExecutions = orDefault(o.CacheExecutions, 4096)
	o.CachePrograms = orDefault(o.CachePrograms, 256)
	o.MailboxLimit = orDefault(o.MailboxLimit, 4096)
	o.Errands = orDefault(o.Errands, 8)
	o.Outbox = o.Outbox.withDefaults()
	o.Results.Grace = orDefault(o.Results.Grace, day)
	o.Retention = o.Retention.withDefaults()
	return o
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// LocalWorker is the worker in the same process. It takes commands without a
// notification: Reserve holds one of its free slots, Deliver fills a reserved
// slot with a claimed command, Unreserve gives one back. None may block.
type LocalWorker interface {
	ID() string
	Serves(pool string) bool
	Reserve() bool
	Unreserve()
	Deliver(c *event.Command)
}

// Plane is the control plane. All methods are safe for concurrent use.
type Plane struct {
	o     Options
	store store.Store
	bus   bus.Bus
	log   *slog.Logger
	local LocalWorker // nil without one; set before Run
	// schedules follow the catalog; nil without any.
	schedules Declarer
	began     time.Time

	runnables *lru.Cache[event.ID, *runnable]
	states    *lru.Cache[event.ID, *live] // executions that go on
	recent    *lru.Cache[event.ID, *live] // the last few that ended: whoever waited for the end asks for the outcome next

	mu     sync.Mutex // guards boxes and closed
	boxes  map[event.ID]*mailbox
	closed bool
	passes sync.WaitGroup // one per mailbox that is served
	free   chan *mailbox  // to a standing goroutine that is idle

	work     context.Context // ends when passes must give up
	stopWork context.CancelFunc
	ran      atomic.Bool

	out       *publisher
	relay     *relay // nil when others publish events, or nobody
	alarms    *alarms
	errands   chan sent
	values    *lru.Cache[string, json.RawMessage]
	results   *result.Service
	repeats   *lru.Cache[event.ID, repeat] // announcements of waiting commands so far
	nudges    *lru.Cache[event.ID, repeat] // recovery looks at silent executions so far
	watchers  watchers
	counters  counters
	metrics   *obs.Metrics
	forgot    atomic.Int64 // when silent processes were last looked for, in Unix nanoseconds
	summary   *shortLived[Summary]
	gauges    *shortLived[Gauges]
	stalled   endedStalls
	busy      *shortLived[map[string]bool]   // pools whose workers run something
	awake     atomic.Int64                   // since when silence is watched, in Unix nanoseconds
	keyed     *lru.Cache[event.ID, struct{}] // executions for which secrets are kept
	proof     sync.Mutex                     // held while the store is checked or rebuilt
	retaining retaining
}

// New makes a control plane. It accepts work at once; Run owns what goes on in
// the background.
func New(o Options) (*Plane, error) {
	if o.Store == nil || o.Bus == nil || o.IDs == nil {
		return nil, errors.New("control: Store, Bus and IDs are required")
	}
	o = o.withDefaults()
	var err error
	if o.Stall, err = o.Stall.withDefaults(); err != nil {
		return nil, err
	}
	p := &Plane{
		o: o, store: o.Store, bus: o.Bus, log: o.Logger, began: o.Clock(),
		runnables: lru.New[event.ID, *runnable](o.CachePrograms),
		states:    lru.New[event.ID, *live](o.CacheExecutions),
		recent:    lru.New[event.ID, *live](endedKept),
		boxes:     make(map[event.ID]*mailbox),
		free:      make(chan *mailbox),
		repeats:   lru.New[event.ID, repeat](repeatsKept),
		nudges:    lru.New[event.ID, repeat](repeatsKept),
		alarms:    newAlarms(),
		errands:   make(chan sent, errandQueue),
		values:    lru.New[string, json.RawMessage](valuesKept),
		keyed:     lru.New[event.ID, struct{}](o.CacheExecutions),
	}
	if p.results, err = p.openResults(); err != nil {
		return nil, err
	}
	p.work, p.stopWork = context.WithCancel(context.Background())
	if p.metrics = o.Metrics; p.metrics == nil {
		p.metrics = NewMetrics("")
	}
	p.summary, p.gauges = newShortLived[Summary](), newShortLived[Gauges]()
	p.busy = newShortLived[map[string]bool]()
	p.out = newPublisher(p)
	if o.Outbox.On && o.Outbox.Stream != nil {
		p.relay = newRelay(p, o.Outbox.Stream)
	}
	return p, nil
}

// SetLocal tells the plane of the worker in the same process. It must be
// called before Run and before the first execution.
func (p *Plane) SetLocal(w LocalWorker) { p.local = w }

// Run announces, recovers and sweeps until ctx ends. Then it refuses new work
// with event.Unavailable, lets waiting inputs finish and returns. A plane runs once.
func (p *Plane) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return errors.New("control: a plane runs only once")
	}
	var sweeps, background sync.WaitGroup
	sweeps.Go(func() { p.sweepDispatch(ctx) })
	sweeps.Go(func() { p.sweepRecovery(ctx) })
	sweeps.Go(func() { p.sweepTimers(ctx) })
	sweeps.Go(func() { p.sweepStalled(ctx) })
	sweeps.Go(func() { p.ring(ctx) })
	sweeps.Go(func() { p.maintain(ctx) })
	sweeps.Go(func() { p.sweepResults(ctx) })
	sweeps.Go(func() { p.sweepRetention(ctx) })
	stop := make(chan struct{})
	relaying, stopRelay := context.WithCancel(context.Background())
	defer stopRelay()
	if p.relay != nil {
		background.Go(func() { p.relay.run(relaying) })
	}
	background.Go(func() { p.out.run(stop) })
	for range p.o.Errands {
		background.Go(func() { p.runErrands(stop) })
	}
	for range standing {
		background.Go(func() { p.stand(stop) })
	}

	<-ctx.Done()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	sweeps.Wait()
	late := time.AfterFunc(p.o.Drain, p.stopWork)
	p.passes.Wait()
	late.Stop()
	close(stop)
	stopRelay()
	background.Wait()
	p.stopWork()
	return nil
}

// now is the time in the precision stores keep, so that a state looks the same
// whether it was decided here or folded from the log.
func (p *Plane) now() time.Time { return p.o.Clock().UTC().Truncate(time.Microsecond) }

// counters are the running totals behind Stats.
type counters struct {
	appends, events, conflicts, published, eager, relayed atomic.Int64
}

// Stats are running totals since New.
type Stats struct {
	Appends   int64 // successful appends
	Events    int64 // events in them
	Conflicts int64 // appends repeated because another replica was first
	Published int64 // notifications the bus acknowledged
	Eager     int64 // commands handed over without a notification
	Relayed   int64 // events the stream of events has taken from here
}

// Stats returns the totals.
func (p *Plane) Stats() Stats {
	return Stats{
		Appends:   p.counters.appends.Load(),
		Events:    p.counters.events.Load(),
		Conflicts: p.counters.conflicts.Load(),
		Published: p.counters.published.Load(),
		Eager:     p.counters.eager.Load(),
		Relayed:   p.counters.relayed.Load(),
	}
}
