// Package worker runs commands: it claims them, has them executed, reports how
// they ended and keeps their leases alive meanwhile. It must not know how a
// command is executed, what a workflow is, or where events are stored.
package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
)

// Plane is the control plane as a worker sees it, in this process or across
// the network. Errors are coded; an uncoded one counts as a network failure.
type Plane interface {
	// Claim gives the right to run a command. It is a conflict when another
	// worker has it or nobody needs it any more.
	Claim(ctx context.Context, r event.ClaimRequest) (*event.Command, error)
	Report(ctx context.Context, r event.Report) (event.ReportAnswer, error)
	// Heartbeat renews leases; there is one answer for each beat, in order.
	// Cancel with a lease means that the execution was cancelled, Cancel
	// without one that the claim was lost.
	Heartbeat(ctx context.Context, beats []event.Heartbeat) ([]event.HeartbeatAnswer, error)
	// Release gives back a claim whose command did not finish.
	Release(ctx context.Context, b event.Heartbeat) error
}

// Runner executes one command and returns the event that ends it or parks it,
// without an id. One without a type says that the command could not begin for a
// reason that will pass; it is given back. It returns soon after ctx ends; context.Cause tells why that happened.
type Runner interface {
	Run(ctx context.Context, cmd *event.Command, log io.Writer) event.Incoming
}

// Why a command's context ended before the command did.
var (
	ErrCancelled = errors.New("the execution was cancelled")
	ErrClaimLost = errors.New("the claim was lost")
	ErrShutdown  = errors.New("the worker is shutting down")
)

// Options describe a worker. ID, Plane, Runner and IDs are required.
type Options struct {
	ID    string
	Pools []string // required with Bus
	Slots int      // commands that run at the same time; default 4
	// SlotsCPU bounds how many of them compute here (python, shell, duckdb, and
	// sequences of tools with one of these), SlotsIO how many are of other kinds;
	// 0 for no bound.
	SlotsCPU, SlotsIO int

	Plane  Plane
	Runner Runner
	Bus    bus.Bus // nil: commands come through Deliver only
	IDs    func() event.ID

	// Lease is how long a claim lasts when the plane does not say; default
	// 60 s. Heartbeat is the time between renewals; default 15 s.
	Lease     time.Duration
	Heartbeat time.Duration
	// Pulse is how often the registry hears that the worker is there; default 15 s.
	Pulse time.Duration
	// Drain is how long Run waits for running commands when it is told to
	// end; default 25 s, negative for not at all.
	Drain time.Duration

	// Registry, when set, is told of the worker while it runs; Registration is
	// what it says of itself there, without its name.
	Registry     Registry
	Registration event.Registration

	// OnFree, when set, is called after a slot became free, so that whoever
	// delivers knows when to try again. It must not block.
	OnFree func()
	// Spool, when set, keeps reports that the plane could not be given in time.
	Spool *Spool
	// Metrics are where the worker counts; default a registry nobody sees.
	Metrics *obs.WorkerMetrics
	// Output, when set, is where the live output of a command goes.
	Output func(cmd *event.Command) CommandOutput

	Logger *slog.Logger
	Clock  func() time.Time
}

const (
	// grace is how long interrupted commands and their last calls may take.
	grace = 10 * time.Second
	// progressInterval is how often the bus hears that a command still runs.
	progressInterval = 20 * time.Second
)

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.ID == "":
		return o, errors.New("configure worker: no id")
	case o.Plane == nil || o.Runner == nil || o.IDs == nil:
		return o, errors.New("configure worker: plane, runner and id generator are required")
	case o.SlotsCPU < 0 || o.SlotsIO < 0:
		return o, event.Errorf(event.Invalid, "a worker cannot have %d slots for computing and %d for other kinds", o.SlotsCPU, o.SlotsIO)
	case o.Slots < 0:
		return o, event.Errorf(event.Invalid, "a worker cannot have %d slots", o.Slots)
	case o.Bus != nil && len(o.Pools) == 0:
		return o, &event.Error{
			Code: event.Invalid, Message: "the worker serves no pool",
			Remedy: "name at least one worker pool, for example shared",
		}
	}
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Lease, 60*time.Second)
	set(&o.Heartbeat, 15*time.Second)
	set(&o.Drain, 25*time.Second)
	set(&o.Pulse, pulse)
	if o.Slots == 0 {
		o.Slots = 4
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = obs.NewWorker(&obs.Registry{}, obs.WorkerVocabulary{})
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o, nil
}

// Worker runs commands on a fixed number of slots.
type Worker struct {
	options Options
	log     *slog.Logger
	started atomic.Bool

	// runs ends when running commands must stop, calls when the plane must
	// not be asked any more. Both outlive the context of Run, by design.
	runs      context.Context
	stopRuns  context.CancelCauseFunc
	calls     context.Context
	stopCalls context.CancelFunc

	claimFailures atomic.Int32  // in a row
	freed         chan struct{} // a slot may be free; for the puller
	paced         chan struct{} // pace changed; for the heartbeat
	introduced    chan struct{} // closed once the registry was told of us, or could not be
	leaving       chan struct{} // closed when the worker begins to drain
	hurry         chan struct{} // closed when it must not drain any longer
	hurried       sync.Once
	condition     condition
	replaying     sync.Mutex // orders deliveries from the spool

	mu       sync.Mutex // guards everything below
	free     int
	pace     time.Duration // between heartbeats
	draining bool
	idle     chan struct{} // closed once draining and all slots are free
	tasks    map[*task]struct{}
	begun    begun
	used     [classIO + 1]int // places taken, by class
	crowded  int              // notifications put off since a place became free
}

// New makes a worker. It accepts deliveries at once; Run keeps their leases.
func New(o Options) (*Worker, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &Worker{
		options: o, log: o.Logger.With("worker", o.ID),
		freed: make(chan struct{}, 1), paced: make(chan struct{}, 1), idle: make(chan struct{}),
		introduced: make(chan struct{}), leaving: make(chan struct{}), hurry: make(chan struct{}),
		free: o.Slots, pace: o.Heartbeat, tasks: make(map[*task]struct{}, o.Slots),
	}
	w.runs, w.stopRuns = context.WithCancelCause(context.Background())
	w.calls, w.stopCalls = context.WithCancel(context.Background())
	return w, nil
}

// ID is the name under which the worker claims.
func (w *Worker) ID() string { return w.options.ID }

// Serves tells whether the worker takes commands of a pool.
func (w *Worker) Serves(pool string) bool { return slices.Contains(w.options.Pools, pool) }

// Run works until ctx ends. Then it takes no more commands, waits for the
// running ones, interrupts those that take longer than Drain, gives back their
// claims and returns nil. It returns an error when the bus refuses the worker
// for good, and can be called once.
func (w *Worker) Run(ctx context.Context) error {
	if w.started.Swap(true) {
		return errors.New("run worker: it was started before")
	}
	w.log.Info("worker started", "slots", w.options.Slots, "pools", w.options.Pools)
	var beats sync.WaitGroup
	// Leases are kept until the last command has ended.
	beating, stopBeats := context.WithCancel(context.Background())
	beats.Go(func() { w.beatUntil(beating) })
	beats.Go(func() { w.enlisted(beating) })
	beats.Go(func() { w.replayUntil(w.calls) })
	leave, err := w.pull(ctx)
	w.shutDown()
	leave()
	stopBeats()
	beats.Wait()
	w.options.Metrics.Ready.Set(0)
	w.log.Info("worker ended")
	return err
}

// shutDown ends all work, in the order of growing impatience.
func (w *Worker) shutDown() {
	w.mu.Lock()
	w.draining = true
	w.checkIdleLocked()
	w.mu.Unlock()
	close(w.leaving)
	if !w.waitIdle(w.options.Drain, w.hurry) {
		w.log.Warn("interrupting commands that did not finish in time", "running", w.InFlight(), "execution_ids", executionsOf(w.running()), "drain", w.options.Drain)
	}
	w.stopRuns(ErrShutdown)
	finished := w.waitIdle(grace, nil)
	w.stopCalls()
	if !finished && !w.waitIdle(time.Second, nil) {
		w.log.Error("commands do not end; their leases will expire", "running", w.InFlight(), "execution_ids", executionsOf(w.running()))
	}
}

// waitIdle waits until nothing runs any more, for so long or until it is not
// worth waiting.
func (w *Worker) waitIdle(limit time.Duration, enough <-chan struct{}) bool {
	t := time.NewTimer(max(limit, 0))
	defer t.Stop()
	select {
	case <-w.idle:
		return true
	case <-t.C:
	case <-enough:
	}
	return false
}

// Hurry ends the time that running commands have to finish while the worker
// drains; they are interrupted at once. It may be called more than once.
func (w *Worker) Hurry() { w.hurried.Do(func() { close(w.hurry) }) }

// InFlight is the number of commands the worker holds a claim of.
func (w *Worker) InFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.tasks)
}
