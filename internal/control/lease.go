package control

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Heartbeat renews the leases of running commands, all in one write beside the
// log. Cancel is set where the run must stop: the claim is lost, or the
// execution has ended.
func (p *Plane) Heartbeat(ctx context.Context, beats []event.Heartbeat) ([]event.HeartbeatAnswer, error) {
	if len(beats) == 0 {
		return nil, nil
	}
	beats, err := p.completeBeats(ctx, beats)
	if err != nil {
		return nil, err
	}
	until := p.now().Add(p.o.Lease)
	renewed, err := p.store.RenewLeases(ctx, beats, until)
	if err != nil {
		return nil, storeError("renew leases", err)
	}
	answers := make([]event.HeartbeatAnswer, len(beats))
	over := make(map[event.ID]bool)
	for i, b := range beats {
		if !renewed[i] {
			answers[i].Cancel = true
			continue
		}
		ended, known := over[b.ExecutionID]
		if !known {
			if ended, err = p.ended(ctx, b.ExecutionID); err != nil {
				return nil, err
			}
			over[b.ExecutionID] = ended
		}
		answers[i] = event.HeartbeatAnswer{LeaseUntil: until, Cancel: ended}
	}
	return answers, nil
}

// completeBeats fills in what workers of other makes leave out: the attempt
// and the execution of the command they hold.
func (p *Plane) completeBeats(ctx context.Context, beats []event.Heartbeat) ([]event.Heartbeat, error) {
	out := make([]event.Heartbeat, len(beats))
	for i, b := range beats {
		if b.Attempt == 0 || b.ExecutionID == 0 {
			row, err := p.store.Command(ctx, b.ExecutionID, b.EventID)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, storeError("find command", err)
			}
			if err == nil {
				b.ExecutionID = row.ExecutionID
				if b.Attempt == 0 && b.WorkerID == row.WorkerID {
					b.Attempt = row.Attempt
				}
			}
		}
		out[i] = b
	}
	return out, nil
}

// ended tells whether an execution is over, by its cached state or its row. It
// does not enter the mailbox: heartbeats must not wait for decisions.
func (p *Plane) ended(ctx context.Context, id event.ID) (bool, error) {
	if _, open := p.states.Get(id); open {
		return false, nil // ended ones are not kept
	}
	row, err := p.store.Execution(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, storeError("read execution", err)
	}
	return event.IsFinal(row.Status), nil
}

// beatsFor is how long a registered worker may not have been heard of and still
// counts as beating; workers beat a few times within it.
const beatsFor = 30 * time.Second

// Why a command was taken from its holder; the log keeps it.
const (
	lostLease    = "lease_expired"
	lostInactive = "worker_inactive"
	lostStale    = "worker_heartbeat_stale"
	lostTimeout  = "healthy_worker_hard_timeout"
)

// quietLease is the lease of a worker that does not beat for its commands. One
// that is registered and beats for itself has a short one, which its beats
// renew; of the others nothing will be heard until the command ends.
func (p *Plane) quietLease(ctx context.Context, worker string) time.Duration {
	r, err := p.store.Runtime(ctx, event.KindWorkerPool, worker)
	if err != nil || p.now().Sub(r.Heartbeat) > beatsFor {
		return p.o.QuietLease // too long does less harm than too short: a tool that runs twice
	}
	return p.o.PoolLease
}

// leaseLost is leaseOver for those who take the command over: when the lease
// has ended, the pass knows why.
func (ps *pass) leaseLost(ctx context.Context, c *engine.Command) (over bool, until time.Time, err error) {
	over, until, err = ps.leaseOver(ctx, c)
	if err != nil || !over {
		return over, until, err
	}
	if ps.losses == nil {
		ps.losses = make(map[event.ID]string)
	}
	ps.losses[c.EventID] = ps.p.whyLost(ctx, c.Worker, c.ClaimedAt)
	return over, until, nil
}

// whyLost says what the registry knows of a worker whose lease has ended.
func (p *Plane) whyLost(ctx context.Context, worker string, claimed time.Time) string {
	r, err := p.store.Runtime(ctx, event.KindWorkerPool, worker)
	switch now := p.now(); {
	case err != nil: // not registered, or nobody knows
		return lostLease
	case !slices.Contains(workingStatuses, strings.ToLower(r.Status)):
		return lostInactive
	case now.Sub(r.Heartbeat) > beatsFor:
		return lostStale
	case now.Sub(claimed) >= p.o.HardTimeout:
		return lostTimeout
	}
	return lostLease
}

// workingStatuses are what workers that take commands say of themselves.
var workingStatuses = []string{"", "ready", "active", "online", "running", "busy"}
