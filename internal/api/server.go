// Package api is the HTTP face of the control plane: it decodes a request,
// calls one method of the Plane, and encodes the answer; it also streams logs
// as server-sent events and serves the page. All routes stand in one table.
// It must not know how anything is decided, stored or dispatched.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/obs"
)

const (
	defaultMaxBody = 2 << 20
	defaultTimeout = 30 * time.Second
	// drainTime bounds how long Serve waits for running requests at the end.
	drainTime = 10 * time.Second
	// idleTime is longer than the client keeps an idle connection, so that the
	// client, which knows whether it is about to write, is the one to close it.
	idleTime       = 120 * time.Second
	headerTime     = 10 * time.Second
	maxHeaderBytes = 64 << 10
	defaultStreams = 4096
)

// Options configures a Server. Only Plane is required.
type Options struct {
	Plane   Plane
	Version string
	Logger  *slog.Logger  // nil discards
	MaxBody int64         // bytes of a request body; 2 MiB when 0
	Timeout time.Duration // of one request, streams excepted; 30 s when 0
	// Page serves everything outside /api; nil serves a small built-in page at /.
	Page http.Handler
	// AllowedHosts, when not empty, are the only host names (without port)
	// requests may be addressed to. A server on loopback sets it against pages
	// that point their own name at 127.0.0.1.
	AllowedHosts []string
	// AllowedOrigins are the browser origins (scheme://host[:port]) that may
	// call the API from their pages. Empty means none but our own.
	AllowedOrigins []string
	// Access tells who calls and keeps the record of what they do; nil lets
	// everybody do everything.
	Access Access
	// TrustedProxies may say for whom they call (X-Forwarded-For, -Proto).
	TrustedProxies []netip.Prefix
	// BrowserLogin offers people to sign in at the issuer.
	BrowserLogin bool
	// LoginIssuer and LoginClient are where they do, for programs that open a
	// browser themselves.
	LoginIssuer, LoginClient string
	// OpenMetrics shows the metrics without a token.
	OpenMetrics bool
	// Console runs SQL for admins; nil keeps it closed.
	Console Console
	// InternalToken is what callers of the internal routes must present; without
	// one these routes are closed.
	InternalToken string
	// StringIDs writes the ids in answers about executions as strings, for pages
	// that cannot hold them as numbers.
	StringIDs bool
	// Logs is where the live output of commands is read; nil = only what was kept
	// with the events is shown.
	Logs bus.Logs
	// MaxStreams bounds the open event streams; 4096 when 0.
	MaxStreams int
	// Metrics are counted into and shown; those of the Plane should be the same.
	Metrics *obs.Metrics
	// DisableMetrics hides them.
	DisableMetrics bool
	// ShardIndex and ShardCount are what this server says of its own place among
	// others; without a count it is that of the store.
	ShardIndex, ShardCount int
	// Clock is time.Now when nil.
	Clock func() time.Time
	// Secrets keeps credentials; without it their routes are closed.
	Secrets Secrets
	// Schedules keeps what is started by itself; without it its routes are closed.
	Schedules Schedules
	// Keychain gives secrets to workers; without it its routes are closed.
	Keychain Keychain
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = defaultStreams
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Metrics == nil {
		o.Metrics = control.NewMetrics(o.Version)
	}
	return o
}

// Server answers the HTTP API on behalf of a Plane.
type Server struct {
	opt      Options
	ids      idForm // of answers about executions
	mux      *http.ServeMux
	handler  http.Handler
	streams  chan struct{} // one token per open stream
	began    time.Time
	machine  *obs.Machine
	requests obs.Requests
	docs     docs

	stopOnce sync.Once
	stopping chan struct{} // closed when streams must end
}

// New checks the options and builds the server. The error is Invalid when an
// allowed origin is malformed or the Plane is missing.
func New(o Options) (*Server, error) {
	if o.Plane == nil {
		return nil, errors.New("build api server: no plane given")
	}
	o = o.withDefaults()
	s := &Server{
		opt:      o,
		ids:      idForm(o.StringIDs),
		mux:      http.NewServeMux(),
		streams:  make(chan struct{}, o.MaxStreams),
		stopping: make(chan struct{}),
	}
	s.began, s.machine = o.Clock(), obs.NewMachine("/proc", o.Clock)
	s.requests = o.Metrics.Requests(writes(s.routes()))
	for _, rt := range s.routes() {
		s.mux.Handle(rt.Method+" "+rt.Pattern, s.serve(rt))
	}
	s.mux.Handle("/", s.serve(route{handle: s.unrouted}))
	h, err := s.guarded(s.mux)
	if err != nil {
		return nil, fmt.Errorf("build api server: %w", err)
	}
	s.handler = h
	return s, nil
}

// Handler is the whole API as a handler, for servers the caller owns.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers requests arriving at ln until ctx ends. Then it stops
// accepting, asks open streams to end, waits a bounded time for running
// requests and returns nil; requests still running after that are cut off and
// reported as an error. A server serves until its first end and is not reused.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       s.opt.Timeout,
		WriteTimeout:      s.opt.Timeout + headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(s.opt.Logger.Handler(), slog.LevelDebug),
		// Requests outlive ctx on purpose: its end starts the drain.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		s.stopStreams()
		_ = srv.Close()
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	err := s.drain(srv)
	<-failed
	return err
}

func (s *Server) drain(srv *http.Server) error {
	s.stopStreams()
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		_ = srv.Close()
		return fmt.Errorf("drain http requests: %w", err)
	}
	return nil
}

func (s *Server) stopStreams() { s.stopOnce.Do(func() { close(s.stopping) }) }
