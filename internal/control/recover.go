package control

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

const (
	recoverPage = 256
	nudgeMost   = 10 * time.Minute
)

// sweepRecovery decides again on executions that are open and silent: first
// all of them, for the sake of what a crashed process left behind, later those
// nobody has written to for a while.
func (p *Plane) sweepRecovery(ctx context.Context) {
	p.nudgeOpen(ctx, p.now().Add(startMargin))
	for sleep(ctx, jitter(p.o.Recover)) {
		p.nudgeOpen(ctx, p.now().Add(-p.o.Recover))
	}
}

// nudgeOpen nudges open executions last written to before the given time, one
// after the other: recovery must not compete with live work.
func (p *Plane) nudgeOpen(ctx context.Context, before time.Time) {
	for after := event.ID(0); ; {
		ids, err := p.openPage(ctx, after, before)
		if err != nil {
			p.sweepFailed(ctx, "open executions", err)
		}
		for _, id := range ids {
			if !p.nudgeDue(id) {
				continue
			}
			if err := p.ask(ctx, id, &nudgeInput{ticket: newTicket()}); err != nil {
				if ctx.Err() != nil {
					return
				}
				p.log.Warn("execution not recovered", "execution_id", id, "error", err)
			}
		}
		if len(ids) < recoverPage {
			return
		}
		after = ids[len(ids)-1]
	}
}

func (p *Plane) openPage(ctx context.Context, after event.ID, before time.Time) ([]event.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	return p.store.OpenExecutions(ctx, after, before, recoverPage)
}

// nudgeDue tells whether it is time to look at a silent execution again. One
// that waits for a long-running tool is looked at less and less often.
func (p *Plane) nudgeDue(id event.ID) bool {
	now := p.now()
	r, _ := p.nudges.Get(id)
	if now.Before(r.next) {
		return false
	}
	r.count++
	r.next = now.Add(min(p.o.Recover<<min(r.count-1, 16), nudgeMost))
	p.nudges.Put(id, r)
	return true
}

// nudgeInput asks for a decision without news.
type nudgeInput struct{ ticket }

func (in *nudgeInput) apply(_ context.Context, ps *pass) error {
	if !ps.fresh {
		return errStale
	}
	ps.decide = true
	return nil
}

func (in *nudgeInput) settle(ps *pass) { ps.tend() }

// expiredInput deals with a command whose lease is over according to its row:
// whoever can start it in this pass takes it over, and after the last attempt
// it has failed.
type expiredInput struct {
	ticket
	eventID event.ID
}

func (in *expiredInput) apply(ctx context.Context, ps *pass) error {
	c := ps.state.CommandByEvent(in.eventID)
	if c == nil || !held(c.Status) {
		return nil
	}
	over, _, err := ps.leaseLost(ctx, c)
	if err != nil || !over {
		return err
	}
	if c.Attempt < c.MaxAttempts {
		ps.expired = append(ps.expired, c)
		return nil
	}
	ps.add(engine.Lost(ps.state, c, "lease expired", ps.env))
	ps.decide = true
	return nil
}
