package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/node"
)

type workerCommand struct {
	lifeFlags
	Name string `short:"n" help:"With stop: the worker to stop, when several run here." placeholder:"NAME"`
	serverFlags
	ServerURL      string   `kong:"-"`
	NATSURL        string   `name:"nats-url" help:"NATS that announces commands." env:"NATS_URL" placeholder:"URL"`
	ID             string   `name:"id" help:"Name of this worker; unique." env:"WORKER_ID" placeholder:"NAME"`
	Pools          []string `help:"Pools to serve. Default shared, system, subscription." env:"NOETL_WORKER_POOL_SEGMENTS" placeholder:"POOL"`
	PoolName       string   `help:"What the registry calls the pool; a label only." env:"WORKER_POOL_NAME,NOETL_WORKER_POOL_NAME" placeholder:"NAME"`
	Slots          *int     `short:"m" help:"Commands to run at once." aliases:"max-workers" env:"WORKER_MAX_CONCURRENT,NOETL_WORKER_MAX_INFLIGHT_COMMANDS" placeholder:"N"`
	SlotsCPU       int      `name:"slots-cpu" help:"How many of them may be python, shell or duckdb; 0 for no limit." default:"0" env:"NOETL_WORKER_SLOTS_CPU" placeholder:"N"`
	SlotsIO        int      `name:"slots-io" help:"How many of them may be of other kinds; 0 for no limit." default:"0" env:"NOETL_WORKER_SLOTS_IO" placeholder:"N"`
	Heartbeat      span     `help:"How often to renew claims." default:"15s" env:"NOETL_COMMAND_HEARTBEAT,NOETL_COMMAND_HEARTBEAT_INTERVAL_SECONDS" placeholder:"DURATION"`
	Pulse          span     `help:"How often to tell the registry that the worker is there." default:"15s" env:"WORKER_HEARTBEAT_INTERVAL" placeholder:"DURATION"`
	Drain          span     `help:"How long running commands may take to finish after a stop signal; a second one ends it." default:"25s" env:"NOETL_WORKER_DRAIN,NOETL_WORKER_DRAIN_SECONDS" placeholder:"DURATION"`
	CommandTimeout span     `help:"Time of a tool call that names none." default:"30m" env:"NOETL_WORKER_COMMAND_TIMEOUT_SECONDS" placeholder:"DURATION"`
	SpoolDir       string   `help:"Where to keep reports while the server is away; off for nowhere. Default below the user's cache." env:"NOETL_WORKER_SPOOL_DIR" placeholder:"DIR"`
	MetricsListen  string   `help:"Serve /healthz, /readyz, /livez and /metrics at this address. Default: not at all." env:"WORKER_METRICS_BIND,NOETL_WORKER_METRICS_BIND" placeholder:"HOST:PORT"`
	PrintConfig    bool     `help:"Print the settings in effect, secrets masked, and end."`
	Verbose        bool     `short:"v" help:"Log more." env:"NOETL_DEBUG"`
	outboundFlags
	traceFlags
}

// Run serves commands until the process is told to stop, then drains.
func (c *workerCommand) Run(ctx context.Context, env *Env) error {
	if c.Action == "stop" {
		return stopWorker(ctx, env, orText(c.Name, c.ID), c.Force)
	}
	if c.NATSURL == "" {
		return invalidf("--nats-url is missing (NATS_URL): say which NATS announces commands, such as nats://127.0.0.1:4222")
	}
	var err error
	if c.ServerURL, err = c.Connection.service(); err != nil {
		return err
	}
	if err := checkPairs(); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	pools, err := c.pools()
	if err != nil {
		return err
	}
	if len(pools) == 0 {
		pools = node.DefaultPools()
	}
	slots, err := slotsOf(c.Slots)
	if err != nil {
		return err
	}
	outbound, err := c.outboundFlags.options()
	if err != nil {
		return err
	}
	own, err := envSecrets()
	if err != nil {
		return err
	}
	token, err := workerToken(c.Connection.flags.Token)
	if err != nil {
		return err
	}
	secured, err := workerTLS()
	if err != nil {
		return err
	}
	id := c.ID
	if id == "" {
		host, _ := os.Hostname()
		id = fmt.Sprintf("worker-%s-%d", strings.ToLower(host), os.Getpid())
	}
	if slots == 0 {
		slots = node.DefaultSlots()
	}
	if c.PrintConfig {
		c.printConfig(env.Stdout, id, token, pools, slots)
		return nil
	}
	drain := time.Duration(c.Drain)
	if drain == 0 {
		drain = -1 // not at all
	}
	log := serverLog(env, c.Verbose)
	tracing, err := c.traceFlags.open(ctx, "noetl-worker", log)
	if err != nil {
		return err
	}
	node.TuneMemory()
	w, err := node.StartWorker(ctx, node.WorkerOptions{
		ID: id, ServerURL: c.ServerURL, NATSURL: c.NATSURL, Pools: pools, PoolName: c.PoolName, Slots: slots, SlotsCPU: c.SlotsCPU, SlotsIO: c.SlotsIO,
		Token: token, TLS: secured, NATS: node.NATSLogin{User: os.Getenv("NATS_USER"), Password: os.Getenv("NATS_PASSWORD"), Token: os.Getenv("NATS_TOKEN")},
		Heartbeat: time.Duration(c.Heartbeat), Pulse: time.Duration(c.Pulse), Drain: drain, CommandTimeout: time.Duration(c.CommandTimeout),
		SpoolDir: c.SpoolDir, MetricsListen: c.MetricsListen,
		Outbound: outbound, EnvSecrets: own, Version: Version, Logger: log, Tracing: tracing,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "noetl worker %s: pools %s, reporting to %s\n", id, strings.Join(pools, ", "), maskURL(c.ServerURL))
	if w.HealthURL != "" {
		fmt.Fprintf(env.Stdout, "health and metrics: %s\n", w.HealthURL)
	}
	defer claimWorkerPID(id).release()
	env.onHurry(w.Hurry) // told to stop again, it does not wait for what runs
	return w.Run(ctx)
}

// slotsOf reads how many commands run at once; 0 when nothing was said.
func slotsOf(given *int) (int, error) {
	switch {
	case given == nil:
		return 0, nil
	case *given < 1:
		return 0, invalidf("--slots %d (WORKER_MAX_CONCURRENT): want a number from 1; leave it out for the default", *given)
	}
	return *given, nil
}
