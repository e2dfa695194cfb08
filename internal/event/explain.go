package event

import (
	"encoding/json"
	"time"
)

// Explanation says how a step stands and why.
type Explanation struct {
	Step     string      `json:"step"`
	Status   string      `json:"status"` // of its last run, WAITING for tokens, or NOT_REACHED
	Run      int         `json:"run,omitempty"`
	Entered  time.Time   `json:"entered_at,omitzero"`
	Ended    time.Time   `json:"ended_at,omitzero"`
	Reason   string      `json:"reason"`               // in one sentence
	From     []string    `json:"from,omitempty"`       // steps whose arcs led here
	Waits    []Wait      `json:"waits_for,omitempty"`  // while it goes on
	Arcs     []RoutedArc `json:"next,omitempty"`       // how its end was routed
	Led      []RoutedArc `json:"not_led_by,omitempty"` // arcs to it that did not fire
	Error    string      `json:"error,omitempty"`      // of a failed run
	Handled  bool        `json:"handled,omitempty"`    // an arc took the failure up
	Progress string      `json:"progress,omitempty"`   // of a loop
}

// Wait is one thing that has to happen first.
type Wait struct {
	For   string    `json:"for"`  // join, admission, worker, running, max_in_flight, timer, child, callback, signal
	What  string    `json:"what"` // in words
	Name  string    `json:"name,omitempty"`
	Index *int      `json:"index,omitempty"` // of the iteration
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`

	Message string          `json:"message,omitempty"` // what the sender of a signal is asked for
	Form    json.RawMessage `json:"form,omitempty"`    // JSON Schema of what may be sent
}

// RoutedArc is an arc and what became of it.
type RoutedArc struct {
	From  string                     `json:"from"`
	To    string                     `json:"to"`
	When  string                     `json:"when,omitempty"`
	Fired bool                       `json:"fired"`
	Read  map[string]json.RawMessage `json:"read,omitempty"` // values the condition mentions
	Error string                     `json:"error,omitempty"`
}
