// Package event holds the words the rest of NoETL speaks: ids, the event
// envelope, event types and statuses, commands as workers see them, and coded
// errors. It has no behaviour beyond encoding and must not know how events are
// stored, folded or sent.
package event

import (
	"encoding/json"
	"time"
)

// Event is one immutable fact about an execution.
//
// Seq counts the execution's events 1, 2, 3 … without gaps; it is assigned by
// whoever appends. EventID is a snowflake: unique, roughly time-ordered, and
// the id clients know. Payload columns hold JSON exactly as it was written.
type Event struct {
	ExecutionID       ID
	Seq               int64
	EventID           ID
	CatalogID         ID
	ParentEventID     ID // the event that caused this one; 0 when none
	ParentExecutionID ID // only on start events of nested executions
	Type              Type
	NodeName          string // step name, or the catalog path on the start event
	NodeType          string // tool kind on commands, "execution" on start events
	Status            string
	Context           json.RawMessage // start: workload; command.issued: values for templates
	Result            json.RawMessage // {status, context?, reference?} or empty
	Meta              json.RawMessage
	Error             string
	WorkerID          string
	CommandID         string // "<execution>:<step>:<event>[:i<index>]" on command events
	Duration          time.Duration
	CreatedAt         time.Time

	// Detail is the decoded form of the payload when the producer has it at
	// hand, so that folding one's own events costs no second decode. It is
	// never stored; a reader of the log sees it nil.
	Detail any
}

// NodeID is the wire's node_id: "playbook" for events about the whole
// execution, the node name otherwise.
func (e *Event) NodeID() string {
	if e.Type.IsExecution() {
		return "playbook"
	}
	return e.NodeName
}
