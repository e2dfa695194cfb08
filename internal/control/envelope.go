package control

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

const (
	// maxEnvelope keeps messages below the largest a broker takes by default.
	maxEnvelope = 900 << 10
	// largePart is from where on a part of an envelope that is too large is left out.
	largePart = 32 << 10
	// maxSubject bounds what a type adds to a subject.
	maxSubject = 200
)

// envelope is an event as consumers of the stream see it. The fields stand in
// the order of their names; what is absent is null.
type envelope struct {
	CatalogID         optionalID      `json:"catalog_id"`
	CommandID         optionalText    `json:"command_id"`
	Context           json.RawMessage `json:"context"`
	CreatedAt         time.Time       `json:"created_at"`
	Duration          float64         `json:"duration"` // seconds
	Error             optionalText    `json:"error"`
	EventID           event.ID        `json:"event_id"`
	EventType         event.Type      `json:"event_type"`
	ExecutionID       event.ID        `json:"execution_id"`
	ExecutionIDStr    event.StringID  `json:"execution_id_str"` // for readers that cannot hold the number
	Meta              json.RawMessage `json:"meta"`
	NodeID            optionalText    `json:"node_id"`
	NodeName          optionalText    `json:"node_name"`
	NodeType          optionalText    `json:"node_type"`
	ParentEventID     optionalID      `json:"parent_event_id"`
	ParentExecutionID optionalID      `json:"parent_execution_id"`
	Path              optionalText    `json:"path"`
	Result            json.RawMessage `json:"result"`
	Seq               int64           `json:"seq"`
	Status            optionalText    `json:"status"`
	Timestamp         time.Time       `json:"timestamp"`
	Truncated         bool            `json:"truncated,omitempty"` // parts were left out for their size
	WorkerID          optionalText    `json:"worker_id"`
}

type optionalID event.ID

func (id optionalID) MarshalJSON() ([]byte, error) {
	if id == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(event.ID(id))
}

type optionalText string

func (t optionalText) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return marshal(string(t))
}

// encodeEnvelope writes an event for the stream in at most limit bytes. When it
// does not fit, its large parts are replaced by a note that says how large they
// are and where they can be read.
func encodeEnvelope(e *event.Event, path string, limit int) ([]byte, error) {
	v := envelope{
		CatalogID: optionalID(e.CatalogID), CommandID: optionalText(e.CommandID), Context: asJSON(e.Context),
		CreatedAt: e.CreatedAt.UTC(), Duration: e.Duration.Seconds(), Error: optionalText(e.Error), EventID: e.EventID, EventType: e.Type,
		ExecutionID: e.ExecutionID, ExecutionIDStr: event.StringID(e.ExecutionID), Meta: metaOf(e),
		NodeID: optionalText(e.NodeID()), NodeName: optionalText(e.NodeName), NodeType: optionalText(e.NodeType),
		ParentEventID: optionalID(e.ParentEventID), ParentExecutionID: optionalID(e.ParentExecutionID), Path: optionalText(path),
		Result: asJSON(e.Result), Seq: e.Seq, Status: optionalText(e.Status), Timestamp: e.CreatedAt.UTC(), WorkerID: optionalText(e.WorkerID),
	}
	b, err := marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.EventID, err)
	}
	if len(b) <= limit {
		return b, nil
	}
	if err := v.truncate(e); err != nil {
		return nil, err
	}
	return marshal(v)
}

// omitted stands for a part that was left out. It fits where a context, the
// meta or the reference of a result belongs.
type omitted struct {
	Truncated bool   `json:"truncated"`
	Bytes     int    `json:"bytes"`
	URI       string `json:"uri"` // where the API shows the event in full
}

// truncate leaves out what is large. A result keeps the shape results have.
func (v *envelope) truncate(e *event.Event) error {
	v.Truncated = true
	uri := fmt.Sprintf("/api/executions/%s/events?after=%d&limit=1", e.ExecutionID, e.Seq-1)
	note := func(part []byte) ([]byte, error) { return marshal(omitted{true, len(part), uri}) }
	var err error
	for _, part := range []*json.RawMessage{&v.Context, &v.Meta} {
		if len(*part) > largePart && err == nil {
			*part, err = note(*part)
		}
	}
	if len(v.Result) > largePart && err == nil {
		var short struct {
			Status    string  `json:"status"`
			Reference omitted `json:"reference"`
		}
		short.Status, short.Reference = e.Status, omitted{true, len(v.Result), uri}
		v.Result, err = marshal(short)
	}
	for _, text := range []*optionalText{&v.Error, &v.NodeName, &v.NodeID, &v.WorkerID, &v.CommandID} {
		*text = optionalText(cutText(string(*text), largePart/8))
	}
	return err
}

// cutText keeps the first most characters.
func cutText(s string, most int) string {
	if len(s) <= most || utf8.RuneCountInString(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return s[:i]
		}
		n++
	}
	return s
}

// metaOf is the meta with the command's id in it, where consumers look for it.
func metaOf(e *event.Event) json.RawMessage {
	meta := asJSON(e.Meta)
	if e.CommandID == "" {
		return meta
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(meta, &fields); err != nil || fields["command_id"] != nil {
		return meta // no object, or it has one
	}
	if fields == nil {
		fields = make(map[string]json.RawMessage, 1)
	}
	id, err := marshal(e.CommandID)
	if err != nil {
		return meta
	}
	fields["command_id"] = id
	if with, err := marshal(fields); err == nil {
		return with
	}
	return meta
}

// asJSON is a stored value as JSON: null when there is none, and a string of
// what is not JSON, because one bad value must not keep an execution's events back.
func asJSON(raw json.RawMessage) json.RawMessage {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) == 0:
		return json.RawMessage("null")
	case json.Valid(raw):
		return raw
	}
	text, _ := marshal(string(raw))
	return text
}

// marshal is json.Marshal without the escapes meant for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// eventSubject is where an event is published: noetl.events.<event_type>. A
// type may come from outside, so what has a meaning in subjects is replaced.
func eventSubject(t event.Type) string {
	clean := strings.Map(func(r rune) rune {
		if r <= ' ' || r == '*' || r == '>' || r == 0x7f || r == utf8.RuneError {
			return '_'
		}
		return r
	}, cutText(string(t), maxSubject))
	tokens := strings.Split(clean, ".")
	for i := range tokens {
		if tokens[i] == "" {
			tokens[i] = "_"
		}
	}
	return bus.EventSubject + "." + strings.Join(tokens, ".")
}
