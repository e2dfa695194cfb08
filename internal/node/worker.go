package node

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/noetl/noetl-go/client"
	natsbus "github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/worker"
)

// WorkerOptions choose the parts of a worker process.
type WorkerOptions struct {
	ID        string
	ServerURL string
	NATSURL   string
	Pools     []string
	PoolName  string // what the registry calls the pool; "" = the first of Pools
	Slots     int
	SlotsCPU  int // see worker.Options
	SlotsIO   int
	Heartbeat time.Duration
	Pulse     time.Duration
	// CommandTimeout bounds a tool call that names no bound; 0 = default.
	CommandTimeout time.Duration
	Drain          time.Duration
	Outbound       Outbound // where tools connect to
	Tracing        Tracing  // where spans go
	Version        string
	Logger         *slog.Logger
	// SpoolDir keeps reports that cannot be delivered; "" chooses one, SpoolOff none.
	SpoolDir string
	// MetricsListen is where health and metrics are served, host:port; "" = nowhere.
	MetricsListen string
	// Token is presented to the server; NATS is how to log in there beside its URL.
	Token string
	TLS   *tls.Config // how the server is checked and the worker shows itself; nil = as usual
	NATS  NATSLogin
	// EnvSecrets are the worker's own secrets by name; see EnvSecrets.
	EnvSecrets map[string]string
}

// NATSLogin is how to log in to NATS when the URL does not say.
type NATSLogin struct{ User, Password, Token string }

// Worker is a worker process: NATS tells it of commands, HTTP carries claims
// and reports.
type Worker struct {
	// HealthURL is where health and metrics are served; "" when they are not.
	HealthURL string

	worker *worker.Worker
	clean  closers
}

// StartWorker connects a worker; Run then serves.
func StartWorker(ctx context.Context, o WorkerOptions) (*Worker, error) {
	settings, err := readProcessOptions(os.Getenv("NOETL_DATA_DIR"), orDefaultInt(o.Slots, DefaultSlots()), false)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var how []client.Option
	if o.Token != "" {
		how = append(how, client.WithToken(o.Token))
	}
	if o.TLS != nil {
		how = append(how, client.WithTLS(o.TLS))
	}
	cl, err := client.New(o.ServerURL, how...)
	if err != nil {
		return nil, err
	}
	spool, err := o.spool()
	if err != nil {
		return nil, err
	}
	b, err := natsbus.Connect(ctx, natsbus.Options{URL: o.NATSURL, User: o.NATS.User, Password: o.NATS.Password, Token: o.NATS.Token, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	w := &Worker{clean: closers{b.Close}}
	tools, err := newToolbox(cl, settings, o.Outbound)
	if err != nil {
		return nil, errors.Join(err, w.clean.close())
	}
	w.clean = append(w.clean, tools.close)
	tools.warm(ctx, o.Logger)
	output := worker.NewOutput(b, o.Logger)
	w.clean = append(w.clean, output.Close)
	machine, err := snowflake.MachineID("", o.ID)
	if err != nil {
		return nil, errors.Join(err, w.clean.close())
	}
	ids := snowflake.New(machine, time.Now)
	o.Pools, o.Slots = orDefault(o.Pools, DefaultPools()), orDefaultInt(o.Slots, DefaultSlots())
	keyring, said, err := NewKeyring(cl, o.ID, registration(o.Pools, o.PoolName, o.Slots, tools.set, o.Version))
	if err != nil {
		return nil, errors.Join(err, w.clean.close())
	}
	registry := &obs.Registry{}
	registry.Process()
	metrics := workerMetrics(registry, tools.set, o.Version)
	o.Tracing.begin(registry, &w.clean)
	w.worker, err = worker.New(worker.Options{
		Spool: spool, Metrics: metrics, Pulse: o.Pulse, SlotsCPU: o.SlotsCPU, SlotsIO: o.SlotsIO,
		ID: o.ID, Pools: o.Pools, Slots: o.Slots, Registry: cl, Registration: said,
		Plane: cl, Bus: b, IDs: ids.Next, Heartbeat: o.Heartbeat, Drain: o.Drain, Logger: o.Logger, Output: output.For,
		Runner: pipeline.New(pipeline.Options{Tools: tools.set, ServerURL: o.ServerURL, WorkerID: o.ID, Results: meteredResults{cl, metrics}, Secrets: keyring, EnvSecrets: o.EnvSecrets, CommandTimeout: o.CommandTimeout, Tracer: o.Tracing.Tracer}),
	})
	if err != nil {
		return nil, errors.Join(err, w.clean.close())
	}
	if o.MetricsListen != "" {
		at, stop, err := serveHealth(o.MetricsListen, w.worker.Handler(registry), o.Logger)
		if err != nil {
			return nil, errors.Join(err, w.clean.close())
		}
		w.HealthURL, w.clean = at, append(w.clean, stop)
	}
	return w, nil
}

// Run serves until ctx ends, then drains and releases everything.
func (w *Worker) Run(ctx context.Context) error {
	return errors.Join(w.worker.Run(ctx), w.clean.close())
}

// Hurry interrupts what still runs while the worker drains.
func (w *Worker) Hurry() { w.worker.Hurry() }
