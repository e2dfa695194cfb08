package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// What a worker says of itself and what the server knows of it.
type (
	// WorkerRegistration describes a worker that begins.
	WorkerRegistration = event.Registration
	// WorkerPulse tells that it is alive.
	WorkerPulse = event.Pulse
	// WorkerPulseAnswer names the commands it should stop.
	WorkerPulseAnswer = event.PulseAnswer
	// WorkerRow is a worker as the server knows it.
	WorkerRow = event.Registered
)

// Enlist makes a worker known under its name.
func (c *Client) Enlist(ctx context.Context, r WorkerRegistration) (WorkerRow, error) {
	var row WorkerRow
	err := c.post(ctx, "/api/worker/pool/register", r, &row)
	return row, err
}

// Beat tells that a worker is alive. NotFound from a server that wants it to
// enlist again.
func (c *Client) Beat(ctx context.Context, b WorkerPulse) (WorkerPulseAnswer, error) {
	var a WorkerPulseAnswer
	err := c.post(ctx, "/api/worker/pool/heartbeat", b, &a)
	return a, err
}

// Leave says that a worker ends, and tells whether it was known.
func (c *Client) Leave(ctx context.Context, kind, name string) (bool, error) {
	in := struct {
		Name string `json:"name"`
		Kind string `json:"kind,omitempty"`
	}{name, kind}
	var a struct {
		Deleted bool `json:"deleted"`
	}
	err := c.call(ctx, http.MethodPost, "/api/worker/pool/deregister", in, &a)
	return a.Deleted, err
}

// WorkerFilter selects workers; zero fields do not restrict.
type WorkerFilter struct {
	Kind   string // worker_pool, server_api or broker
	Status string // offline finds those that have been silent
	Name   string // SQL LIKE pattern
}

// Workers lists the workers and other processes the server knows, by kind and name.
func (c *Client) Workers(ctx context.Context, f WorkerFilter) ([]WorkerRow, error) {
	q := url.Values{}
	for name, v := range map[string]string{"kind": f.Kind, "status": f.Status, "name": f.Name} {
		if v != "" {
			q.Set(name, v)
		}
	}
	var rows []WorkerRow
	err := c.get(ctx, strings.TrimSuffix("/api/worker/pools?"+q.Encode(), "?"), &rows)
	return rows, err
}
