package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// ReplayRequest asks what the log of an execution folds into. At most one of
// the cutoffs, which are inclusive, may be set; zero fields do not restrict.
type ReplayRequest struct {
	ExecutionID     ID
	TenantID        string // "default" when empty; echoed
	OrganizationID  string // "default" when empty; echoed
	AsOfEventID     ID
	AsOfTime        time.Time
	Projection      string // execution, stage, frame, command, business_object, loop or all; all when empty
	Limit           int    // of events; 10000 when 0, at most 100000
	Only            bool   // leave out the maps the projection does not ask for
	ResolvePayloads bool   // tell whether the values behind references are there
	Snapshot        bool   // name the snapshot the server used, which changes the checksum
}

func (r *ReplayRequest) query() string {
	q := url.Values{"execution_id": {r.ExecutionID.String()}}
	set := func(name, v string, given bool) {
		if given {
			q.Set(name, v)
		}
	}
	set("tenant_id", r.TenantID, r.TenantID != "")
	set("organization_id", r.OrganizationID, r.OrganizationID != "")
	set("as_of_event_id", r.AsOfEventID.String(), r.AsOfEventID != 0)
	set("as_of_time", r.AsOfTime.UTC().Format(time.RFC3339Nano), !r.AsOfTime.IsZero())
	set("projection", r.Projection, r.Projection != "")
	set("limit", strconv.Itoa(r.Limit), r.Limit != 0)
	set("only", "true", r.Only)
	set("resolve_payloads", "true", r.ResolvePayloads)
	set("snapshot", "true", r.Snapshot)
	return q.Encode()
}

// Replayed is what a log folds into. Ids and counts no event has given are zero.
type Replayed struct {
	TenantID       string      `json:"tenant_id"`
	OrganizationID string      `json:"organization_id"`
	ExecutionID    ID          `json:"execution_id"`
	Projection     string      `json:"projection"`
	EventCount     int64       `json:"event_count"`
	LastEventID    ID          `json:"last_event_id"`
	LastEventType  EventType   `json:"last_event_type"`
	Execution      ReplayedRun `json:"execution"`

	Stages          map[string]ReplayedStage   `json:"stages"`
	Frames          map[string]ReplayedFrame   `json:"frames"`
	Commands        map[string]ReplayedCommand `json:"commands"`
	Loops           map[string]ReplayedLoop    `json:"loops"`
	BusinessObjects map[string]json.RawMessage `json:"business_objects"`

	Snapshot    json.RawMessage     `json:"replay_snapshot"` // nil unless asked for and used
	Checksum    Checksum            `json:"checksum"`
	Checksums   map[string]Checksum `json:"projection_checksums"` // by projection
	Truncated   bool                `json:"truncated"`            // the limit kept events out
	NextAfter   ID                  `json:"next_after_event_id"`  // the last event folded, when truncated
	Resolutions json.RawMessage     `json:"payload_resolution"`   // nil unless asked for
}

// Checksum is a digest of canonical JSON.
type Checksum struct {
	Type  string `json:"type"` // sha256
	Value string `json:"value"`
}

// ReplayedRun is the execution as a whole.
type ReplayedRun struct {
	Status       string            `json:"status"` // UNKNOWN until an event gives one
	LastNodeName string            `json:"last_node_name"`
	PayloadRefs  []json.RawMessage `json:"payload_refs"`
}

// ReplayedStage is a run of a looping step, or another piece of work in frames.
type ReplayedStage struct {
	StageID     string `json:"stage_id"`
	Status      string `json:"status"`
	Kind        string `json:"kind"`
	StepName    string `json:"step_name"`
	FrameCount  int64  `json:"frame_count"`
	RowCount    int64  `json:"row_count"`
	FailedCount int64  `json:"failed_count"`
	OpenedBy    ID     `json:"opened_event_id"`
	ClosedBy    ID     `json:"closed_event_id"`
}

// ReplayedFrame is a share of a stage's rows.
type ReplayedFrame struct {
	FrameID   string          `json:"frame_id"`
	StageID   string          `json:"stage_id"`
	CommandID string          `json:"command_id"`
	Status    string          `json:"status"`
	RowCount  int64           `json:"row_count"`
	Attempts  int64           `json:"attempts"`
	OutputRef json.RawMessage `json:"output_ref"`
}

// ReplayedCommand is one instruction to a worker.
type ReplayedCommand struct {
	CommandID string `json:"command_id"`
	Status    string `json:"status"`
	StageID   string `json:"stage_id"`
	FrameID   string `json:"frame_id"`
	WorkerID  string `json:"worker_id"`
	IssuedBy  ID     `json:"issued_event_id"`
	ClaimedBy ID     `json:"claimed_event_id"`
	StartedBy ID     `json:"started_event_id"`
	EndedBy   ID     `json:"terminal_event_id"`
}

// ReplayedLoop counts the iterations of one run of a looping step.
type ReplayedLoop struct {
	LoopID    string `json:"loop_id"`
	StepName  string `json:"step_name"`
	Done      int64  `json:"done"`
	Failed    int64  `json:"failed"`
	Total     *int64 `json:"total"` // nil when unknown
	Completed bool   `json:"completed"`
}

// Replay asks what the log of an execution folds into. An execution without
// events has an empty state. BadRequest when the request makes no sense.
func (c *Client) Replay(ctx context.Context, r ReplayRequest) (Replayed, error) {
	var out Replayed
	err := c.get(ctx, "/api/replay/state?"+r.query(), &out)
	return out, err
}
