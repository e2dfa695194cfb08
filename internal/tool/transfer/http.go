package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

// openHTTP asks a service and reads rows from its answer while it comes in: a
// JSON list, lines of JSON objects, or CSV.
func openHTTP(ctx context.Context, s *session, p *plan) (source, error) {
	e := p.source
	req, proof, err := s.request(ctx, e)
	if err != nil {
		return nil, err
	}
	what := "ask " + outbound.Shown(req.URL)
	client := &http.Client{Transport: s.opts.Pool.Transport(true), CheckRedirect: egress.WithSecrets(proof.Headers()...)}
	resp, err := client.Do(req)
	if err != nil {
		return nil, outbound.Failure(ctx, what, 0, err)
	}
	body := &answer{resp.Body, ctx, what}
	if e := outbound.StatusError(what, resp.StatusCode, resp.Header); e != nil {
		if resp.StatusCode == http.StatusUnauthorized {
			proof.Rejected()
		}
		return nil, errors.Join(e, body.Close())
	}
	format, err := formatOf(e, resp.Header.Get("Content-Type"))
	if err == nil {
		var src source
		if src, err = readAs(format, body, s, e); err == nil {
			return src, nil
		}
	}
	return nil, errors.Join(err, body.Close())
}

// answer is the body of an answer; an end that comes too early says so.
type answer struct {
	io.ReadCloser
	ctx  context.Context
	what string
}

func (a *answer) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = outbound.Failure(a.ctx, a.what, 0, err)
	}
	return n, err
}

func (s *session) request(ctx context.Context, e *end) (*http.Request, *outbound.Proof, error) {
	address, err := e.String("url", "endpoint")
	if err != nil {
		return nil, nil, err
	}
	if address == "" {
		return nil, nil, tool.ConfigErrorf("source.url is missing")
	}
	u, err := outbound.ParseURL("source.url", address)
	if err != nil {
		return nil, nil, err
	}
	if err := addParams(u, e); err != nil {
		return nil, nil, err
	}
	body, kind, err := bodyOf(e)
	if err != nil {
		return nil, nil, err
	}
	method, err := e.String("method")
	if err != nil {
		return nil, nil, err
	}
	if method = strings.ToUpper(method); method == "" {
		method = http.MethodGet
	}
	if method != http.MethodGet && method != http.MethodPost {
		return nil, nil, tool.ConfigErrorf("source.method must be GET or POST, not %q", method)
	}
	login, err := s.call.Login(ctx, e.Fields)
	if err != nil {
		return nil, nil, err
	}
	proof, err := s.prover.Prove(ctx, s.call, login)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, "", body)
	if err != nil {
		return nil, nil, tool.ConfigErrorf("the request to source.url cannot be made")
	}
	req.URL, req.Host = u, u.Host
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	headers, err := e.Texts("headers")
	if err != nil {
		return nil, nil, err
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	proof.Apply(req.Header, req.URL)
	return req, proof, nil
}

func addParams(u *url.URL, e *end) error {
	params, err := e.Texts("params")
	if err != nil || len(params) == 0 {
		return err
	}
	query := u.Query()
	for name, value := range params {
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	return nil
}

// bodyOf is what is sent; values that are no text are sent as JSON.
func bodyOf(e *end) (io.Reader, string, error) {
	_, v, ok := e.First("json", "body", "data", "payload")
	if !ok {
		return nil, "", nil
	}
	if text, isText := v.(string); isText {
		return strings.NewReader(text), "", nil
	}
	encoded, err := tool.Encode(v)
	return bytes.NewReader(encoded), "application/json", err
}

// formatOf goes by the author's word, then by what the service says.
func formatOf(e *end, contentType string) (string, error) {
	format, err := e.String("format")
	if err != nil {
		return "", err
	}
	switch format = strings.ToLower(format); format {
	case "csv", "json", "ndjson", "parquet":
		return format, nil
	case "jsonl":
		return "ndjson", nil
	case "":
	default:
		return "", tool.ConfigErrorf("source.format must be json, ndjson, csv or parquet, not %q", format)
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case strings.HasSuffix(kind, "csv"):
		return "csv", nil
	case strings.Contains(kind, "parquet"):
		return "parquet", nil
	}
	return "json", nil
}
