package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/noetl/noetl-go/internal/event"
)

// SignalWait is something an execution waits for that comes from outside.
type SignalWait = event.SignalWait

// SignalRequest is what is sent to an execution.
type SignalRequest struct {
	Data   json.RawMessage `json:"data,omitempty"`
	Step   string          `json:"step,omitempty"`  // for this step only
	Index  *int            `json:"index,omitempty"` // for this iteration only
	Sender string          `json:"sender,omitempty"`
	// EventID, when set, makes it safe to send the same again.
	EventID ID `json:"event_id,omitzero"`
}

// SignalAnswer tells what became of a signal.
type SignalAnswer struct {
	Status  string `json:"status"` // delivered, buffered, or duplicate
	Woken   int    `json:"woken"`
	EventID ID     `json:"event_id"`
}

// Signal sends a signal to an execution. Invalid when it does not fit what is
// asked for, NotFound for an unknown execution, Conflict for one that is over.
func (c *Client) Signal(ctx context.Context, id ID, name string, r SignalRequest) (SignalAnswer, error) {
	var a SignalAnswer
	err := c.call(ctx, http.MethodPost, executionPath(id, "/signals/"+url.PathEscape(name)), r, &a)
	return a, err
}

// Waits lists what an execution waits for that comes from outside.
func (c *Client) Waits(ctx context.Context, id ID) ([]SignalWait, error) {
	var a struct {
		Waits []SignalWait `json:"waits"`
	}
	err := c.get(ctx, executionPath(id, "/waits"), &a)
	return a.Waits, err
}
