package mcp

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

const maxHealth = 64 << 10 // bytes read of the answer

// health asks a server how it is, at /healthz beside its endpoint.
func (t *Tool) health(ctx context.Context, r *request, limit time.Duration) (*tool.Result, error) {
	u := *r.url
	for _, tail := range []string{"/mcp", "/sse", "/message"} {
		u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), tail)
	}
	u.RawPath = ""
	at := u.JoinPath("healthz")
	what := "GET " + outbound.Shown(at)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, tool.ConfigErrorf("%s: the request cannot be made", what)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	r.proof.Apply(req.Header, req.URL)
	client := &http.Client{Transport: t.pool.Transport(true), CheckRedirect: egress.WithSecrets(r.proof.Headers()...)}
	resp, err := client.Do(req)
	if err != nil {
		return nil, outbound.Failure(ctx, what, limit, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxHealth))
	if err != nil {
		return nil, outbound.Failure(ctx, what, limit, err)
	}
	fail := outbound.StatusError(what, resp.StatusCode, resp.Header)
	status := "ok"
	if fail != nil {
		status = "error"
	}
	data, err := tool.Encode(map[string]any{
		"status": status, "server": r.server, "endpoint": r.shown, "method": r.method, "tool": nil, "arguments": map[string]any{},
		"text": strings.ToValidUTF8(string(text), "\uFFFD"), "result": map[string]any{"status_code": resp.StatusCode}, "initialize": nil,
	})
	if err != nil {
		return nil, err
	}
	res := &tool.Result{Data: data}
	if fail != nil {
		return res, fail
	}
	return res, nil
}
