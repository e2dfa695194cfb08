package engine

import (
	"encoding/json"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
)

// callDetail is the payload of a worker's event about a command. Workers of
// different makes and ages put things in different places and types; what can
// be understood is, and what cannot must not keep a command from ending.
type callDetail struct {
	CommandID string
	Status    string
	Data      json.RawMessage  // the tool's data; nil when the payload carries none
	Error     json.RawMessage  // an object or a string; nil when there is none
	Updates   json.RawMessage  // variables to write
	Ref       *scope.Reference // where the whole of Data is kept
	Park      *event.Park      // what the command waits for
	Pending   bool             // the command is done with its worker and waits to be called back
	Attempt   int              // from the event's meta
}

// callPayload is the payload with every member as it came.
type callPayload struct {
	CommandID json.RawMessage `json:"command_id"`
	Status    json.RawMessage `json:"status"`
	Error     json.RawMessage `json:"error"`
	Data      json.RawMessage `json:"data"`
	Updates   json.RawMessage `json:"context_updates"`
	Result    json.RawMessage `json:"result"`
	Park      json.RawMessage `json:"park"`
	Pending   json.RawMessage `json:"pending_callback"`
	Context   json.RawMessage `json:"context"`
	Reference json.RawMessage `json:"reference"`
}

// callResult is the result member of a payload, or the context within it.
type callResult struct {
	Context json.RawMessage `json:"context"`
	Data    json.RawMessage `json:"data"`
	Error   json.RawMessage `json:"error"`

	Pending   json.RawMessage `json:"pending_callback"`
	Reference json.RawMessage `json:"reference"`
}

// UnmarshalJSON reads any JSON value.
func (d *callDetail) UnmarshalJSON(b []byte) error {
	var p callPayload
	if !isObject(b) {
		return nil
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*d = callDetail{CommandID: word(p.CommandID), Status: word(p.Status), Updates: p.Updates, Data: p.Data}
	d.Pending = isTrue(p.Pending) || isTrue(member(p.Context, "pending_callback"))
	if given(p.Error) {
		d.Error = p.Error
	}
	if isObject(p.Park) {
		park := &event.Park{}
		if json.Unmarshal(p.Park, park) == nil {
			d.Park = park
		}
	}
	if given(p.Result) {
		d.readResult(p.Result)
	}
	d.refer(p.Reference)
	return nil
}

// refer takes the data from a reference: its summary, and where the whole is.
func (d *callDetail) refer(raw json.RawMessage) {
	var r struct {
		Ref   string `json:"ref"`
		Store string `json:"store"`
		URI   string `json:"uri"`
		Meta  struct {
			Bytes int64 `json:"bytes"`
		} `json:"meta"`
		Extracted json.RawMessage `json:"extracted"`
	}
	if !isObject(raw) || json.Unmarshal(raw, &r) != nil || r.Ref == "" {
		return
	}
	d.Ref = &scope.Reference{Ref: r.Ref, Store: r.Store, URI: r.URI, Bytes: r.Meta.Bytes}
	d.Data = nonNil(r.Extracted)
}

// readResult finds data and error in a result: below context.data, as context
// itself, below data, or as the whole of it.
func (d *callDetail) readResult(raw json.RawMessage) {
	var r callResult
	if !isObject(raw) || json.Unmarshal(raw, &r) != nil {
		d.Data = raw
		return
	}
	d.Pending = d.Pending || isTrue(r.Pending)
	defer d.refer(r.Reference)
	switch {
	case isObject(r.Context):
		var c callResult
		_ = json.Unmarshal(r.Context, &c)
		d.Pending = d.Pending || isTrue(c.Pending)
		if d.Data = c.Data; c.Data == nil && len(r.Context) > len("{}") {
			d.Data = r.Context
		}
		if d.Error == nil && given(c.Error) {
			d.Error = c.Error
		}
	case r.Data != nil:
		d.Data = r.Data
	case r.Context == nil:
		d.Data = raw
	default:
		d.Data = r.Context
	}
}

// word is a value as text: a string's content, a number's digits.
func word(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return strings.TrimSpace(string(raw))
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }

// member is one member of an object; nil when there is none.
func member(raw json.RawMessage, key string) json.RawMessage {
	var m map[string]json.RawMessage
	if !isObject(raw) || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m[key]
}

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
