package control

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	maintainEvery = 5 * time.Minute
	purgeBatch    = 1000
	purgePause    = 20 * time.Millisecond // lets others at the database between batches
	day           = 24 * time.Hour
)

// maintain removes what has served its time until ctx ends. Every replica does
// it; they take different rows, or find none.
func (p *Plane) maintain(ctx context.Context) {
	for sleep(ctx, jitter(maintainEvery)) {
		if _, err := p.purgeOutbox(ctx); err != nil {
			p.sweepFailed(ctx, "published outbox rows", err)
		}
		if _, err := p.purgeClaims(ctx); err != nil {
			p.sweepFailed(ctx, "claims of starts", err)
		}
	}
}

func (p *Plane) purgeOutbox(ctx context.Context) (int, error) {
	before := p.now().Add(-p.o.Outbox.Keep)
	return p.inBatches(ctx, "outbox", func(ctx context.Context) (int, error) { return p.store.PurgeOutbox(ctx, before, purgeBatch) })
}

func (p *Plane) purgeClaims(ctx context.Context) (int, error) {
	before := p.now()
	return p.inBatches(ctx, "subscription_dedup", func(ctx context.Context) (int, error) { return p.store.PurgeClaims(ctx, before, purgeBatch) })
}

// inBatches calls remove until it finds less than a batch, and counts the rows
// of the table that are gone.
func (p *Plane) inBatches(ctx context.Context, table string, remove func(ctx context.Context) (int, error)) (total int, err error) {
	for {
		qctx, cancel := context.WithTimeout(ctx, queryTime)
		n, err := remove(qctx)
		cancel()
		total += n
		p.metrics.Purged.Add(float64(n), table)
		if err != nil {
			return total, storeError("purge", err)
		}
		if n < purgeBatch {
			return total, nil
		}
		if !sleep(ctx, purgePause) {
			return total, gaveUp(ctx.Err())
		}
	}
}

// PurgeRequest says what has served its time; 0 keeps all of a kind.
type PurgeRequest struct {
	CommandDays    int // since commands of ended executions ended
	RuntimeMinutes int // since processes were last heard of
	EventDays      int // since executions ended, all that belongs to them with them
}

// Purged counts what was removed.
type Purged struct {
	Commands int `json:"commands_purged"`
	Runtimes int `json:"runtime_purged"`
	Events   int `json:"events_purged"`
	Outbox   int `json:"outbox_purged"`
	Claims   int `json:"claims_purged"`

	Executions int `json:"executions_purged"`
	Partitions int `json:"event_partitions_dropped"` // of the events
}

// Purge removes what has served its time, in batches. When it ends early, what
// was removed stays so and the rest goes with the next call.
func (p *Plane) Purge(ctx context.Context, r PurgeRequest) (done Purged, err error) {
	const most = 36500
	switch {
	case r.CommandDays < 0 || r.CommandDays > most:
		return done, event.Errorf(event.Invalid, "command_retention_days: want a number from 0 to %d", most)
	case r.RuntimeMinutes < 0 || r.RuntimeMinutes > most*24*60:
		return done, event.Errorf(event.Invalid, "runtime_stale_minutes: want a number from 0 to %d", most*24*60)
	case r.EventDays < 0 || r.EventDays > most:
		return done, event.Errorf(event.Invalid, "event_retention_days: want a number from 0 to %d", most)
	}
	now := p.now()
	if before := now.Add(-time.Duration(r.CommandDays) * day); r.CommandDays > 0 {
		done.Commands, err = p.inBatches(ctx, "command", func(ctx context.Context) (int, error) { return p.store.PurgeCommands(ctx, before, purgeBatch) })
		if err != nil {
			return done, err
		}
	}
	if r.RuntimeMinutes > 0 {
		if done.Runtimes, err = p.store.PurgeRuntimes(ctx, now.Add(-time.Duration(r.RuntimeMinutes)*time.Minute)); err != nil {
			return done, storeError("purge runtimes", err)
		}
		p.metrics.Purged.Add(float64(done.Runtimes), "runtime")
	}
	if done.Outbox, err = p.purgeOutbox(ctx); err != nil {
		return done, err
	}
	if done.Claims, err = p.purgeClaims(ctx); err != nil || r.EventDays == 0 {
		return done, err
	}
	return done, p.purgeEvents(ctx, r.EventDays, &done)
}

// purgeEvents removes executions that ended that long ago. Where the policy in
// force keeps some of them longer, it is followed.
func (p *Plane) purgeEvents(ctx context.Context, days int, done *Purged) error {
	age := time.Duration(days) * day
	report, err := p.Retain(ctx, RetentionRequest{Policy: p.o.Retention.Policy.orElse(age)})
	done.Executions, done.Partitions = report.Removed, report.Partitions
	done.Events = report.Rows["event"]
	return err
}
