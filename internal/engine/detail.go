package engine

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// The payloads of the events the engine writes and reads. Each is stored as
// JSON; an event the engine made itself carries the value in Detail, so that
// applying it decodes nothing.

// startDetail is the context of playbook_started.
type startDetail struct {
	CatalogID   event.StringID  `json:"catalog_id"`
	ExecutionID event.StringID  `json:"execution_id"`
	Path        string          `json:"path"`
	Version     int             `json:"version,omitempty"`
	Workload    json.RawMessage `json:"workload"`
}

// startMeta is the meta of playbook_started.
type startMeta struct {
	EmittedAt time.Time       `json:"emitted_at"`
	Emitter   string          `json:"emitter"`
	Pool      string          `json:"execution_pool,omitempty"`
	Trace     json.RawMessage `json:"trace,omitempty"`
	Actor     *event.Actor    `json:"actor,omitempty"` // who asked for it

	ParentCommand string              `json:"parent_command_id,omitempty"` // asked for this execution
	Returns       *event.ChildRequest `json:"returns,omitempty"`           // what it asked for
	ParentIter    json.RawMessage     `json:"parent_iter,omitempty"`       // in which iteration
	Depth         int                 `json:"depth,omitempty"`             // executions this one is within

	RerunOf  event.StringID `json:"rerun_of,omitempty"`  // the execution that is run again
	FromStep string         `json:"from_step,omitempty"` // and from which step on
}

// enterDetail is the context of step.enter. The loop fields freeze what the
// iterations will work on.
type enterDetail struct {
	Gen         int               `json:"gen"`
	Expected    *int              `json:"iterations_expected,omitempty"`
	Iterator    string            `json:"iterator_var,omitempty"`
	Mode        string            `json:"mode,omitempty"`
	MaxInFlight int               `json:"max_in_flight,omitempty"`
	Items       []json.RawMessage `json:"items,omitempty"`
	ItemsRef    string            `json:"items_ref,omitempty"`   // where the items are kept
	Range       bool              `json:"items_range,omitempty"` // the items are 0 … iterations_expected-1
	Vars        json.RawMessage   `json:"vars,omitempty"`
	Cursor      *cursorDetail     `json:"cursor,omitempty"`
	CursorLoop  bool              `json:"__cursor_loop,omitempty"`
}

// endDetail is the context of step.exit, step.skipped, step.failed and loop.done.
type endDetail struct {
	Gen        int    `json:"gen"`
	Reason     string `json:"reason,omitempty"`
	Error      string `json:"error,omitempty"`
	Iterations *int   `json:"iterations,omitempty"`
	Failed     int    `json:"failed,omitempty"`
	Drained    bool   `json:"__cursor_drained,omitempty"` // a cursor loop found no more rows

	When string                     `json:"when,omitempty"` // the condition that kept a step from running
	Read map[string]json.RawMessage `json:"read,omitempty"` // values it mentions, bounded
}

// routeDetail is the context of next.evaluated: why the execution went where
// it went.
type routeDetail struct {
	Step    string      `json:"step"`
	Gen     int         `json:"gen"`
	Matched []string    `json:"matched"`
	Skipped []string    `json:"skipped,omitempty"`
	Handled bool        `json:"handled,omitempty"` // a failure that an error arc took up
	Failed  bool        `json:"failed,omitempty"`  // the run had failed
	Arcs    []arcDetail `json:"arcs,omitempty"`
}

// arcDetail is one arc's evaluation.
type arcDetail struct {
	Step    string                     `json:"step"`
	When    string                     `json:"when,omitempty"`
	Outcome bool                       `json:"outcome"`
	Read    map[string]json.RawMessage `json:"read,omitempty"` // values the condition mentions, bounded
	Error   string                     `json:"error,omitempty"`
}

// ctxDetail is the context of ctx.updated.
type ctxDetail struct {
	Step   string                     `json:"step"`
	Gen    int                        `json:"gen"`
	Arc    string                     `json:"arc,omitempty"`
	Index  *int                       `json:"iteration_index,omitempty"` // written by one iteration of a sequential loop
	Values map[string]json.RawMessage `json:"values"`
	Refs   map[string]string          `json:"refs,omitempty"` // where large values are kept

	large    map[string]json.RawMessage // these values, while they are at hand
	Warnings []string                   `json:"warnings,omitempty"`
}

// issueContext is the context of command.issued.
type issueContext struct {
	RenderContext json.RawMessage `json:"render_context,omitempty"`
}

// issueDetail is the meta of command.issued. Worker is set when the command
// was handed over at birth, without a separate claim.
type issueDetail struct {
	Gen         int       `json:"gen"`
	Index       *int      `json:"iteration_index,omitempty"`
	MaxAttempts int       `json:"max_attempts"`
	Attempt     int       `json:"attempt,omitempty"`
	LeaseUntil  time.Time `json:"lease_until,omitzero"`

	Cursor *event.CursorPlace `json:"cursor,omitempty"`
	Same   bool               `json:"same_values,omitempty"` // as the command of the run before it
	Trace  json.RawMessage    `json:"trace,omitempty"`       // of the execution, for readers of single events

	vars json.RawMessage
}

// claimDetail is the meta of command.claimed.
type claimDetail struct {
	Attempt        int       `json:"attempt"`
	LeaseUntil     time.Time `json:"lease_until,omitzero"`
	Reclaimed      bool      `json:"reclaimed,omitempty"`
	ReclaimedFrom  string    `json:"reclaimed_from_worker,omitempty"`
	ReclaimedCause string    `json:"reclaimed_reason,omitempty"`
}

// terminalMeta is the meta of the execution's last event.
type terminalMeta struct {
	Status      string   `json:"status"`
	Error       string   `json:"error,omitempty"`
	FailedSteps []string `json:"failed_steps,omitempty"`
	Handled     []string `json:"handled_steps,omitempty"` // failed, and an error arc took it up
	Reason      string   `json:"reason,omitempty"`
	By          string   `json:"cancelled_by,omitempty"`
}

// errorText is the message within an error value.
func errorText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var obj struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(raw, &obj) == nil && obj.Message != "" {
		return obj.Message
	}
	return string(raw)
}

// wrapped is the stored result envelope around a payload.
type wrapped[T any] struct {
	Status  string `json:"status"`
	Context T      `json:"context"`
}

// resultOf is the event's payload from its result column. An unreadable one is
// the zero payload: the fold is total.
func resultOf[T any](e *event.Event) *T {
	if d, ok := e.Detail.(*T); ok {
		return d
	}
	var w wrapped[T]
	if len(e.Result) > 0 {
		_ = json.Unmarshal(e.Result, &w)
	}
	return &w.Context
}

// metaOf is the event's payload from its meta column.
func metaOf[T any](e *event.Event) *T {
	if d, ok := e.Detail.(*T); ok {
		return d
	}
	var m T
	if len(e.Meta) > 0 {
		_ = json.Unmarshal(e.Meta, &m)
	}
	return &m
}

// envelope is {"status":…,"context":…} around encoded context.
func envelope(status string, context json.RawMessage) json.RawMessage {
	b := make([]byte, 0, len(context)+len(status)+26)
	b = append(b, `{"status":"`...)
	b = append(b, status...) // status words need no escaping
	b = append(b, '"')
	if len(context) > 0 {
		b = append(b, `,"context":`...)
		b = append(b, context...)
	}
	return append(b, '}')
}

// encode marshals a payload of ours, which cannot fail. Text stays as it is:
// escaping < for HTML would make a stored value differ from the reported one.
// The payloads of every step are put together without reflection.
func encode(v any) json.RawMessage {
	switch d := v.(type) {
	case *enterDetail:
		if d.Expected == nil && d.Cursor == nil {
			o := newObject()
			o.int("gen", d.Gen)
			return o.bytes()
		}
	case *issueDetail:
		return d.encode()
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("engine: encode own payload: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

func (d *issueDetail) encode() json.RawMessage {
	o := newObject()
	o.int("gen", d.Gen)
	if d.Index != nil {
		o.int("iteration_index", *d.Index)
	}
	o.int("max_attempts", d.MaxAttempts)
	if d.Attempt != 0 {
		o.int("attempt", d.Attempt)
	}
	if !d.LeaseUntil.IsZero() {
		o.value("lease_until", d.LeaseUntil.Format(time.RFC3339Nano))
	}
	if d.Same {
		o.value("same_values", true)
	}
	if d.Cursor != nil {
		b, _ := json.Marshal(d.Cursor) // numbers and names alone
		o.raw("cursor", b)
	}
	if len(d.Trace) > 0 {
		o.raw("trace", d.Trace)
	}
	return o.bytes()
}
