package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Snapshot is a folded state kept to spare folding the same events again.
type Snapshot struct {
	ExecutionID event.ID
	Type        string   // aggregate_type, such as replay_state
	ID          string   // aggregate_id
	Version     event.ID // last event folded
	Seq         int64    // its sequence
	State       []byte   // JSON
	Checksum    string
	Meta        []byte // JSON, or empty
	UpdatedAt   time.Time
}

// Snapshots keeps the newest snapshot per execution, type and id.
type Snapshots interface {
	// PutSnapshot stores s unless one of a higher Seq is there.
	PutSnapshot(ctx context.Context, s Snapshot) error
	// Snapshot returns one. ErrNotFound when absent.
	Snapshot(ctx context.Context, execution event.ID, typ, id string) (Snapshot, error)
}

// Projections lets the rows beside the log be checked against it and written anew.
type Projections interface {
	// LoggedExecutions returns ids > after of executions the log has events of,
	// ascending, at most limit, whether or not they have a row.
	LoggedExecutions(ctx context.Context, after event.ID, limit int) ([]event.ID, error)
	// ProjectedExecutions returns execution rows with ids > after, ascending, at most limit.
	ProjectedExecutions(ctx context.Context, after event.ID, limit int) ([]Execution, error)
	// CommandsOf returns the command rows of an execution by EventID.
	CommandsOf(ctx context.Context, execution event.ID) ([]Command, error)
	// Reproject replaces the execution row and all command rows of an execution.
	// ErrConflict when x.LastSeq is not the last sequence in the log. Leases in
	// commands are kept as given.
	Reproject(ctx context.Context, x Execution, commands []Command) error
	// PurgeCommands removes commands that ended before the given time and belong
	// to executions that are final, at most limit.
	PurgeCommands(ctx context.Context, before time.Time, limit int) (int, error)
}

// SchemaState tells whether a database has what the program needs.
type SchemaState struct {
	Version int      // migrations applied, the least of all databases
	Want    int      // migrations known
	Tables  []string // present, sorted
	Missing []string // wanted and absent, sorted
}

// PoolState is the state of the connections to the database.
type PoolState struct {
	Min, Max, Open, Idle int
	Waiting              int
}

// Schema tells of the database itself.
type Schema interface {
	// Migrate applies what is missing; nothing when all is there.
	Migrate(ctx context.Context) error
	// SchemaState looks at the tables.
	SchemaState(ctx context.Context) (SchemaState, error)
	// PoolState looks at the connections.
	PoolState() PoolState
	// Shards is the number of databases executions are spread over.
	Shards() int
}
