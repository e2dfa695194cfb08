package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// RebuildRequest says which rows a server writes anew from its log.
type RebuildRequest struct {
	ExecutionID ID   `json:"execution_id,omitempty"` // this one alone
	DryRun      bool `json:"dry_run,omitempty"`
	All         bool `json:"all,omitempty"` // rows that are right too
}

// DatabaseState tells whether a server's database has the tables it needs.
type DatabaseState struct {
	Status  string   `json:"status"`
	Message string   `json:"message"`
	Valid   bool     `json:"valid"`
	Tables  []string `json:"tables"`
	Missing []string `json:"missing"`
}

// InitDatabase brings the schema of a server's database up to date and returns
// what the server says.
func (c *Client) InitDatabase(ctx context.Context) (string, error) {
	var a struct {
		Message string `json:"message"`
	}
	err := c.post(ctx, "/api/db/init", struct{}{}, &a)
	return a.Message, err
}

// ValidateDatabase asks whether all tables are there.
func (c *Client) ValidateDatabase(ctx context.Context) (DatabaseState, error) {
	var a DatabaseState
	return a, c.get(ctx, "/api/db/validate", &a)
}

// VerifyDatabase has a server hold its projections against its log, of one
// execution or of all when id is 0, and returns the report as JSON. That takes
// as long as reading the whole log: see WithTimeout.
func (c *Client) VerifyDatabase(ctx context.Context, id ID) (json.RawMessage, error) {
	in := struct {
		ExecutionID ID `json:"execution_id,omitempty"`
	}{id}
	var report json.RawMessage
	return report, c.call(ctx, http.MethodPost, "/api/db/verify", in, &report)
}

// RebuildDatabase has a server write its projections anew from its log and
// returns the report as JSON. See VerifyDatabase about the time it takes.
func (c *Client) RebuildDatabase(ctx context.Context, r RebuildRequest) (json.RawMessage, error) {
	var report json.RawMessage
	return report, c.call(ctx, http.MethodPost, "/api/db/rebuild", r, &report)
}

// Sweeps asks what the sweeps of a server see and would do now, as JSON.
func (c *Client) Sweeps(ctx context.Context) (json.RawMessage, error) {
	var report json.RawMessage
	return report, c.get(ctx, "/api/runtime/sweeps", &report)
}
