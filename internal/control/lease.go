package control

import (
	"context"
	"errors"

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
	if _, open := p.states.get(id); open {
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
