package client

import "github.com/noetl/noetl-go/internal/event"

// The vocabulary shared with the server.
type (
	// ID identifies executions, events and catalog entries.
	ID = event.ID
	// Event is one fact of an execution's log.
	Event = event.Event
	// EventType names a kind of event.
	EventType = event.Type
	// Incoming is an event as a worker reports it.
	Incoming = event.Incoming
	// Report is a batch of events about one execution.
	Report = event.Report
	// ReportAnswer acknowledges a report.
	ReportAnswer = event.ReportAnswer
	// Command is a claimed instruction to run a tool.
	Command = event.Command
	// ClaimRequest asks for the right to run a command.
	ClaimRequest = event.ClaimRequest
	// Heartbeat renews the lease of a claimed command.
	Heartbeat = event.Heartbeat
	// HeartbeatAnswer carries the new lease, or word to stop.
	HeartbeatAnswer = event.HeartbeatAnswer
	// StoredResult tells where a value went that was put aside.
	StoredResult = event.StoredResult
	// ResultOptions describe a value that is put aside.
	ResultOptions = event.ResultOptions
	// Explanation says how a step stands and why.
	Explanation = event.Explanation
	// Error is a coded error.
	Error = event.Error
	// Code classifies an Error.
	Code = event.Code
)

// The codes of errors.
const (
	Invalid      = event.Invalid
	BadRequest   = event.BadRequest
	NotFound     = event.NotFound
	Conflict     = event.Conflict
	Unauthorized = event.Unauthorized
	Forbidden    = event.Forbidden
	Limit        = event.Limit
	Unavailable  = event.Unavailable
	Internal     = event.Internal
)

// Final statuses of an execution.
const (
	Completed = event.StatusCompleted
	Failed    = event.StatusFailed
	Cancelled = event.StatusCancelled
)

// ParseID reads a decimal id.
func ParseID(s string) (ID, error) { return event.ParseID(s) }

// CodeOf is the code of err, or Internal when it carries none.
func CodeOf(err error) Code { return event.CodeOf(err) }
