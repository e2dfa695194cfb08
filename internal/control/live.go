package control

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// foldPage is how many events are read at a time when a state is folded.
const foldPage = 1000

// live is the folded state of one execution between passes. Only the
// goroutine of the execution's mailbox touches state; the rest never changes
// and may be read by anybody who finds it in the cache.
type live struct {
	state   *engine.State
	program *engine.Program // nil when the catalog entry cannot be run
	broken  error           // why program is nil
	trace   json.RawMessage
}

// open finds the state of an execution in the cache or folds it from the log;
// fresh tells that it was folded just now. NotFound when it never started.
func (p *Plane) open(ctx context.Context, id event.ID) (lv *live, fresh bool, err error) {
	if lv, ok := p.states.Get(id); ok {
		p.metrics.StatesBuilt.Inc(obs.StateCached, obs.OK)
		return lv, false, nil
	}
	if lv, ok := p.recent.Get(id); ok {
		if err := p.stillKept(ctx, id, lv.state); err != nil {
			return nil, false, err
		}
		p.metrics.StatesBuilt.Inc(obs.StateCached, obs.OK)
		return lv, false, nil
	}
	began := p.o.Clock()
	defer func() {
		p.metrics.StatesBuilt.Inc(obs.StateFolded, outcome(err))
		p.phase(obs.PhaseLoad, began)
	}()
	lv = &live{state: engine.NewState(id)}
	if err := p.catchUp(ctx, id, lv.state); err != nil {
		return nil, false, err
	}
	if !lv.state.Started() {
		return nil, false, p.missing(ctx, id)
	}
	lv.trace = lv.state.Trace()
	what, err := p.runnable(ctx, EntryRef{CatalogID: lv.state.Summary().CatalogID})
	switch {
	case err == nil:
		lv.program = what.program
	case event.CodeOf(err) == event.Unavailable:
		return nil, false, err
	}
	// A playbook that cannot be compiled any more must not keep its execution
	// from being looked at or cancelled.
	lv.broken = err
	return lv, true, nil
}

// catchUp applies what was appended after the state's sequence.
func (p *Plane) catchUp(ctx context.Context, id event.ID, s *engine.State) error {
	for {
		events, err := p.store.Events(ctx, id, s.Seq(), foldPage)
		if err != nil {
			return storeError("read events", err)
		}
		for i := range events {
			s.Apply(&events[i])
		}
		if len(events) < foldPage {
			return nil
		}
	}
}

// stillKept refuses an ended execution this process remembers and another one
// has removed since. None is removed in the first moments after its end, when
// most of the questions come.
func (p *Plane) stillKept(ctx context.Context, id event.ID, s *engine.State) error {
	if p.now().Sub(s.Summary().EndedAt) < LeastRetention/2 {
		return nil
	}
	return p.notRemoved(ctx, id)
}

// notRemoved refuses an execution that was removed, and forgets it.
func (p *Plane) notRemoved(ctx context.Context, id event.ID) error {
	at, err := p.store.RemovedAt(ctx, id)
	switch {
	case err == nil:
		p.drop(id)
		return removedExecution(id, at)
	case errors.Is(err, store.ErrNotFound):
		return nil
	}
	return storeError("look for a removed execution", err)
}

// endedKept is how many ended executions stay folded.
const endedKept = 64

// keep puts a state where the next pass finds it. Ended executions make room
// for others: hardly anybody asks for them again after the first moment.
func (p *Plane) keep(id event.ID, lv *live) {
	if lv.state.Final() {
		p.states.Drop(id)
		p.recent.Put(id, lv)
		return
	}
	p.states.Put(id, lv)
}

// drop forgets a state that may not be what the log says.
func (p *Plane) drop(id event.ID) {
	p.states.Drop(id)
	p.recent.Drop(id)
}

// storeError makes a coded error of what a store returned: without a code of
// its own it is Unavailable, because trying again is all a caller can do.
func storeError(verb string, err error) error {
	if _, coded := errors.AsType[*event.Error](err); coded {
		return err
	}
	return &event.Error{
		Code: event.Unavailable, Message: "the event store did not answer (" + verb + ")",
		Remedy: "try again", Err: err,
	}
}
