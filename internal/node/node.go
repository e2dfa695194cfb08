// Package node puts one NoETL process together: a store, a bus, the control
// plane, an HTTP API and a worker, chosen by settings and started and stopped
// as one. The binary, the benchmarks and the end-to-end tests all run it; it
// holds no logic of its own.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/api"
	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/secret/envelope"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/source/schedule"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/worker"
)

// Options choose the parts. The zero value is a node in memory-like
// temporary storage with a worker and no listener.
type Options struct {
	DataDir     string // SQLite file and embedded NATS live here; required unless both are external
	DatabaseURL string // PostgreSQL; "" = SQLite in DataDir, unless Postgres names a database
	Postgres    Postgres
	NATSURL     string // "" = embedded
	Listen      string // host:port; "" = no HTTP
	NATSListen  string // host:port on which the embedded NATS admits remote workers; "" = none
	InProcess   bool   // no broker at all: commands reach only the worker in this process
	NoWorker    bool
	Slots       int                  // of the in-process worker; 0 = default
	Pools       []string             // of the in-process worker; nil = default
	Lease       time.Duration        // of a claim; 0 = default
	MaxAttempts int                  // claims of one command before it is given up; 0 = default
	PublicURL   string               // how workers reach this server; "" = from Listen
	TemplateEnv map[string]string    // what the templates of workloads see as env
	Relaxed     bool                 // SQLite may lose the last commits on power loss
	Stall       control.StallOptions // what becomes of executions that do not get on
	Publication Publication          // of events to the outside
	Observation Observation          // what the server shows of itself
	Tracing     Tracing              // where its spans go
	Results     Results              // where large values are kept
	Retention   Retention            // how long executions are kept
	Edge        Edge                 // how it meets the network
	Auth        Authentication       // what callers have to show
	Outbound    Outbound             // where the tools of the in-process worker connect to
	Secrets     Secrets              // how credentials are kept
	EnvSecrets  map[string]string    // secrets of the in-process worker by name; see EnvSecrets
	// InternalToken opens the internal routes of the API; "" keeps them closed.
	InternalToken string
	StringIDs     bool // ids in answers about executions are strings, for browsers
	MachineID     int  // of the id generator; with PostgreSQL the next free one from here on
	Version       string
	Logger        *slog.Logger
}

// Node is a running process.
type Node struct {
	Plane *control.Plane
	Store store.Store
	URL   string // of the API; "" without Listen
	// Bootstrap is the first admin token when this start made it up, to be shown once.
	Bootstrap string
	worker    *worker.Worker
	bus       bus.Bus
	machine   int
	metrics   *obs.Metrics
	secrets   *secret.Service
	access    *auth.Service
	schedules *schedule.Service // nil without a listener

	background []func(context.Context) error // run beside the control plane
	cancel     context.CancelFunc
	group      *errgroup.Group
	clean      closers
}

// Start brings a node up. When it returns nil the node accepts work.
func Start(ctx context.Context, o Options) (_ *Node, err error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if err := o.Auth.Check(); err != nil {
		return nil, err
	}
	n := &Node{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.clean.close())
		}
	}()
	var keys *envelope.Keys
	if o.usesPostgres() { // without settings that fit nothing is touched
		if _, err := o.postgresOptions(); err != nil {
			return nil, err
		}
		if keys, err = o.encryptionKeys(); err != nil {
			return nil, err
		}
	}
	if err := n.openStore(ctx, o); err != nil {
		return nil, err
	}
	if keys == nil { // the directory is ours now
		if keys, err = o.encryptionKeys(); err != nil {
			return nil, err
		}
	}
	if err := n.openBus(ctx, o); err != nil {
		return nil, err
	}
	var ln net.Listener
	if o.Listen != "" {
		if ln, err = net.Listen("tcp", o.Listen); err != nil {
			return nil, fmt.Errorf("listen on %s: %w (is another server running? choose another address with --listen)", o.Listen, err)
		}
		n.URL = o.Edge.scheme() + ln.Addr().String()
		n.clean = append(n.clean, func() error { return ignoreClosed(ln.Close()) })
	}
	if o.PublicURL == "" {
		o.PublicURL = n.URL
	}
	ids := snowflake.New(n.machine, failpoint.Now)
	outbox, err := n.outbox(ctx, o.Publication)
	if err != nil {
		return nil, err
	}
	n.metrics = control.NewMetricsIn(o.Version, o.Secrets.Region)
	n.observe(o)
	o.Tracing.begin(&n.metrics.Registry, &n.clean)
	retention, err := n.retention(o)
	if err != nil {
		return nil, err
	}
	results, err := n.openResults(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := n.openAccess(ctx, o, ids); err != nil {
		return nil, err
	}
	n.openSecrets(o, keys, ids)
	secrets, err := n.openKeychain(o, keys)
	if err != nil {
		return nil, err
	}
	if n.Plane, err = control.New(control.Options{
		Metrics: n.metrics,
		Store:   n.Store, Bus: n.bus, IDs: ids.Next, Clock: failpoint.Now, Logger: o.Logger, ServerURL: o.PublicURL, Lease: o.Lease, Tracer: o.Tracing.Tracer,
		MaxAttempts: o.MaxAttempts, TemplateEnv: o.TemplateEnv, Stall: o.Stall, Outbox: outbox, Results: results, Retention: retention, Secrets: secrets,
	}); err != nil {
		return nil, err
	}
	n.openSchedules(o, ids)
	if !o.NoWorker {
		if err := n.addWorker(ctx, o, ids); err != nil {
			return nil, err
		}
	}
	return n, n.run(o, ln)
}

// run starts the node's goroutines. Its edges, the worker and the API, stop
// first and the control plane last, so that what the edges still report is
// taken. A part that fails brings the others down.
func (n *Node) run(o Options, ln net.Listener) error {
	var srv *api.Server
	if ln != nil {
		options, err := n.guard(o, api.Options{
			Metrics: n.metrics, DisableMetrics: o.Observation.DisableMetrics,
			ShardIndex: o.Observation.ShardIndex, ShardCount: o.Observation.ShardCount,
			Logs: n.logs(), Plane: n.Plane, Version: o.Version, Logger: o.Logger, InternalToken: o.InternalToken, AllowedHosts: allowedHosts(ln, o.PublicURL), StringIDs: o.StringIDs, Secrets: n.secrets, Keychain: n.Plane, Schedules: n.schedules,
		})
		if err != nil {
			return err
		}
		if srv, err = api.New(options); err != nil {
			return err
		}
		if ln, err = n.secure(o, ln); err != nil {
			return err
		}
	}
	all, failed := errgroup.WithContext(context.Background())
	core, stopCore := context.WithCancel(context.Background())
	stop, interrupt := context.WithCancel(failed)
	edges, stop := errgroup.WithContext(stop)
	n.group, n.cancel = all, interrupt

	all.Go(func() error { return n.Plane.Run(core) })
	for _, f := range n.background {
		all.Go(func() error { return f(core) })
	}
	if n.worker != nil {
		edges.Go(func() error { return n.worker.Run(stop) })
	}
	if srv != nil {
		edges.Go(func() error { return srv.Serve(stop, ln) })
	}
	all.Go(func() error {
		defer stopCore()
		<-stop.Done()
		return edges.Wait()
	})
	return nil
}

// allowedHosts are the names a server on loopback answers to: a page elsewhere
// must not reach it by pointing a name of its own at 127.0.0.1. A server that
// listens to the network answers to any name.
func allowedHosts(ln net.Listener, publicURL string) []string {
	addr, ok := ln.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		return nil
	}
	hosts := []string{"localhost", "127.0.0.1", "::1", addr.IP.String()}
	if u, err := url.Parse(publicURL); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname())
	}
	return hosts
}

// Wait blocks until the node has stopped, by Stop or by a part that failed.
func (n *Node) Wait() error {
	err := n.group.Wait()
	n.cancel()
	return errors.Join(err, n.clean.close())
}

// Stop drains the node and releases everything it opened.
func (n *Node) Stop() error {
	n.cancel()
	return n.Wait()
}

// Interrupt begins the stop that Wait waits for.
func (n *Node) Interrupt() { n.cancel() }

// closers release what was opened, the last first.
type closers []func() error

func (c *closers) close() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// ensureDir makes a directory only its owner can read.
func ensureDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data directory %s: %w", dir, err)
	}
	return nil
}
