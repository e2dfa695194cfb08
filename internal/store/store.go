// Package store is the storage contract: an append-only log per execution with
// two projections written in the same transaction, and the catalog. Drivers
// live below it and pass the suite in storetest. It must not know what events
// mean: callers hand over finished rows.
package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Errors every driver returns, matched with errors.Is.
var (
	// ErrConflict: the execution's sequence is not the expected one; reload and retry.
	ErrConflict = &event.Error{Code: event.Conflict, Message: "execution was appended to in the meantime", Reason: "sequence"}
	// ErrDuplicate: an event of the batch has an event_id the execution already holds.
	ErrDuplicate = &event.Error{Code: event.Conflict, Message: "event id already stored", Reason: "duplicate_event"}
	// ErrNotFound: no such execution, command or catalog entry.
	ErrNotFound = &event.Error{Code: event.NotFound, Message: "not found"}
)

// Store is one backend. All methods are safe for concurrent use and return
// when ctx ends. Append returns nil only when the batch is durable.
type Store interface {
	Log
	Executions
	Commands
	Results
	Catalog
	StartClaims
	Outbox
	Variables
	Runtimes
	Snapshots
	Projections
	Secrets
	Retention
	Access
	Schedules
	Schema
	// Ping tells whether the backend answers.
	Ping(ctx context.Context) error
	Close() error
}

// Batch is the unit of appending: the events of one decision and the
// projection rows as they stand after it.
type Batch struct {
	Execution Execution     // row after the batch; LastSeq = Expected + len(Events)
	Expected  int64         // sequence of the last stored event; 0 starts the execution
	Events    []event.Event // Seq = Expected+1 …
	Commands  []Command     // rows that changed, complete, at most one per EventID
	Results   []Result      // values the events refer to
	Claim     *StartClaim   // taken together with the start; only when Expected is 0
	Publish   bool          // each event gets an outbox row
}

// Log is the truth.
type Log interface {
	// Append stores b as a whole or not at all. ErrConflict when the stored
	// sequence differs from b.Expected, ErrDuplicate when an event_id exists; a
	// batch that is both is a conflict. A *ClaimedError when b.Claim is held by
	// another execution; a conflict is found first, a duplicate last. When ctx
	// ends or the backend is lost before the answer, whether b was stored is
	// unknown: the sequence tells. b belongs to the store from the call on; do
	// not write to its slices again.
	Append(ctx context.Context, b Batch) error
	// Events returns events with Seq > after in order, at most limit (0 = all).
	// An unknown execution has none.
	Events(ctx context.Context, execution event.ID, after int64, limit int) ([]event.Event, error)
	// EventIDs reports which of ids are stored for the execution, in the order asked.
	EventIDs(ctx context.Context, execution event.ID, ids []event.ID) ([]event.ID, error)
	// Event finds one event. ErrNotFound when absent.
	Event(ctx context.Context, execution, id event.ID) (event.Event, error)
}

// Execution is the projection row of an execution.
type Execution struct {
	ExecutionID       event.ID
	CatalogID         event.ID
	ParentExecutionID event.ID
	Path              string
	Version           int
	Pool              string
	Status            string // RUNNING, COMPLETED, FAILED, CANCELLED
	LastSeq           int64
	LastEventID       event.ID
	LastEventType     event.Type
	LastNodeName      string
	CurrentStep       string
	StepsTotal        int
	StepsCompleted    int
	StepsRunning      int
	StepsFailed       int
	Error             string
	StartedAt         time.Time
	EndedAt           time.Time // zero while running
	UpdatedAt         time.Time
	WakeAt            time.Time // when its next timer is due; zero without one
}

// ExecutionFilter selects executions; zero fields do not restrict.
//
// Before is the keyset: the last id of the page before. It does not shift when
// new executions start, which Offset does.
type ExecutionFilter struct {
	Status      string
	Path        string // case-insensitive substring
	PathPrefix  string // case-sensitive
	CatalogID   event.ID
	ParentID    event.ID
	Pool        string
	StartedFrom time.Time // inclusive; see IDRange
	StartedTo   time.Time // exclusive
	Before      event.ID  // only ids below
	Limit       int       // 0 = 50
	Offset      int
}

// Executions reads the execution projection.
type Executions interface {
	// Execution returns one row. ErrNotFound when absent.
	Execution(ctx context.Context, id event.ID) (Execution, error)
	// ListExecutions returns rows newest first (by execution id).
	ListExecutions(ctx context.Context, f ExecutionFilter) ([]Execution, error)
	// OpenExecutions returns ids > after of executions that are not final and whose
	// row was last updated before `before`, ascending, at most limit (0 = all): the
	// recovery scan. Like all scans for sweeps (DueExecutions, PendingCommands,
	// ExpiredCommands) it may return rows together with an error: those of the
	// databases that answer.
	OpenExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]event.ID, error)
	// DueExecutions returns executions that are not final and whose WakeAt is not
	// after now, earliest first, at most limit (0 = all): an index look-up.
	DueExecutions(ctx context.Context, now time.Time, limit int) ([]event.ID, error)
	// CountExecutions counts executions by status.
	CountExecutions(ctx context.Context) (map[string]int64, error)
}

// Command is the projection row of a command: the queue of record.
type Command struct {
	ExecutionID event.ID
	EventID     event.ID // of its command.issued
	CommandID   string   // the wire id
	CatalogID   event.ID
	Step        string
	ToolKind    string
	Pool        string
	Status      string // PENDING, CLAIMED, RUNNING, COMPLETED, FAILED, CANCELLED
	WorkerID    string
	Attempt     int // 0 until first claimed; then the fencing number
	MaxAttempts int
	IterIndex   int       // -1 outside loops
	LeaseUntil  time.Time // zero unless claimed
	CreatedAt   time.Time
	ClaimedAt   time.Time
	EndedAt     time.Time
	Error       string
}

// Commands reads the command projection and renews leases.
type Commands interface {
	// Command finds a command by the id of its command.issued event. execution
	// may be 0 when unknown. ErrNotFound when absent.
	Command(ctx context.Context, execution, eventID event.ID) (Command, error)
	// PendingCommands returns PENDING commands created before the given time,
	// oldest first, at most limit (0 = all).
	PendingCommands(ctx context.Context, before time.Time, limit int) ([]Command, error)
	// CountPending counts PENDING commands by pool, at most limit of each database (0 = all).
	CountPending(ctx context.Context, limit int) (map[string]int64, error)
	// ExpiredCommands returns CLAIMED or RUNNING commands whose lease ended
	// before now, oldest lease first, at most limit (0 = all).
	ExpiredCommands(ctx context.Context, now time.Time, limit int) ([]Command, error)
	// RenewLeases extends the leases of commands still held by the same worker
	// under the same attempt; the result says for each beat whether it was.
	RenewLeases(ctx context.Context, beats []event.Heartbeat, until time.Time) ([]bool, error)
	// RenewWorker extends the leases of all commands held by a worker and claimed
	// after the given time, and returns how many: the pulse of a worker that
	// beats for itself and not for its commands.
	RenewWorker(ctx context.Context, worker string, claimedAfter, until time.Time) (int, error)
	// ExpireLeases ends at once the leases of all commands held by workers whose
	// id starts with prefix, and returns how many: a restarted process knows its
	// former self is dead. ExpiredCommands with the same now finds them.
	ExpireLeases(ctx context.Context, workerPrefix string, now time.Time) (int, error)
}

// Entry is one immutable version of a catalog resource.
type Entry struct {
	CatalogID event.ID
	Path      string
	Version   int
	Kind      string // lower case
	Content   string // the YAML as registered
	Payload   []byte // the parsed document as JSON
	Meta      []byte // metadata.labels as JSON, or empty
	CreatedAt time.Time
	// ArchivedAt is when the entry was taken out of lists and look-ups by path;
	// zero while it is in them. By id it is found for ever.
	ArchivedAt time.Time
}

// EntryFilter selects catalog entries; zero fields do not restrict.
type EntryFilter struct {
	Kind     string // lower case
	Path     string // exact
	Archived bool   // archived entries too
	Limit    int    // 0 = all
	Offset   int
}

// Catalog keeps playbooks and other resources by path and version.
type Catalog interface {
	// AddEntry stores e under the next version of its path, archived ones counted,
	// and returns it complete.
	AddEntry(ctx context.Context, e Entry) (Entry, error)
	// Entry returns an entry by id. ErrNotFound when absent.
	Entry(ctx context.Context, id event.ID) (Entry, error)
	// EntryByPath returns a version, or the highest when version is 0. Archived
	// entries are absent. ErrNotFound when absent.
	EntryByPath(ctx context.Context, path string, version int) (Entry, error)
	// ListEntries returns entries newest first.
	ListEntries(ctx context.Context, f EntryFilter) ([]Entry, error)
	// RemoveEntries archives a version of a path, or all when version is 0, and
	// returns those it took, with ArchivedAt set. None is no error. Nothing is
	// deleted: an execution may start from an entry at the very moment.
	RemoveEntries(ctx context.Context, path string, version int, now time.Time) ([]Entry, error)
	// RestoreEntries brings archived entries back and returns them by version.
	RestoreEntries(ctx context.Context, path string, version int) ([]Entry, error)
	// CountEntries counts the paths of a kind that are not archived.
	CountEntries(ctx context.Context, kind string) (int64, error)
}
