package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Statuses of outbox rows.
const (
	OutboxPending   = "PENDING"
	OutboxInFlight  = "IN_FLIGHT"
	OutboxPublished = "PUBLISHED"
	OutboxFailed    = "FAILED"
	OutboxDead      = "DEAD" // given up; never removed by itself
)

// OutboxRow is an event that waits to be published. Its content is read from
// the log, where it is stored once.
type OutboxRow struct {
	ID       int64 // ascending in the order the events of an execution were appended
	Event    event.Event
	Path     string // of the execution
	Attempts int    // claims so far, this one included
}

// OutboxClaim asks for rows to publish.
type OutboxClaim struct {
	Token       string // fences the claim: later calls must name it
	Now         time.Time
	Lease       time.Duration // rows claimed longer ago than this may be claimed again
	MaxAttempts int           // rows claimed as often as this become DEAD instead; 0 = never
	Limit       int
}

// OutboxCounts is the state of the outbox.
type OutboxCounts struct {
	Ready     int64 // due, whether or not another row of its execution goes first
	Waiting   int64 // failed and not yet due again
	InFlight  int64
	Published int64
	Dead      int64
	Oldest    time.Time // creation of the oldest row that is neither published nor dead; zero without one
	Reclaimed int64     // claims taken over from a publisher that did not report, since the process began
}

// Outbox is the queue of events to publish, filled by Append with Publish set.
// Rows of one execution are claimed in order: as long as one is in flight under
// another token or waits to be tried again, those behind it are not handed out.
type Outbox interface {
	// ClaimOutbox takes the oldest rows that are due, ascending by ID.
	ClaimOutbox(ctx context.Context, c OutboxClaim) ([]OutboxRow, error)
	// MarkPublished ends rows. With a token only those still claimed under it
	// count; without one any that is not published, dead ones too. It returns how
	// many changed.
	MarkPublished(ctx context.Context, token string, ids []int64, now time.Time) (int, error)
	// MarkFailed makes a row wait until the given time. False when it is not
	// claimed under the token (any claim, when token is empty).
	MarkFailed(ctx context.Context, token string, id int64, reason string, until time.Time) (bool, error)
	// ReleaseOutbox gives rows claimed under the token back as if they had not
	// been claimed, and returns how many.
	ReleaseOutbox(ctx context.Context, token string, ids []int64) (int, error)
	// CountOutbox counts rows; limits as in a claim decide what is ready.
	CountOutbox(ctx context.Context, now time.Time, lease time.Duration) (OutboxCounts, error)
	// PurgeOutbox removes rows published before the given time, at most limit.
	PurgeOutbox(ctx context.Context, before time.Time, limit int) (int, error)
}
