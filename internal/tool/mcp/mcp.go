// Package mcp calls servers of the Model Context Protocol, over HTTP or as a
// program that is started for the call. It must not know what their tools do.
package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

const (
	defaultTimeout = 60 * time.Second
	maxSessions    = 64
	sessionIdle    = 10 * time.Minute
)

// Options adjusts the tool; the zero value is fine.
type Options struct {
	Pool *egress.Pool // connections to use; nil = its own, without restrictions
	// Endpoint finds the address of a server by its name; "" = not known. Nil
	// reads NOETL_MCP_<SERVER>_ENDPOINT and NOETL_MCP_URL.
	Endpoint func(server string) string
}

// Tool calls MCP servers. Sessions over HTTP are kept and shared between calls
// to the same address with the same credential.
type Tool struct {
	pool     *egress.Pool
	prover   *outbound.Prover
	endpoint func(server string) string
	sessions sessions
}

var _ tool.Tool = (*Tool)(nil)

// New makes the tool. Close it to end its sessions.
func New(o Options) *Tool {
	t := &Tool{pool: o.Pool, endpoint: o.Endpoint}
	if t.pool == nil {
		t.pool = egress.NewPool(nil, egress.PoolOptions{})
	}
	if t.endpoint == nil {
		t.endpoint = EndpointFromEnv
	}
	t.prover = outbound.NewProver(t.pool)
	return t
}

// Kind is "mcp".
func (*Tool) Kind() string { return "mcp" }

// Close ends the sessions and drops idle connections.
func (t *Tool) Close() error {
	t.sessions.close()
	return t.pool.Close()
}

// Run makes one request. Data is {status, server, endpoint, method, tool,
// arguments, text, result, initialize}; what the server reports as an error is
// an *Error of kind logic with that data beside it.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, defaultTimeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	r, err := t.readRequest(ctx, call)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, tool.Ended(ctx, r.what(), limit)
	}
	if r.method == "health" {
		return t.health(ctx, r, limit)
	}
	s, err := t.open(ctx, call, r)
	if err != nil {
		return nil, r.failure(ctx, limit, s, err)
	}
	result, err := r.send(ctx, s.client)
	if errors.Is(err, sdk.ErrSessionMissing) && s.reused { // the server has forgotten it, and did nothing
		t.sessions.drop(s)
		s.release()
		if s, err = t.open(ctx, call, r); err != nil {
			return nil, r.failure(ctx, limit, s, err)
		}
		result, err = r.send(ctx, s.client)
	}
	defer s.release()
	if err != nil {
		fail := r.failure(ctx, limit, s, err)
		_, answered := errors.AsType[*jsonrpc.Error](err)
		if ctx.Err() == nil && (!answered || s.watch.last() != nil) {
			t.sessions.drop(s)
		}
		return nil, fail
	}
	return r.result(result, s.client.InitializeResult())
}

// result puts the data together and finds an error the server reports in it.
func (r *request) result(result any, greeting *sdk.InitializeResult) (*tool.Result, error) {
	encoded, err := tool.Encode(result)
	if err != nil {
		return nil, err
	}
	text, isError := readContent(encoded)
	status := "ok"
	if isError {
		status = "error"
	}
	data, err := tool.Encode(map[string]any{
		"status": status, "server": r.server, "endpoint": r.shown, "method": r.method, "tool": orNull(r.tool), "arguments": r.arguments,
		"text": text, "result": encoded, "initialize": greeting,
	})
	if err != nil {
		return nil, err
	}
	res := &tool.Result{Data: data}
	if isError {
		return res, &tool.Error{Kind: tool.KindLogic, Code: "MCP_TOOL_ERROR", Message: r.what() + ": " + shortened(text)}
	}
	return res, nil
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// readContent joins the texts of a result; one without any is shown as JSON.
func readContent(result json.RawMessage) (text string, isError bool) {
	var r struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	_ = json.Unmarshal(result, &r) // other results have no content
	found := false
	for _, c := range r.Content {
		if c.Type != "text" {
			continue
		}
		if found {
			text += "\n"
		}
		text, found = text+c.Text, true
	}
	if !found {
		text = string(result)
	}
	return text, r.IsError
}

func shortened(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// failure explains why there is no result.
func (r *request) failure(ctx context.Context, limit time.Duration, s *session, err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	if ctx.Err() != nil {
		return tool.Ended(ctx, r.what(), limit)
	}
	if s != nil {
		if last := s.watch.last(); last != nil { // what the connection said, which the protocol's layers do not repeat
			return outbound.Failure(ctx, r.what(), limit, last)
		}
	}
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		kind := tool.KindLogic
		if wire.Code == jsonrpc.CodeMethodNotFound {
			kind = tool.KindNotFound
		}
		return &tool.Error{
			Kind: kind, Code: "MCP_ERROR", Message: r.what() + ": " + shortened(wire.Message),
			Details: map[string]any{"code": wire.Code},
		}
	}
	return outbound.Failure(ctx, r.what(), limit, fmt.Errorf("the server cannot be talked to: %w", err))
}
