package event

import (
	"encoding/json"
	"time"
)

// Command is a claimed instruction in the shape workers receive it: the tool
// configuration as written in the playbook, and the plain values its templates
// mention. Only ToolConfig and Args hold template text.
type Command struct {
	Status      string         `json:"status,omitempty"` // "ok" in claim answers
	EventID     ID             `json:"event_id"`
	ExecutionID ID             `json:"execution_id"`
	NodeID      string         `json:"node_id"`
	NodeName    string         `json:"node_name"`
	Action      string         `json:"action"` // tool kind
	Context     CommandContext `json:"context"`
	Meta        CommandMeta    `json:"meta"`
	LeaseUntil  time.Time      `json:"lease_until,omitzero"`
}

// CommandContext is everything a tool run needs to know.
type CommandContext struct {
	ToolConfig    json.RawMessage `json:"tool_config"` // object, or array of {label: spec} for a pipeline
	Args          json.RawMessage `json:"args"`        // step-level input
	RenderContext json.RawMessage `json:"render_context"`
}

// CommandMeta identifies a command and its place in a loop.
type CommandMeta struct {
	CommandID      string          `json:"command_id"`
	Step           string          `json:"step"`
	ToolKind       string          `json:"tool_kind"`
	Attempt        int             `json:"attempt"`
	MaxAttempts    int             `json:"max_attempts"`
	ExecutionID    StringID        `json:"execution_id"`
	CatalogID      StringID        `json:"catalog_id"`
	Actionable     bool            `json:"actionable"`
	TimeoutSeconds float64         `json:"timeout_seconds,omitempty"` // bound of the command; 0 = the worker's own
	Single         bool            `json:"single,omitempty"`          // a one-task list written as a single tool: unwrap its result
	IterationIndex *int            `json:"iteration_index,omitempty"`
	IterationTotal *int            `json:"iteration_total,omitempty"`
	IteratorStep   string          `json:"iterator_step,omitempty"`
	ItemVar        string          `json:"item_var,omitempty"`
	Cursor         *CursorPlace    `json:"cursor,omitempty"`
	Output         *Output         `json:"output,omitempty"`
	Trace          json.RawMessage `json:"trace,omitempty"`
	ParkAfter      float64         `json:"park_after_seconds,omitempty"` // pauses from this length on are given back as a Park; 0 = none are
	Resume         *Resume         `json:"resume,omitempty"`             // set when the command was parked before
}

// Incoming is an event as a worker or client reports it.
type Incoming struct {
	EventID     ID              `json:"event_id,omitempty"` // minted by the server when 0
	Step        string          `json:"step"`
	Type        Type            `json:"event_type"`
	Status      string          `json:"status,omitempty"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Meta        json.RawMessage `json:"meta,omitempty"`
	ResultKind  string          `json:"result_kind,omitempty"` // data (default), ref, refs
	ResultURI   string          `json:"result_uri,omitempty"`
	EventIDs    []ID            `json:"event_ids,omitempty"`
	Actionable  *bool           `json:"actionable,omitempty"`
	Informative *bool           `json:"informative,omitempty"`
	CreatedAt   time.Time       `json:"created_at,omitzero"`
}

// Report is a batch of events about one execution. Eager asks for up to that
// many further commands of the same execution, already claimed for WorkerID.
type Report struct {
	ExecutionID ID         `json:"execution_id"`
	WorkerID    string     `json:"worker_id,omitempty"`
	Events      []Incoming `json:"events"`
	Eager       int        `json:"eager,omitempty"`
	EagerNot    []string   `json:"eager_not,omitempty"` // kinds of tools the worker has no slot for
}

// ReportAnswer acknowledges a durable report. EventIDs are in input order.
type ReportAnswer struct {
	Status            string     `json:"status"`
	EventIDs          []ID       `json:"event_ids"`
	CommandsGenerated int        `json:"commands_generated"`
	Commands          []*Command `json:"commands,omitempty"` // handed over eagerly
}

// ClaimRequest asks for the right to run a command. ExecutionID is a hint that
// saves a look-up; 0 is fine. Heartbeats promises that the lease will be
// renewed while the command runs; a worker that cannot promise it gets a long one.
type ClaimRequest struct {
	EventID     ID     `json:"-"`
	ExecutionID ID     `json:"execution_id,omitempty"`
	WorkerID    string `json:"worker_id"`
	Heartbeats  bool   `json:"heartbeats,omitempty"`
}

// Heartbeat renews the lease of one claimed command.
type Heartbeat struct {
	EventID     ID     `json:"event_id,omitempty"`
	ExecutionID ID     `json:"execution_id,omitempty"`
	WorkerID    string `json:"worker_id"`
	Attempt     int    `json:"attempt,omitempty"`
}

// HeartbeatAnswer carries the new lease, or word that the run must stop.
type HeartbeatAnswer struct {
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	Cancel     bool      `json:"cancel"`
}

// Notification is the pointer published for a command that waits for a worker.
type Notification struct {
	ExecutionID ID              `json:"execution_id"`
	EventID     ID              `json:"event_id"`
	CommandID   string          `json:"command_id"`
	Step        string          `json:"step"`
	ServerURL   string          `json:"server_url,omitempty"`
	Pool        string          `json:"execution_pool,omitempty"`
	Trace       json.RawMessage `json:"trace,omitempty"`
	Attempt     int             `json:"attempt,omitempty"` // >1 on re-publication
	ToolKind    string          `json:"tool_kind,omitempty"`
}
