package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// envelopeBody is an event as the stream carries it, from publishers of several
// generations. Fields it does not name are ignored.
type envelopeBody struct {
	EventID           event.ID `json:"event_id"`
	ExecutionID       event.ID `json:"execution_id"`
	ExecutionIDStr    event.ID `json:"execution_id_str"`
	ParentEventID     event.ID `json:"parent_event_id"`
	ParentExecutionID event.ID `json:"parent_execution_id"`
	EventType         string   `json:"event_type"`
	NodeID            string   `json:"node_id"`
	NodeName          string   `json:"node_name"`
	NodeType          string   `json:"node_type"`
	Status            string   `json:"status"`
	Duration          float64  `json:"duration"` // seconds
	Timestamp         instant  `json:"timestamp"`
	CreatedAt         instant  `json:"created_at"`
	Context           value    `json:"context"`
	Result            value    `json:"result"`
	Meta              value    `json:"meta"`
	StackTrace        string   `json:"stack_trace"`
	Error             value    `json:"error"`
	WorkerID          string   `json:"worker_id"`
	CommandID         value    `json:"command_id"`
}

func (b *envelopeBody) event() event.Event {
	e := event.Event{
		EventID: b.EventID, ExecutionID: cmp.Or(b.ExecutionID, b.ExecutionIDStr), ParentEventID: b.ParentEventID,
		ParentExecutionID: b.ParentExecutionID, Type: event.Type(b.EventType), NodeName: cmp.Or(b.NodeName, b.NodeID),
		NodeType: b.NodeType, Status: b.Status, Context: json.RawMessage(b.Context), Result: json.RawMessage(b.Result),
		Meta: withTrace(b.Meta, b.StackTrace), Error: b.Error.text(), WorkerID: b.WorkerID, CommandID: b.CommandID.text(),
		CreatedAt: time.Time(b.CreatedAt),
	}
	const century = 100 * 365 * 24 * 60 * 60
	e.Duration = time.Duration(math.Min(math.Max(b.Duration, 0), century) * float64(time.Second))
	if at := time.Time(b.Timestamp); !at.IsZero() {
		e.CreatedAt = at
	}
	return e
}

// text is the value as a word: strings without their quotes, the rest as written.
func (v value) text() string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// withTrace keeps a stack trace beside the meta; the log has no column for it.
func withTrace(meta value, trace string) json.RawMessage {
	if trace == "" {
		return json.RawMessage(meta)
	}
	fields := map[string]json.RawMessage{}
	if len(meta) > 0 && json.Unmarshal(meta, &fields) != nil {
		return json.RawMessage(meta)
	}
	text, err := json.Marshal(trace)
	if err != nil {
		return json.RawMessage(meta)
	}
	fields["stack_trace"] = text
	whole, err := json.Marshal(fields)
	if err != nil {
		return json.RawMessage(meta)
	}
	return whole
}

// items reads a list one by one, so that one that cannot be read does not
// hinder the others. places are the indices of those that could.
func items[T any](list []json.RawMessage, read func(raw json.RawMessage) (T, error)) (good []T, places []int, bad []control.Rejection) {
	for i, raw := range list {
		item, err := read(raw)
		if err != nil {
			bad = append(bad, control.Rejection{Index: i, Error: err.Error()})
			continue
		}
		good, places = append(good, item), append(places, i)
	}
	return good, places, bad
}

// unmarshal reads one item of a list.
func unmarshal(raw json.RawMessage, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return malformed(raw, v, err)
	}
	return nil
}

func (s *Server) project(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Events []json.RawMessage `json:"events"`
	}
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if len(body.Events) == 0 {
		return event.Errorf(event.BadRequest, "events is empty: name the events to project")
	}
	events, places, bad := items(body.Events, func(raw json.RawMessage) (event.Event, error) {
		var b envelopeBody
		err := unmarshal(raw, &b)
		return b.event(), err
	})
	var taken control.Taken
	if len(events) > 0 {
		var err error
		if taken, err = s.opt.Plane.Project(r.Context(), events); err != nil {
			return err
		}
	}
	return respond(w, struct {
		Projected  int                 `json:"projected"`
		Duplicates int                 `json:"duplicates"`
		Rejected   []control.Rejection `json:"rejected,omitempty"`
	}{taken.Stored, taken.Duplicates, rejections(bad, taken.Rejected, places)})
}

func (s *Server) materialize(w http.ResponseWriter, r *http.Request) error {
	var body []json.RawMessage
	if err := decode(r, &body, false); err != nil {
		if event.CodeOf(err) == event.Invalid {
			return event.Errorf(event.Invalid, "the request body must be a list of events")
		}
		return err
	}
	if len(body) == 0 {
		return event.Errorf(event.BadRequest, "the list of events is empty")
	}
	reports, places, bad := items(body, func(raw json.RawMessage) (event.Report, error) {
		var b eventBody
		if err := unmarshal(raw, &b); err != nil {
			return event.Report{}, err
		}
		if b.ExecutionID == 0 {
			return event.Report{}, errors.New("execution_id is missing")
		}
		in, err := b.incoming.event(true)
		return event.Report{ExecutionID: b.ExecutionID, WorkerID: b.WorkerID, Events: []event.Incoming{in}}, err
	})
	var taken control.Taken
	if len(reports) > 0 {
		var err error
		if taken, err = s.opt.Plane.Materialize(r.Context(), reports); err != nil {
			return err
		}
	}
	return respond(w, struct {
		Materialized int                 `json:"materialized"`
		Duplicates   int                 `json:"duplicates"`
		Rejected     []control.Rejection `json:"rejected,omitempty"`
	}{taken.Stored, taken.Duplicates, rejections(bad, taken.Rejected, places)})
}

// rejections joins those that could not be read and those that were refused,
// whose indices count only what could be read.
func rejections(unread, refused []control.Rejection, places []int) []control.Rejection {
	for _, r := range refused {
		unread = append(unread, control.Rejection{Index: places[r.Index], Error: r.Error})
	}
	slices.SortStableFunc(unread, func(a, b control.Rejection) int { return cmp.Compare(a.Index, b.Index) })
	return unread
}
