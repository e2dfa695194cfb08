package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
)

// How the sweep for executions without progress acts.
const (
	StallEnforce = "enforce" // ends them
	StallReport  = "report"  // says in the log what it would end
	StallOff     = "off"
)

// StallFloor is the shortest silence that may count as a lack of progress. A
// healthy execution can be silent for minutes when everything is under load.
const StallFloor = time.Hour

const (
	stallScan   = 512 // open executions one sweep looks at
	stallFailed = 50  // ended ones that a report still shows
)

// StallOptions configure the sweep that ends executions which wait for nothing
// and get nowhere. Zero fields get the defaults named beside them.
type StallOptions struct {
	Mode     string        // enforce
	Grace    time.Duration // 24 h: silence that counts as a lack of progress; at least StallFloor
	Interval time.Duration // 5 min
	Limit    int           // 20 executions ended per sweep
	Nudges   int           // 5 fruitless decisions before the end
}

func (o StallOptions) withDefaults() (StallOptions, error) {
	if o.Mode == "" {
		o.Mode = StallEnforce
	}
	o.Grace = orDefault(o.Grace, 24*time.Hour)
	o.Interval = orDefault(o.Interval, 5*time.Minute)
	o.Limit = orDefault(o.Limit, 20)
	o.Nudges = orDefault(o.Nudges, 5)
	switch {
	case !slices.Contains([]string{StallEnforce, StallReport, StallOff}, o.Mode):
		return o, &event.Error{
			Code: event.Invalid, Message: fmt.Sprintf("%q is no way to deal with executions that do not progress", o.Mode),
			Remedy: "use enforce, report or off",
		}
	case o.Grace < StallFloor:
		return o, &event.Error{
			Code:    event.Invalid,
			Message: fmt.Sprintf("a grace of %s for executions without progress is too short: healthy ones can be silent for that long", o.Grace),
			Remedy:  "use at least " + words(StallFloor),
		}
	}
	return o, nil
}

// sweepStalled looks from time to time at open executions that have been
// silent for longer than the grace. Every replica does; the log decides who
// ends one.
func (p *Plane) sweepStalled(ctx context.Context) {
	if p.o.Stall.Mode == StallOff {
		return
	}
	p.awake.Store(p.now().UnixNano())
	for after := event.ID(0); p.nextStallSweep(ctx); {
		after = p.sweepStalledPage(ctx, after)
	}
}

// nextStallSweep waits until a sweep is due. When much more time has passed on
// the clock, the machine was asleep, and so may have been those it works with.
func (p *Plane) nextStallSweep(ctx context.Context) bool {
	before := p.now()
	if !sleep(ctx, jitter(p.o.Stall.Interval)) {
		return false
	}
	if now := p.now(); now.Sub(before) > 3*p.o.Stall.Interval {
		p.awake.Store(now.UnixNano())
	}
	return true
}

// watched tells whether this process has been up for so long that whoever else
// was down with it has had the time to come back.
func (p *Plane) watched(now time.Time) bool {
	return now.UnixNano()-p.awake.Load() >= int64(StallFloor)
}

// sweepStalledPage deals with a page of silent executions and returns where
// the next sweep goes on, so that those that wait for good reasons do not
// hide those behind them.
func (p *Plane) sweepStalledPage(ctx context.Context, after event.ID) event.ID {
	ids, err := p.silent(ctx, after, stallScan)
	if err != nil {
		p.metrics.Stalled.Inc(obs.Error)
		p.sweepFailed(ctx, "executions without progress", err)
		return after
	}
	hopeless := make([]StalledExecution, 0, p.o.Stall.Limit)
	for _, id := range ids {
		x, err := p.judge(ctx, id, false)
		p.judged(x, err)
		switch {
		case ctx.Err() != nil:
			return after
		case errors.Is(err, errWritten):
		case err != nil:
			p.log.Warn("execution without progress not judged", "execution_id", id, "error", err)
		case x.Verdict == VerdictNudged && p.nudgeDue(id):
			_ = p.ask(ctx, id, &nudgeInput{ticket: newTicket()}) // what it cannot do now, a later sweep does
		case x.Verdict == VerdictWouldFail:
			hopeless = append(hopeless, x)
		}
	}
	p.endStalled(ctx, hopeless)
	if len(ids) < stallScan {
		return 0
	}
	return ids[len(ids)-1]
}

// judged counts a silent execution by what is made of it.
func (p *Plane) judged(x StalledExecution, err error) {
	switch {
	case errors.Is(err, errWritten):
	case err != nil:
		p.metrics.Stalled.Inc(obs.Error)
	default:
		p.metrics.Stalled.Inc(obs.SweepCandidate)
		p.metrics.Stalled.Inc(x.Verdict)
	}
}

// endStalled ends those that have been silent longest.
func (p *Plane) endStalled(ctx context.Context, hopeless []StalledExecution) {
	slices.SortFunc(hopeless, func(a, b StalledExecution) int { return cmp.Compare(b.IdleSeconds, a.IdleSeconds) })
	for i, x := range hopeless {
		if i == p.o.Stall.Limit {
			p.metrics.Stalled.Add(float64(len(hopeless)-i), obs.SweepCapped)
			p.log.Warn("executions without progress deferred to the next sweep", "count", len(hopeless)-i)
			return
		}
		if p.o.Stall.Mode == StallReport {
			p.log.Warn("execution without progress would be ended", "execution_id", x.ExecutionID, "cause", x.Cause)
			continue
		}
		done, err := p.judge(ctx, event.ID(x.ExecutionID), true)
		switch {
		case err != nil && ctx.Err() == nil && !errors.Is(err, errWritten):
			p.metrics.Stalled.Inc(obs.Error)
			p.log.Warn("execution without progress not ended", "execution_id", x.ExecutionID, "error", err)
		case err == nil && done.Verdict == VerdictFailed:
			p.log.Warn("execution without progress ended", "execution_id", x.ExecutionID, "cause", done.Cause)
			p.stalled.add(done)
			p.metrics.Stalled.Inc(obs.SweepTerminated)
		}
	}
}

// silent lists open executions nobody has written to for longer than the grace.
func (p *Plane) silent(ctx context.Context, after event.ID, limit int) ([]event.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	return p.store.OpenExecutions(ctx, after, p.now().Add(-p.o.Stall.Grace), limit)
}

// judge tells how a silent execution stands. With end set, one that is
// hopeless is ended together with the judgement.
func (p *Plane) judge(ctx context.Context, id event.ID, end bool) (StalledExecution, error) {
	in := &stallInput{ticket: newTicket(), end: end}
	if err := p.ask(ctx, id, in); err != nil {
		return StalledExecution{}, err
	}
	return in.found, in.err
}

// errWritten tells that an execution is not silent any more.
var errWritten = errors.New("the execution gets on")
