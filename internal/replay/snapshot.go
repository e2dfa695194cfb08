package replay

import (
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
)

// SnapshotType is the aggregate type under which states are kept.
const SnapshotType = "replay_state"

// SnapshotID is the aggregate id under which the state of an execution is
// kept. Every state holds all projections, so one snapshot serves them all.
func SnapshotID(execution event.ID) string {
	return "execution/" + execution.String() + "/" + string(All)
}

// Freeze is what was folded so far, to be thawed and gone on from later, and
// its checksum.
func (f *Fold) Freeze() (state json.RawMessage, checksum string) {
	s := *f.state
	s.Checksum, s.Checksums, s.Snapshot = nil, nil, nil
	state = encode(&s)
	return state, Sum(state).Value
}

// Thaw reads a frozen state. The error is Invalid when it is not the one the
// checksum was taken of; blanks and the order of members may differ, since
// databases keep JSON as they like.
func Thaw(state json.RawMessage, checksum string) (*State, error) {
	text, err := event.Canonical(state)
	if err != nil {
		return nil, err
	}
	if got := Sum(json.RawMessage(text)).Value; got != checksum {
		return nil, event.Errorf(event.Invalid, "the snapshot does not have its checksum")
	}
	var s State
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, event.Errorf(event.Invalid, "the snapshot is not a state: %w", err)
	}
	return s.complete(), nil
}
