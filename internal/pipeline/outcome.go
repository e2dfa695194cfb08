package pipeline

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/tool"
)

// outcome is what one try of a task came to.
type outcome struct {
	result  *tool.Result // nil when the tool was not reached or gave none
	err     *tool.Error  // nil on success
	data    json.RawMessage
	stored  *tool.Stored // where the data is when it was too large to hold; data then is a summary
	fetch   scope.Fetch  // finds the whole of it
	attempt int
	took    time.Duration

	bound *scope.Value
}

var null = json.RawMessage("null")

// settle fixes the data: the tool's own, or for a failure without any a short
// account of it, so that what a rule lets pass is never silently empty.
func (o *outcome) settle(fetch scope.Fetch) {
	o.data = null
	if o.result != nil && o.result.Stored != nil {
		o.keepStored(o.result.Stored, fetch)
		return
	}
	if o.result != nil && len(o.result.Data) > 0 {
		o.data = o.result.Data
		return
	}
	if o.err != nil {
		d := jinja.NewDict(2)
		d.Set("status", "error")
		d.Set("error", o.err.Message)
		o.data, _ = jinja.ToJSON(d) // two strings always have a JSON form
	}
}

// keepStored takes data that the tool has put aside. Of what is not JSON all
// there is to see is where it is.
func (o *outcome) keepStored(at *tool.Stored, fetch scope.Fetch) {
	if len(at.Summary) == 0 {
		d := object("_ref", at.Ref, "bytes", at.Bytes, "media_type", at.MediaType, "sha256", at.SHA256)
		o.data, _ = jinja.ToJSON(d) // words and a number always have a JSON form
		return
	}
	o.stored, o.data, o.fetch = at, at.Summary, fetch
}

// value is the data as templates see it under the task's label.
func (o *outcome) value() *scope.Value {
	if o.bound == nil {
		var info scope.Info
		if o.err != nil {
			info.Failed = true
			info.Error, _ = json.Marshal(o.err)
		}
		if at := o.stored; at != nil {
			info.Ref = &scope.Reference{Ref: at.Ref, Store: at.Store, Bytes: at.Bytes}
		}
		o.bound = scope.Step(o.data, info).Bound(o.fetch)
	}
	return o.bound
}

// field answers the fields of the envelope.
func (o *outcome) field(name string) (any, bool) {
	switch name {
	case "status":
		if o.err != nil {
			return scope.StatusError, true
		}
		return scope.StatusOK, true
	case "data", "result":
		return o.value(), true
	case "error":
		return o.errorObject(), true
	case "meta":
		return object("attempt", int64(o.attempt), "duration_ms", o.took.Milliseconds()), true
	case "http":
		return o.http(), true
	case "pg":
		if o.err == nil || o.err.PGCode == "" {
			return nil, true
		}
		return object("code", o.err.PGCode, "sqlstate", o.err.PGCode), true
	case "py":
		return o.python(), true
	case "ref":
		if o.stored != nil {
			return o.stored.Ref, true
		}
		return nil, true
	}
	return nil, false
}

// event is the end of the task as templates of arcs see that of a step.
func (o *outcome) event(step string) any {
	if o.err != nil {
		return object("name", scope.EventError, "step", step, "status", scope.StatusError)
	}
	return object("name", scope.EventDone, "step", step, "status", scope.StatusOK)
}

// stream answers what a process printed, where the data has no such key.
func (o *outcome) stream(name string) (any, bool) {
	if o.result == nil {
		return nil, false
	}
	switch name {
	case "stdout":
		return o.result.Stdout, true
	case "stderr":
		return o.result.Stderr, true
	case "exit_code":
		return index(o.result.ExitCode)
	}
	return nil, false
}

func (o *outcome) errorObject() any {
	e := o.err
	if e == nil {
		return nil
	}
	d := object("kind", e.Kind, "code", e.Code, "message", e.Message, "retryable", e.Retryable)
	if status := o.httpStatus(); status != 0 {
		d.Set("status_code", int64(status))
		d.Set("http_status", int64(status))
	}
	if e.PGCode != "" {
		d.Set("pg_code", e.PGCode)
	}
	if e.RetryAfter > 0 {
		d.Set("retry_after", e.RetryAfter.Seconds())
	}
	if e.Details != nil {
		d.Set("details", e.Details)
	}
	return d
}

func (o *outcome) httpStatus() int {
	switch {
	case o.err != nil && o.err.HTTPStatus != 0:
		return o.err.HTTPStatus
	case o.result != nil && o.result.HTTP != nil:
		return o.result.HTTP.Status
	}
	return 0
}

func (o *outcome) http() any {
	status := o.httpStatus()
	if status == 0 {
		return nil
	}
	headers := jinja.NewDict(0)
	if o.result != nil && o.result.HTTP != nil {
		for _, k := range tool.SortedKeys(o.result.HTTP.Headers) {
			headers.Set(k, o.result.HTTP.Headers[k])
		}
	}
	return object("status", int64(status), "headers", headers)
}

func (o *outcome) python() any {
	if o.err == nil || o.err.Details["exception_type"] == nil {
		return nil
	}
	class := o.err.Details["exception_type"]
	return object("exception", class, "exception_type", class, "traceback", o.err.Details["traceback"])
}

// envelope is the outcome as policy rules see it: its own fields first, then
// those of the data.
type envelope struct{ *outcome }

// Attr implements jinja.Object.
func (e envelope) Attr(name string) (any, bool) {
	if v, ok := e.field(name); ok {
		return v, true
	}
	if v, ok := e.value().Attr(name); ok {
		return v, true
	}
	return e.stream(name)
}

// Unwrap implements jinja.Wrapper.
func (e envelope) Unwrap() any {
	d := jinja.NewDict(6)
	for _, name := range []string{"status", "data", "error", "http", "pg", "py", "meta"} {
		if v, _ := e.field(name); v != nil || name == "data" || name == "error" {
			d.Set(name, v)
		}
	}
	return d
}

// dataView is the outcome as a task's own `set` sees it: the data, with the
// envelope where the data has no such key.
type dataView struct{ *outcome }

// Attr implements jinja.Object.
func (v dataView) Attr(name string) (any, bool) {
	if d, ok := v.value().Unwrap().(*jinja.Dict); ok {
		if x, ok := d.Get(name); ok {
			return x, true
		}
	}
	if x, ok := v.field(name); ok {
		return x, true
	}
	return v.stream(name)
}

// Unwrap implements jinja.Wrapper.
func (v dataView) Unwrap() any { return v.value().Unwrap() }

// object makes a mapping of names and values in turn.
func object(pairs ...any) *jinja.Dict {
	d := jinja.NewDict(len(pairs) / 2)
	for i := 0; i < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

// results are the outcomes by label, in the order in which tasks ran last.
type results struct {
	labels   []string
	outcomes map[string]*outcome
}

func (r *results) put(label string, o *outcome) {
	if r.outcomes == nil {
		r.outcomes = map[string]*outcome{}
	}
	if _, again := r.outcomes[label]; again {
		r.labels = slices.DeleteFunc(r.labels, func(l string) bool { return l == label })
	}
	r.labels = append(r.labels, label)
	r.outcomes[label] = o
}

func (r *results) dict() *jinja.Dict {
	d := jinja.NewDict(len(r.labels))
	for _, label := range r.labels {
		d.Set(label, r.outcomes[label].value())
	}
	return d
}
