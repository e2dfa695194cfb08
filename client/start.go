package client

import (
	"context"
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
)

// Dedup asks that requests with the same key start one execution. Keys are
// apart per parent execution, or per playbook when there is no parent.
type Dedup struct {
	Key        string `json:"key"`
	WindowSecs int64  `json:"window_secs,omitempty"` // how long the key is held; 0 is 300
}

// BatchResult is what one request of a batch came to.
type BatchResult struct {
	Index             int      `json:"index"`
	Status            string   `json:"status"`       // started, duplicate or error
	ExecutionID       ID       `json:"execution_id"` // 0 when the status is error
	CommandsGenerated int      `json:"commands_generated"`
	Error             string   `json:"error"`
	Warnings          []string `json:"warnings"`
}

// BatchAnswer counts what a batch came to; Results are in the order of the requests.
type BatchAnswer struct {
	Count      int           `json:"count"`
	Started    int           `json:"started"`
	Duplicates int           `json:"duplicates"`
	Failed     int           `json:"failed"`
	Results    []BatchResult `json:"results"`
}

// ExecuteBatch starts 1 to 1000 executions, each for itself: what fails is told
// in its result, and the error is about the batch as a whole.
func (c *Client) ExecuteBatch(ctx context.Context, requests []ExecuteRequest) (BatchAnswer, error) {
	in := struct {
		Executions []ExecuteRequest `json:"executions"`
	}{requests}
	var a BatchAnswer
	err := c.post(ctx, "/api/execute/batch", in, &a)
	return a, err
}

// RerunRequest says how an execution is run again.
type RerunRequest struct {
	Payload  json.RawMessage `json:"payload,omitempty"`   // object laid over the original's workload
	FromStep string          `json:"from_step,omitempty"` // reuse what ended before this step
	Version  string          `json:"version,omitempty"`   // "latest" or a number; "" is the one that ran
	Trace    json.RawMessage `json:"trace,omitempty"`
}

// Rerun starts a new execution of what another one ran. The error is NotFound
// when there is no such execution, and Invalid when it cannot be run from the
// step asked for.
func (c *Client) Rerun(ctx context.Context, id ID, r RerunRequest) (ExecuteAnswer, error) {
	if len(r.Payload) > 0 && !json.Valid(r.Payload) {
		return ExecuteAnswer{}, event.Errorf(event.Invalid, "payload is not JSON")
	}
	var a ExecuteAnswer
	err := c.post(ctx, executionPath(id, "/rerun"), r, &a)
	return a, err
}
