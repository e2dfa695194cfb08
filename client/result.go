package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/noetl/noetl-go/internal/event"
)

// PutResult puts a value aside that is too large for an event, at most 64 MiB,
// and returns the reference that stands for it. Every call makes another
// reference. NotFound when there is no such execution.
func (c *Client) PutResult(ctx context.Context, executionID ID, name string, data json.RawMessage) (StoredResult, error) {
	return c.PutResultAs(ctx, executionID, ResultOptions{Name: name}, data)
}

// PutResultAs is PutResult with a say in where the value is kept and how long.
func (c *Client) PutResultAs(ctx context.Context, executionID ID, o ResultOptions, data json.RawMessage) (StoredResult, error) {
	if len(data) == 0 { // would travel as null, which is a value
		return StoredResult{}, event.Errorf(event.Invalid, "the result to put aside is empty: want JSON")
	}
	in := struct {
		ResultOptions
		Data json.RawMessage `json:"data"`
	}{o, data}
	var stored StoredResult
	err := c.call(ctx, http.MethodPut, "/api/result/"+executionID.String(), in, &stored)
	return stored, err
}

// Result returns the value that was put aside under a reference. BadRequest
// when ref is no reference, NotFound when nothing is stored under it.
func (c *Client) Result(ctx context.Context, ref string) (json.RawMessage, error) {
	var data json.RawMessage
	err := c.get(ctx, "/api/result/resolve?"+url.Values{"ref": {ref}}.Encode(), &data)
	return data, err
}
