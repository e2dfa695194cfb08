package control

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// Claim gives a worker the right to run a command for the length of a lease.
// Repeating it while the lease lasts gives the same answer. NotFound when there
// is no such command; Conflict with Reason already_terminal, active_claim or
// execution_cancelled when it cannot be had.
func (p *Plane) Claim(ctx context.Context, r event.ClaimRequest) (*event.Command, error) {
	if r.WorkerID == "" {
		return nil, event.Errorf(event.Invalid, "worker_id is required to claim a command")
	}
	c, err := p.claimIn(ctx, r)
	if err != nil && r.ExecutionID != 0 && event.CodeOf(err) == event.NotFound {
		r.ExecutionID = 0 // a hint may be wrong, and who hears "not found" never asks again
		return p.claimIn(ctx, r)
	}
	return c, err
}

func (p *Plane) claimIn(ctx context.Context, r event.ClaimRequest) (*event.Command, error) {
	id, err := p.executionOf(ctx, r.ExecutionID, r.EventID)
	if err != nil {
		return nil, err
	}
	if err := p.overAlready(ctx, id, r.EventID); err != nil {
		return nil, err
	}
	lease := p.o.Lease
	if !r.Heartbeats {
		lease = p.quietLease(ctx, r.WorkerID)
	}
	in := &claimInput{ticket: newTicket(), eventID: r.EventID, worker: r.WorkerID, length: lease}
	began := p.tracing()
	if err = p.ask(ctx, id, in); err == nil {
		err = in.err
	}
	if p.o.Tracer != nil {
		p.answered(ctx, "command.claim", &in.served, began, err, obs.Text("worker", r.WorkerID))
	}
	if err != nil {
		return nil, err
	}
	return in.wire, nil
}

// overAlready refuses what its row shows to be over. Notifications outlive
// their commands, and a late one must not cost a fold of a finished log.
func (p *Plane) overAlready(ctx context.Context, execution, eventID event.ID) error {
	if _, cached := p.states.Get(execution); cached {
		return nil // the fold answers without the store
	}
	row, err := p.store.Command(ctx, execution, eventID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noCommand(eventID)
	case err != nil:
		return storeError("find command", err)
	case event.IsFinal(row.Status):
		return engine.Ended(row.Status)
	}
	return nil
}

// Command returns a command in the shape workers receive it, claimed or not.
// execution may be 0. NotFound when it is unknown or ended long ago.
func (p *Plane) Command(ctx context.Context, execution, eventID event.ID) (*event.Command, error) {
	id, err := p.executionOf(ctx, execution, eventID)
	if err != nil {
		return nil, err
	}
	var wire *event.Command
	err = p.look(ctx, id, func(ps *pass) error {
		c := ps.state.CommandByEvent(eventID)
		if c == nil {
			return noCommand(eventID)
		}
		var err error
		wire, err = ps.wire(c)
		return err
	})
	if err != nil && event.CodeOf(err) == event.NotFound {
		return p.issuedCommand(ctx, id, eventID)
	}
	if err != nil {
		return nil, err
	}
	return wire, nil
}

// issuedCommand shows a command the fold has forgotten, because it ended long
// ago, as far as the log tells: without the tool's configuration.
func (p *Plane) issuedCommand(ctx context.Context, execution, eventID event.ID) (*event.Command, error) {
	e, err := p.store.Event(ctx, execution, eventID)
	if errors.Is(err, store.ErrNotFound) || err == nil && e.Type != event.CommandIssued {
		return nil, noCommand(eventID)
	}
	if err != nil {
		return nil, storeError("look up event", err)
	}
	var c event.CommandContext
	if len(e.Context) > 0 {
		_ = json.Unmarshal(e.Context, &c) // what cannot be read is not shown
	}
	for _, part := range []*json.RawMessage{&c.ToolConfig, &c.Args, &c.RenderContext} {
		if len(*part) == 0 {
			*part = json.RawMessage("{}")
		}
	}
	return &event.Command{
		EventID: eventID, ExecutionID: execution, NodeID: e.NodeName, NodeName: e.NodeName, Action: e.NodeType, Context: c,
		Meta: event.CommandMeta{
			CommandID: e.CommandID, Step: e.NodeName, ToolKind: e.NodeType,
			ExecutionID: event.StringID(execution), CatalogID: event.StringID(e.CatalogID),
		},
	}, nil
}

// executionOf finds the execution of a command when the caller did not name it.
func (p *Plane) executionOf(ctx context.Context, execution, eventID event.ID) (event.ID, error) {
	if execution != 0 {
		return execution, nil
	}
	row, err := p.store.Command(ctx, 0, eventID)
	if errors.Is(err, store.ErrNotFound) {
		return 0, noCommand(eventID)
	}
	if err != nil {
		return 0, storeError("find command", err)
	}
	return row.ExecutionID, nil
}

func noCommand(eventID event.ID) error {
	return event.Errorf(event.NotFound, "command.issued event not found: %s", eventID)
}

type claimInput struct {
	ticket
	eventID event.ID
	worker  string
	length  time.Duration // of the lease
	served  served

	command *engine.Command
	lease   time.Time
	wire    *event.Command
	err     error
}

func (in *claimInput) apply(ctx context.Context, ps *pass) error {
	in.command = nil
	in.served.note(ps, in.eventID)
	if ps.live.program == nil {
		return ps.live.broken
	}
	c := ps.state.CommandByEvent(in.eventID)
	if c == nil {
		return ps.forgotten(ctx, in.eventID)
	}
	expired, lease, err := ps.leaseLost(ctx, c)
	if err != nil {
		return err
	}
	e, err := ps.claim(c, in.worker, expired, in.length)
	switch {
	case errors.Is(err, engine.ErrHeld):
		in.command, in.lease = c, lease
		return nil
	case err != nil:
		return err
	}
	ps.add(e)
	in.command, in.lease = c, ps.env.Now.Add(in.length)
	return nil
}

func (in *claimInput) settle(ps *pass) {
	_ = failpoint.Hit(failpoint.ClaimDurable)
	switch in.wire, in.err = ps.wire(in.command); {
	case in.err == nil:
		in.wire.Status, in.wire.LeaseUntil = "ok", in.lease
	case event.CodeOf(in.err) != event.Unavailable: // who claims again gets the same command
		ps.undelivered(in.command, in.err)
	}
}

// forgotten explains a command the fold does not know: never issued, or ended
// so long ago that only its row remembers it.
func (ps *pass) forgotten(ctx context.Context, eventID event.ID) error {
	row, err := ps.p.store.Command(ctx, ps.id, eventID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noCommand(eventID)
	case err != nil:
		return storeError("find command", err)
	case !event.IsFinal(row.Status):
		return ps.stale()
	}
	return engine.Ended(event.StatusCompleted)
}

// leaseOver tells whether the lease of a held command has ended, and when it
// ends. Heartbeats renew leases in the projection only, so it is asked; the
// fold learns of renewals.
func (ps *pass) leaseOver(ctx context.Context, c *engine.Command) (over bool, until time.Time, err error) {
	if !held(c.Status) {
		return false, time.Time{}, nil
	}
	if slices.Contains(ps.changed, c) { // by its holder, in this very pass: the row does not know yet
		ps.state.ObserveLease(c, ps.env.Now.Add(ps.p.o.Lease))
		return false, c.LeaseUntil, nil
	}
	row, err := ps.p.store.Command(ctx, ps.id, c.EventID)
	if err != nil {
		return false, time.Time{}, storeError("find command", err)
	}
	if row.Attempt != c.Attempt || row.WorkerID != c.Worker || !held(row.Status) {
		return false, time.Time{}, ps.stale()
	}
	ps.state.ObserveLease(c, row.LeaseUntil)
	return !row.LeaseUntil.After(ps.env.Now), row.LeaseUntil, nil
}

// Release gives a claim back: the command waits for a worker again. Giving
// back what is not held any more does nothing.
func (p *Plane) Release(ctx context.Context, h event.Heartbeat) error {
	id, err := p.executionOf(ctx, h.ExecutionID, h.EventID)
	if err != nil {
		return err
	}
	err = p.ask(ctx, id, &releaseInput{ticket: newTicket(), beat: h})
	if errors.Is(err, errNotHeld) {
		return nil
	}
	return err
}

// errNotHeld refuses a release; as a refusal it is checked against the log.
var errNotHeld = errors.New("the command is not held by this worker")

type releaseInput struct {
	ticket
	beat event.Heartbeat
}

func (in *releaseInput) apply(_ context.Context, ps *pass) error {
	c := ps.state.CommandByEvent(in.beat.EventID)
	if c == nil || !held(c.Status) || c.Worker != in.beat.WorkerID ||
		in.beat.Attempt != 0 && in.beat.Attempt != c.Attempt {
		return errNotHeld
	}
	ps.forfeit(c, "it was given back")
	ps.add(engine.Release(ps.state, c, ps.env))
	ps.released = append(ps.released, c)
	return nil
}
