package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// User is somebody a server knows.
type User struct {
	ID    string   `json:"user_id"`
	Email string   `json:"email,omitempty"`
	Name  string   `json:"display_name,omitempty"`
	Roles []string `json:"roles,omitempty"`
}

// UserSession is a login at a server. The token is shown once.
type UserSession struct {
	Token   string    `json:"session_token"`
	User    User      `json:"user"`
	Expires time.Time `json:"expires_at"`
}

// Login trades a token, of the API or of an identity provider the server
// trusts, for a session. The error is Unauthorized when the server does not
// accept it.
func (c *Client) Login(ctx context.Context, token, domain string) (UserSession, error) {
	in := map[string]string{"auth0_token": token}
	if domain != "" {
		in["auth0_domain"] = domain
	}
	var a struct {
		Status string          `json:"status"`
		Data   json.RawMessage `json:"data"`
	}
	if err := c.post(ctx, "/api/auth/login", in, &a); err != nil {
		return UserSession{}, err
	}
	if a.Status != "success" {
		var why struct {
			Message string `json:"message"`
			Error   string `json:"error"`
		}
		_ = json.Unmarshal(a.Data, &why) // no reason is an answer too
		if why.Message == "" {
			why.Message = why.Error
		}
		return UserSession{}, event.Errorf(event.Unauthorized, "the server does not accept this login: %s", why.Message)
	}
	var s UserSession
	if err := json.Unmarshal(a.Data, &s); err != nil || s.Token == "" {
		return UserSession{}, event.Errorf(event.Internal, "the answer to the login is not what a NoETL server sends")
	}
	return s, nil
}

// SessionState tells whose session a token is of, while it lasts.
type SessionState struct {
	Valid   bool      `json:"valid"`
	User    *User     `json:"user,omitempty"`
	Expires time.Time `json:"expires_at,omitzero"`
	Error   string    `json:"error,omitempty"`
}

// ValidateSession asks whose session a token is of.
func (c *Client) ValidateSession(ctx context.Context, token string) (SessionState, error) {
	var s SessionState
	err := c.post(ctx, "/api/auth/session/validate", map[string]string{"session_token": token}, &s)
	return s, err
}

// Logout ends a session at the server. A server without sessions answers
// NotFound.
func (c *Client) Logout(ctx context.Context, token string) error {
	return c.post(ctx, "/api/auth/logout", map[string]string{"session_token": token}, nil)
}

// Ask sends a request to any route and returns the answer as it is.
func (c *Client) Ask(ctx context.Context, path string) (json.RawMessage, error) {
	var raw json.RawMessage
	err := c.call(ctx, http.MethodGet, path, nil, &raw)
	return raw, err
}
