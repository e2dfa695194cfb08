package engine

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

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
	Child     string           // the execution the news are about
	Signal    string           // the signal.received whose data this is
	Timer     string           // the timer.set whose end this is
	Pending   bool             // the command is done with its worker and waits to be called back
	Attempt   int              // from the event's meta
	Took      time.Duration    // as the worker measured it
}

// readCall reads a payload. The text must be valid JSON of any kind.
func readCall(raw json.RawMessage) *callDetail {
	d := &callDetail{}
	var result, reference json.RawMessage
	members(raw, func(key string, v json.RawMessage) {
		switch key {
		case "command_id":
			d.CommandID = word(v)
		case "status":
			d.Status = word(v)
		case "error":
			if given(v) {
				d.Error = v
			}
		case "data":
			d.Data = v
		case "context_updates":
			d.Updates = v
		case "result":
			result = v
		case "reference":
			reference = v
		case "child_execution_id":
			d.Child = word(v)
		case "signal_event_id":
			d.Signal = word(v)
		case "timer_event_id":
			d.Timer = word(v)
		case "pending_callback":
			d.Pending = d.Pending || isTrue(v)
		case "duration_ms":
			d.took(v)
		case "context":
			members(v, func(key string, v json.RawMessage) {
				d.Pending = d.Pending || key == "pending_callback" && isTrue(v)
			})
		case "park":
			d.readPark(v)
		}
	})
	if given(result) {
		d.readResult(result)
	}
	d.refer(reference)
	return d
}

func (d *callDetail) readPark(raw json.RawMessage) {
	park := &event.Park{}
	if isObject(raw) && json.Unmarshal(raw, park) == nil {
		d.Park = park
	}
}

// callResult is the result member of a payload, or the context within it.
type callResult struct{ context, data, err, reference json.RawMessage }

func (d *callDetail) resultMembers(raw json.RawMessage) (r callResult) {
	members(raw, func(key string, v json.RawMessage) {
		switch key {
		case "context":
			r.context = v
		case "data":
			r.data = v
		case "error":
			r.err = v
		case "reference":
			r.reference = v
		case "pending_callback":
			d.Pending = d.Pending || isTrue(v)
		case "duration_ms":
			d.took(v)
		}
	})
	return r
}

// took notes how many milliseconds a call took; what is no sensible number is
// left out.
func (d *callDetail) took(ms json.RawMessage) {
	n, err := strconv.ParseFloat(string(ms), 64)
	if err == nil && n > 0 && n < float64(math.MaxInt64/time.Millisecond) {
		d.Took = time.Duration(n * float64(time.Millisecond)).Truncate(time.Microsecond)
	}
}

// CallData is what a worker's payload about a command says of its outcome: the
// data, or the reference to where it is kept. Both are nil when it carries none.
func CallData(payload json.RawMessage) (data json.RawMessage, ref *scope.Reference) {
	d := readCall(payload)
	if !given(d.Data) {
		d.Data = nil
	}
	return d.Data, d.Ref
}

// readResult finds data and error in a result: below context.data, as context
// itself, below data, or as the whole of it.
func (d *callDetail) readResult(raw json.RawMessage) {
	if !isObject(raw) {
		d.Data = raw
		return
	}
	r := d.resultMembers(raw)
	switch {
	case isObject(r.context):
		c := d.resultMembers(r.context)
		if d.Data = c.data; c.data == nil && len(r.context) > len("{}") {
			d.Data = r.context
		}
		if d.Error == nil && given(c.err) {
			d.Error = c.err
		}
	case r.data != nil:
		d.Data = r.data
	case r.context == nil:
		d.Data = raw
	default:
		d.Data = r.context
	}
	d.refer(r.reference)
}

// refer takes the data from a reference: its summary, and where the whole is.
func (d *callDetail) refer(raw json.RawMessage) {
	if !isObject(raw) {
		return
	}
	var r struct {
		Ref   string `json:"ref"`
		Store string `json:"store"`
		URI   string `json:"uri"`
		Meta  struct {
			Bytes int64 `json:"bytes"`
		} `json:"meta"`
		Extracted json.RawMessage `json:"extracted"`
	}
	if json.Unmarshal(raw, &r) != nil || r.Ref == "" {
		return
	}
	d.Ref = &scope.Reference{Ref: r.Ref, Store: r.Store, URI: r.URI, Bytes: r.Meta.Bytes}
	d.Data = nonNil(r.Extracted)
}

// word is a value as text: a string's content, a number's digits.
func word(raw json.RawMessage) string {
	switch {
	case !given(raw):
		return ""
	case raw[0] == '"':
		return text(raw)
	}
	return string(raw)
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }

func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
