// Package httptool makes one HTTP request and reports the answer. It must not
// know of workflows, credential stores or retries: credentials are handed to
// it, and whether a failure is worth another try is only reported.
package httptool

import (
	"context"
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/egress"
	"github.com/noetl/noetl-go/internal/tool"
	"github.com/noetl/noetl-go/internal/tool/outbound"
)

const (
	defaultTimeout     = 60 * time.Second
	defaultMaxResponse = 32 << 20
	defaultMaxDownload = 2 << 30
)

// Options adjusts the tool; the zero value is fine.
type Options struct {
	Timeout          time.Duration // of a request without one of its own; 60 s
	MaxResponseBytes int64         // largest answer held in memory, after decompression; 32 MiB
	MaxDownloadBytes int64         // largest answer that is put aside, after decompression; 2 GiB
	Pool             *egress.Pool  // connections to use; nil = its own, without restrictions
	TempDir          string        // for answers that turn out not to be what they say; "" = the system's
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxResponseBytes <= 0 {
		o.MaxResponseBytes = defaultMaxResponse
	}
	if o.MaxDownloadBytes <= 0 {
		o.MaxDownloadBytes = defaultMaxDownload
	}
	return o
}

// Tool performs HTTP requests over a shared pool of connections.
type Tool struct {
	opts   Options
	pool   *egress.Pool
	prover *outbound.Prover
}

var _ tool.Tool = (*Tool)(nil)

// New makes the tool. Close it to drop idle connections.
func New(opts Options) *Tool {
	t := &Tool{opts: opts.withDefaults(), pool: opts.Pool}
	if t.pool == nil {
		t.pool = egress.NewPool(nil, egress.PoolOptions{})
	}
	t.prover = outbound.NewProver(t.pool)
	return t
}

// Kind is "http".
func (*Tool) Kind() string { return "http" }

// Close drops idle connections. Requests under way are not disturbed.
func (t *Tool) Close() error { return t.pool.Close() }

// Run sends the request. Data is {status_code, headers, data, body, url,
// elapsed}; an answer outside 200-299 is returned together with an *Error
// classified by its status. No answer at all is an *Error of kind connection,
// timeout, cancelled, auth (a denied address), client_error (redirect loop) or
// resource_limit. Answers above the call's limit go into its Blobs.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, t.opts.Timeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	p, err := t.plan(ctx, call)
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
		return nil, outbound.Failure(ctx, p.what(), limit, err)
	}
	defer resp.Body.Close()
	a := &answer{plan: p, call: call, resp: resp, start: start, tool: t}
	res, err := a.receive(ctx)
	if err != nil {
		return nil, outbound.Failure(ctx, p.what(), limit, err)
	}
	if fail := p.statusError(resp); fail != nil {
		return res, fail
	}
	return res, nil
}

// plan reads the config and finds what proves who asks.
func (t *Tool) plan(ctx context.Context, call *tool.Call) (*plan, error) {
	p, err := readPlan(call)
	if err != nil {
		return nil, err
	}
	if p.held == 0 || p.held > t.opts.MaxResponseBytes {
		p.held = t.opts.MaxResponseBytes
	}
	f := call.Fields()
	login, err := call.Login(ctx, f)
	if err != nil {
		return nil, err
	}
	if p.proof, err = t.prover.Prove(ctx, call, login); err != nil {
		return nil, err
	}
	p.proof.Apply(p.header, p.url)
	call.Trace.Header(p.header)
	return p, nil
}

// client is made per request: it is a small value over the shared pool, and
// its redirect rule knows this request's credentials.
func (t *Tool) client(p *plan) *http.Client {
	client := &http.Client{Transport: t.pool.Transport(p.verify), CheckRedirect: egress.WithSecrets(p.proof.Headers()...)}
	if !p.follow {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return client
}

// statusError classifies an answer; nil for 200-299.
func (p *plan) statusError(resp *http.Response) error {
	e := outbound.StatusError(p.what(), resp.StatusCode, resp.Header)
	if e == nil {
		return nil
	}
	if resp.StatusCode == http.StatusUnauthorized {
		p.proof.Rejected()
	}
	if resp.StatusCode < 400 && !p.follow {
		e.Message += " (not followed, because follow_redirects is false)"
	}
	return e
}
