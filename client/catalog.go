package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Registration tells under which version a resource was stored.
type Registration struct {
	Message   string
	Path      string
	Version   int
	CatalogID ID
	Kind      string
	Warnings  []Problem
}

// Problem is a complaint about a playbook that does not keep it from running.
type Problem struct {
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Line     int    `json:"line"`
	Col      int    `json:"col"`
	Step     string `json:"step"`
	Path     string `json:"path"`
	Message  string `json:"message"`
	Remedy   string `json:"remedy"`
}

// Register stores the YAML of a playbook or other resource as the next version
// of its path. The error is Invalid or BadRequest when the document is wrong.
func (c *Client) Register(ctx context.Context, content string) (Registration, error) {
	in := struct {
		Content string `json:"content"`
	}{content}
	var a struct {
		Message   string    `json:"message"`
		Path      string    `json:"path"`
		Version   int       `json:"version"`
		CatalogID ID        `json:"catalog_id"`
		Kind      string    `json:"kind"`
		Warnings  []Problem `json:"warnings"`
	}
	err := c.post(ctx, "/api/catalog/register", in, &a)
	return Registration(a), err
}

// Entry is one version of a catalog resource.
type Entry struct {
	CatalogID ID              `json:"catalog_id"`
	Path      string          `json:"path"`
	Kind      string          `json:"kind"`
	Version   int             `json:"version"`
	Content   string          `json:"content"`
	Payload   json.RawMessage `json:"payload"`
	Meta      json.RawMessage `json:"meta"`
	CreatedAt time.Time       `json:"created_at"`
}

// EntryFilter selects catalog entries; zero fields do not restrict.
type EntryFilter struct {
	Kind   string `json:"resource_type,omitempty"`
	Path   string `json:"path,omitempty"`
	Limit  int    `json:"limit,omitempty"`
	Offset int    `json:"offset,omitempty"`
}

// Entries lists catalog entries, newest first.
func (c *Client) Entries(ctx context.Context, f EntryFilter) ([]Entry, error) {
	var a struct {
		Entries []Entry `json:"entries"`
	}
	err := c.post(ctx, "/api/catalog/list", f, &a)
	return a.Entries, err
}

// EntryRef names a catalog entry: by id, or by path and version. Version 0 is
// the latest.
type EntryRef struct {
	CatalogID ID     `json:"catalog_id,omitempty"`
	Path      string `json:"path,omitempty"`
	Version   int    `json:"version,omitempty"`
}

// Entry returns one catalog entry, NotFound when there is none.
func (c *Client) Entry(ctx context.Context, ref EntryRef) (Entry, error) {
	var e Entry
	err := c.post(ctx, "/api/catalog/resource", ref, &e)
	return e, err
}

// ExecuteRequest starts a playbook. Path or CatalogID is needed.
type ExecuteRequest struct {
	Path              string          `json:"path,omitempty"`
	CatalogID         ID              `json:"catalog_id,omitempty"`
	Version           int             `json:"version,omitempty"` // 0 is the latest
	Payload           json.RawMessage `json:"payload,omitempty"` // object laid over the playbook's workload
	ParentExecutionID ID              `json:"parent_execution_id,omitempty"`
	Pool              string          `json:"execution_pool,omitempty"`
	Trace             json.RawMessage `json:"trace,omitempty"`
	Dedup             *Dedup          `json:"dedup,omitempty"` // start once; nil starts always
}

// ExecuteAnswer names the execution that was started, or, with the status
// duplicate, the one that was started before with the same key.
type ExecuteAnswer struct {
	ExecutionID       ID       `json:"execution_id"`
	Status            string   `json:"status"`
	CommandsGenerated int      `json:"commands_generated"`
	Warnings          []string `json:"warnings,omitempty"`
}

// Execute starts an execution. The error is NotFound when there is no such
// playbook and Invalid when it cannot start with this payload.
func (c *Client) Execute(ctx context.Context, r ExecuteRequest) (ExecuteAnswer, error) {
	if len(r.Payload) > 0 && !json.Valid(r.Payload) {
		return ExecuteAnswer{}, event.Errorf(event.Invalid, "payload is not JSON")
	}
	var a ExecuteAnswer
	err := c.post(ctx, "/api/execute", r, &a)
	return a, err
}
