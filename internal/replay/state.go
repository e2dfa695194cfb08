// Package replay folds the log of an execution, or a prefix of it, into a state
// anybody can compute again: what the execution, its stages, frames, commands,
// loops and business objects had come to, with checksums over it. It also
// compares such a state with what a store says.
//
// It computes alone: it must not know where events come from, what time it is,
// or how an execution goes on.
package replay

import (
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
)

// Unknown is the status of everything no event has given one.
const Unknown = "UNKNOWN"

// State is what a log folds into. Its JSON is the wire format and enters the
// checksum, so what is absent there must stay absent.
type State struct {
	TenantID       string                     `json:"tenant_id"`
	OrganizationID string                     `json:"organization_id"`
	ExecutionID    event.ID                   `json:"execution_id"`
	Projection     Projection                 `json:"projection"`
	EventCount     int64                      `json:"event_count"`
	LastEventID    event.ID                   `json:"last_event_id,omitzero"`
	LastEventType  event.Type                 `json:"last_event_type,omitempty"`
	Execution      Execution                  `json:"execution"`
	Stages         map[string]*Stage          `json:"stages"`
	Frames         map[string]*Frame          `json:"frames"`
	Commands       map[string]*Command        `json:"commands"`
	Objects        map[string]*BusinessObject `json:"business_objects"`
	Loops          map[string]*Loop           `json:"loops"`
	UpcasterDigest string                     `json:"upcaster_registry_digest,omitempty"`
	Snapshot       *SnapshotNote              `json:"replay_snapshot,omitempty"`
	Checksum       *Checksum                  `json:"checksum,omitempty"`
	Checksums      *Checksums                 `json:"projection_checksums,omitempty"`

	// doubtful are commands about whose end the log holds several opinions: the
	// events alone do not tell which one counted.
	doubtful map[string]bool
	claims   map[string]int64 // attempt of the last claim, where it is not the first
}

// Execution is the execution as a whole.
type Execution struct {
	Status       string     `json:"status"`
	LastNodeName string     `json:"last_node_name,omitempty"`
	PayloadRefs  []ValueRef `json:"payload_refs"`
}

// Stage is a piece of work that is done in frames.
type Stage struct {
	StageID       string   `json:"stage_id"`
	Status        string   `json:"status"`
	FrameCount    int64    `json:"frame_count"`
	RowCount      int64    `json:"row_count"`
	EventsEmitted int64    `json:"events_emitted"`
	FailedCount   int64    `json:"failed_count"`
	Kind          string   `json:"kind,omitempty"`
	StepName      string   `json:"step_name,omitempty"`
	ParentStageID string   `json:"parent_stage_id,omitempty"`
	LoopEventID   string   `json:"loop_event_id,omitempty"`
	OpenedEventID event.ID `json:"opened_event_id,omitzero"`
	ClosedEventID event.ID `json:"closed_event_id,omitzero"`
	LastEventID   event.ID `json:"last_event_id,omitzero"`
}

// Frame is a share of a stage's rows.
type Frame struct {
	FrameID          string          `json:"frame_id"`
	Status           string          `json:"status"`
	RowCount         int64           `json:"row_count"`
	Attempts         int64           `json:"attempts"`
	EventsEmitted    int64           `json:"events_emitted"`
	StageID          string          `json:"stage_id,omitempty"`
	ParentFrameID    string          `json:"parent_frame_id,omitempty"`
	CommandID        string          `json:"command_id,omitempty"`
	ClaimedEventID   event.ID        `json:"claimed_event_id,omitzero"`
	TerminalEventID  event.ID        `json:"terminal_event_id,omitzero"`
	LastEventID      event.ID        `json:"last_event_id,omitzero"`
	OutputRef        json.RawMessage `json:"output_ref,omitempty"`
	OutputRefSummary *Summary        `json:"output_ref_summary,omitempty"`
}

// Command is one instruction to a worker.
type Command struct {
	CommandID       string   `json:"command_id"`
	Status          string   `json:"status"`
	StageID         string   `json:"stage_id,omitempty"`
	FrameID         string   `json:"frame_id,omitempty"`
	ParentCommandID string   `json:"parent_command_id,omitempty"`
	WorkerID        string   `json:"worker_id,omitempty"`
	WorkerLocator   string   `json:"worker_locator,omitempty"`
	IssuedEventID   event.ID `json:"issued_event_id,omitzero"`
	ClaimedEventID  event.ID `json:"claimed_event_id,omitzero"`
	StartedEventID  event.ID `json:"started_event_id,omitzero"`
	TerminalEventID event.ID `json:"terminal_event_id,omitzero"`
	LastEventID     event.ID `json:"last_event_id,omitzero"`
}

// Loop counts the iterations of one run of a looping step.
type Loop struct {
	LoopID      string   `json:"loop_id"`
	Done        int64    `json:"done"`
	Failed      int64    `json:"failed"`
	Completed   bool     `json:"completed"`
	StepName    string   `json:"step_name,omitempty"`
	Total       *int64   `json:"total,omitempty"`
	LastEventID event.ID `json:"last_event_id,omitzero"`
}

// BusinessObject is a thing outside NoETL that events tell of.
type BusinessObject struct {
	ObjectKey      string                     `json:"object_key"` // type/id
	ObjectType     string                     `json:"object_type"`
	ObjectID       string                     `json:"object_id"`
	Status         string                     `json:"status"`
	Version        int64                      `json:"version"`
	EventCount     int64                      `json:"event_count"`
	Attributes     map[string]json.RawMessage `json:"attributes"`
	PayloadRefs    []ValueRef                 `json:"payload_refs"`
	FirstEventID   event.ID                   `json:"first_event_id,omitzero"`
	LastEventID    event.ID                   `json:"last_event_id,omitzero"`
	DeletedEventID event.ID                   `json:"deleted_event_id,omitzero"`
	LastEventType  event.Type                 `json:"last_event_type,omitempty"`
	LastPayloadRef *ValueRef                  `json:"last_payload_ref,omitempty"`
}

// ValueRef is an event's reference to a value kept elsewhere.
type ValueRef struct {
	EventID   event.ID        `json:"event_id"`
	Reference json.RawMessage `json:"reference"`
	Summary   Summary         `json:"summary"`
}

// Summary is what a reference itself says of the value; nothing is resolved.
type Summary struct {
	SHA256       *string `json:"sha256,omitempty"`
	SchemaDigest *string `json:"schema_digest,omitempty"`
	RowCount     *int64  `json:"row_count,omitempty"`
	MediaType    *string `json:"media_type,omitempty"`
	Ref          *string `json:"ref,omitempty"`
}

// SnapshotNote names the snapshot a state was folded on.
type SnapshotNote struct {
	AggregateID   string          `json:"aggregate_id"`
	AggregateType string          `json:"aggregate_type"`
	Version       event.ID        `json:"version"` // last event folded into it
	Checksum      string          `json:"checksum"`
	Meta          json.RawMessage `json:"meta"`
}

// Checksum is a digest of canonical JSON.
type Checksum struct {
	Type  string `json:"type"`  // sha256
	Value string `json:"value"` // lower-case hex
}

// Checksums are the digests of the parts of a state.
type Checksums struct {
	Execution      Checksum `json:"execution"`
	Stage          Checksum `json:"stage"`
	Frame          Checksum `json:"frame"`
	Command        Checksum `json:"command"`
	BusinessObject Checksum `json:"business_object"`
	Loop           Checksum `json:"loop"`
}

// settle notes what makes the end of a command doubtful: a second end, or one
// by an attempt that another had replaced.
func (s *State) settle(c *Command, r *Record, meta object) {
	attempt := int64(0)
	meta.count("attempt", &attempt)
	switch {
	case r.Type == event.CommandClaimed && attempt > 1:
		s.claims = put(s.claims, c.CommandID, attempt)
	case !r.Type.IsCommandEnd():
	case c.TerminalEventID != 0, attempt > 0 && attempt < s.claims[c.CommandID]:
		s.doubtful = put(s.doubtful, c.CommandID, true)
	}
}

func put[V any](m map[string]V, k string, v V) map[string]V {
	if m == nil {
		m = map[string]V{}
	}
	m[k] = v
	return m
}

func newState() *State {
	return (&State{Execution: Execution{Status: Unknown}}).complete()
}

// complete gives empty maps and lists to what has none: on the wire they are
// {} and [], never null.
func (s *State) complete() *State {
	fill(&s.Stages)
	fill(&s.Frames)
	fill(&s.Commands)
	fill(&s.Objects)
	fill(&s.Loops)
	if s.Execution.PayloadRefs == nil {
		s.Execution.PayloadRefs = []ValueRef{}
	}
	for _, o := range s.Objects {
		if fill(&o.Attributes); o.PayloadRefs == nil {
			o.PayloadRefs = []ValueRef{}
		}
	}
	return s
}

func fill[V any](m *map[string]V) {
	if *m == nil {
		*m = map[string]V{}
	}
}

// Only is s with the maps emptied that p does not ask for. The checksums stay
// those of the whole.
func (s *State) Only(p Projection) *State {
	if p == All {
		return s
	}
	out := *s
	keep(&out.Stages, p == OfStage)
	keep(&out.Frames, p == OfFrame)
	keep(&out.Commands, p == OfCommand)
	keep(&out.Objects, p == OfBusinessObject)
	keep(&out.Loops, p == OfLoop)
	return out.complete()
}

func keep[V any](m *map[string]V, wanted bool) {
	if !wanted {
		*m = nil
	}
}
