package control

import (
	"context"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Verify checks the store of this plane; see the function Verify.
func (p *Plane) Verify(ctx context.Context, o VerifyOptions) (VerifyReport, error) {
	if !p.proof.TryLock() {
		return VerifyReport{}, errProving()
	}
	defer p.proof.Unlock()
	o.Store, o.Clock, o.Results = p.store, p.o.Clock, p.results
	return Verify(ctx, o)
}

// Rebuild writes the projections of this plane's store anew; see the function
// Rebuild. The states the plane keeps are folded from the log and stay right.
func (p *Plane) Rebuild(ctx context.Context, o RebuildOptions) (RebuildReport, error) {
	if !p.proof.TryLock() {
		return RebuildReport{}, errProving()
	}
	defer p.proof.Unlock()
	o.Store, o.Clock, o.Lease = p.store, p.o.Clock, p.o.Lease
	return Rebuild(ctx, o)
}

// errProving refuses a second check at a time: each reads the whole log.
func errProving() error {
	return &event.Error{
		Code: event.Unavailable, Message: "the database is being checked or rebuilt already",
		Remedy: "try again when that has ended", Reason: "proof_running",
	}
}

// Migrate brings the schema of the store up to date.
func (p *Plane) Migrate(ctx context.Context) error {
	if err := p.store.Migrate(ctx); err != nil {
		return storeError("migrate", err)
	}
	return nil
}

// SchemaState tells whether the store has the tables it needs.
func (p *Plane) SchemaState(ctx context.Context) (store.SchemaState, error) {
	state, err := p.store.SchemaState(ctx)
	if err != nil {
		return store.SchemaState{}, storeError("look at the tables", err)
	}
	return state, nil
}
