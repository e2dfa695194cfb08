package engine

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
)

type rawJSON = json.RawMessage

// reusedDetail is the context of step.reused: how the step ended elsewhere. The
// results of a large loop follow in further events of the same kind, which have
// a Part and Items only.
type reusedDetail struct {
	Gen       int            `json:"gen"`
	Execution event.StringID `json:"execution_id"` // where it ran
	Status    string         `json:"status,omitempty"`
	Kind      string         `json:"tool_kind,omitempty"`
	From      []string       `json:"from,omitempty"`
	Result    rawJSON        `json:"result,omitempty"`
	Info      *scope.Info    `json:"about,omitempty"`
	Error     string         `json:"error,omitempty"`
	ErrorFull rawJSON        `json:"error_value,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	Handled   bool           `json:"handled,omitempty"`
	Unrouted  bool           `json:"unrouted,omitempty"` // its arcs are still to be evaluated
	Updates   rawJSON        `json:"updates,omitempty"`  // variables to write when they are
	Loop      *reusedLoop    `json:"loop,omitempty"`
	Route     *routeDetail   `json:"route,omitempty"`
	Skip      *endDetail     `json:"skip,omitempty"`
	EnteredAt time.Time      `json:"entered_at,omitzero"`
	EndedAt   time.Time      `json:"ended_at,omitzero"`

	Parts int       `json:"parts,omitempty"` // further events
	Part  int       `json:"part,omitempty"`  // from 1
	Items []rawJSON `json:"items,omitempty"`
}

// reusedLoop is what is left of a loop's run.
type reusedLoop struct {
	Total     int  `json:"total"`
	Succeeded int  `json:"succeeded"`
	Failed    int  `json:"failed"`
	Cursor    bool `json:"cursor,omitempty"`
}

// preparedDetail is the context of rerun.prepared.
type preparedDetail struct {
	Execution event.StringID `json:"execution_id"`
	FromStep  string         `json:"from_step"`
	Tokens    []tokenDetail  `json:"tokens"`
}

// tokenDetail is a token and the step it comes from; "" for none.
type tokenDetail struct {
	Step string `json:"step"`
	From string `json:"from,omitempty"`
}

// reused are the events that carry a step over; none when it runs as if for the
// first time.
func (h *Harvest) reused(st *step) []*reusedDetail {
	r := st.cur
	switch {
	case r == nil || r.gen == 0 && h.anew[st.name]:
		return nil // passed over before, and may be reached now
	case !h.ended(r) && st.runs == 1:
		return nil
	case !h.ended(r): // its runs before this one count
		d := &reusedDetail{Gen: st.runs - 1, Execution: h.source(r), Status: completed.String(), Kind: st.kind}
		if r.phase == running {
			d.take(st.result)
		}
		return d.parts()
	}
	d := &reusedDetail{
		Gen: st.runs, Execution: h.source(r), Status: r.phase.String(), Kind: st.kind, From: r.from,
		Error: r.errText, ErrorFull: compact(r.errRaw), Reason: r.reason, Handled: r.handled, Unrouted: !r.routed,
		Skip: r.skip, EnteredAt: r.enteredAt, EndedAt: r.endedAt,
	}
	d.take(r.value)
	if r.phase == skipped {
		d.take(st.result)
	}
	switch {
	case r.loop != nil:
		d.Loop = &reusedLoop{Total: r.loop.total, Succeeded: r.succeeded, Failed: r.faulted}
	case r.cursor != nil:
		d.Loop = &reusedLoop{Total: r.cursor.rows, Failed: r.cursor.failed, Cursor: true}
	}
	if st.routed != nil && st.routed.Gen == r.gen {
		d.Route = st.routed
	}
	if d.Unrouted {
		asked := &ctxDetail{Values: map[string]rawJSON{}}
		if r.commandUpdates(asked); len(asked.Values) > 0 {
			d.Updates = encode(asked.Values)
		}
	}
	return d.parts()
}

// source is the execution in which a run really happened.
func (h *Harvest) source(r *run) event.StringID {
	if r.reused != 0 {
		return event.StringID(r.reused)
	}
	return event.StringID(h.original)
}

// take notes a step's value as later steps see it.
func (d *reusedDetail) take(v *scope.Value) {
	if v == nil {
		return
	}
	about := v.Info()
	about.Tasks = about.Tasks || about.Sequence
	about.Sequence = false
	d.Result, d.Info = compact(v.JSON()), &about
}

// reusedInline is how many bytes of a loop's results one event holds.
const reusedInline = 64 << 10

// parts is the detail, with the results of a large loop spread over further ones.
func (d *reusedDetail) parts() []*reusedDetail {
	out := []*reusedDetail{d}
	var items []rawJSON
	if len(d.Result) <= reusedInline || d.Info.Loop == nil || json.Unmarshal(d.Result, &items) != nil {
		return out
	}
	d.Result = nil
	for len(items) > 0 {
		n, size := 0, 0
		for n < len(items) && (n == 0 || size+len(items[n]) <= reusedInline) {
			size += len(items[n]) + 1
			n++
		}
		d.Parts++
		out = append(out, &reusedDetail{Gen: d.Gen, Execution: d.Execution, Part: d.Parts, Items: items[:n]})
		items = items[n:]
	}
	return out
}

// compact is JSON without blanks, as it reads back from a log.
func compact(raw rawJSON) rawJSON {
	if len(raw) == 0 {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return rawJSON("null")
	}
	return b.Bytes()
}
