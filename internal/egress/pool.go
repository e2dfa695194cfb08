package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// PoolOptions bound the connections of a Pool; zero values are defaults.
type PoolOptions struct {
	MaxConnections int           // at once, over all hosts; 200
	IdlePerHost    int           // kept open for the next request; 50
	IdleTimeout    time.Duration // how long; 30 s
}

// Pool makes HTTP requests over shared, bounded connections that all go where
// the policy allows.
type Pool struct {
	policy *Policy
	slots  chan struct{}
	lanes  map[lane]*http.Transport
	proxy  func(*http.Request) (*url.URL, error)
}

// lane keeps connections apart that must not be mixed up: those with an
// unverified peer, and those to addresses that only a redirect led to. A
// connection to an inner host that was opened for the author of a playbook
// cannot be used by a redirect from outside.
type lane struct {
	insecure bool
	from     origin
}

// NewPool makes a pool; Close drops its idle connections.
func NewPool(policy *Policy, o PoolOptions) *Pool {
	if o.MaxConnections <= 0 {
		o.MaxConnections = 200
	}
	if o.IdlePerHost <= 0 {
		o.IdlePerHost = 50
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = 30 * time.Second
	}
	if policy == nil {
		policy = &Policy{}
	}
	p := &Pool{
		policy: policy, slots: make(chan struct{}, o.MaxConnections),
		lanes: map[lane]*http.Transport{}, proxy: http.ProxyFromEnvironment,
	}
	for _, insecure := range []bool{false, true} {
		for _, from := range []origin{asked, redirected} {
			l := lane{insecure, from}
			p.lanes[l] = p.transport(l, o)
		}
	}
	return p
}

func (p *Pool) transport(l lane, o PoolOptions) *http.Transport {
	return &http.Transport{
		Proxy: p.proxyOf,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return p.dial(ctx, network, address, l.from)
		},
		ForceAttemptHTTP2:     true,
		MaxConnsPerHost:       o.MaxConnections,
		MaxIdleConns:          o.MaxConnections,
		MaxIdleConnsPerHost:   min(o.IdlePerHost, o.MaxConnections),
		IdleConnTimeout:       o.IdleTimeout,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			InsecureSkipVerify: l.insecure, // only where the author asked for it
		},
	}
}

// Client makes requests over the pool and follows redirects by the rules of
// CheckRedirect. It is a small value: make one where it is needed.
func (p *Pool) Client() *http.Client {
	return &http.Client{Transport: p.Transport(true), CheckRedirect: CheckRedirect}
}

// Transport makes requests over the pool. Without verify the certificates of
// servers are not checked.
func (p *Pool) Transport(verify bool) http.RoundTripper { return &guarded{p, !verify} }

// Close drops idle connections. Requests under way are not disturbed.
func (p *Pool) Close() error {
	p.closeIdle()
	return nil
}

func (p *Pool) closeIdle() {
	for _, t := range p.lanes {
		t.CloseIdleConnections()
	}
}

// dial waits for a free slot. Idle connections to other hosts give up theirs.
func (p *Pool) dial(ctx context.Context, network, address string, from origin) (net.Conn, error) {
	if err := p.acquire(ctx); err != nil {
		return nil, err
	}
	var conn net.Conn
	var err error
	if via, ok := ctx.Value(proxyKey{}).(string); ok && via == address { // the operator's choice, not the author's
		conn, err = (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	} else {
		conn, err = p.policy.dial(ctx, network, address, from)
	}
	if err != nil {
		<-p.slots
		return nil, err
	}
	return &pooled{Conn: conn, release: sync.OnceFunc(func() { <-p.slots })}, nil
}

func (p *Pool) acquire(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		p.closeIdle()
		select {
		case p.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-again.C:
		}
	}
}

// pooled is a connection that holds a slot.
type pooled struct {
	net.Conn
	release func()
}

func (c *pooled) Close() error {
	defer c.release()
	return c.Conn.Close()
}

type (
	proxyKey struct{}
	hopKey   struct{}
)

// hop remembers of a request whether an address outside answered it.
type hop struct{ public atomic.Bool }

// guarded is the pool as a transport: it sends each hop of a chain of redirects
// over the right lane.
type guarded struct {
	pool     *Pool
	insecure bool
}

// RoundTrip sends one request of a chain.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	from := asked
	if req.Response != nil && cameFromOutside(req.Response) {
		from = redirected
	}
	h := &hop{}
	h.public.Store(from == redirected)
	proxy, err := g.pool.proxy(req)
	if err != nil {
		return nil, errors.New("the proxy in the environment is not valid")
	}
	if proxy != nil {
		if err := g.pool.checkProxied(req, from); err != nil {
			return nil, err
		}
		h.public.Store(true)
		ctx = context.WithValue(ctx, proxyKey{}, proxyAddress(proxy))
	}
	ctx = context.WithValue(ctx, hopKey{}, h)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if a, ok := addressOf(info.Conn); ok && !isPrivateMeaning(a) {
			h.public.Store(true)
		}
	}})
	return g.pool.lanes[lane{g.insecure, from}].RoundTrip(req.WithContext(ctx))
}

// CloseIdleConnections lets http.Client do the same.
func (g *guarded) CloseIdleConnections() { g.pool.closeIdle() }

func cameFromOutside(resp *http.Response) bool {
	if resp.Request == nil {
		return true
	}
	h, ok := resp.Request.Context().Value(hopKey{}).(*hop)
	return !ok || h.public.Load()
}

func addressOf(conn net.Conn) (netip.Addr, bool) {
	for {
		switch c := conn.(type) {
		case *tls.Conn:
			conn = c.NetConn()
		case *pooled:
			conn = c.Conn
		case *checked:
			return c.addr, true
		default:
			return netip.Addr{}, false
		}
	}
}

func isPrivateMeaning(a netip.Addr) bool {
	for _, m := range meanings(a) {
		if isPrivate(m) {
			return true
		}
	}
	return false
}

func (p *Pool) proxyOf(req *http.Request) (*url.URL, error) { return p.proxy(req) }

func proxyAddress(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		if port == "" {
			port = "1080"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// checkProxied checks a target that a proxy will connect to. A name that only
// the proxy can resolve is left to it.
func (p *Pool) checkProxied(req *http.Request, from origin) error {
	_, err := p.policy.check(req.Context(), "tcp", req.URL.Hostname(), portOf(req.URL), from)
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		return nil
	}
	return err
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
