package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Runtime is a process that made itself known: a worker, a server, a broker.
type Runtime struct {
	RuntimeID    event.ID
	Name         string // for workers, the id they claim with
	Kind         string // worker_pool, server_api, broker
	URI          string
	Status       string // as its owner said
	Labels       []byte // JSON, or empty
	Capabilities []byte
	Runtime      []byte
	Capacity     int
	Heartbeat    time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// RuntimeFilter selects runtimes; zero fields do not restrict.
type RuntimeFilter struct {
	Kind string
	Name string // SQL LIKE pattern, case-sensitive; see Like
}

// Runtimes is the registry of processes.
type Runtimes interface {
	// PutRuntime stores r under its kind and name. One that exists keeps its id
	// and CreatedAt. It returns the row as stored.
	PutRuntime(ctx context.Context, r Runtime) (Runtime, error)
	// BeatRuntime moves a heartbeat and nothing else. ErrNotFound when unknown.
	BeatRuntime(ctx context.Context, kind, name string, now time.Time) (Runtime, error)
	// Runtime returns one. ErrNotFound when unknown.
	Runtime(ctx context.Context, kind, name string) (Runtime, error)
	// DeleteRuntime removes one and tells whether it was there.
	DeleteRuntime(ctx context.Context, kind, name string) (bool, error)
	// ListRuntimes returns runtimes by kind and name.
	ListRuntimes(ctx context.Context, f RuntimeFilter) ([]Runtime, error)
	// PurgeRuntimes removes those silent since before the given time.
	PurgeRuntimes(ctx context.Context, before time.Time) (int, error)
}
