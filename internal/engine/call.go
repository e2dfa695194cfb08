package engine

import (
	"encoding/json"
	"strings"
)

// callDetail is the payload of a worker's event about a command. Workers of
// different makes and ages put things in different places and types; what can
// be understood is, and what cannot must not keep a command from ending.
type callDetail struct {
	CommandID string
	Status    string
	Data      json.RawMessage // the tool's data; nil when the payload carries none
	Error     json.RawMessage // an object or a string; nil when there is none
	Updates   json.RawMessage // variables to write
	Attempt   int             // from the event's meta
}

// callPayload is the payload with every member as it came.
type callPayload struct {
	CommandID json.RawMessage `json:"command_id"`
	Status    json.RawMessage `json:"status"`
	Error     json.RawMessage `json:"error"`
	Data      json.RawMessage `json:"data"`
	Updates   json.RawMessage `json:"context_updates"`
	Result    json.RawMessage `json:"result"`
}

// callResult is the result member of a payload, or the context within it.
type callResult struct {
	Context json.RawMessage `json:"context"`
	Data    json.RawMessage `json:"data"`
	Error   json.RawMessage `json:"error"`
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
	if given(p.Error) {
		d.Error = p.Error
	}
	if given(p.Result) {
		d.readResult(p.Result)
	}
	return nil
}

// readResult finds data and error in a result: below context.data, as context
// itself, below data, or as the whole of it.
func (d *callDetail) readResult(raw json.RawMessage) {
	var r callResult
	if !isObject(raw) || json.Unmarshal(raw, &r) != nil {
		d.Data = raw
		return
	}
	switch {
	case isObject(r.Context):
		var c callResult
		_ = json.Unmarshal(r.Context, &c)
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

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
