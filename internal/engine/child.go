package engine

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
)

// Child is an execution that a parked command asked for.
type Child struct {
	ID      event.ID
	Command string // the command that asked
	Request event.ChildRequest
	Iter    json.RawMessage // the iteration it was asked for in; nil outside loops
	Depth   int             // how many executions it is within
}

// Children lists the executions that parked commands wait for, oldest first.
func (s *State) Children() []Child {
	var out []Child
	for _, c := range s.OpenCommands() {
		if c.wait != nil && c.wait.child != 0 {
			out = append(out, s.childOf(c))
		}
	}
	return out
}

func (s *State) childOf(c *Command) Child {
	child := Child{ID: c.wait.child, Command: c.ID, Request: *c.wait.park.Child, Depth: s.depth + 1}
	r := s.currentRun(c.Step, c.Gen)
	switch {
	case r == nil || c.Index < 0:
	case r.loop != nil:
		child.Iter = r.loop.iter(s, c.Index)
	case r.cursor != nil:
		if f := r.cursor.frame(c.place.Frame); f != nil {
			var total int
			child.Iter = r.cursor.iter(s, f, c.Index, &total)
		}
	}
	return child
}

// awaited is the child for whose end a command waits; 0 when it does not.
func (s *State) awaited(command string) event.ID {
	if c := s.commands[command]; c != nil && c.wait != nil && c.wait.child != 0 && c.wait.park.Child.Wait {
		return c.wait.child
	}
	return 0
}

// abandon notes a child whose parent has stopped waiting. One that this very
// plan would have started is not started.
func (pl *Plan) abandon(child event.ID) {
	if i := slices.IndexFunc(pl.Children, func(c Child) bool { return c.ID == child }); i >= 0 {
		pl.Children = slices.Delete(pl.Children, i, i+1)
		return
	}
	pl.Abandoned = append(pl.Abandoned, child)
}

// childDetail is the context of child.issued. The child's execution has the id
// of that event.
type childDetail struct {
	CommandID string         `json:"command_id"`
	Path      string         `json:"path,omitempty"`
	CatalogID event.StringID `json:"catalog_id,omitempty"`
	Version   int            `json:"version,omitempty"`
	Wait      bool           `json:"wait,omitempty"`
}

func (s *State) applyChild(e *event.Event) Effect {
	d := resultOf[childDetail](e)
	c := s.commands[d.CommandID]
	if c == nil || c.wait == nil || c.wait.park.Child == nil || c.wait.child != 0 || e.WorkerID != "" {
		return Effect{Ignored: IgnoredLate}
	}
	w := *c.wait
	w.child, w.arranged = e.EventID, true
	s.touchCommand(c).wait = &w
	s.parked = without(s.parked, c)
	return Effect{}
}

// Started is what a step gets that starts a child and does not wait for it.
func (c Child) Started(path string) json.RawMessage {
	o := newObject()
	o.value("status", "started")
	o.value("execution_id", c.ID.String())
	o.value("path", path)
	o.value("async", true)
	return o.bytes()
}

// Returned is what an ended child gives to the step that waits for it, or why
// it gives nothing.
func Returned(child *State, req event.ChildRequest) (data, failure json.RawMessage) {
	if child.status != event.StatusCompleted {
		return nil, encode(map[string]any{
			"kind": "child", "code": "CHILD_" + child.status, "retryable": false,
			"message": childFailure(child), "details": map[string]string{"execution_id": child.id.String(), "path": child.path},
		})
	}
	var value any
	switch {
	case req.ReturnResult:
		value = child.resultOf(req.ResultStep)
	case req.ReturnStep != "":
		value = child.answer(child.resultOf(req.ReturnStep))
	default:
		value = child.answer(nil)
	}
	b, err := jinja.ToJSON(value)
	if err == nil {
		err = child.missingValue()
	}
	if err != nil {
		return nil, encode(map[string]any{
			"kind": "child", "code": "CHILD_RESULT", "retryable": false,
			"message": fmt.Sprintf("the result of playbook %s (execution %s) cannot be read: %v", child.path, child.id, err),
		})
	}
	return b, nil
}

func childFailure(child *State) string {
	word := "failed"
	if child.status == event.StatusCancelled {
		word = "was cancelled"
	}
	text := fmt.Sprintf("playbook %s (execution %s) %s", child.path, child.id, word)
	if child.errorText != "" {
		text += ": " + child.errorText
	}
	return text
}

// answer is the data of a step beside the child's status. Keys of the data win.
func (s *State) answer(data any) any {
	out := jinja.NewDict(4)
	out.Set("status", s.status)
	out.Set("execution_id", s.id.String())
	out.Set("path", s.path)
	switch d := data.(type) {
	case nil:
	case *jinja.Dict:
		for k, v := range d.All() {
			out.Set(k, v)
		}
	default:
		out.Set("data", d)
	}
	return out
}

// resultOf is the data of a step. Without a name it is what the execution as a
// whole produced: the data of `end` unless that is only a marker, else of the
// step that ended last.
func (s *State) resultOf(name string) any {
	if name != "" {
		if st := s.steps[name]; st != nil && st.result != nil {
			return s.shown(st).Unwrap()
		}
		return nil
	}
	if end := s.steps["end"]; end != nil && end.cur != nil && end.result != nil && end.cur.phase == completed && end.kind != "" && end.kind != "noop" {
		return s.shown(end).Unwrap()
	}
	var last *step
	for _, at := range s.order {
		st := s.steps[at]
		if st.result == nil || st.cur == nil || st.cur.phase != completed || st.kind == "" || at == "end" && st.kind == "noop" {
			continue
		}
		if last == nil || st.cur.ended > last.cur.ended {
			last = st
		}
	}
	if last == nil {
		return nil
	}
	return s.shown(last).Unwrap()
}

// Reference is the member by which a result's event refers to data that is
// kept elsewhere, with a summary in its place.
func Reference(r event.StoredResult, summary json.RawMessage) json.RawMessage {
	return encode(map[string]any{
		"kind": "result_ref", "ref": r.Ref, "store": r.Store, "scope": r.Scope,
		"meta": map[string]any{
			"bytes": r.Bytes, "sha256": r.SHA256, "media_type": "application/json", "content_type": "application/json",
		},
		"extracted": summary,
	})
}

// ChildNews makes the event that wakes a command which waits for a child:
// the child has started, or ended, or cannot be started. It returns false when
// the command does not wait for it any more.
func ChildNews(s *State, child Child, data, failure json.RawMessage, ref json.RawMessage, env Env) (event.Event, bool) {
	c := s.commands[child.Command]
	if c == nil || c.wait == nil || c.wait.child != child.ID {
		return event.Event{}, false
	}
	return s.news(c, "child_execution_id", child.ID, data, failure, ref, env), true
}

// news is the event that tells a parked command how what it waits for came out:
// data or a failure, and where from.
func (s *State) news(c *Command, source string, from event.ID, data, failure, ref json.RawMessage, env Env) event.Event {
	status, word := event.StatusCompleted, event.ToolSuccess
	if len(failure) > 0 {
		status, word = event.StatusFailed, event.ToolError
	}
	o := newObject()
	o.value("command_id", c.ID)
	o.value(source, from.String())
	o.value("status", word)
	if len(failure) > 0 {
		o.raw("error", failure)
	} else {
		inner := newObject()
		inner.raw("data", nonNil(data))
		result := newObject()
		result.value("status", word)
		result.raw("context", inner.bytes())
		if len(ref) > 0 {
			result.raw("reference", ref)
		}
		o.raw("result", result.bytes())
	}
	e := s.commandEvent(c, event.CallDone, status, env)
	e.Error = errorText(failure)
	e.Result = envelope(status, o.bytes())
	e.Meta = emittedByOrchestrator
	return e
}
