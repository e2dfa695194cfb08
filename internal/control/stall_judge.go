package control

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Verdicts on executions that have been silent for long.
const (
	VerdictLiveClaim    = "skipped_live_claim"        // a worker holds one of its commands
	VerdictTimer        = "skipped_timer"             // it sleeps
	VerdictBusyPool     = "skipped_busy_pool"         // workers of its pool are busy with other commands
	VerdictCallback     = "skipped_awaiting_callback" // somebody outside has to call
	VerdictChild        = "skipped_child"             // an execution it waits for is open
	VerdictParentActive = "skipped_parent_active"     // what it works for gets on
	VerdictNudged       = "nudged"                    // it is decided on again first
	VerdictWouldFail    = "would_fail"
	VerdictFailed       = "failed"
)

// StalledExecution is a silent execution and what is made of it.
type StalledExecution struct {
	ExecutionID event.StringID `json:"execution_id"`
	Path        string         `json:"path"`
	IdleSeconds int64          `json:"idle_seconds"`
	Nudges      int            `json:"nudges"` // fruitless decisions by this process
	Verdict     string         `json:"verdict"`
	Cause       string         `json:"cause"`
}

// stallInput judges a silent execution and, when told to, ends a hopeless one.
// Judgement and end are one append: whoever writes in between wins.
type stallInput struct {
	ticket
	end      bool
	found    StalledExecution
	err      error // it could not be judged
	children []engine.Child
}

func (in *stallInput) apply(ctx context.Context, ps *pass) error {
	if !ps.fresh {
		return errStale
	}
	in.children = nil
	in.found, in.err = ps.judge(ctx)
	if errors.Is(in.err, errStale) {
		return in.err
	}
	if in.err != nil || !in.end || in.found.Verdict != VerdictWouldFail {
		return nil
	}
	in.children = ps.state.Children()
	for _, e := range engine.Stalled(ps.state, in.found.Cause, ps.env) {
		ps.add(e)
	}
	in.found.Verdict = VerdictFailed
	return nil
}

func (in *stallInput) settle(ps *pass) {
	if in.found.Verdict != VerdictFailed {
		return
	}
	ps.p.out.offer(announcement{cancelled: ps.id})
	for _, c := range in.children {
		if c.Request.Wait {
			ps.p.send(ps.id, ps.p.abandon(c.ID))
		}
	}
}

// judge finds a reason to leave a silent execution alone, or the cause of its
// silence.
func (ps *pass) judge(ctx context.Context) (StalledExecution, error) {
	sum := ps.state.Summary()
	idle := ps.env.Now.Sub(sum.UpdatedAt)
	nudges, _ := ps.p.nudges.Get(ps.id)
	x := StalledExecution{
		ExecutionID: event.StringID(ps.id), Path: sum.Path, IdleSeconds: int64(idle.Seconds()), Nudges: nudges.count,
	}
	if ps.state.Final() || idle < ps.p.o.Stall.Grace {
		return x, errWritten
	}
	var causes []string
	for _, f := range []func(context.Context, []engine.OpenWait) (verdict, cause string, err error){
		ps.waitsForCallback, ps.waitsForTimer, ps.waitsForChild, ps.waitsForParent, ps.waitsForWorker,
	} {
		verdict, cause, err := f(ctx, ps.state.Waits())
		if err != nil {
			return x, err
		}
		if verdict != "" {
			x.Verdict, x.Cause = verdict, cause
			return x, nil
		}
		if cause != "" {
			causes = append(causes, cause)
		}
	}
	switch {
	case ps.live.program == nil:
		causes = append(causes, "its playbook cannot be run any more: "+ps.live.broken.Error())
	case len(causes) == 0:
		causes = append(causes, "nothing is left to do and nothing ends it")
	}
	x.Cause = "no progress for " + words(idle) + ": " + strings.Join(causes, "; ")
	x.Verdict = VerdictNudged
	if nudges.count >= ps.p.o.Stall.Nudges && ps.p.watched(ps.env.Now) {
		x.Verdict = VerdictWouldFail
	}
	return x, nil
}

func (ps *pass) waitsForCallback(_ context.Context, waits []engine.OpenWait) (verdict, cause string, err error) {
	for _, w := range waits {
		if w.For == "callback" {
			return VerdictCallback, fmt.Sprintf("command %s of step %q waits until %s", w.Command.ID, w.Command.Step, w.What), nil
		}
	}
	return "", "", nil
}

func (ps *pass) waitsForTimer(context.Context, []engine.OpenWait) (verdict, cause string, err error) {
	if at := ps.state.WakeAt(); at.After(ps.env.Now) {
		return VerdictTimer, "its next timer is due at " + at.Format(time.RFC3339), nil
	}
	return "", "", nil
}

func (ps *pass) waitsForChild(ctx context.Context, waits []engine.OpenWait) (verdict, cause string, err error) {
	for _, w := range waits {
		if w.For != "child" {
			continue
		}
		row, err := ps.p.store.Execution(ctx, w.Child)
		switch {
		case errors.Is(err, store.ErrNotFound):
			cause = fmt.Sprintf("command %s of step %q waits for execution %s, which does not exist", w.Command.ID, w.Command.Step, w.Child)
		case err != nil:
			return "", "", storeError("read execution", err)
		case !event.IsFinal(row.Status):
			return VerdictChild, fmt.Sprintf("execution %s of playbook %s, which it waits for, is open", w.Child, row.Path), nil
		default:
			cause = fmt.Sprintf("command %s of step %q did not take notice of the end of execution %s", w.Command.ID, w.Command.Step, w.Child)
		}
	}
	return "", cause, nil
}

func (ps *pass) waitsForParent(ctx context.Context, _ []engine.OpenWait) (verdict, cause string, err error) {
	parent := ps.state.Summary().ParentExecutionID
	if parent == 0 {
		return "", "", nil
	}
	row, err := ps.p.store.Execution(ctx, parent)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", "", nil
	case err != nil:
		return "", "", storeError("read execution", err)
	case !event.IsFinal(row.Status) && ps.env.Now.Sub(row.UpdatedAt) < ps.p.o.Stall.Grace:
		return VerdictParentActive, "execution " + parent.String() + ", which started it, gets on", nil
	}
	return "", "", nil
}

// waitsForWorker looks at commands that somebody runs or should run.
func (ps *pass) waitsForWorker(ctx context.Context, waits []engine.OpenWait) (verdict, cause string, err error) {
	for _, w := range waits {
		c := w.Command
		switch {
		case w.For == "worker":
			busy, err := ps.p.busyPools(ctx, ps.env.Now)
			if err != nil {
				return "", "", err
			}
			if busy[ps.state.Pool()] {
				return VerdictBusyPool, fmt.Sprintf("command %s of step %q waits in pool %s, whose workers are busy", c.ID, c.Step, ps.state.Pool()), nil
			}
			cause = firstText(cause, fmt.Sprintf("command %s of step %q waits in pool %s, %s",
				c.ID, c.Step, ps.state.Pool(), ps.p.nobody(ctx, ps.state.Pool())))
		case held(c.Status):
			alive, until, err := ps.holderAlive(ctx, c)
			if err != nil {
				return "", "", err
			}
			if alive {
				return VerdictLiveClaim, fmt.Sprintf("worker %s runs command %s of step %q", c.Worker, c.ID, c.Step), nil
			}
			cause = firstText(cause, fmt.Sprintf("worker %s, which ran command %s of step %q in pool %s, has not been heard of since %s, and no other took it over",
				c.Worker, c.ID, c.Step, ps.state.Pool(), until.UTC().Format(time.RFC3339)))
		}
	}
	return "", cause, nil
}

// holderAlive tells whether the holder of a command beats for it, or for itself.
func (ps *pass) holderAlive(ctx context.Context, c *engine.Command) (alive bool, until time.Time, err error) {
	over, until, err := ps.leaseOver(ctx, c)
	if err != nil || !over {
		return !over, until, err
	}
	r, err := ps.p.store.Runtime(ctx, event.KindWorkerPool, c.Worker)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, until, nil
	case err != nil:
		return false, until, storeError("read runtime", err)
	}
	return ps.env.Now.Sub(r.Heartbeat) <= silence, until, nil
}

const (
	busyRows = 16384            // held commands that are looked at
	busyFor  = 30 * time.Second // the time for which the answer is good
)

// busyPools are the pools in which a worker runs something now. What waits
// there is queued, however long the queue is.
func (p *Plane) busyPools(ctx context.Context, now time.Time) (map[string]bool, error) {
	return p.busy.get(ctx, now, busyFor, func() (map[string]bool, error) {
		rows, err := p.store.ExpiredCommands(ctx, now.Add(farAway), busyRows) // all that are held
		if err != nil {
			return nil, storeError("list held commands", err)
		}
		busy := make(map[string]bool)
		for i := range rows {
			if rows[i].LeaseUntil.After(now) {
				busy[rows[i].Pool] = true
			}
		}
		return busy, nil
	})
}

// nobody says why a command waits in a pool, as far as is known here.
func (p *Plane) nobody(ctx context.Context, pool string) string {
	if p.local != nil && p.local.Serves(pool) {
		return "and no worker took it"
	}
	workers, err := p.store.ListRuntimes(ctx, store.RuntimeFilter{Kind: event.KindWorkerPool})
	if err != nil {
		return "and no worker took it"
	}
	for i := range workers {
		if p.now().Sub(workers[i].Heartbeat) <= silence {
			return "and no worker took it"
		}
	}
	return "which no worker serves"
}

func firstText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// words is a long duration as people say it: 26h, 1h30m, 45s.
func words(d time.Duration) string {
	d = d.Truncate(time.Second)
	if d >= time.Minute {
		d = d.Truncate(time.Minute)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
