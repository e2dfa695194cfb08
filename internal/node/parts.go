package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/bus/membus"
	natsbus "github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/pipeline"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store/postgres"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/worker"
)

func (n *Node) openStore(ctx context.Context, o Options) error {
	n.machine = o.MachineID
	if o.usesPostgres() {
		return n.openPostgres(ctx, o)
	}
	if err := ensureDir(o.DataDir); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, filepath.Join(o.DataDir, "noetl.db"), sqlite.Options{Relaxed: o.Relaxed})
	if err != nil {
		return err
	}
	n.Store, n.clean = db, append(n.clean, db.Close)
	// The file is ours alone, so whoever held a claim from within this data
	// directory is gone: its leases need not run out first.
	if _, err := db.ExpireLeases(ctx, embeddedPrefix, time.Now()); err != nil {
		return fmt.Errorf("release claims of the former process: %w", err)
	}
	if o.Publication.Publisher == PublishInternal {
		if _, err := db.RecallOutbox(ctx); err != nil {
			return fmt.Errorf("release outbox rows of the former process: %w", err)
		}
	}
	return nil
}

func (n *Node) openPostgres(ctx context.Context, o Options) error {
	opts, err := o.postgresOptions()
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, opts)
	if err != nil {
		return err
	}
	n.Store, n.clean = db, append(n.clean, db.Close)
	machine, release, err := db.LeaseMachine(ctx, o.MachineID)
	if err != nil {
		return err
	}
	n.machine, n.clean = machine, append(n.clean, func() error { release(); return nil })
	n.background = append(n.background, func(ctx context.Context) error { return keepPartitions(ctx, db, o.Logger) })
	return nil
}

// keepPartitions makes the partitions of the coming quarters while the process
// lives. A failure is tried again the next day, long before one is needed.
func keepPartitions(ctx context.Context, db *postgres.Store, log *slog.Logger) error {
	day := time.NewTicker(24 * time.Hour)
	defer day.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-day.C:
			if err := db.EnsurePartitions(ctx, now); err != nil {
				log.Error("make event partitions", "error", err)
			}
		}
	}
}

func (n *Node) openBus(ctx context.Context, o Options) error {
	var err error
	switch {
	case o.InProcess:
		n.bus = membus.New(membus.Options{})
	case o.NATSURL != "":
		n.bus, err = natsbus.Connect(ctx, natsbus.Options{URL: o.NATSURL})
	default:
		if err := ensureDir(o.DataDir); err != nil {
			return err
		}
		n.bus, err = natsbus.Embedded(ctx, natsbus.EmbeddedOptions{StoreDir: filepath.Join(o.DataDir, "nats"), Listen: o.NATSListen})
	}
	if err != nil {
		return err
	}
	n.clean = append(n.clean, n.bus.Close)
	return nil
}

// embeddedPrefix begins the ids of workers that live inside a server with its
// own database file.
const embeddedPrefix = "embedded-"

// DefaultSlots is how many commands a worker runs at once unless told.
func DefaultSlots() int { return max(8, 4*runtime.NumCPU()) }

// DefaultPools are the worker pools a worker serves unless told.
func DefaultPools() []string { return []string{"shared", "system", "subscription"} }

func (n *Node) addWorker(ctx context.Context, o Options, ids *snowflake.Generator) error {
	host, _ := os.Hostname()
	id := fmt.Sprintf("%s%s-%d", embeddedPrefix, strings.ToLower(host), os.Getpid())
	if o.usesPostgres() {
		id = fmt.Sprintf("server-%s-%d-%d", strings.ToLower(host), os.Getpid(), ids.Next())
	}
	local := o.Listen == "" && o.InProcess
	dataDir := o.DataDir
	if local {
		dataDir = "" // it may be gone tomorrow
	}
	settings, err := readProcessOptions(dataDir, orDefaultInt(o.Slots, DefaultSlots()), local)
	if err != nil {
		return err
	}
	tools, err := newToolbox(n.Plane, settings, o.Outbound)
	if err != nil {
		return err
	}
	n.clean = append(n.clean, tools.close)
	if o.Listen != "" { // a server lives long enough to be worth warming up
		n.background = append(n.background, func(ctx context.Context) error { tools.warm(ctx, o.Logger); return nil })
	}
	o.Pools, o.Slots = orDefault(o.Pools, DefaultPools()), orDefaultInt(o.Slots, DefaultSlots())
	var registry worker.Registry // only a server has somebody to show it to
	if o.Listen != "" {
		registry = n.Plane
	}
	metrics := workerMetrics(&n.metrics.Registry, tools.set, o.Version)
	n.worker, err = worker.New(worker.Options{
		Spool: o.spool(), Metrics: metrics,
		ID: id, Pools: o.Pools, Slots: o.Slots, Registry: registry, Registration: registration(o.Pools, "", o.Slots, tools.set, o.Version),
		Plane: n.Plane, Bus: n.bus, IDs: ids.Next, Logger: o.Logger, Heartbeat: o.Lease / 4, Output: n.output(o),
		Runner: pipeline.New(pipeline.Options{Tools: tools.set, ServerURL: o.PublicURL, WorkerID: id, Results: meteredResults{n.Plane, metrics}, Secrets: n.Plane, EnvSecrets: o.EnvSecrets, Tracer: o.Tracing.Tracer}),
	})
	if err != nil {
		return err
	}
	n.Plane.SetLocal(n.worker)
	n.metrics.OnScrape(n.worker.Observe)
	return nil
}

func orDefault(v, d []string) []string {
	if len(v) == 0 {
		return d
	}
	return v
}

func orDefaultInt(v, d int) int {
	if v == 0 {
		return d
	}
	return v
}
