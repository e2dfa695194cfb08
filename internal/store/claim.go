package store

import (
	"context"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// StartClaim reserves a key for the execution that starts with it, so that the
// same message starts one execution however often it arrives.
type StartClaim struct {
	Scope  event.ID // the subscription or parent, or a hash of who asks for what
	Key    string
	Window time.Duration // a claim as old as this is free to be taken
	At     time.Time     // now
}

// ClaimedError tells that another execution holds the claim of a start.
type ClaimedError struct{ ExecutionID event.ID }

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("execution %s holds the claim", e.ExecutionID)
}

// StartClaims reads the claims of starts; Append takes them.
type StartClaims interface {
	// ClaimHolder is the execution that holds the claim at c.At. ErrNotFound when it is free.
	ClaimHolder(ctx context.Context, c StartClaim) (event.ID, error)
	// Colocated tells whether an execution of this id can take the claim: both
	// must live in one database to be written by one transaction. Where it
	// cannot, another id can.
	Colocated(id event.ID, c StartClaim) bool
	// PurgeClaims removes claims whose window was over before the given time, at
	// most limit, and returns how many.
	PurgeClaims(ctx context.Context, before time.Time, limit int) (int, error)
}
