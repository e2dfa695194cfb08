package auth

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Evidence is what a request brings to show who sends it.
type Evidence struct {
	Bearer      string            // of Authorization: Bearer; "" = none
	Session     string            // of the cookie or of the header for sessions
	Certificate *x509.Certificate // a verified client certificate, or nil
	Remote      string            // address without port, for limits and the record
}

// ErrNoEvidence is the answer to a request that brings nothing.
var ErrNoEvidence = errors.New("no evidence of who calls")

// Token is an API token without its secret.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Grants    []Grant   `json:"grants"`
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
	Expires   time.Time `json:"expires_at,omitzero"`
	LastUsed  time.Time `json:"last_used_at,omitzero"`
	RevokedAt time.Time `json:"revoked_at,omitzero"`
}

// TokenRequest asks for a token on behalf of somebody.
type TokenRequest struct {
	Name    string
	Grants  []Grant
	Expires time.Time // zero = never
	By      *Principal
}

// LoginRequest asks for a session in exchange for a token.
type LoginRequest struct {
	Token     string // an API token, or a bearer token of a configured issuer
	Remote    string
	UserAgent string
}

// Session is a login without its secret.
type Session struct {
	ID        string
	Principal Principal
	CreatedAt time.Time
	Expires   time.Time
}

// Action is what somebody did, or was not allowed to do.
type Action struct {
	ID        event.ID        `json:"id"`
	At        time.Time       `json:"at"`
	Type      string          `json:"type"` // token.created, access.denied, …
	Actor     string          `json:"actor"`
	ActorName string          `json:"actor_name,omitempty"`
	By        string          `json:"by,omitempty"`
	Remote    string          `json:"remote,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Route     string          `json:"route,omitempty"`
	Target    string          `json:"target,omitempty"`
	Outcome   string          `json:"outcome"` // ok, refused or error
	Status    int             `json:"status,omitempty"`
	Detail    json.RawMessage `json:"detail,omitempty"`
}

// ActionFilter chooses actions, newest first.
type ActionFilter struct {
	Actor, Type, Target string
	From, To            time.Time
	Before              event.ID
	Limit               int
}
