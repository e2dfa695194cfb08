package api

import (
	"context"
	"encoding/json"
	"io"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Plane is what the API needs of the control plane. *control.Plane is one.
type Plane interface {
	Catalog
	Commands
	Executions
	Results
	Replays
	Variables
	Pools
	Outboxes
	Databases
	Retentions
	Dashboards
	// Health tells which dependencies answer.
	Health(ctx context.Context) control.Health
}

// Catalog registers and finds resources.
type Catalog interface {
	Register(ctx context.Context, r control.RegisterRequest) (control.Registration, error)
	Entry(ctx context.Context, ref control.EntryRef) (store.Entry, error)
	Entries(ctx context.Context, f store.EntryFilter) ([]store.Entry, error)
	RemoveEntries(ctx context.Context, path string, version int) ([]store.Entry, error)
	RestoreEntries(ctx context.Context, path string, version int) ([]store.Entry, error)
}

// Commands is the side workers talk to.
type Commands interface {
	Claim(ctx context.Context, r event.ClaimRequest) (*event.Command, error)
	Command(ctx context.Context, execution, eventID event.ID) (*event.Command, error)
	Report(ctx context.Context, r event.Report) (event.ReportAnswer, error)
	Heartbeat(ctx context.Context, beats []event.Heartbeat) ([]event.HeartbeatAnswer, error)
	Release(ctx context.Context, h event.Heartbeat) error
}

// Executions starts, stops and shows executions.
type Executions interface {
	Execute(ctx context.Context, r control.ExecuteRequest) (control.ExecuteAnswer, error)
	ExecuteBatch(ctx context.Context, requests []control.ExecuteRequest) []control.BatchResult
	Rerun(ctx context.Context, id event.ID, r control.RerunRequest) (control.ExecuteAnswer, error)
	Cancel(ctx context.Context, id event.ID, r control.CancelRequest) (control.CancelAnswer, error)
	Finalize(ctx context.Context, id event.ID, r control.FinalizeRequest) (control.FinalizeAnswer, error)
	Cleanup(ctx context.Context, r control.CleanupRequest) (control.CleanupAnswer, error)
	Execution(ctx context.Context, id event.ID) (store.Execution, error)
	Executions(ctx context.Context, f store.ExecutionFilter) ([]store.Execution, error)
	Events(ctx context.Context, id event.ID, after int64, limit int) ([]event.Event, error)
	Workload(ctx context.Context, id event.ID) (json.RawMessage, error)
	Outcome(ctx context.Context, id event.ID) ([]engine.StepOutcome, error)
	Explain(ctx context.Context, id event.ID, step string) ([]event.Explanation, error)
	Signal(ctx context.Context, id event.ID, r control.SignalRequest) (control.SignalAnswer, error)
	Waits(ctx context.Context, id event.ID) ([]event.SignalWait, error)
	Watch(id event.ID) (wake <-chan struct{}, stop func())
}

// Results keeps values that are too large for the log.
type Results interface {
	PutResult(ctx context.Context, execution event.ID, name string, data json.RawMessage) (event.StoredResult, error)
	Result(ctx context.Context, ref string) (json.RawMessage, error)
	PutBlob(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error)
	OpenBlob(ctx context.Context, ref string, offset, length int64) (io.ReadCloser, event.StoredResult, error)
	Results(ctx context.Context, execution event.ID, after string, limit int) ([]control.ListedResult, error)
	RemoveResults(ctx context.Context, execution event.ID, scope string) (int, error)
	CollectResults(ctx context.Context, dryRun bool) (control.CollectReport, error)
}
