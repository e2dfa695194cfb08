package control

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	sweepPublish = 256   // announcements one sweep makes at most
	sweepRows    = 1024  // rows one sweep looks at
	sweepMost    = 65536 // the same when nothing among the first was due
	repeatsKept  = 65536
	repeatMost   = time.Minute
	queryTime    = 30 * time.Second
	startMargin  = time.Minute // clocks differ: at start, "everything so far" reaches into the future
)

// sweepDispatch looks for commands that wait although somebody was told, and
// for commands whose worker is gone. Every replica does it; doubling each
// other's announcements does no harm.
func (p *Plane) sweepDispatch(ctx context.Context) {
	pending := rowWindow{limit: sweepRows}
	expired := rowWindow{limit: sweepRows}
	// After a start nothing is known about what was announced before.
	p.sweepPending(ctx, &pending, p.now().Add(startMargin))
	for sleep(ctx, jitter(p.o.Sweep)) {
		p.sweepPending(ctx, &pending, p.now().Add(-p.o.Republish))
		p.sweepExpired(ctx, &expired)
	}
}

// jitter spreads d by a fifth, so that replicas do not move in step.
func jitter(d time.Duration) time.Duration {
	return d*4/5 + rand.N(d*2/5+1)
}

// rowWindow is how many of the oldest rows a sweep asks for. When a full
// window holds nothing that is due, say because their pool has no workers, it
// grows, so that those behind them are not starved.
type rowWindow struct{ limit int }

func (w *rowWindow) next(rows, due int) {
	switch {
	case rows == w.limit && due == 0:
		w.limit = min(w.limit*2, sweepMost)
	case rows < w.limit/2:
		w.limit = max(w.limit/2, sweepRows)
	}
}

// sweepPending announces again what has waited too long.
func (p *Plane) sweepPending(ctx context.Context, w *rowWindow, before time.Time) {
	qctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	rows, err := p.store.PendingCommands(qctx, before, w.limit)
	if err != nil {
		p.sweepFailed(ctx, "pending commands", err)
	}
	nudged := make(map[event.ID]bool)
	due := p.sweepRowsDue(rows, func(row *store.Command, attempt int) {
		if p.localFree(row.Pool) && !nudged[row.ExecutionID] {
			nudged[row.ExecutionID] = true
			_ = p.tell(row.ExecutionID, &nudgeInput{ticket: newTicket()}) // a full mailbox decides anyway
		}
		p.out.offer(announcement{note: p.rowNote(row, attempt)})
	})
	w.next(len(rows), due)
}

// sweepExpired finds a new worker for commands whose lease is over, and gives
// up those that have had all their attempts.
func (p *Plane) sweepExpired(ctx context.Context, w *rowWindow) {
	qctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	rows, err := p.store.ExpiredCommands(qctx, p.now(), w.limit)
	if err != nil {
		p.metrics.Orphans.Inc(obs.Error)
		p.sweepFailed(ctx, "expired commands", err)
	}
	due := p.sweepRowsDue(rows, func(row *store.Command, attempt int) {
		last := row.Attempt >= row.MaxAttempts
		p.metrics.Orphans.Inc(obs.SweepCandidate)
		if last || p.localFree(row.Pool) {
			_ = p.tell(row.ExecutionID, &expiredInput{ticket: newTicket(), eventID: row.EventID})
		}
		if !last {
			p.metrics.Orphans.Inc(obs.SweepRequeued)
			p.out.offer(announcement{note: p.rowNote(row, attempt)})
		} else {
			p.metrics.Orphans.Inc(obs.SweepTerminated)
		}
	})
	if due == sweepPublish {
		p.metrics.Orphans.Inc(obs.SweepCapped)
	}
	w.next(len(rows), due)
}

// sweepRowsDue calls f for the rows whose turn it is, up to the bound of one
// sweep, and returns how many there were.
func (p *Plane) sweepRowsDue(rows []store.Command, f func(row *store.Command, attempt int)) int {
	now, due := p.now(), 0
	for i := range rows {
		if due == sweepPublish {
			break
		}
		if attempt, ok := p.repeatDue(rows[i].EventID, now); ok {
			due++
			f(&rows[i], attempt)
		}
	}
	return due
}

func (p *Plane) sweepFailed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		p.log.Warn("sweep skipped", "what", what, "error", err)
	}
}

// valueStays tells of a value that a sweep leaves for the next.
func (p *Plane) valueStays(ctx context.Context, r *store.Result, err error) {
	if ctx.Err() == nil {
		p.log.Warn("value not removed", "execution_id", r.ExecutionID, "step", r.SourceStep, "ref", r.Ref, "error", err)
	}
}

// localFree tells whether the local worker could start a command of the pool now.
func (p *Plane) localFree(pool string) bool {
	if p.local == nil || !p.local.Serves(pool) || !p.local.Reserve() {
		return false
	}
	p.local.Unreserve()
	return true
}

func (p *Plane) rowNote(row *store.Command, attempt int) event.Notification {
	n := event.Notification{
		ExecutionID: row.ExecutionID, EventID: row.EventID, CommandID: row.CommandID, Step: row.Step,
		ServerURL: p.o.ServerURL, Pool: row.Pool, Attempt: attempt, ToolKind: row.ToolKind,
	}
	if lv, ok := p.states.Get(row.ExecutionID); ok {
		n.Trace = p.commandTrace(lv.trace, row.EventID)
	}
	return n
}

// repeat is how often something was done again, and when it may be next.
type repeat struct {
	count int
	next  time.Time
}

// repeatDue tells whether a command may be announced again now, and as which
// announcement. The pause doubles each time.
func (p *Plane) repeatDue(id event.ID, now time.Time) (attempt int, ok bool) {
	r, _ := p.repeats.Get(id)
	if now.Before(r.next) {
		return 0, false
	}
	return p.repeatNow(id, now), true
}

// repeatNow counts an announcement that is made again whatever the pause.
func (p *Plane) repeatNow(id event.ID, now time.Time) int {
	r, _ := p.repeats.Get(id)
	r.count++
	r.next = now.Add(min(p.o.Republish<<min(r.count, 16), repeatMost))
	p.repeats.Put(id, r)
	return r.count + 1
}
