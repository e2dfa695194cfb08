package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// ErrRemoved: the execution was there and was removed as a whole when its time
// was over. It never comes back. It is an ErrNotFound, too.
var ErrRemoved = &event.Error{
	Code: event.NotFound, Message: "the execution was removed: its time to be kept is over", Reason: "removed", Err: ErrNotFound,
}

// Why an execution was not removed.
const (
	KeptChanged     = "changed"        // it goes on, was appended to, or is gone
	KeptParent      = "parent_kept"    // the log of the execution that started it refers to it
	KeptChild       = "child_open"     // an execution it started goes on
	KeptHeld        = "held"           // another execution is being started from it
	KeptPinned      = "used_elsewhere" // the log of another execution refers to its values
	KeptPermanent   = "permanent"      // a value of it is kept until somebody removes it
	KeptValue       = "value_left"     // a value of it is still in another tier, or on its way there
	KeptUnpublished = "unpublished"    // events of it wait to be published
)

// Removal names an execution to remove, as it stood when that was decided.
type Removal struct {
	ExecutionID event.ID
	LastSeq     int64
	Parent      event.ID // 0 without one
}

// RemovalOptions say how executions are removed.
type RemovalOptions struct {
	Now time.Time
	// PinnedSince: an unknown execution that pins a value and whose id is younger
	// is about to start.
	PinnedSince time.Time
	// Unpublished lets executions go whose events nobody published.
	Unpublished bool
	// DryRun only tells what would happen.
	DryRun bool
}

// RemovalReport tells what became of each execution: "" when it was removed,
// else why it was kept; and how many rows went, by table.
type RemovalReport struct {
	Kept []string
	Rows map[string]int
}

// RangeRemoval asks for all executions of a range of ids to be removed together
// with the part of the log that holds them.
type RangeRemoval struct {
	Part    LogPart
	Members []Removal // all executions in the range
	RemovalOptions
}

// LogPart is a part of the log that can be dropped as a whole: the executions
// with ids from From on and below To.
type LogPart struct {
	Shard    int
	Name     string
	From, To event.ID
}

// LogState tells how the log is stored.
type LogState struct {
	Parts []LogPart // by shard and id; none where the log is one piece
	// Strays counts executions that are in no part made for their time, as far as
	// looking at a few thousand events tells.
	Strays int64
}

// Retention removes whole executions. Everything that belongs to one goes in
// one transaction, so that none can be found in part; what is left says that it
// was removed, and an append can neither continue nor start it again.
//
// Claims of starts stay until their window is over: a message that arrives
// again must not start another execution.
type Retention interface {
	// EndedExecutions returns rows of executions that ended before the given time,
	// with ids > after, ascending, at most limit. Like all scans for sweeps it may
	// return rows together with an error.
	EndedExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]Execution, error)
	// NewestEnded is the id of the nth newest execution of a path that has ended;
	// 0 when there are fewer.
	NewestEnded(ctx context.Context, path string, nth int) (event.ID, error)
	// ValuesOf returns the results of executions that are kept outside of the
	// store, or were and may have left something there; without Data.
	ValuesOf(ctx context.Context, executions []event.ID) ([]Result, error)
	// RemoveExecutions removes those that nothing speaks against. It looks again,
	// in the transaction that removes: only executions that are final and have the
	// sequence named go, and only when their parent is gone.
	RemoveExecutions(ctx context.Context, list []Removal, o RemovalOptions) (RemovalReport, error)
	// HoldExecution keeps an execution from being removed until the given time.
	// ErrRemoved when it was, ErrNotFound when there is none.
	HoldExecution(ctx context.Context, id event.ID, until time.Time) error
	// RemovedAt tells when an execution was removed; ErrNotFound when it was not.
	RemovedAt(ctx context.Context, id event.ID) (time.Time, error)
	// PurgeRemoved forgets executions removed before the given time, at most limit,
	// and holds that ended before it.
	PurgeRemoved(ctx context.Context, before time.Time, limit int) (int, error)

	// LogState tells of the parts of the log.
	LogState(ctx context.Context) (LogState, error)
	// RemoveRange removes the executions of a part, and the part, at once; false
	// when the range holds others than the members, something speaks against one of
	// them, or the part cannot be dropped now, which the error tells. Nothing is
	// removed then.
	RemoveRange(ctx context.Context, r RangeRemoval) (rows map[string]int, removed bool, err error)
	// Compact gives space that was freed back to the system, a little at a time;
	// more tells that there is more to give.
	Compact(ctx context.Context) (more bool, err error)

	// TakeLease gives work that one process may do at a time to the holder, for a
	// while from now on: when it is free, over, or held by the same.
	TakeLease(ctx context.Context, name, holder string, now time.Time, ttl time.Duration) (bool, error)
}

// EndedBelow is above the ids of executions that ended before a time: they were
// started before it, by clocks that may disagree a little.
func EndedBelow(before time.Time) event.ID { return IDAt(before.Add(idSlackAbove)) }

// ValueKeeps tells why a value keeps its execution from being removed; "" when
// it does not. known tells whether an execution is there.
func ValueKeeps(r *Result, o RemovalOptions, known func(event.ID) bool) string {
	switch {
	case r.Key != "" && r.Tier != TierDB, r.Pending && r.GoneAt.IsZero():
		return KeptValue
	case !r.GoneAt.IsZero():
		return ""
	case r.Scope == ScopePermanent:
		return KeptPermanent
	}
	for _, holder := range r.PinnedBy {
		if known(holder) || holder >= IDAt(o.PinnedSince) {
			return KeptPinned
		}
	}
	return ""
}

// MoreImportant is the reason to tell when several things keep an execution.
func MoreImportant(a, b string) string {
	for _, why := range []string{KeptPermanent, KeptPinned, KeptValue} {
		if a == why || b == why {
			return why
		}
	}
	return a + b
}
