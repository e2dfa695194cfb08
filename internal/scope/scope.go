// Package scope says what templates see of a step: its data, the accessors
// that make old and new spellings meet, and the engine's own words about it.
// The control plane and the worker bind the same values through it, so that an
// expression means one thing on both sides. It must not know how steps run.
package scope

import (
	"encoding/json"

	"github.com/noetl/noetl-go/internal/jinja"
)

// Loop is what a loop's value knows beyond the list of its results.
type Loop struct {
	Total   int         `json:"total"`
	Success int         `json:"success"`
	Failed  int         `json:"failed"`
	Errors  []LoopError `json:"errors,omitempty"`

	Refs map[int]Reference `json:"refs,omitempty"` // results that are only summaries
}

// LoopError is one failed iteration.
type LoopError struct {
	Index int    `json:"index"`
	Error string `json:"error"`
}

// Info describes a step's result beside its data.
type Info struct {
	Loop     *Loop           `json:"loop,omitempty"`
	Sequence bool            `json:"-"`               // data is {label: data}: inner keys are visible at the top too
	Tasks    bool            `json:"tasks,omitempty"` // the same, and the data shows them already
	Failed   bool            `json:"failed,omitempty"`
	Error    json.RawMessage `json:"error,omitempty"`  // object or string, when Failed
	Ref      *Reference      `json:"ref,omitempty"`    // set when the data at hand is only a summary
	Select   []Selection     `json:"select,omitempty"` // parts with names of their own
}

// Reference says where the whole of a summarised value is kept.
type Reference struct {
	Ref   string `json:"ref"`
	Store string `json:"store,omitempty"`
	URI   string `json:"uri,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Sequence says that the whole is {label: data}, as Info.Sequence does for
	// the data at hand.
	Sequence bool `json:"sequence,omitempty"`
}

// Fetch finds the whole of a summarised value. It reports failure elsewhere
// and returns nil: templates have no way to say that a value is not there now.
type Fetch func(ref *Reference) json.RawMessage

// Value is a step's data with its accessors. It behaves as the data itself and
// also answers, where the data has no such key: data and result (the data),
// results, stats, count and errors (loops), status and error (the outcome),
// _status and _error.
type Value struct {
	raw  json.RawMessage
	data any
	info Info
	done bool

	fetch Fetch // finds the whole when the data is a summary
	whole any
	held  bool // whole is set
}

// Step binds a step's data. data is a native value or json.RawMessage, which
// is decoded when a template first looks inside.
func Step(data any, info Info) *Value {
	v := &Value{info: info}
	if info.Ref != nil && info.Sequence {
		ref := *info.Ref
		ref.Sequence = true
		v.info.Ref = &ref
	}
	if raw, ok := data.(json.RawMessage); ok {
		v.raw = raw
		return v
	}
	v.data, v.done = v.shape(data), true
	return v
}

// Unwrap is the data as templates see it: for a task sequence, labels first
// and the keys of each task's data beside them.
func (v *Value) Unwrap() any {
	if v.info.Ref != nil && v.fetch != nil {
		return v.all()
	}
	return v.decoded()
}

func (v *Value) decoded() any {
	if !v.done {
		d, err := jinja.FromJSON(v.raw)
		if err != nil {
			d = nil // stored results were validated on the way in
		}
		v.data, v.done = v.shape(d), true
	}
	return v.data
}

func (v *Value) shape(data any) any {
	switch d := data.(type) {
	case *jinja.Dict:
		if v.info.Sequence {
			return flatten(d)
		}
	case []any:
		if v.info.Loop != nil {
			v.bindRefs(d)
		}
	}
	return data
}

// bindRefs makes the summaries among a loop's results lead to the whole.
func (v *Value) bindRefs(results []any) {
	for i, ref := range v.info.Loop.Refs {
		if i < len(results) {
			results[i] = Step(results[i], Info{Ref: &ref}).Bound(v.fetch)
		}
	}
}

// Info is what is known of the result beside its data.
func (v *Value) Info() Info { return v.info }

// JSON is the data as templates see it, encoded; of a referenced value, the
// summary.
func (v *Value) JSON() json.RawMessage {
	if v.raw != nil && !v.info.Sequence {
		return v.raw
	}
	b, err := jinja.ToJSON(v.decoded())
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// Attr implements jinja.Object.
func (v *Value) Attr(name string) (any, bool) {
	if v.info.Ref != nil {
		if x, ok := v.referenced(name); ok {
			return x, true
		}
	}
	data := v.decoded()
	if v.info.Failed {
		switch name {
		case "status":
			return StatusError, true
		case "error":
			return v.err(), true
		}
	}
	if d, ok := data.(*jinja.Dict); ok {
		if x, ok := d.Get(name); ok {
			return x, true
		}
	}
	if x, ok := v.selected(name); ok {
		return x, true
	}
	switch name {
	case "data":
		if v.info.Ref != nil {
			return lazy{v, data, nil}, true
		}
		return data, true
	case "result":
		return v, true
	case "status":
		return v.status(), true
	case "error", "_error":
		return v.err(), true
	case "_status":
		return v.status(), true
	case "results":
		if v.info.Sequence || v.info.Tasks || v.info.Loop != nil {
			return v, true
		}
	}
	if v.info.Loop != nil {
		return v.info.Loop.attr(name)
	}
	return v.transport(name)
}

// transport answers http and pg: how a request or a statement ended, as policy
// rules see it.
func (v *Value) transport(name string) (any, bool) {
	var failure struct {
		HTTPStatus int64  `json:"http_status"`
		PGCode     string `json:"pg_code"`
	}
	if v.info.Failed {
		_ = json.Unmarshal(v.info.Error, &failure) // of plain text nothing is known
	}
	d := jinja.NewDict(2)
	switch {
	case name == "pg" && failure.PGCode != "":
		d.Set("code", failure.PGCode)
		d.Set("sqlstate", failure.PGCode)
	case name == "http" && failure.HTTPStatus != 0:
		d.Set("status", failure.HTTPStatus)
	case name == "http":
		data, _ := v.decoded().(*jinja.Dict)
		status, ok := data.Get("status_code")
		if !ok {
			return nil, false
		}
		d.Set("status", status)
		if headers, ok := data.Get("headers"); ok {
			d.Set("headers", headers)
		}
	default:
		return nil, false
	}
	return d, true
}

func (v *Value) status() any {
	if v.info.Failed {
		return StatusError
	}
	return StatusOK
}

func (v *Value) err() any {
	if len(v.info.Error) == 0 {
		return nil
	}
	return v.info.Error
}

func (l *Loop) attr(name string) (any, bool) {
	switch name {
	case "stats":
		d := jinja.NewDict(3)
		d.Set("total", int64(l.Total))
		d.Set("success", int64(l.Success))
		d.Set("failed", int64(l.Failed))
		return d, true
	case "count":
		return int64(l.Total), true
	case "errors":
		out := make([]any, len(l.Errors))
		for i, e := range l.Errors {
			d := jinja.NewDict(2)
			d.Set("index", int64(e.Index))
			d.Set("error", e.Error)
			out[i] = d
		}
		return out, true
	}
	return nil, false
}

// flatten copies the keys of each task's map beside the labels; later tasks
// win over earlier ones, labels over keys.
func flatten(labels *jinja.Dict) *jinja.Dict {
	out := labels.Clone()
	for _, v := range labels.All() {
		inner, ok := v.(*jinja.Dict)
		if !ok {
			continue
		}
		for k, x := range inner.All() {
			if _, isLabel := labels.Get(k); !isLabel {
				out.Set(k, x)
			}
		}
	}
	return out
}
