package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/scope"
)

// contextInline is how many bytes of values a command's event holds itself.
const contextInline = 512 << 10

// contextRef stands for a command's values when they are kept elsewhere.
type contextRef struct {
	Ref   string `json:"__context_ref__"`
	Bytes int    `json:"__context_bytes__"`
	SHA   string `json:"__context_sha256__,omitempty"` // tells the same values from others
}

// vars encodes the values that a command needs. When one of them is gone,
// missingValue says so.
func (d *decider) vars(of needs) json.RawMessage {
	d.s.missing = ""
	return d.s.commandVars(of)
}

// inline is the values themselves, or what stands for them: what would swell
// the log is stored beside it.
func (d *decider) inline(n *node, vars json.RawMessage) json.RawMessage {
	if len(vars) <= contextInline {
		return vars
	}
	return encode(contextRef{Ref: d.store(n.step.Name+".context", vars), Bytes: len(vars), SHA: digest(vars)})
}

func digest(raw json.RawMessage) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// shareable tells whether values are worth remembering for the next command of
// a loop.
func shareable(vars json.RawMessage) bool { return len(vars) > worthSharing || isContextRef(vars) }

// sameValues tells whether values are those of the command before.
func sameValues(last, vars json.RawMessage) bool {
	if !isContextRef(last) {
		return len(vars) > worthSharing && bytes.Equal(last, vars)
	}
	var ref contextRef
	return json.Unmarshal(last, &ref) == nil && ref.Bytes == len(vars) && ref.SHA == digest(vars)
}

const contextRefPrefix = `{"__context_ref__":`

func isContextRef(vars json.RawMessage) bool { return bytes.HasPrefix(vars, []byte(contextRefPrefix)) }

// store keeps a value beside the log and returns its reference. The place in
// the log makes it unique, so that deciding again gives the same one.
func (d *decider) store(name string, data json.RawMessage) string {
	ref := event.ResultRef{Execution: d.s.id, Name: name, ID: d.s.lastEventID}.String()
	d.plan.Stored = append(d.plan.Stored, Stored{Ref: ref, Name: name, Data: data})
	return ref
}

// resolved is a command's values themselves.
func (s *State) resolved(vars json.RawMessage) json.RawMessage {
	if !isContextRef(vars) {
		return vars
	}
	var ref contextRef
	if json.Unmarshal(vars, &ref) != nil {
		return vars
	}
	return s.whole(ref.Ref)
}

// whole is a value kept elsewhere. When it cannot be had it is nil, and
// missingValue says so.
func (s *State) whole(ref string) json.RawMessage {
	var raw json.RawMessage
	if s.fetch != nil {
		raw = s.fetch(&scope.Reference{Ref: ref})
	}
	if raw == nil {
		s.missing = ref
	}
	return raw
}

// bound is a step's value with the way to what it only summarises.
func (s *State) bound(v *scope.Value) *scope.Value { return v.Bound(s.lookUp) }

// shown is what a step's name shows.
func (s *State) shown(st *step) *scope.Value { return s.chosen(st.name, s.bound(st.result)) }

// chosen adds the names the author gave to parts of a step's result.
func (s *State) chosen(step string, v *scope.Value) *scope.Value {
	if s.prog == nil {
		return v
	}
	return v.Selecting(s.prog.selections[step])
}

// lookUp fetches a value on behalf of a template.
func (s *State) lookUp(ref *scope.Reference) json.RawMessage { return s.whole(ref.Ref) }

// truth evaluates a condition. One that needs a value which is gone is an error.
func (s *State) truth(t *jinja.Template, sc jinja.Scope) (bool, error) {
	s.missing = ""
	ok, err := t.Truth(sc)
	if gone := s.missingValue(); gone != nil {
		return false, gone
	}
	return ok, err
}

// eval evaluates an expression, as truth does.
func (s *State) eval(t *jinja.Tree, sc jinja.Scope) (any, error) {
	s.missing = ""
	v, err := t.Eval(sc)
	if gone := s.missingValue(); gone != nil {
		return nil, gone
	}
	return v, err
}

// missingValue reports, once, that a template asked for a value that could not
// be had.
func (s *State) missingValue() error {
	ref := s.missing
	if s.missing = ""; ref == "" {
		return nil
	}
	return fmt.Errorf("the result %s is not available any more", ref)
}
