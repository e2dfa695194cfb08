package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Credential is what a server shows of a credential. Data is there only for
// those who may see it.
type Credential struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Meta        json.RawMessage `json:"meta,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Description string          `json:"description,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
}

// CredentialRequest is a credential to store. Data is an object.
type CredentialRequest struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Data        json.RawMessage `json:"data"`
	Meta        json.RawMessage `json:"meta,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Description string          `json:"description,omitempty"`
}

// PutCredential stores a credential by its name, over one that exists.
func (c *Client) PutCredential(ctx context.Context, r CredentialRequest) (Credential, error) {
	var a Credential
	return a, c.post(ctx, "/api/credentials", r, &a)
}

// Credentials lists credentials, newest first: of a type, or with a text in
// their name or description; "" does not restrict.
func (c *Client) Credentials(ctx context.Context, kind, text string) ([]Credential, error) {
	q := url.Values{}
	if kind != "" {
		q.Set("type", kind)
	}
	if text != "" {
		q.Set("q", text)
	}
	var a struct {
		Items []Credential `json:"items"`
	}
	err := c.get(ctx, withQuery("/api/credentials", q), &a)
	return a.Items, err
}

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func credentialPath(identifier string) string {
	return "/api/credentials/" + url.PathEscape(identifier)
}

// Credential finds a credential by id or name, NotFound when there is none.
// With data it brings what is secret in it, which needs the internal token (see
// WithToken) and is written down at the server.
func (c *Client) Credential(ctx context.Context, identifier string, withData bool) (Credential, error) {
	path := credentialPath(identifier)
	if withData {
		path += "?include_data=true"
	}
	var a Credential
	return a, c.get(ctx, path, &a)
}

// CredentialCheck tells that a credential can be opened, and what it holds.
type CredentialCheck struct {
	Name       string   `json:"name"`
	Type       string   `json:"type"`
	OK         bool     `json:"ok"`
	Fields     []string `json:"fields"`
	KeyVersion string   `json:"key_version"`
}

// CheckCredential has a server try whether it can open a credential.
func (c *Client) CheckCredential(ctx context.Context, identifier string) (CredentialCheck, error) {
	var a CredentialCheck
	return a, c.get(ctx, credentialPath(identifier)+"/check", &a)
}

// DeleteCredential removes a credential, NotFound when there is none.
func (c *Client) DeleteCredential(ctx context.Context, identifier string) error {
	return c.call(ctx, http.MethodDelete, credentialPath(identifier), nil, nil)
}

// Rotation tells what became of the secrets of one table.
type Rotation struct {
	Processed int    `json:"processed"`
	Rewrapped int    `json:"rewrapped"`
	Skipped   int    `json:"skipped"`
	Failed    int    `json:"failed"`
	LastID    string `json:"last_id,omitempty"`
	More      bool   `json:"more,omitempty"`
}

// RotationReport tells what a rotation did.
type RotationReport struct {
	Credential Rotation `json:"credential"`
	Keychain   Rotation `json:"keychain"`
	KeyVersion string   `json:"key_version"`
}

// RotateKeys wraps the keys of all secrets with the server's current encryption
// key. It needs the internal token.
func (c *Client) RotateKeys(ctx context.Context) (RotationReport, error) {
	var a RotationReport
	return a, c.post(ctx, "/api/internal/wallet/rotate-kek", struct{}{}, &a)
}

// KeyStatus counts secrets by the version of the encryption key they need.
type KeyStatus struct {
	Credential map[string]int `json:"credential"`
	Keychain   map[string]int `json:"keychain"`
	Current    string         `json:"current"`
}

// KeyStatus tells how far a rotation has come. It needs the internal token.
func (c *Client) KeyStatus(ctx context.Context) (KeyStatus, error) {
	var a KeyStatus
	return a, c.get(ctx, "/api/internal/wallet/key-status", &a)
}

// SecretAudit is a line of who used which secret.
type SecretAudit struct {
	ID          string    `json:"audit_id"`
	At          time.Time `json:"occurred_at"`
	Credential  string    `json:"credential"`
	Operation   string    `json:"operation"`
	Outcome     string    `json:"outcome"`
	Actor       string    `json:"actor,omitempty"`
	RequestID   string    `json:"request_id,omitempty"`
	WorkerID    string    `json:"worker_id,omitempty"`
	ExecutionID string    `json:"execution_id,omitempty"`
	KeyVersion  string    `json:"kek_version,omitempty"`
	Notes       string    `json:"notes,omitempty"`
}

// AuditFilter selects audit lines; zero fields do not restrict.
type AuditFilter struct {
	Credential  string
	ExecutionID ID
	From, To    time.Time
	Limit       int // 100 when 0
}

// SecretAudit lists who used which secret, newest first. It needs the internal token.
func (c *Client) SecretAudit(ctx context.Context, f AuditFilter) ([]SecretAudit, error) {
	q := url.Values{}
	if f.Credential != "" {
		q.Set("credential", f.Credential)
	}
	if f.ExecutionID != 0 {
		q.Set("execution_id", f.ExecutionID.String())
	}
	if !f.From.IsZero() {
		q.Set("from", f.From.UTC().Format(time.RFC3339Nano))
	}
	if !f.To.IsZero() {
		q.Set("to", f.To.UTC().Format(time.RFC3339Nano))
	}
	if f.Limit > 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	var a struct {
		Items []SecretAudit `json:"items"`
	}
	err := c.get(ctx, withQuery("/api/internal/secret-audit", q), &a)
	return a.Items, err
}
