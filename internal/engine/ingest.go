package engine

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Ingest turns an event that a worker or client reports into its stored form:
// status filled in, payload wrapped in the result envelope, the command it
// speaks of in its own column.
func Ingest(s *State, in event.Incoming, worker string, env Env) (event.Event, error) {
	if in.Type == "" {
		return event.Event{}, event.Errorf(event.Invalid, "event_type is missing")
	}
	if in.Type.IsExecution() || decisions[in.Type.Canonical()] {
		return event.Event{}, event.Errorf(event.Invalid, "event_type %s is written by the control plane only", in.Type)
	}
	if worker == "" && stepNotes[in.Type.Canonical()] {
		worker = Anonymous
	}
	e := event.Event{
		ExecutionID: s.id, CatalogID: s.catalogID, EventID: in.EventID, CreatedAt: in.CreatedAt.UTC(),
		Type: in.Type, NodeName: in.Step, Status: in.Status, WorkerID: worker,
	}
	if e.EventID == 0 {
		e.EventID = env.NewID()
	}
	e.CreatedAt = e.CreatedAt.Truncate(time.Microsecond)      // as stores keep it
	if in.CreatedAt.IsZero() || in.CreatedAt.After(env.Now) { // a fast clock must not make an execution look fresh
		e.CreatedAt = env.Now
	}
	if e.Status == "" {
		e.Status = in.Type.DerivedStatus()
	}
	if err := fillPayload(&e, s, in); err != nil {
		return event.Event{}, err
	}
	return e, nil
}

// decisions are the types that only the engine may write: who could report one
// could steer the execution.
var decisions = map[event.Type]bool{
	event.NextEvaluated: true, event.CtxUpdated: true, event.CommandIssued: true,
	event.CommandReleased: true, event.LoopDone: true, event.TimerSet: true, event.TimerFired: true, event.ChildIssued: true,
	event.FrameCommitted: true, event.StepReused: true, event.RerunPrepared: true,
	event.SignalReceived: true, event.SignalRefused: true,
}

// stepNotes are types that workers of other makes send beside their command's
// end. They are kept as notes; the fold tells them from the engine's own by
// their worker.
var stepNotes = map[event.Type]bool{
	event.StepEnter: true, event.StepExit: true, event.StepSkipped: true, event.StepFailed: true,
}

// Anonymous is the worker of a note whose sender gave no name.
const Anonymous = "anonymous"

// incomingMeta is what the engine reads of a reported event's meta.
type incomingMeta struct {
	CommandID string `json:"command_id"`
	Attempt   int    `json:"attempt"`
	Pending   bool   `json:"pending_callback"`
	Index     *int   `json:"iteration_index"` // of the command, from callers who do not know it
}

// fillPayload sets result, meta, command id and what the fold will read.
func fillPayload(e *event.Event, s *State, in event.Incoming) error {
	var m incomingMeta
	if !isObject(in.Meta) {
		in.Meta = nil
	}
	if len(in.Meta) > 0 {
		if err := json.Unmarshal(in.Meta, &m); err != nil && !json.Valid(in.Meta) {
			return event.Errorf(event.Invalid, "meta of %s: %v", in.Type, err)
		}
	}
	if len(in.Payload) > 0 && !json.Valid(in.Payload) {
		return event.Errorf(event.Invalid, "payload of %s is not JSON", in.Type)
	}
	d := readCall(in.Payload)
	d.Attempt, d.Pending = m.Attempt, d.Pending || m.Pending
	byReference := in.ResultKind == "ref" && in.ResultURI != "" || in.ResultKind == "refs" && len(in.EventIDs) > 0
	if byReference && isToolFailure(d.Status) {
		e.Status = event.StatusFailed // the payload, which says so, is not stored
	}
	e.Result = resultEnvelope(e.Status, in)
	e.Meta = noteMeta(in)
	if e.CommandID = firstOf(m.CommandID, d.CommandID); e.CommandID == "" && in.Type.Canonical() == event.CallDone {
		e.CommandID = s.waitingAt(in.Step, callerOf(d, m))
	}
	e.Duration = d.Took
	if raw := d.Error; len(raw) > 0 {
		e.Error = errorText(raw)
	}
	if c, ok := s.commands[e.CommandID]; ok {
		e.ParentEventID, e.NodeName, e.NodeType = c.EventID, c.Step, c.Kind
		if calledBack := c.wait != nil && c.wait.park.Callback != "" && in.Type.Canonical() == event.CallDone; c.wait != nil && !calledBack && e.WorkerID == "" {
			e.WorkerID = Anonymous // the control plane alone ends other waits
		}
	}
	if in.Type.Canonical() == event.CommandParked && d.Park == nil {
		return event.Errorf(event.Invalid, "payload of %s: park is missing or cannot be read", in.Type)
	}
	if !byReference { // else the fold sees what a reader of the log will see
		e.Detail = d
	}
	return nil
}

// resultEnvelope wraps a payload by its kind: data, one reference, or several
// event ids.
func resultEnvelope(status string, in event.Incoming) json.RawMessage {
	word := encode(status)
	switch {
	case in.ResultKind == "ref" && in.ResultURI != "":
		return encode(map[string]any{"status": status, "reference": map[string]string{
			"store_tier": storeTier(in.ResultURI), "logical_uri": in.ResultURI,
		}})
	case in.ResultKind == "refs" && len(in.EventIDs) > 0:
		return encode(map[string]any{"status": status, "reference": map[string]any{
			"event_ids": in.EventIDs, "total_parts": len(in.EventIDs),
		}})
	}
	b := append([]byte(`{"status":`), word...)
	if isObject(in.Payload) {
		b = append(b, `,"context":`...)
		b = append(b, in.Payload...)
	}
	return append(b, '}')
}

func storeTier(uri string) string {
	switch {
	case strings.HasPrefix(uri, "gs://"):
		return "gcs"
	case strings.HasPrefix(uri, "s3://"):
		return "s3"
	}
	return "artifact"
}

// noteMeta keeps the reporter's meta and its two flags.
func noteMeta(in event.Incoming) json.RawMessage {
	o := newObject()
	o.merge(bytes.TrimSpace(in.Meta))
	if in.Actionable != nil {
		o.value("actionable", *in.Actionable)
	}
	if in.Informative != nil {
		o.value("informative", *in.Informative)
	}
	return o.bytes()
}

func isObject(raw json.RawMessage) bool {
	t := bytes.TrimSpace(raw)
	return len(t) > 0 && t[0] == '{'
}
