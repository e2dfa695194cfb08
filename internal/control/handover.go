package control

import (
	"cmp"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
)

const (
	maxEager = 64 // commands one report may ask for
	maxLocal = 64 // commands the local worker takes in one pass
)

// taker is somebody who can start a command now: a worker that said so in its
// report, or the local worker when report is nil.
type taker struct {
	worker string
	report *reportInput
}

// handOver gives the oldest waiting commands to those who can start them at
// once, and returns the claim events this takes. A command issued in this very
// attempt needs none: who runs it is written into its command.issued event.
func (ps *pass) handOver() []event.Event {
	if ps.live.program == nil || ps.state.Final() {
		return nil
	}
	local := ps.p.local
	if local != nil && !local.Serves(ps.state.Pool()) {
		local = nil
	}
	want := len(ps.takers)
	if local != nil || slices.ContainsFunc(ps.takers, taker.choosy) {
		want += maxLocal
	}
	if want == 0 {
		return nil
	}
	var claims []event.Event
	for _, c := range ps.waiting(want) {
		at, t, ok := ps.nextTaker(local, c.Kind)
		if !ok {
			continue // somebody may have a slot for one of another kind
		}
		e, appended, ok := ps.give(c, t.worker)
		if !ok {
			if t.report == nil {
				unreserve(local, c.Kind)
			}
			continue
		}
		if appended {
			claims = append(claims, e)
		}
		ps.handed++
		if !slices.Contains(ps.expired, c) && !slices.Contains(ps.released, c) {
			ps.spared++
		}
		if t.report == nil {
			ps.mine = append(ps.mine, c)
			continue
		}
		t.report.handed = append(t.report.handed, c)
		ps.takers = slices.Delete(ps.takers, at, at+1)
	}
	return claims
}

// waiting lists up to n commands that may be handed over, oldest first.
func (ps *pass) waiting(n int) []*engine.Command {
	pending := ps.state.Pending(n)
	if len(ps.expired) == 0 {
		return pending
	}
	return append(slices.Clone(ps.expired), pending...)
}

// nextTaker is the next report that asked for a command of the kind, with its
// place in the list, or the local worker with a slot reserved. It leaves the
// report in the list until the command is given.
func (ps *pass) nextTaker(local LocalWorker, kind string) (int, taker, bool) {
	for i, t := range ps.takers {
		if !slices.Contains(t.report.not, kind) {
			return i, t, true
		}
	}
	if local == nil || len(ps.mine) >= maxLocal || !reserve(local, kind) {
		return 0, taker{}, false
	}
	return 0, taker{worker: local.ID()}, true
}

// choosy tells whether the taker has no slot for some kinds.
func (t taker) choosy() bool { return t.report != nil && len(t.report.not) > 0 }

// ClassedWorker is a local worker that has not the same slots for all kinds of
// tools. Deliver then fills a slot that was reserved for the command's kind.
type ClassedWorker interface {
	ReserveFor(kind string) bool
	UnreserveFor(kind string)
}

func reserve(w LocalWorker, kind string) bool {
	if c, ok := w.(ClassedWorker); ok {
		return c.ReserveFor(kind)
	}
	return w.Reserve()
}

func unreserve(w LocalWorker, kind string) {
	if c, ok := w.(ClassedWorker); ok {
		c.UnreserveFor(kind)
		return
	}
	w.Unreserve()
}

// give makes worker the holder of c. The event is part of the batch only when
// appended is set.
func (ps *pass) give(c *engine.Command, worker string) (e event.Event, appended, ok bool) {
	lease := ps.env.Now.Add(ps.p.o.Lease)
	if slices.Contains(ps.plan.Issued, c) {
		ps.plan.Handover(ps.state, c, worker, lease, ps.env.Now)
		return event.Event{}, false, true
	}
	expired := slices.Contains(ps.expired, c)
	if expired && slices.Contains(ps.changed, c) {
		return event.Event{}, false, false // in this very pass somebody took it over, or its holder was heard of
	}
	e, err := ps.claim(c, worker, expired, ps.p.o.Lease)
	if err != nil {
		return event.Event{}, false, false
	}
	if eff := ps.state.Apply(&e); eff.Command != nil {
		ps.changed = append(ps.changed, eff.Command)
	}
	return e, true, true
}

// claim makes a claim event. expired tells that the projection says the lease
// is over although the fold still believes in it.
func (ps *pass) claim(c *engine.Command, worker string, expired bool, lease time.Duration) (event.Event, error) {
	env := ps.env
	env.Lost = ps.losses[c.EventID]
	if expired && held(c.Status) && !env.Now.After(c.LeaseUntil) {
		env.Now = c.LeaseUntil.Add(1)
	}
	e, err := engine.Claim(ps.state, c, worker, ps.env.Now.Add(lease), env)
	if err == nil {
		ps.forfeit(c, cmp.Or(env.Lost, "its lease ended"))
		e.CreatedAt = ps.env.Now
	}
	return e, err
}

// deliver fills the local worker's reserved slots after the commit.
func (ps *pass) deliver() {
	ps.p.counters.eager.Add(int64(ps.handed))
	ps.p.metrics.Published.Add(float64(ps.handed), obs.ByHandover, poolOf(ps.state.Pool()))
	mine := ps.mine
	ps.mine = nil
	for _, c := range mine {
		w, err := ps.wire(c)
		if err != nil {
			ps.undelivered(c, err)
			unreserve(ps.p.local, c.Kind)
			continue
		}
		ps.p.local.Deliver(w)
	}
}

// giveBackSlots frees what was reserved for an attempt that did not become durable.
func (ps *pass) giveBackSlots() {
	for _, c := range ps.mine {
		unreserve(ps.p.local, c.Kind)
	}
	ps.mine = nil
}
