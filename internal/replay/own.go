package replay

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/noetl/noetl-go/internal/event"
)

// ApplyEvent folds an event of our own log.
//
// Our log speaks of looping steps without naming stages, frames and loops, so
// they are named here. A run of a looping step is a stage and a loop, both
// called by the id of the step.enter that began it; a frame of a cursor loop is
// called <stage>/<number>. Their rows say when each began and ended and how
// many iterations it took, and the commands of the run carry its id. An event
// that names its stage, frame or loop itself is taken at its word.
func (f *Fold) ApplyEvent(e *event.Event) {
	r := RecordOf(e)
	meta := objectOf(r.Meta)
	id := r.identify(meta)
	if id.stage == "" && id.frame == "" && id.loop == "" {
		meta = f.place(e, meta, &id)
	}
	f.apply(&r, meta, id)
}

// RecordOf is an event of our log as a record. Workers put the reference to a
// large result into the report that the result's context holds.
func RecordOf(e *event.Event) Record {
	r := Record{
		Position: e.Seq, EventID: e.EventID, Type: e.Type, NodeName: e.NodeName, Status: e.Status,
		CommandID: Text(e.CommandID), WorkerID: e.WorkerID, Meta: e.Meta, Result: e.Result,
	}
	if e.CommandID == "" || !mayRefer(e.Result) || r.valueRef() != nil {
		return r
	}
	if report := objectOf(e.Result).object("context"); report != nil {
		if ref, ok := report.object("result").value("reference"); ok {
			r.PayloadRef = ref
		} else if ref, ok := report.value("reference"); ok {
			r.PayloadRef = ref
		}
	}
	return r
}

// place finds the stage, frame and loop an event of the engine belongs to, and
// returns its meta with what the event's payload adds to it.
func (f *Fold) place(e *event.Event, meta object, id *identity) object {
	if e.WorkerID != "" && e.Type != event.CommandIssued {
		f.placeReport(e, id)
		return meta
	}
	switch e.Type {
	case event.StepEnter:
		return f.enter(e, meta, id)
	case event.LoopDone, event.StepExit, event.StepFailed:
		return f.leave(e, meta, id)
	case event.FrameCommitted:
		if st := f.run(e); st != nil {
			id.ofStage, id.frame = st.StageID, frameID(st, objectOf(e.Result).object("context"))
			return meta.with(objectOf(e.Result).object("context"), "row_count", "row_count")
		}
	case event.CommandIssued:
		f.issue(e, meta, id)
	default:
		f.placeReport(e, id)
	}
	return meta
}

// run is the looping step whose beginning caused an event.
func (f *Fold) run(e *event.Event) *Stage {
	if st := f.state.Stages[e.ParentEventID.String()]; st != nil && st.OpenedEventID == e.ParentEventID && st.StepName == e.NodeName {
		return st
	}
	return nil
}

// enter opens the stage of a looping step.
func (f *Fold) enter(e *event.Event, meta object, id *identity) object {
	detail := objectOf(e.Result).object("context")
	_, counted := detail.integer("iterations_expected")
	kind := "loop"
	if detail.object("cursor") != nil {
		kind = "cursor"
	} else if !counted {
		return meta
	}
	id.stage, id.loop, id.stageType = e.EventID.String(), e.EventID.String(), "stage.opened"
	meta = meta.with(detail, "iterations_expected", "collection_size")
	meta["kind"] = json.RawMessage(strconv.Quote(kind))
	return meta
}

// leave closes the stage of a looping step, for better or worse.
func (f *Fold) leave(e *event.Event, meta object, id *identity) object {
	st := f.run(e)
	if st == nil {
		return meta
	}
	id.stage, id.loop, id.stageType = st.StageID, st.LoopEventID, "stage.closed"
	if e.Type != event.StepFailed {
		id.loopType = event.LoopDone
	}
	detail := objectOf(e.Result).object("context")
	meta = meta.with(detail, "iterations", "row_count").with(detail, "failed", "failed_count")
	frames := int64(0)
	for _, fr := range f.state.Frames {
		if fr.StageID == st.StageID {
			frames++
		}
	}
	meta["frame_count"] = strconv.AppendInt(nil, frames, 10)
	return meta
}

// issue puts a command below the run it belongs to. The command that asks a
// cursor for rows is the one its frame names.
func (f *Fold) issue(e *event.Event, meta object, id *identity) {
	st := f.run(e)
	if st == nil {
		return
	}
	id.ofStage = st.StageID
	if at := meta.object("cursor"); at != nil {
		id.ofFrame = frameID(st, at)
		if at.text("phase") == "claim" {
			id.frame, id.frameType = id.ofFrame, "frame.dispatched"
		}
	}
}

func frameID(st *Stage, detail object) string {
	return st.StageID + "/" + cmp.Or(detail.text("frame"), "0")
}

// placeReport counts the first end of a command for the loop it belongs to.
func (f *Fold) placeReport(e *event.Event, id *identity) {
	c := f.state.Commands[e.CommandID]
	if c == nil || c.TerminalEventID != 0 || !e.Type.IsCommandEnd() {
		return
	}
	st := f.state.Stages[c.StageID]
	if st == nil || st.LoopEventID == "" {
		return
	}
	if fr := f.state.Frames[c.FrameID]; fr != nil && fr.CommandID == c.CommandID {
		return // it brought rows, and was none
	}
	id.loop, id.loopType = st.LoopEventID, e.Type
	if endOf(e.Type, e.Status) == event.StatusFailed {
		id.loopType = event.CommandFailed
	}
}

// with is o with the member of another object under a name of ours. It is a
// copy, or o itself where nothing is shared.
func (o object) with(from object, key, name string) object {
	if o == nil {
		o = object{}
	}
	if raw, ok := from.value(key); ok {
		o[name] = raw
	}
	return o
}

// endOf is the final status a command's ending means: a tool that failed ends
// its command with command.completed and a status that says so.
func endOf(t event.Type, status string) string {
	switch t {
	case event.CommandCancelled:
		return event.StatusCancelled
	case event.CommandFailed:
		return event.StatusFailed
	}
	switch status {
	case event.ToolError, event.ToolTimeout, "failed", event.StatusFailed:
		return event.StatusFailed
	case event.StatusCancelled:
		return event.StatusCancelled
	}
	return event.StatusCompleted
}
