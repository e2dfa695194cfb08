package event

import (
	"encoding/json"
	"time"
)

// Park says what a command waits for while it holds no worker. It is reported
// with command.parked, under the payload's key "park". A command that is woken
// goes on at a worker with what Resume holds; without Resume, what woke it is
// its result.
type Park struct {
	Delay    float64         `json:"delay_seconds,omitempty"` // wait this long; meant when nothing else is given
	Elapsed  *Wake           `json:"elapsed,omitempty"`       // what the end of Delay brings; nil = nothing but time passed
	Child    *ChildRequest   `json:"child,omitempty"`         // run another playbook
	Callback string          `json:"callback,omitempty"`      // wait to be called back; says by whom. With Delay, whichever comes first
	Signal   *Signal         `json:"signal,omitempty"`        // wait for a person or a program to send this. With Delay, whichever comes first
	Resume   json.RawMessage `json:"resume,omitempty"`        // the worker's own note on where it was
}

// Signal is what a command waits for somebody to send to its execution.
type Signal struct {
	Name    string          `json:"name"`
	Message string          `json:"message,omitempty"` // what the sender is asked for
	Form    json.RawMessage `json:"form,omitempty"`    // JSON Schema of what may be sent; none = anything
	Approve string          `json:"approve,omitempty"` // RejectFails or RejectGoesOn when it asks for a yes or a no
}

// What a no means to a command that asks for an approval. Yes is said with
// "approved": true in what is sent.
const (
	RejectFails  = "fail"     // the command fails
	RejectGoesOn = "continue" // the command is told
)

// SentSignal is the payload of signal.received.
type SentSignal struct {
	Name  string          `json:"name"`
	Data  json.RawMessage `json:"data,omitempty"`
	By    string          `json:"by,omitempty"`    // who sent it
	Step  string          `json:"step,omitempty"`  // meant for this step only
	Index *int            `json:"index,omitempty"` // meant for this iteration only
	Key   string          `json:"key,omitempty"`   // what is sent under one key is sent once
}

// SignalWait is a command that waits for somebody outside, or for time to pass.
type SignalWait struct {
	Step      string          `json:"step"`
	CommandID string          `json:"command_id"`
	For       string          `json:"for"` // signal, callback or timer
	Signal    string          `json:"signal,omitempty"`
	Message   string          `json:"message,omitempty"`
	Form      json.RawMessage `json:"form,omitempty"`
	Approval  bool            `json:"approval,omitempty"` // it asks for a yes or a no
	Index     *int            `json:"index,omitempty"`    // of the iteration
	Since     time.Time       `json:"since,omitzero"`
	Until     time.Time       `json:"until,omitzero"`
}

// ChildRequest asks the control plane to execute another playbook.
type ChildRequest struct {
	Path         string          `json:"path,omitempty"`
	CatalogID    StringID        `json:"catalog_id,omitempty"`
	Version      int             `json:"version,omitempty"` // 0 = the newest
	Payload      json.RawMessage `json:"payload,omitempty"`
	Pool         string          `json:"execution_pool,omitempty"`
	Wait         bool            `json:"wait,omitempty"`        // wake when the child has ended, not when it has started
	ReturnStep   string          `json:"return_step,omitempty"` // the child's data of this step, with status and execution_id
	ReturnResult bool            `json:"return_result,omitempty"`
	ResultStep   string          `json:"result_step,omitempty"`     // which step's data is the child's result
	Timeout      float64         `json:"timeout_seconds,omitempty"` // of the wait; 0 = none
}

// Resume is handed to the worker that goes on with a parked command.
type Resume struct {
	State json.RawMessage `json:"state"` // Park.Resume as it was reported
	Wake  Wake            `json:"wake"`
}

// Wake is what ended the wait: nothing but time passed, or data or an error came.
type Wake struct {
	Data  json.RawMessage `json:"data,omitempty"`
	Error json.RawMessage `json:"error,omitempty"`
	Ref   string          `json:"ref,omitempty"` // where Data is kept when it is large; workers never see it
}

// CursorPlace is where a command stands in a cursor loop.
type CursorPlace struct {
	Phase string `json:"phase"` // claim or body
	Step  string `json:"step"`
	Frame int    `json:"frame"`
	Row   *int   `json:"row,omitempty"`
}
