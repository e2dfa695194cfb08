// Package bus wakes workers up. Messages are hints: they may be lost, doubled
// or reordered without harm, because the command projection is the queue of
// record and only a claim gives the right to run. It must not know the store.
package bus

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Bus carries command notifications to worker pools, and cancellations.
type Bus interface {
	// Publish announces commands. It returns once the broker has acknowledged
	// all of them, or an error naming the first that was not.
	Publish(ctx context.Context, notes ...event.Notification) error
	// Subscribe joins the consumer group of each pool. maxPending bounds how many
	// deliveries of this subscription may be unacknowledged.
	Subscribe(ctx context.Context, pools []string, maxPending int) (Subscription, error)
	// PublishCancel tells all workers that an execution was cancelled.
	PublishCancel(ctx context.Context, execution event.ID) error
	// WatchCancel calls f for each cancellation until the returned stop is called.
	WatchCancel(f func(execution event.ID)) (stop func(), err error)
	// Connected tells whether the broker is reachable now.
	Connected() bool
	Close() error
}

// Subscription hands out deliveries one at a time.
type Subscription interface {
	// Next waits for the next delivery. It returns ctx's error when ctx ends.
	Next(ctx context.Context) (Delivery, error)
	// Stop ends the subscription; unacknowledged deliveries go to others.
	Stop()
}

// Health is how a subscription fares.
type Health struct {
	// Ready tells that deliveries can arrive. Since is when it last was not so
	// any more; zero while it is.
	Ready bool
	Since time.Time
	// Rejoined counts by reason how often the subscription took its place anew.
	Rejoined map[string]int
}

// Checked is a subscription that can lose its place, and tells so.
type Checked interface{ Health() Health }

// Lag is how many notifications wait at the broker for a consumer.
type Lag struct {
	Stream, Consumer string
	Waiting          int64
}

// Lagging is a bus whose broker keeps notifications for consumers.
type Lagging interface {
	// Lags looks at the consumers of commands, at most limit of them.
	Lags(ctx context.Context, limit int) ([]Lag, error)
}

// Delivery is a notification that waits to be settled exactly once.
type Delivery interface {
	Notification() event.Notification
	Ack() error
	// Nak asks for redelivery after delay.
	Nak(delay time.Duration) error
	// InProgress postpones redelivery while the command runs.
	InProgress() error
}
