package client

import (
	"bytes"
	"encoding/json"
	"math"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// wireEvent is an event as the server writes it.
type wireEvent struct {
	EventID           ID              `json:"event_id"`
	ExecutionID       ID              `json:"execution_id"`
	CatalogID         ID              `json:"catalog_id"`
	Seq               int64           `json:"seq"`
	Type              EventType       `json:"event_type"`
	NodeName          string          `json:"node_name"`
	NodeType          string          `json:"node_type"`
	Status            string          `json:"status"`
	Context           json.RawMessage `json:"context"`
	Result            json.RawMessage `json:"result"`
	Meta              json.RawMessage `json:"meta"`
	Error             string          `json:"error"`
	WorkerID          string          `json:"worker_id"`
	ParentEventID     ID              `json:"parent_event_id"`
	ParentExecutionID ID              `json:"parent_execution_id"`
	Duration          float64         `json:"duration"`
	CreatedAt         time.Time       `json:"created_at"`
	Derived           bool            `json:"derived"` // the log does not hold it
}

func (w *wireEvent) event() Event {
	return event.Event{
		ExecutionID:       w.ExecutionID,
		Seq:               w.Seq,
		EventID:           w.EventID,
		CatalogID:         w.CatalogID,
		ParentEventID:     w.ParentEventID,
		ParentExecutionID: w.ParentExecutionID,
		Type:              w.Type,
		NodeName:          w.NodeName,
		NodeType:          w.NodeType,
		Status:            w.Status,
		Context:           present(w.Context),
		Result:            present(w.Result),
		Meta:              present(w.Meta),
		Error:             w.Error,
		WorkerID:          w.WorkerID,
		CommandID:         commandID(w.Meta),
		Duration:          time.Duration(math.Round(w.Duration * float64(time.Second))),
		CreatedAt:         w.CreatedAt,
	}
}

func events(list []wireEvent) []Event {
	out := make([]Event, len(list))
	for i := range list {
		out[i] = list[i].event()
	}
	return out
}

// present drops the null that stands for an absent payload.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// commandID is where the wire keeps the command an event belongs to.
func commandID(meta json.RawMessage) string {
	if !bytes.Contains(meta, []byte(`"command_id"`)) {
		return ""
	}
	var m struct {
		CommandID string `json:"command_id"`
	}
	_ = json.Unmarshal(meta, &m) // a command id of another type is not one of ours
	return m.CommandID
}
