package event

import (
	"encoding/json"
	"time"
)

// SecretRequest asks for credentials on behalf of a command. Only the worker
// that holds the command's live claim gets them.
type SecretRequest struct {
	ExecutionID ID       `json:"execution_id"`
	EventID     ID       `json:"event_id"` // of the command.issued
	WorkerID    string   `json:"worker_id"`
	Attempt     int      `json:"attempt"`
	Aliases     []string `json:"aliases"` // names of credentials or of keychain entries
}

// Secret is a resolved credential. It never enters an event, a log line or an
// answer to anybody but the worker that asked.
type Secret struct {
	Alias     string          `json:"alias"`
	Type      string          `json:"type"` // postgres, bearer, …; "keychain" when it was put together from a keychain entry
	Data      json.RawMessage `json:"data"` // an object, or a bare value
	ExpiresAt *time.Time      `json:"expires_at,omitempty"`
}

// SecretAnswer brings secrets, in the order asked: in the clear within one
// process, and sealed for the worker's registered key across the network.
type SecretAnswer struct {
	Secrets []Secret `json:"secrets,omitempty"`
	Sealed  *Sealed  `json:"sealed,omitempty"` // the JSON of []Secret
}

// Sealed is text that only the holder of a private key can read.
type Sealed struct {
	Alg          string `json:"alg"`
	Version      int    `json:"v"`
	EphemeralKey []byte `json:"eph_pub"`
	Ciphertext   []byte `json:"ciphertext"`
}
