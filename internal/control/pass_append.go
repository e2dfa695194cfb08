package control

import (
	"context"
	"errors"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// append stores the attempt. When the store does not say whether it took
// effect, the log is asked.
func (ps *pass) append(ctx context.Context) error {
	if err := failpoint.Hit(failpoint.AppendBefore); err != nil {
		return err
	}
	row := executionRow(ps.state.Summary())
	publish := ps.p.publishes(row.Path)
	began := ps.p.o.Clock()
	err := ps.p.store.Append(ctx, store.Batch{
		Execution: row,
		Publish:   publish,
		Expected:  ps.began,
		Events:    ps.events,
		Commands:  ps.commandRows(),
		Results:   ps.results(),
		Claim:     ps.claimed(),
	})
	ps.p.phase(obs.PhaseAppend, began)
	if err == nil {
		err = failpoint.Hit(failpoint.AppendAfter)
	}
	if err != nil {
		if !unknownOutcome(err) || !ps.tookEffect(ctx) {
			return err
		}
	}
	ps.p.counters.appends.Add(1)
	ps.p.counters.events.Add(int64(len(ps.events)))
	ps.p.stored(ps.events, publish)
	if publish {
		ps.p.relay.wake()
	}
	return nil
}

// unknownOutcome tells whether an append may have happened despite its error.
func unknownOutcome(err error) bool {
	if _, known := errors.AsType[*store.ClaimedError](err); known {
		return false
	}
	switch event.CodeOf(err) {
	case event.Unavailable, event.Internal:
		return true
	}
	return false
}

// tookEffect compares all ids: another replica may have stored the same report
// with decisions of its own.
func (ps *pass) tookEffect(ctx context.Context) bool {
	stored, err := ps.p.store.Events(ctx, ps.id, ps.began, len(ps.events))
	return err == nil && slices.EqualFunc(stored, ps.events, func(a, b event.Event) bool { return a.EventID == b.EventID })
}

// learnStored asks the log which of the events it holds already. A reported
// event that is there is left out of the next attempt; a different one under
// the same id (two generators clashed) is given a new id instead. Events of
// our own get new ids with the next attempt anyway.
func (ps *pass) learnStored(ctx context.Context) error {
	ids := make([]event.ID, len(ps.events))
	for i := range ps.events {
		ids[i] = ps.events[i].EventID
	}
	stored, err := ps.p.store.EventIDs(ctx, ps.id, ids)
	if err != nil {
		return storeError("look up events", err)
	}
	if ps.known == nil {
		ps.known = make(map[event.ID]struct{}, len(stored))
	}
	for _, id := range stored {
		there, err := ps.p.store.Event(ctx, ps.id, id)
		if err != nil {
			return storeError("look up event", err)
		}
		ps.known[id] = struct{}{}
		for _, in := range ps.inputs {
			if r, ok := in.(*reportInput); ok {
				r.restamp(&there, ps.p.o.IDs)
			}
		}
	}
	return nil
}

// divide deals with an error that trying again does not cure. When the store
// refuses a batch for what is in it, the inputs are tried one by one, so that
// only the offending one is refused.
func (ps *pass) divide(ctx context.Context, err error) error {
	if held, ok := errors.AsType[*store.ClaimedError](err); ok {
		return ps.notStarted(held)
	}
	if unknownOutcome(err) {
		ps.p.drop(ps.id)
		return storeError("append", err)
	}
	if len(ps.inputs) < 2 {
		return err
	}
	for _, in := range ps.inputs {
		one := &pass{p: ps.p, id: ps.id, live: ps.live, state: ps.state, inputs: []input{in}}
		if err := one.runOpened(ctx); err != nil {
			one.fail(err)
		}
	}
	ps.inputs = nil
	return nil
}
