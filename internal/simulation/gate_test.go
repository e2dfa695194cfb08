package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

var errDead = event.Errorf(event.Unavailable, "this plane is dead")

// gate is the store as one plane sees it: every operation waits for its turn,
// and after the plane's death nothing gets through.
type gate struct {
	store.Store // what is not overridden is not used by a running plane
	w           *world
	p           *plane
}

var _ store.Store = (*gate)(nil)

// actor is the key under which the context of a request names its worker.
type actor struct{}

// do makes an operation take its turn.
func (g *gate) do(ctx context.Context, op, what string, late func(), effect func() error) error {
	if g.p.dead.Load() {
		return errDead
	}
	who, _ := ctx.Value(actor{}).(string)
	t := &turn{
		name: fmt.Sprintf("%s %s %s %s", g.p.name, op, what, who), plane: g.p, op: op,
		notBefore: g.p.paced(op), late: late,
	}
	v, err := g.w.turns.enter(ctx, t)
	if err != nil {
		return err
	}
	if v.die == diesBefore {
		return errDead
	}
	g.p.went(op)
	err = effect()
	if v.die == diesAfter {
		return errDead
	}
	return err
}

// Planes draw the pauses between their sweeps, from four to six fifths of what
// they were told. Holding each sweep back until one and a half have passed
// makes the times the same in every run of a seed.
func (p *plane) paced(op string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch last := p.swept[op]; {
	case last.IsZero():
		return time.Time{}
	case op == "PendingCommands":
		return last.Add(sweepEvery * 3 / 2)
	case op == "DueExecutions":
		return last.Add(sweepEvery * 3 / 2)
	case op == "OpenExecutions":
		return last.Add(recoverEvery * 3 / 2)
	case op == "ClaimOutbox":
		return last.Add(relayEvery)
	}
	return time.Time{}
}

func (p *plane) went(op string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch op {
	case "PendingCommands", "ExpiredCommands": // one sweep makes both
		p.swept["PendingCommands"] = time.Now()
	case "OpenExecutions", "DueExecutions", "ClaimOutbox":
		p.swept[op] = time.Now()
	}
}

func (g *gate) Append(ctx context.Context, b store.Batch) error {
	what := fmt.Sprintf("%s +%d", g.w.name(b.Execution.ExecutionID), b.Expected)
	late := func() { _ = g.w.append(context.Background(), &b) }
	return g.do(ctx, "Append", what, late, func() error { return g.w.append(ctx, &b) })
}

func (g *gate) Events(ctx context.Context, id event.ID, after int64, limit int) (out []event.Event, err error) {
	err = g.do(ctx, "Events", fmt.Sprintf("%s +%d, %d", g.w.name(id), after, limit), nil, func() error {
		out, err = g.w.store.Events(ctx, id, after, limit)
		return err
	})
	return out, err
}

func (g *gate) EventIDs(ctx context.Context, id event.ID, ids []event.ID) (out []event.ID, err error) {
	err = g.do(ctx, "EventIDs", fmt.Sprint(g.w.name(id), ids), nil, func() error {
		out, err = g.w.store.EventIDs(ctx, id, ids)
		return err
	})
	return out, err
}

func (g *gate) Event(ctx context.Context, execution, id event.ID) (out event.Event, err error) {
	err = g.do(ctx, "Event", fmt.Sprint(g.w.name(execution), id), nil, func() error {
		out, err = g.w.store.Event(ctx, execution, id)
		return err
	})
	return out, err
}

func (g *gate) Execution(ctx context.Context, id event.ID) (out store.Execution, err error) {
	err = g.do(ctx, "Execution", g.w.name(id), nil, func() error {
		out, err = g.w.store.Execution(ctx, id)
		return err
	})
	return out, err
}

// RemovedAt needs no fault of its own: it is asked beside a read of the log,
// which has them, and nothing is removed here.
func (g *gate) RemovedAt(ctx context.Context, id event.ID) (time.Time, error) {
	return g.w.store.RemovedAt(ctx, id)
}

func (g *gate) OpenExecutions(ctx context.Context, after event.ID, before time.Time, limit int) (out []event.ID, err error) {
	asked := time.Now() // at a time the plane drew; before moves with it
	err = g.do(ctx, "OpenExecutions", "", nil, func() error {
		out, err = g.w.store.OpenExecutions(ctx, after, before.Add(time.Since(asked)), limit)
		return err
	})
	return out, err
}

func (g *gate) DueExecutions(ctx context.Context, now time.Time, limit int) (out []event.ID, err error) {
	asked := time.Now()
	err = g.do(ctx, "DueExecutions", "", nil, func() error {
		out, err = g.w.store.DueExecutions(ctx, now.Add(time.Since(asked)), limit)
		return err
	})
	return out, err
}

func (g *gate) Result(ctx context.Context, execution event.ID, ref string) (out store.Result, err error) {
	err = g.do(ctx, "Result", ref, nil, func() error {
		out, err = g.w.store.Result(ctx, execution, ref)
		return err
	})
	return out, err
}

func (g *gate) Command(ctx context.Context, execution, id event.ID) (out store.Command, err error) {
	err = g.do(ctx, "Command", g.w.name(id), nil, func() error {
		out, err = g.w.store.Command(ctx, execution, id)
		return err
	})
	return out, err
}

func (g *gate) PendingCommands(ctx context.Context, before time.Time, limit int) (out []store.Command, err error) {
	asked := time.Now()
	err = g.do(ctx, "PendingCommands", "", nil, func() error {
		out, err = g.w.store.PendingCommands(ctx, before.Add(time.Since(asked)), limit)
		return err
	})
	return out, err
}

func (g *gate) ExpiredCommands(ctx context.Context, now time.Time, limit int) (out []store.Command, err error) {
	err = g.do(ctx, "ExpiredCommands", "", nil, func() error {
		out, err = g.w.store.ExpiredCommands(ctx, now, limit)
		return err
	})
	return out, err
}

func (g *gate) RenewLeases(ctx context.Context, beats []event.Heartbeat, until time.Time) (out []bool, err error) {
	err = g.do(ctx, "RenewLeases", g.w.name(beats[0].EventID), nil, func() error {
		out, err = g.w.store.RenewLeases(ctx, beats, until)
		return err
	})
	return out, err
}

func (g *gate) ListExecutions(ctx context.Context, f store.ExecutionFilter) (out []store.Execution, err error) {
	err = g.do(ctx, "ListExecutions", g.w.name(f.ParentID), nil, func() error {
		out, err = g.w.store.ListExecutions(ctx, f)
		return err
	})
	return out, err
}

func (g *gate) Entry(ctx context.Context, id event.ID) (out store.Entry, err error) {
	err = g.do(ctx, "Entry", id.String(), nil, func() error {
		out, err = g.w.store.Entry(ctx, id)
		return err
	})
	return out, err
}

func (g *gate) EntryByPath(ctx context.Context, path string, version int) (out store.Entry, err error) {
	err = g.do(ctx, "EntryByPath", path, nil, func() error {
		out, err = g.w.store.EntryByPath(ctx, path, version)
		return err
	})
	return out, err
}

// mouth is the bus as one plane sees it: after its death it says nothing.
type mouth struct {
	bus.Bus
	p *plane
}

func (m mouth) Publish(ctx context.Context, notes ...event.Notification) error {
	if m.p.dead.Load() {
		return errDead
	}
	return m.Bus.Publish(ctx, notes...)
}

func (m mouth) PublishCancel(ctx context.Context, execution event.ID) error {
	if m.p.dead.Load() {
		return errDead
	}
	return m.Bus.PublishCancel(ctx, execution)
}
