package control

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	passTime   = 30 * time.Second // bound of one pass, retries included
	passTries  = 50               // attempts before callers are told to come back
	staleTries = 4                // attempts made because a row contradicts the state
	maxPause   = 50 * time.Millisecond
)

// errStale tells that the cached state is behind the log.
var errStale = errors.New("the cached state is behind the log")

// pass turns the inputs that wait for one execution into one append.
type pass struct {
	p      *Plane
	id     event.ID
	live   *live
	state  *engine.State
	inputs []input               // not yet answered
	fresh  bool                  // state is known to have caught up with the log in this pass
	cached bool                  // state came from the cache
	known  map[event.ID]struct{} // reported event ids the log already holds

	tries int

	// What one attempt collects; see reset.
	refusals  []error // of inputs[i]; nil when it was applied
	env       engine.Env
	began     int64 // sequence before the attempt
	decide    bool
	events    []event.Event
	changed   []*engine.Command
	seen      map[event.ID]struct{} // client-made event ids in events
	plan      engine.Plan
	issued    int // commands the plan issued, handed over or not
	takers    []taker
	expired   []*engine.Command   // lease is over, may be taken by a taker
	losses    map[event.ID]string // why the holders of commands lost them
	released  []*engine.Command   // pending again, to be announced
	mine      []*engine.Command   // for the local worker
	stored    []store.Result      // values inputs put beside the log
	unread    error               // a value beside the log could not be read
	forfeited []attempt           // holds of commands that ended without a result, for their spans
	handed    int
	spared    int  // of these, commands that were announced or issued, so that one announcement can be spared
	reported  bool // some report has been told how many commands the pass issued
}

// pass runs one pass and answers all its inputs.
func (p *Plane) pass(id event.ID, inputs []input) {
	ctx, cancel := context.WithTimeout(p.work, passTime)
	defer cancel()
	ps := &pass{p: p, id: id, inputs: inputs}
	defer func() {
		if ps.state != nil {
			ps.state.Lend(nil) // what the pass held goes with it
		}
		if r := recover(); r != nil {
			p.log.Error("pass panicked", "execution_id", id, "panic", r, "stack", string(debug.Stack()))
			ps.giveBackSlots()
			ps.fail(event.Errorf(event.Internal, "execution %s: internal error: %v", id, r))
		}
	}()
	if err := ps.run(ctx); err != nil {
		ps.fail(err)
	}
}

// run repeats attempts until one is durable. An error is for all inputs that
// have no answer yet.
func (ps *pass) run(ctx context.Context) error {
	if err := ps.open(ctx); err != nil {
		return err
	}
	return ps.runOpened(ctx)
}

func (ps *pass) runOpened(ctx context.Context) error {
	for ps.tries = 0; ; ps.tries++ {
		err := ps.attempt(ctx)
		if err == nil {
			return nil
		}
		ps.state.Rollback()
		ps.giveBackSlots()
		switch {
		case errors.Is(err, errStale):
		case errors.Is(err, store.ErrConflict):
			ps.p.counters.conflicts.Add(1)
		case errors.Is(err, store.ErrDuplicate):
			if err := ps.learnStored(ctx); err != nil {
				return err
			}
		default:
			return ps.divide(ctx, err)
		}
		if ps.tries == passTries {
			return &event.Error{
				Code: event.Unavailable, Message: "execution " + ps.id.String() + " is too busy",
				Remedy: "try again", Reason: "contention", Err: err,
			}
		}
		if err := ps.again(ctx); err != nil {
			return err
		}
	}
}

// open finds the state; a start brings its own. Whoever asked for an execution
// before its start came is told that there is none.
func (ps *pass) open(ctx context.Context) (err error) {
	start, starts := ps.inputs[0].(*startInput)
	if !starts {
		ps.live, ps.fresh, err = ps.p.open(ctx, ps.id)
		ps.cached = !ps.fresh
		if event.CodeOf(err) == event.NotFound && err != nil {
			if start = ps.onlyStart(err); start != nil {
				starts, err = true, nil
			}
		}
	}
	if starts {
		ps.live, ps.fresh, ps.cached = start.live, true, false
	}
	if err == nil {
		ps.state = ps.live.state
	}
	return err
}

// onlyStart answers all inputs but a start, if there is one among them.
func (ps *pass) onlyStart(err error) *startInput {
	for _, in := range ps.inputs {
		start, ok := in.(*startInput)
		if !ok {
			continue
		}
		for _, other := range ps.inputs {
			if other != in {
				other.answer(err)
			}
		}
		ps.inputs = []input{in}
		return start
	}
	return nil
}

// again waits a moment and brings the state up to date for the next attempt.
func (ps *pass) again(ctx context.Context) error {
	if ps.tries > 0 {
		pause := min(time.Millisecond<<min(ps.tries, 10), maxPause)
		if !sleep(ctx, rand.N(pause)) {
			return storeError("append", ctx.Err())
		}
	}
	seq := ps.state.Seq()
	if err := ps.p.catchUp(ctx, ps.id, ps.state); err != nil {
		return err
	}
	ps.fresh = true
	if ps.state.Seq() > seq {
		return nil
	}
	// What does not go on in the log may have ended elsewhere and been removed.
	return ps.p.notRemoved(ctx, ps.id)
}

// attempt applies, decides, hands over and appends once. On error the caller
// rolls back.
func (ps *pass) attempt(ctx context.Context) error {
	ps.reset()
	began, wasFinal := ps.p.o.Clock(), ps.state.Final()
	ps.state.Lend(ps.fetch(ctx))
	ps.state.Begin()
	if err := ps.applyInputs(ctx); err != nil {
		return err
	}
	if ps.decide && ps.live.program != nil && !ps.state.Final() {
		ps.plan = engine.Decide(ps.live.program, ps.state, ps.env)
		if ps.unread != nil {
			return storeError("read result", ps.unread)
		}
		ps.changed = append(ps.changed, ps.plan.Changed...)
		ps.issued = len(ps.plan.Issued)
		ps.released = append(ps.released, ps.plan.Woken...)
	}
	claims := ps.handOver()
	ps.p.phase(obs.PhaseDecide, began)
	ps.events = append(ps.events, ps.plan.Events...)
	ps.events = append(ps.events, claims...)
	if len(ps.events) > 0 {
		if err := ps.append(ctx); err != nil {
			return err
		}
	}
	ps.state.Commit()
	if !wasFinal {
		ps.finished()
	}
	ps.finish()
	return nil
}

func (ps *pass) reset() {
	ps.env = engine.Env{Now: ps.p.now(), NewID: ps.p.o.IDs, Fits: fitsForm}
	ps.began = ps.state.Seq()
	ps.decide, ps.reported, ps.handed, ps.spared, ps.issued = false, false, 0, 0, 0
	ps.events, ps.changed, ps.seen, ps.plan = nil, nil, nil, engine.Plan{}
	ps.takers, ps.expired, ps.released, ps.mine = nil, nil, nil, nil
	ps.stored, ps.unread, ps.forfeited = nil, nil, nil
}

// applyInputs applies each input and notes which are refused; they are told
// with everybody else, because what they were refused for may depend on inputs
// that are not durable yet. A refusal is believed only when the state has
// caught up with the log: another replica may have written what makes the
// input acceptable.
func (ps *pass) applyInputs(ctx context.Context) error {
	ps.refusals = make([]error, len(ps.inputs))
	for i, in := range ps.inputs {
		err := in.apply(ctx, ps)
		if err != nil && (errors.Is(err, errStale) || !ps.fresh) {
			return errStale
		}
		ps.refusals[i] = err
	}
	return nil
}

// stale asks for another attempt because a row contradicts the state. When
// that does not help, the input is refused for now.
func (ps *pass) stale() error {
	if ps.tries < staleTries {
		return errStale
	}
	return &event.Error{
		Code: event.Unavailable, Message: "the command changes hands right now", Remedy: "try again", Reason: "contention",
	}
}

// add applies one event to the state and puts it into the batch.
func (ps *pass) add(e event.Event) engine.Effect {
	ps.events = append(ps.events, e)
	eff := ps.state.Apply(&ps.events[len(ps.events)-1])
	if eff.Command != nil {
		ps.changed = append(ps.changed, eff.Command)
		woken := e.Type.Canonical() == event.CallDone || e.Type.Canonical() == event.CommandParked
		if woken && eff.Command.Status == event.StatusPending {
			ps.released = append(ps.released, eff.Command) // it was parked and goes on
		}
	}
	return eff
}

// finish answers and announces what has become durable.
func (ps *pass) finish() {
	if (len(ps.events) > 0 || ps.cached || !ps.idle()) && !ps.startedBefore() {
		ps.p.keep(ps.id, ps.live)
	}
	for i := 0; len(ps.inputs) > 0; i++ {
		in := ps.inputs[0]
		if ps.refusals[i] == nil {
			in.settle(ps)
		}
		ps.inputs = ps.inputs[1:]
		in.answer(ps.refusals[i])
	}
	ps.deliver()
	if len(ps.events) > 0 {
		ps.p.nudges.Drop(ps.id)
		ps.announce()
		ps.followUp()
		ps.record()
		ps.p.watchers.wake(ps.id, ps.state.Final())
	}
	ps.p.alarms.set(ps.id, ps.alarmAt())
}

// alarmAt is when the execution must be decided again. A timer that is due and
// did not fire, because the playbook cannot be run any more, is left to the sweep.
func (ps *pass) alarmAt() time.Time {
	at := ps.state.WakeAt()
	if ps.live.program == nil || !at.After(ps.env.Now) {
		return time.Time{}
	}
	return at
}

// startedBefore tells whether the pass came with a start that was refused. The
// playbook it brought need not be the one the execution runs.
func (ps *pass) startedBefore() bool {
	_, start := ps.inputs[0].(*startInput)
	return start && ps.refusals[0] != nil
}

// idle tells whether all inputs only looked whether something is due; such a
// look must not push busy executions out of the cache.
func (ps *pass) idle() bool {
	for _, in := range ps.inputs {
		switch in.(type) {
		case *nudgeInput, *stallInput:
		default:
			return false
		}
	}
	return true
}

// fail answers what has no answer yet.
func (ps *pass) fail(err error) {
	if event.CodeOf(err) == event.Internal {
		ps.p.drop(ps.id)
		ps.p.log.Error("pass failed", "execution_id", ps.id, "error", err)
	}
	inputs := ps.inputs
	ps.inputs = nil
	for _, in := range inputs {
		in.answer(err)
	}
}

// sleep waits for d and tells whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// wire puts together what a worker receives for a claimed command.
func (ps *pass) wire(c *engine.Command) (*event.Command, error) {
	if ps.live.program == nil {
		return nil, ps.live.broken
	}
	ps.unread = nil
	w, err := engine.Dispatch(ps.live.program, ps.state, c)
	if ps.unread != nil {
		return nil, storeError("read result", ps.unread)
	}
	if err != nil {
		return nil, fmt.Errorf("put command %s together: %w", c.ID, err)
	}
	w.Meta.Trace = ps.p.commandTrace(w.Meta.Trace, c.EventID)
	return w, nil
}
