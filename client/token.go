package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Grant is a role of a token, everywhere or for playbooks below a path.
type Grant struct {
	Role   string `json:"role"` // viewer, worker, operator, admin
	Prefix string `json:"prefix,omitempty"`
}

// String is the grant as people write it: operator or operator:team/a.
func (g Grant) String() string {
	if g.Prefix == "" {
		return g.Role
	}
	return g.Role + ":" + g.Prefix
}

// Token is an API token. Secret is there only in the answer to its creation.
type Token struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Grants     []Grant   `json:"grants"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by,omitempty"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	Secret     string    `json:"token,omitempty"`
}

// TokenRequest asks for a token. The zero ExpiresAt is one that does not end.
type TokenRequest struct {
	Name      string    `json:"name"`
	Grants    []Grant   `json:"grants"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// CreateToken makes an API token. Its secret is in the answer and nowhere else.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (Token, error) {
	var a Token
	return a, c.post(ctx, "/api/tokens", r, &a)
}

// Tokens lists API tokens, newest first.
func (c *Client) Tokens(ctx context.Context) ([]Token, error) {
	var a struct {
		Tokens []Token `json:"tokens"`
	}
	err := c.get(ctx, "/api/tokens", &a)
	return a.Tokens, err
}

// RevokeToken ends an API token, NotFound when there is none.
func (c *Client) RevokeToken(ctx context.Context, id string) (Token, error) {
	var a Token
	return a, c.call(ctx, http.MethodDelete, "/api/tokens/"+url.PathEscape(id), nil, &a)
}

// Action is what somebody did at a server, or was refused.
type Action struct {
	ID        string          `json:"id"`
	At        time.Time       `json:"at"`
	Type      string          `json:"type"`
	Actor     string          `json:"actor"`
	ActorName string          `json:"actor_name,omitempty"`
	By        string          `json:"by,omitempty"`
	Remote    string          `json:"remote,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	Method    string          `json:"method,omitempty"`
	Route     string          `json:"route,omitempty"`
	Target    string          `json:"target,omitempty"`
	Outcome   string          `json:"outcome"`
	Status    int             `json:"status,omitempty"`
	Detail    json.RawMessage `json:"detail,omitempty"`
}

// ActionFilter selects actions; zero fields do not restrict.
type ActionFilter struct {
	Actor, Type, Target string
	From, To            time.Time
	Before              string // the id that the next page begins behind
	Limit               int    // 100 when 0
}

// Actions lists what was done, newest first, and the value of Before for the
// next page; "" when there is none.
func (c *Client) Actions(ctx context.Context, f ActionFilter) (items []Action, next string, err error) {
	q := url.Values{}
	for name, v := range map[string]string{"actor": f.Actor, "type": f.Type, "target": f.Target, "before": f.Before} {
		if v != "" {
			q.Set(name, v)
		}
	}
	for name, t := range map[string]time.Time{"from": f.From, "to": f.To} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	var a struct {
		Items []Action `json:"items"`
		Next  string   `json:"next"`
	}
	err = c.get(ctx, withQuery("/api/audit", q), &a)
	return a.Items, a.Next, err
}
