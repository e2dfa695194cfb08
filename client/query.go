package client

import (
	"context"
	"encoding/json"
)

// QueryRequest asks the database of a credential that the server keeps.
type QueryRequest struct {
	Query      string `json:"query"`
	Schema     string `json:"schema,omitempty"`
	Credential string `json:"credential,omitempty"`
}

// QueryAnswer is what a statement gave.
type QueryAnswer struct {
	Status string          `json:"status"`
	Result json.RawMessage `json:"result"` // rows
	Error  string          `json:"error"`

	Truncated bool   `json:"truncated,omitempty"` // there were more rows
	Command   string `json:"command,omitempty"`   // what was done, such as INSERT 0 1
}

// Query runs a SQL statement on the server. Forbidden unless the caller may.
func (c *Client) Query(ctx context.Context, r QueryRequest) (QueryAnswer, error) {
	var a QueryAnswer
	err := c.post(ctx, "/api/postgres/execute", r, &a)
	return a, err
}
