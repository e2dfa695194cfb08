package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	cleanupMost  = 1000  // executions one cleanup cancels, beside their children
	cleanupLooks = 10000 // executions it looks at
	cleanupPage  = 256
)

// CleanupRequest says what to cancel: open executions in which nothing has
// happened for that long.
type CleanupRequest struct {
	Silence time.Duration
	DryRun  bool // only find them
}

// CleanupAnswer lists what was cancelled, or would be.
type CleanupAnswer struct {
	Executions []event.ID
	Message    string
}

// Cleanup cancels open executions that stand still without a reason. Silence
// alone is none: a worker that renews its lease, a timer, an awaited call from
// outside and a child in which something happens all account for it. When ctx
// ends on the way, the answer tells what was done until then.
func (p *Plane) Cleanup(ctx context.Context, r CleanupRequest) (CleanupAnswer, error) {
	c := &sweepUp{
		cascade: cascade{
			p: p, since: p.now(), seen: make(map[event.ID]bool),
			r: CancelRequest{Reason: "nothing happened for " + r.Silence.String(), By: "cleanup", Cascade: true},
		},
		before: p.now().Add(-r.Silence), dry: r.DryRun,
	}
	err := c.run(ctx)
	if err != nil && (ctx.Err() == nil || len(c.cancelled) == 0) {
		return CleanupAnswer{}, err
	}
	word := "cancelled"
	if r.DryRun {
		word = "would be cancelled"
	}
	return CleanupAnswer{
		Executions: c.cancelled,
		Message:    fmt.Sprintf("%d executions %s, %d that are silent were looked at", len(c.cancelled), word, c.looked),
	}, nil
}

// sweepUp is one cleanup.
type sweepUp struct {
	cascade
	before time.Time
	dry    bool
	looked int
}

func (c *sweepUp) run(ctx context.Context) error {
	for after := event.ID(0); ; {
		ids, err := c.p.store.OpenExecutions(ctx, after, c.before, cleanupPage)
		if err != nil {
			return storeError("find open executions", err)
		}
		for _, id := range ids {
			if len(c.cancelled) >= cleanupMost || c.looked == cleanupLooks {
				return nil
			}
			c.looked++
			if err := c.consider(ctx, id); err != nil {
				return err
			}
		}
		if len(ids) < cleanupPage {
			return nil
		}
		after = ids[len(ids)-1]
	}
}

// consider cancels an execution if it stands still.
func (c *sweepUp) consider(ctx context.Context, id event.ID) error {
	still, err := c.p.standsStill(ctx, id, c.before, 0)
	switch {
	case err != nil && event.CodeOf(err) == event.NotFound:
		return nil // it is gone
	case err != nil || !still:
		return err
	case c.dry:
		c.cancelled = append(c.cancelled, id)
		return nil
	}
	return c.stop(ctx, id, c.before)
}

// stop cancels an execution and what it started, unless something happened in
// it meanwhile.
func (c *cascade) stop(ctx context.Context, id event.ID, before time.Time) error {
	err := c.p.ask(ctx, id, &cancelInput{ticket: newTicket(), r: c.r, silentSince: before})
	if errors.Is(err, errEnded) || errors.Is(err, errAwake) {
		return nil
	}
	if err != nil {
		return err
	}
	c.cancelled = append(c.cancelled, id)
	return c.children(ctx, id, 1)
}

// errAwake refuses to cancel for silence what has been written to since.
var errAwake = errors.New("something happened in the execution")

// standsStill tells whether nothing has happened in an execution since before and
// nothing accounts for that.
func (p *Plane) standsStill(ctx context.Context, id event.ID, before time.Time, depth int) (bool, error) {
	in := &stillInput{lookInput: lookInput{ticket: newTicket()}, before: before}
	if err := p.ask(ctx, id, in); err != nil || in.busy {
		return false, err
	}
	if depth == cascadeDepth {
		return true, nil
	}
	for _, child := range in.children {
		row, err := p.Execution(ctx, child)
		if event.CodeOf(err) == event.NotFound && err != nil {
			return false, nil // it is about to start
		}
		if err != nil {
			return false, err
		}
		if event.IsFinal(row.Status) {
			continue // its parent was not told; recovery does that
		}
		if still, err := p.standsStill(ctx, child, before, depth+1); err != nil || !still {
			return false, err
		}
	}
	return true, nil
}

// stillInput looks whether anything accounts for the silence of an execution.
type stillInput struct {
	lookInput
	before   time.Time
	busy     bool
	children []event.ID // it waits for
}

func (in *stillInput) apply(ctx context.Context, ps *pass) error {
	in.busy, in.children = false, nil
	if !ps.fresh {
		return errStale
	}
	sum := ps.state.Summary()
	if ps.state.Final() || !sum.UpdatedAt.Before(in.before) || sum.WakeAt.After(ps.env.Now) {
		in.busy = true
		return nil
	}
	awaited := make(map[string]bool)
	for _, c := range ps.state.Children() {
		in.children, awaited[c.Command] = append(in.children, c.ID), true
	}
	for _, c := range ps.state.OpenCommands() {
		over, _, err := ps.leaseOver(ctx, c)
		if err != nil {
			return err
		}
		if held(c.Status) && !over || c.Status == event.StatusWaiting && !awaited[c.ID] {
			in.busy = true
			return nil
		}
	}
	return nil
}
