package engine

import (
	"encoding/json"
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
)

// StartInput is a request to run a playbook.
type StartInput struct {
	ExecutionID       event.ID
	CatalogID         event.ID
	ParentExecutionID event.ID
	Path              string
	Version           int
	Pool              string            // "" = by path
	Payload           json.RawMessage   // object whose keys replace those of the workload; may be empty
	Environ           map[string]string // what the workload's templates see as env; nothing else of the environment
	Trace             json.RawMessage
	Child             *Child // set when a parked command of the parent asked for the execution
	Rerun             *Rerun // set when an execution is run again
}

// Start makes the first event of an execution. What can be refused is refused
// here, before anything is written: a payload that is no object, a default that
// cannot be evaluated, an entry loop over something that is no list.
func Start(p *Program, in StartInput, env Env) (event.Event, error) {
	workload, err := workloadOf(p, in)
	if err != nil {
		return event.Event{}, err
	}
	raw, err := jinja.ToJSON(workload)
	if err != nil {
		return event.Event{}, event.Errorf(event.Invalid, "workload cannot be stored as JSON: %v", err)
	}
	d := &startDetail{
		CatalogID: event.StringID(in.CatalogID), ExecutionID: event.StringID(in.ExecutionID),
		Path: in.Path, Version: in.Version, Workload: raw,
	}
	meta := &startMeta{EmittedAt: env.Now, Emitter: "control_plane", Pool: firstOf(in.Pool, p.pb.Executor.Pool), Trace: in.Trace}
	if c := in.Child; c != nil {
		returns := c.Request
		returns.Payload = nil
		meta.ParentCommand, meta.Returns, meta.ParentIter, meta.Depth = c.Command, &returns, c.Iter, c.Depth
	}
	if r := in.Rerun; r != nil {
		meta.RerunOf, meta.FromStep = event.StringID(r.Of), r.FromStep
		meta.ParentIter, meta.Depth = r.ParentIter, r.Depth
	}
	e := event.Event{
		ExecutionID: in.ExecutionID, CatalogID: in.CatalogID, ParentExecutionID: in.ParentExecutionID,
		EventID: env.NewID(), CreatedAt: env.Now,
		Type: event.PlaybookStarted, NodeName: in.Path, NodeType: "execution", Status: event.StatusStarted,
		Context: encode(d), Detail: d,
		Meta: encode(meta),
	}
	if meta.FromStep != "" {
		return e, nil // the entry step may not run at all
	}
	return e, checkEntryLoop(p, in, e)
}

// Rerun says which execution is run again, and what its start said that the
// new one keeps.
type Rerun struct {
	Of         event.ID
	FromStep   string // "" for all of it; otherwise a Harvest is taken over before the first decision
	ParentIter json.RawMessage
	Depth      int
}

func checkEntryLoop(p *Program, in StartInput, start event.Event) error {
	entry := p.nodes[p.pb.Entry].step
	if entry.Loop == nil || entry.Loop.In == nil {
		return nil
	}
	s := NewState(in.ExecutionID)
	s.Apply(&start)
	v, err := entry.Loop.In.Eval(names{s: s})
	if err != nil {
		return event.Errorf(event.Invalid, "start step loop.in %q: %v", entry.Loop.InText, err)
	}
	if w, ok := v.(jinja.Wrapper); ok {
		v = w.Unwrap()
	}
	if _, ok := v.([]any); !ok {
		return event.Errorf(event.Invalid, "start step loop.in must resolve to a JSON array, got: %s", jsonType(v))
	}
	return nil
}

// jsonType names a value's JSON type.
func jsonType(v any) string {
	switch v.(type) {
	case nil, jinja.Undefined:
		return "null"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case *jinja.Dict:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}
