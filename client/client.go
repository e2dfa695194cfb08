// Package client talks to a NoETL server over HTTP: it registers and starts
// playbooks, follows executions, and lets workers claim commands and report
// events. Every error it returns about the server is an *Error whose code says
// what kind it is, whether it came from the server or from the network.
//
// It must not know anything of the server but its wire protocol.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	defaultTimeout  = 30 * time.Second
	defaultPatience = 2 * time.Minute
	// maxAnswer bounds what is read of an answer, so that a broken server or a
	// wrong address cannot exhaust memory.
	maxAnswer = 256 << 20
	maxPooled = 256 << 10
)

// Client is a connection to one server, safe for concurrent use.
type Client struct {
	base     string
	http     *http.Client
	token    string
	agent    string
	timeout  time.Duration
	patience time.Duration
}

// Option changes how a Client works.
type Option func(*Client)

// WithHTTPClient sends requests through h, whose Timeout should be zero
// because it would also cut streams.
func WithHTTPClient(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithToken sends a bearer token with each request.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithTLS says how the server is checked and what certificate is shown to it.
func WithTLS(config *tls.Config) Option {
	return func(c *Client) {
		t := pool()
		t.TLSClientConfig = config
		c.http = &http.Client{Transport: t}
	}
}

// WithUserAgent names the program in requests.
func WithUserAgent(name string) Option { return func(c *Client) { c.agent = name } }

// WithTimeout bounds each call except streams; the default is 30 s.
func WithTimeout(d time.Duration) Option { return func(c *Client) { c.timeout = d } }

// WithPatience bounds how long a stream that was once open goes on without
// contact to the server before it gives up; the default is 2 min.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// New makes a client of the server at baseURL, e.g. http://localhost:8082. It
// does not connect. The error is Invalid when the address is not an HTTP URL.
func New(baseURL string, opts ...Option) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		e := event.Errorf(event.Invalid, "server address %q is not an HTTP URL", baseURL)
		e.Remedy = "write it like http://localhost:8082"
		return nil, e
	}
	c := &Client{
		base:     strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"),
		agent:    "noetl-go",
		timeout:  defaultTimeout,
		patience: defaultPatience,
	}
	for _, o := range opts {
		o(c)
	}
	if c.http == nil {
		c.http = &http.Client{Transport: pool()}
	}
	return c, nil
}

// pool keeps enough idle connections for a worker with many slots: with the
// default of two per host almost every call would open a new one. Idle ones
// are closed here before the server does it.
func pool() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
	}
}

// Close drops idle connections. The client stays usable.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// URL is the address the client was made with.
func (c *Client) URL() string { return c.base }

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// call sends in as JSON (nothing when nil) and decodes the answer into out
// (nowhere when nil).
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := c.request(ctx, method, path, in)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer resp.Body.Close()
	buf := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= maxPooled {
			buf.Reset()
			buffers.Put(buf)
		}
	}()
	// Reading to the end is what makes the connection reusable.
	if _, err := buf.ReadFrom(io.LimitReader(resp.Body, maxAnswer+1)); err != nil {
		return unreachable(err)
	}
	switch {
	case buf.Len() > maxAnswer:
		return event.Errorf(event.Limit, "the answer to %s %s is larger than %d bytes", method, path, maxAnswer)
	case resp.StatusCode >= 300:
		return refused(resp, buf.Bytes())
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(buf.Bytes(), out); err != nil {
		return event.Errorf(event.Internal, "the answer to %s %s is not what a NoETL server sends: %w", method, path, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, event.Errorf(event.Invalid, "encode request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	return req, nil
}

func (c *Client) get(ctx context.Context, path string, out any) error {
	return c.call(ctx, http.MethodGet, path, nil, out)
}

func (c *Client) post(ctx context.Context, path string, in, out any) error {
	return c.call(ctx, http.MethodPost, path, in, out)
}

// Health is the state of a server.
type Health struct {
	Status   string `json:"status"` // ok or unhealthy
	Database string `json:"database"`
	NATS     string `json:"nats"`
	Uptime   int64  `json:"uptime_seconds"`
	Version  string `json:"version"`
}

// Health asks whether the server and its database answer. A server without its
// database gives an Unavailable error.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.get(ctx, "/api/health", &h)
	return h, err
}
