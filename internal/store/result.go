package store

import (
	"cmp"
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// ErrCollected: the value was there and was removed when its time was over. It
// is an ErrNotFound, too.
var ErrCollected = &event.Error{
	Code: event.NotFound, Message: "the value was collected: its time to be kept is over", Reason: "collected", Err: ErrNotFound,
}

// The scopes of a result: how long it is kept when nothing else was said.
const (
	ScopeStep      = "step"      // with its execution
	ScopeExecution = "execution" // with its execution
	ScopeWorkflow  = "workflow"  // with the execution that started it all
	ScopePermanent = "permanent" // until somebody removes it
)

const (
	// TierDB is the tier of values that are kept in the store itself.
	TierDB = "db"
	// MediaJSON is the media type of a value that names none.
	MediaJSON = "application/json"
)

// Result is a value that is too large for the log, which refers to it. The row
// says where the value is: in Data, in the parts of this store, or under Key in
// another tier. A row outlives its value, so that whoever asks for it can be
// told what became of it.
type Result struct {
	ExecutionID event.ID
	Ref         string // noetl://execution/<execution>/result/<name>/<id>; the key
	Name        string // usually a step
	Data        []byte // JSON, of values that are kept in the row; lists leave it out
	SHA256      string // of the value, hex
	CreatedAt   time.Time

	Scope      string // "" is stored as execution
	SourceStep string
	MediaType  string    // "" is stored as application/json
	Bytes      int64     // of the value; beside Data its length
	Tier       string    // "" is stored as db
	Key        string    // where in the tier, "" = in the row; kept until nothing is left there
	Frames     []byte    // how the value is cut up there; means nothing to stores
	ExpiresAt  time.Time // zero = by its scope
	GoneAt     time.Time // when the value was removed; zero while it is there
	Pending    bool      // the value is still being put: nobody can refer to it yet
	// PinnedBy are other executions whose logs refer to the value.
	PinnedBy []event.ID
}

// Normal is r with the words that stand for empty fields, as stores return it.
func (r Result) Normal() Result {
	r.Scope, r.MediaType, r.Tier = cmp.Or(r.Scope, ScopeExecution), cmp.Or(r.MediaType, MediaJSON), cmp.Or(r.Tier, TierDB)
	if len(r.Data) > 0 {
		r.Bytes = int64(len(r.Data))
	}
	return r
}

// ResultPosition is a place in the order of all results: by execution, then by
// reference.
type ResultPosition struct {
	ExecutionID event.ID
	Ref         string
}

// Position is the place of r.
func (r *Result) Position() ResultPosition { return ResultPosition{r.ExecutionID, r.Ref} }

// Compare orders positions.
func (p ResultPosition) Compare(o ResultPosition) int {
	return cmp.Or(cmp.Compare(p.ExecutionID, o.ExecutionID), cmp.Compare(p.Ref, o.Ref))
}

// Results keeps large values by reference.
//
// A value that arrives in pieces is reserved first: the pending row names the
// place everything goes to, so that what a dead process left there can be found
// and removed, and nothing can refer to it before it is finished.
type Results interface {
	// PutResult stores r. A reference that exists is left as it is: values never
	// change. A pending r is a reservation; its ExpiresAt says when it is given up.
	PutResult(ctx context.Context, r Result) error
	// FinishResult makes a reserved value readable, with the size, checksum,
	// frames, tier, key and expiry of r. ErrNotFound when the reservation is gone.
	FinishResult(ctx context.Context, r Result) error
	// Result finds a value. ErrNotFound when absent or pending, ErrCollected when
	// it was removed.
	Result(ctx context.Context, execution event.ID, ref string) (Result, error)
	// ListResults returns the results of an execution that are there, by reference,
	// with Ref > after and without Data, at most limit (0 = all).
	ListResults(ctx context.Context, execution event.ID, after string, limit int) ([]Result, error)

	// PutPart stores a piece of a value of the execution, in place of what was there.
	PutPart(ctx context.Context, execution event.ID, key string, part int, data []byte) error
	// Part returns a piece. ErrNotFound when absent.
	Part(ctx context.Context, execution event.ID, key string, part int) ([]byte, error)
	// DeleteParts removes at most limit (0 = all) pieces and returns how many.
	DeleteParts(ctx context.Context, execution event.ID, key string, limit int) (int, error)

	// ExpiredResults returns rows whose ExpiresAt is not after now, earliest first,
	// at most limit (0 = all), without Data: values whose time is over, reservations
	// that were given up, and removed values of which something may be left in
	// their tier.
	ExpiredResults(ctx context.Context, now time.Time, limit int) ([]Result, error)
	// EndedResults returns values that live as long as executions do (neither
	// permanent nor with an expiry) and whose own execution ended before the given
	// time, in order of position, those behind after, at most limit (0 = all),
	// without Data.
	EndedResults(ctx context.Context, before time.Time, after ResultPosition, limit int) ([]Result, error)
	// RetireResult marks a value, or a reservation, as removed, unless it was
	// finished or pinned since r was read: then false. Data goes at once. With a Key
	// the row is found by ExpiredResults until ForgetResult is told that nothing is
	// left.
	RetireResult(ctx context.Context, r Result, now time.Time) (bool, error)
	// ForgetResult notes that nothing is left of a removed value. What is left of
	// the row says that it was collected; of a reservation, nothing.
	ForgetResult(ctx context.Context, execution event.ID, ref string) error
	// PinResult notes that the log of another execution refers to the value.
	// ErrNotFound and ErrCollected as for Result.
	PinResult(ctx context.Context, execution event.ID, ref string, holder event.ID) error
}
