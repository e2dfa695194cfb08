package engine

import (
	"encoding/json"
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
)

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
