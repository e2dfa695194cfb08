// Package httptool makes one HTTP request and reports the answer. It owns the
// connections it keeps open; it must not know of workflows, credential stores
// or retries: credentials arrive resolved in the config, and whether a failure
// is worth another try is only reported.
package httptool

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	defaultTimeout     = 60 * time.Second
	defaultMaxResponse = 32 << 20
	maxRedirects       = 10
)

// Options adjusts the tool; the zero value is fine.
type Options struct {
	Timeout          time.Duration // of a request without one of its own; 60 s
	MaxResponseBytes int64         // largest answer read, after decompression; 32 MiB
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = defaultMaxResponse
	}
	return o
}

// Tool performs HTTP requests over two shared connection pools, one that
// verifies certificates and one that does not.
type Tool struct {
	opts       Options
	verified   *http.Transport
	unverified *http.Transport
}

var _ tool.Tool = (*Tool)(nil)

// New makes the tool. Close it to drop idle connections.
func New(opts Options) *Tool {
	return &Tool{opts: opts.withDefaults(), verified: newTransport(true), unverified: newTransport(false)}
}

func newTransport(verify bool) *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		MaxConnsPerHost:       200,
		MaxIdleConns:          200,
		MaxIdleConnsPerHost:   50,
		IdleConnTimeout:       30 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: !verify, // only where the author wrote verify_ssl: false
		},
	}
}

// Kind is "http".
func (*Tool) Kind() string { return "http" }

// Close drops idle connections. Requests under way are not disturbed.
func (t *Tool) Close() error {
	t.verified.CloseIdleConnections()
	t.unverified.CloseIdleConnections()
	return nil
}

// Run sends the request. Data is {status_code, headers, data, body, url,
// elapsed}; an answer outside 200-299 is returned together with an *Error
// classified by its status. No answer at all is an *Error of kind connection,
// timeout, cancelled, client_error (redirect loop) or resource_limit.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, t.opts.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	p, err := readPlan(call)
	if err != nil {
		return nil, err
	}
	req, err := p.request(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	resp, err := t.client(p).Do(req)
	if err != nil {
		return nil, p.failure(ctx, limit, err)
	}
	defer resp.Body.Close()
	body, err := t.readBody(resp, p)
	if err != nil {
		return nil, p.failure(ctx, limit, err)
	}
	res, err := p.result(resp, body, time.Since(start))
	if err != nil {
		return nil, err
	}
	if fail := p.statusError(resp); fail != nil {
		return res, fail
	}
	return res, nil
}

// client is made per request: it is a small value over the shared transport,
// and its redirect rule knows this request's credentials.
func (t *Tool) client(p *plan) *http.Client {
	transport := t.verified
	if !p.verify {
		transport = t.unverified
	}
	return &http.Client{Transport: transport, CheckRedirect: p.redirect}
}
