package client

import (
	"context"
	"encoding/json"
	"net/http"
)

// RetentionRequest asks a server to remove executions whose time is over.
type RetentionRequest struct {
	DryRun bool `json:"dry_run,omitempty"`
	Limit  int  `json:"limit,omitempty"` // executions at most; 0 = as the server has it
}

// Retention asks how long a server keeps executions and what would go now, as
// JSON.
func (c *Client) Retention(ctx context.Context) (json.RawMessage, error) {
	var state json.RawMessage
	return state, c.get(ctx, "/api/retention", &state)
}

// RunRetention has a server remove executions whose time is over and returns
// the report as JSON. With much to remove that takes long: see WithTimeout.
func (c *Client) RunRetention(ctx context.Context, r RetentionRequest) (json.RawMessage, error) {
	var report json.RawMessage
	return report, c.call(ctx, http.MethodPost, "/api/retention/run", r, &report)
}
