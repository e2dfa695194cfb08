package event

import (
	"encoding/json"
	"time"
)

// Kinds of processes that make themselves known.
const (
	KindWorkerPool = "worker_pool"
	KindServer     = "server_api"
	KindBroker     = "broker"
)

// Registration is what a process says of itself.
type Registration struct {
	Name         string          `json:"name"` // for workers, the id they claim with
	Kind         string          `json:"kind,omitempty"`
	URI          string          `json:"uri,omitempty"`
	Status       string          `json:"status,omitempty"`
	Labels       json.RawMessage `json:"labels,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Runtime      json.RawMessage `json:"runtime,omitempty"`
	Capacity     int             `json:"capacity,omitempty"`
}

// Pulse tells that a process is alive.
type Pulse struct {
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
	// Commands are those a worker runs; their leases are renewed. A worker that
	// sends no list at all has the leases of all it claimed lately renewed.
	Commands []Heartbeat `json:"commands"`
	// Registration, when given, is what the process said when it began, in case
	// the server has forgotten it.
	Registration *Registration `json:"registration,omitempty"`
}

// PulseAnswer names what a worker should stop.
type PulseAnswer struct {
	Cancel []ID `json:"cancel,omitempty"` // command.issued events
}

// Registered is a process as the server knows it.
type Registered struct {
	RuntimeID    ID              `json:"runtime_id"`
	Name         string          `json:"name"`
	Kind         string          `json:"kind"`
	URI          *string         `json:"uri"`
	Status       string          `json:"status"` // offline when it has been silent
	Labels       json.RawMessage `json:"labels"`
	Capabilities json.RawMessage `json:"capabilities"`
	Capacity     *int            `json:"capacity"`
	Runtime      json.RawMessage `json:"runtime"`
	Heartbeat    time.Time       `json:"heartbeat"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
}
