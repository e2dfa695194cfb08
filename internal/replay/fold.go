package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Options say whose log is folded and on what.
type Options struct {
	TenantID       string
	OrganizationID string
	ExecutionID    event.ID
	Projection     Projection // All when empty; a label
	// Base is a state to go on from: only events after its last one are to be
	// applied. It is copied.
	Base *State
	// Seed is the snapshot Base came from, for the state to name; nil keeps it
	// unnamed, which leaves the checksum as it is without a snapshot.
	Seed *SnapshotNote
	// UpcasterDigest names the rules events were brought up to date with; "" is
	// that of Base.
	UpcasterDigest string
}

// Fold folds events one by one, in the order of the log. Its memory grows with
// the state, not with the log. The zero value is not usable; see NewFold.
type Fold struct {
	state *State
}

// NewFold begins a fold.
func NewFold(o Options) *Fold {
	s := newState()
	if o.Base != nil {
		s = o.Base.clone()
	}
	s.TenantID, s.OrganizationID, s.ExecutionID = o.TenantID, o.OrganizationID, o.ExecutionID
	s.Projection = cmp.Or(o.Projection, All)
	s.UpcasterDigest = cmp.Or(o.UpcasterDigest, s.UpcasterDigest)
	s.Snapshot = o.Seed
	return &Fold{state: s}
}

// clone is a deep copy without checksums.
func (s *State) clone() *State {
	var out State
	if err := json.Unmarshal(encode(s), &out); err != nil {
		panic("replay: decode own state: " + err.Error())
	}
	out.Checksum, out.Checksums, out.Snapshot = nil, nil, nil
	return out.complete()
}

// Records folds the records of one execution, given in any order.
func Records(records []Record, o Options) *State {
	f := NewFold(o)
	for _, r := range sorted(records) {
		f.Apply(r)
	}
	return f.State()
}

// State is what was folded so far, with checksums. It shares its maps with the
// fold: applying more events changes it.
func (f *Fold) State() *State { return f.state.summed() }

// Count is how many events the state holds.
func (f *Fold) Count() int64 { return f.state.EventCount }

// Last is the event folded last; 0 when there is none.
func (f *Fold) Last() event.ID { return f.state.LastEventID }

// Apply folds one record.
func (f *Fold) Apply(r *Record) {
	meta := objectOf(r.Meta)
	f.apply(r, meta, r.identify(meta))
}

func (f *Fold) apply(r *Record, meta object, id identity) {
	s := f.state
	s.EventCount++
	s.LastEventID, s.LastEventType = r.EventID, r.Type
	ref := r.valueRef()
	f.foldExecution(r, ref)
	if id.stage != "" {
		f.foldStage(r, meta, id)
	}
	if id.frame != "" {
		f.foldFrame(r, meta, id, ref)
	}
	if id.command != "" {
		f.foldCommand(r, meta, id)
	}
	if id.loop != "" {
		f.foldLoop(r, meta, id)
	}
	if id.object != (objectKey{}) {
		f.foldObject(r, meta, id.object, ref)
	}
}

func (f *Fold) foldExecution(r *Record, ref *ValueRef) {
	x := &f.state.Execution
	if ref != nil {
		x.PayloadRefs = append(x.PayloadRefs, *ref)
	}
	switch r.Type {
	case event.PlaybookCompleted, "playbook_completed", "workflow.completed", "execution.completed":
		x.Status = event.StatusCompleted
	case event.PlaybookFailed, "playbook_failed", "workflow.failed", "execution.failed":
		x.Status = event.StatusFailed
	case event.PlaybookCancelled, "playbook_cancelled", "workflow.cancelled", "execution.cancelled":
		x.Status = event.StatusCancelled
	case event.StepEnter, "step_enter", "step_started":
		if x.Status == Unknown {
			x.Status = event.StatusRunning
		}
		x.LastNodeName = cmp.Or(r.NodeName, x.LastNodeName)
	case event.StepExit, "step_completed", event.CommandCompleted:
		x.LastNodeName = cmp.Or(r.NodeName, x.LastNodeName)
	}
}

func (f *Fold) foldStage(r *Record, meta object, id identity) {
	st := f.state.Stages[id.stage]
	if st == nil {
		st = &Stage{
			StageID: id.stage, Status: Unknown,
			Kind: meta.text("kind"), StepName: cmp.Or(r.NodeName, meta.text("step_name")),
		}
		f.state.Stages[id.stage] = st
	}
	st.LastEventID = r.EventID
	st.ParentStageID = cmp.Or(meta.text("parent_stage_id"), st.ParentStageID)
	st.LoopEventID = cmp.Or(id.loop, st.LoopEventID)
	switch id.stageType {
	case "stage.opened":
		st.Status, st.OpenedEventID = "OPEN", r.EventID
	case "stage.closed":
		st.Status, st.ClosedEventID = cmp.Or(r.Status, "CLOSED"), r.EventID
		meta.count("frame_count", &st.FrameCount)
		meta.count("row_count", &st.RowCount)
		meta.count("events_emitted", &st.EventsEmitted)
		meta.count("failed_count", &st.FailedCount)
	default:
		st.Status = cmp.Or(r.Status, st.Status)
	}
}

// count takes over a member that is an integer.
func (o object) count(key string, into *int64) {
	if n, ok := o.integer(key); ok {
		*into = n
	}
}

func (f *Fold) foldFrame(r *Record, meta object, id identity, ref *ValueRef) {
	fr := f.state.Frames[id.frame]
	if fr == nil {
		fr = &Frame{FrameID: id.frame, Status: Unknown}
		f.state.Frames[id.frame] = fr
	}
	fr.LastEventID = r.EventID
	fr.StageID = cmp.Or(id.ofStage, fr.StageID)
	fr.ParentFrameID = cmp.Or(meta.text("parent_frame_id"), fr.ParentFrameID)
	fr.CommandID = cmp.Or(id.command, fr.CommandID)
	switch id.frameType {
	case "frame.dispatched":
		attempt := int64(1)
		meta.count("attempt", &attempt)
		fr.Status, fr.ClaimedEventID, fr.Attempts = event.StatusClaimed, r.EventID, max(fr.Attempts, attempt)
	case "frame.started":
		fr.Status = event.StatusRunning
	case "frame.abandoned":
		fr.Status = cmp.Or(r.Status, "ABANDONED")
	case event.FrameCommitted:
		meta.count("row_count", &fr.RowCount)
		fr.end(r, meta, ref, event.StatusCompleted)
	case "frame.failed":
		fr.end(r, meta, ref, event.StatusFailed)
	default:
		fr.Status = cmp.Or(r.Status, fr.Status)
	}
}

func (fr *Frame) end(r *Record, meta object, ref *ValueRef, status string) {
	fr.Status, fr.TerminalEventID = cmp.Or(r.Status, status), r.EventID
	meta.count("events_emitted", &fr.EventsEmitted)
	fr.OutputRef, fr.OutputRefSummary = nil, &Summary{}
	if ref != nil {
		fr.OutputRef, fr.OutputRefSummary = ref.Reference, &ref.Summary
	}
}

func (f *Fold) foldCommand(r *Record, meta object, id identity) {
	c := f.state.Commands[id.command]
	if c == nil {
		c = &Command{CommandID: id.command, Status: Unknown}
		f.state.Commands[id.command] = c
	}
	c.LastEventID = r.EventID
	c.StageID = cmp.Or(id.ofStage, c.StageID)
	c.FrameID = cmp.Or(id.ofFrame, c.FrameID)
	c.ParentCommandID = cmp.Or(meta.text("parent_command_id"), c.ParentCommandID)
	c.WorkerLocator = cmp.Or(meta.text("worker_locator"), c.WorkerLocator)
	c.WorkerID = cmp.Or(r.WorkerID, meta.text("worker_id"), c.WorkerID)
	if !strings.HasPrefix(string(r.Type), "command.") {
		return
	}
	f.state.settle(c, r, meta)
	status := c.Status
	switch r.Type {
	case event.CommandIssued:
		status, c.IssuedEventID = event.StatusPending, r.EventID
	case event.CommandClaimed:
		status, c.ClaimedEventID = event.StatusClaimed, r.EventID
	case event.CommandStarted:
		status, c.StartedEventID = event.StatusRunning, r.EventID
	case event.CommandCompleted:
		status, c.TerminalEventID = event.StatusCompleted, r.EventID
	case event.CommandFailed:
		status, c.TerminalEventID = event.StatusFailed, r.EventID
	case event.CommandCancelled:
		status, c.TerminalEventID = event.StatusCancelled, r.EventID
	}
	c.Status = cmp.Or(r.Status, status)
}

func (f *Fold) foldLoop(r *Record, meta object, id identity) {
	l := f.state.Loops[id.loop]
	if l == nil {
		l = &Loop{LoopID: id.loop, StepName: r.NodeName}
		for _, key := range []string{"total", "collection_size"} {
			if n, ok := meta.integer(key); ok {
				l.Total = &n
			}
		}
		f.state.Loops[id.loop] = l
	}
	l.LastEventID = r.EventID
	switch id.loopType {
	case event.CommandCompleted, "loop.shard.done":
		l.Done++
	case event.CommandFailed, "loop.shard.failed":
		l.Failed++
	case event.LoopDone, "loop.fanin.completed":
		l.Completed = true
	}
}

func (f *Fold) foldObject(r *Record, meta object, key objectKey, ref *ValueRef) {
	o := f.state.Objects[key.String()]
	if o == nil {
		o = &BusinessObject{
			ObjectKey: key.String(), ObjectType: key.typ, ObjectID: key.id, Status: Unknown, FirstEventID: r.EventID,
			Attributes: map[string]json.RawMessage{}, PayloadRefs: []ValueRef{},
		}
		f.state.Objects[key.String()] = o
	}
	o.LastEventID, o.LastEventType = r.EventID, r.Type
	o.EventCount++
	about := meta.object("business_object")
	o.Version = o.EventCount
	meta.count("business_object_version", &o.Version)
	about.count("version", &o.Version)
	if status := cmp.Or(r.Status, objectStatus(r.Type)); status != "" {
		if o.Status = status; status == deleted {
			o.DeletedEventID = r.EventID
		}
	}
	o.describe(about)
	if ref != nil {
		o.PayloadRefs = append(o.PayloadRefs, *ref)
		o.LastPayloadRef = ref
	}
}

// objectStatus is what the name of an event says became of an object.
func objectStatus(t event.Type) string {
	name := strings.ToLower(string(t))
	for _, suffix := range []string{".deleted", ".removed"} {
		if strings.HasSuffix(name, suffix) {
			return deleted
		}
	}
	for _, suffix := range []string{".created", ".updated", ".upserted"} {
		if strings.HasSuffix(name, suffix) {
			return "ACTIVE"
		}
	}
	return ""
}

// deleted is the status of an object that is no more.
const deleted = "DELETED"

// describe takes over the attributes an event gives: a state replaces them, a
// patch is laid over them.
func (o *BusinessObject) describe(about object) {
	if state := about.object("state"); state != nil {
		clear(o.Attributes)
		o.merge(state)
	}
	patch, ok := about.value("patch")
	if !ok {
		patch = about["attributes"]
	}
	o.merge(objectOf(patch))
}

func (o *BusinessObject) merge(attributes object) {
	for k, raw := range maps.All(attributes) {
		if v := kept(raw); v != nil {
			o.Attributes[k] = v
		}
	}
}
