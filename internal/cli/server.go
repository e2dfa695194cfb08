package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/snowflake"
)

type serverCommand struct {
	Listen      string        `help:"Address of the API and page (NOETL_HOST and NOETL_PORT). Default 127.0.0.1:8082." placeholder:"HOST:PORT"`
	DataDir     string        `help:"Directory of the embedded database and NATS." default:".noetl" env:"NOETL_DATA_DIR" placeholder:"DIR"`
	DatabaseURL string        `help:"PostgreSQL to use instead of the embedded database." env:"NOETL_DATABASE_URL" placeholder:"URL"`
	NATSURL     string        `name:"nats-url" help:"NATS to use instead of the embedded one." env:"NATS_URL" placeholder:"URL"`
	NATSListen  string        `name:"nats-listen" help:"Let remote workers reach the embedded NATS at this address." env:"NOETL_NATS_LISTEN" placeholder:"HOST:PORT"`
	PublicURL   string        `help:"How workers reach this server." env:"NOETL_PUBLIC_SERVER_URL" placeholder:"URL"`
	NoWorker    bool          `help:"Do not run commands in this process." env:"NOETL_NO_WORKER"`
	Slots       *int          `help:"Commands the in-process worker runs at once." env:"WORKER_MAX_CONCURRENT" placeholder:"N"`
	Lease       time.Duration `help:"How long a silent worker keeps a command." default:"60s" env:"NOETL_COMMAND_LEASE" placeholder:"DURATION"`
	MaxAttempts int           `help:"How often a command whose worker is lost is given to another." default:"3" env:"NOETL_COMMAND_MAX_ATTEMPTS" placeholder:"N"`
	TemplateEnv []string      `help:"Variables that templates of a workload may read as env.NAME." env:"NOETL_TEMPLATE_ENV" placeholder:"NAME,…"`
	Insecure    bool          `help:"Allow listening beyond loopback without authentication." env:"NOETL_INSECURE,NOETL_AUTH_INSECURE"`
	StringIDs   bool          `name:"string-ids" help:"Write the ids of executions as strings in answers, for pages that cannot hold the numbers." env:"NOETL_STRING_IDS"`
	Verbose     bool          `short:"v" help:"Log more." env:"NOETL_DEBUG"`
	lifeFlags
	stallFlags
	publicationFlags
	resultFlags
	retentionFlags
	observationFlags
	secretFlags
	shardFlags
	outboundFlags
	edgeFlags
	authFlags
	traceFlags
}

// Run serves until the process is told to stop, then drains.
func (c *serverCommand) Run(ctx context.Context, env *Env) error {
	if c.Action == "stop" {
		return stopProcess(ctx, env, "server", serverPID(c.DataDir), c.Force)
	}
	if err := refuseBlank(publicationSettings...); err != nil {
		return err
	}
	if err := refuseBlank("NOETL_HOST", "NOETL_PORT", "NOETL_DATA_DIR", "NOETL_DATABASE_URL", "NATS_URL",
		"NOETL_NATS_LISTEN", "NOETL_PUBLIC_SERVER_URL", "NOETL_COMMAND_LEASE", "NOETL_SERVER_MACHINE_ID", "NOETL_STRING_IDS"); err != nil {
		return err
	}
	listen, err := c.address()
	if err != nil {
		return err
	}
	if c.Lease < time.Second {
		return invalidf("--lease %s is too short: a worker renews its claims a few times per lease (at least 1s)", c.Lease)
	}
	if c.MaxAttempts < 1 {
		return invalidf("--max-attempts %d: a command must be tried at least once", c.MaxAttempts)
	}
	slots, err := slotsOf(c.Slots)
	if err != nil {
		return err
	}
	stall, err := c.stallFlags.options()
	if err != nil {
		return err
	}
	if err := refuseBlank(observationSettings...); err != nil {
		return err
	}
	observation, err := c.observationFlags.options()
	if err != nil {
		return err
	}
	publication, err := c.publicationFlags.options()
	if err != nil {
		return err
	}
	own, err := envSecrets()
	if err != nil {
		return err
	}
	secrets, err := c.secretFlags.options()
	if err != nil {
		return err
	}
	outbound, err := c.outboundFlags.options()
	if err != nil {
		return err
	}
	access, err := c.authFlags.options()
	if err != nil {
		return err
	}
	edge, err := c.edgeFlags.options()
	if err != nil {
		return err
	}
	retention, err := c.retentionFlags.options()
	if err != nil {
		return err
	}
	results, err := c.resultFlags.options()
	if err != nil {
		return err
	}
	databases, err := c.postgres()
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	machine, err := snowflake.MachineID(os.Getenv("NOETL_SERVER_MACHINE_ID"), host)
	if err != nil {
		return invalidf("NOETL_SERVER_MACHINE_ID: %v", err)
	}
	log := serverLog(env, c.Verbose)
	tracing, err := c.traceFlags.open(ctx, "noetl-server", log)
	if err != nil {
		return err
	}
	node.TuneMemory()
	n, err := node.Start(ctx, node.Options{
		DataDir: c.DataDir, DatabaseURL: c.DatabaseURL, Postgres: databases, NATSURL: c.NATSURL, Listen: listen, NATSListen: c.NATSListen,
		PublicURL: c.PublicURL, NoWorker: c.NoWorker, Slots: slots, Lease: c.Lease, MaxAttempts: c.MaxAttempts, MachineID: machine,
		TemplateEnv: environ(c.TemplateEnv), Stall: stall, Publication: publication, Observation: observation, Results: results, Retention: retention, Outbound: outbound, Edge: edge, Auth: access, Secrets: secrets, EnvSecrets: own, InternalToken: internalToken(), StringIDs: c.StringIDs, Version: Version, Logger: log, Tracing: tracing,
	})
	if err != nil {
		return err
	}
	defer claimServerPID(c.DataDir).release()
	fmt.Fprintf(env.Stdout, "noetl %s: %s (%s)\n", Version, n.URL, c.backends())
	if n.Bootstrap != "" {
		fmt.Fprintf(env.Stdout, "admin token, shown this once: %s\n", n.Bootstrap)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- n.Wait() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		fmt.Fprintln(env.Stdout, "stopping: running commands finish first; told again, it ends at once")
		n.Interrupt()
		return <-stopped
	}
}

// backends says in a few words what the node stands on.
func (c *serverCommand) backends() string {
	db, broker := "SQLite in "+c.DataDir, "embedded NATS"
	switch {
	case c.Shards != "":
		db = fmt.Sprintf("PostgreSQL, %d shards", strings.Count(c.Shards, ",")+1)
	case c.DatabaseURL != "" || c.ClusterDSN != "" || os.Getenv("POSTGRES_HOST") != "":
		db = "PostgreSQL"
	}
	if c.NATSURL != "" {
		broker = "external NATS"
	}
	if c.NoWorker {
		return db + ", " + broker + ", no worker"
	}
	return db + ", " + broker + ", worker in process"
}

// address joins flag, environment and default, and refuses to expose an open
// server by accident.
func (c *serverCommand) address() (string, error) {
	addr := c.Listen
	if addr == "" {
		addr = net.JoinHostPort(orEnv("NOETL_HOST", "127.0.0.1"), orEnv("NOETL_PORT", "8082"))
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", invalidf("--listen %q: want HOST:PORT such as 127.0.0.1:8082", addr)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", invalidf("port %q: want a number from 0 to 65535", port)
	}
	if !isLoopback(host) && !c.Insecure && !c.authFlags.protected() {
		return "", invalidf("listening on %s would let anybody on the network run commands here: listen on 127.0.0.1, switch authentication on (NOETL_AUTH=token), or pass --insecure if a firewall or gateway protects this address", addr)
	}
	return addr, nil
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func orEnv(name, fallback string) string {
	if v, ok := os.LookupEnv(name); ok {
		return v
	}
	return fallback
}

// refuseBlank stops the start when a setting is present but empty: a typo in a
// deployment must not silently select another backend.
func refuseBlank(names ...string) error {
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok && strings.TrimSpace(v) == "" {
			return invalidf("%s is set but blank: give it a value or unset it", name)
		}
	}
	return nil
}

// serverLog writes readable lines on a terminal and JSON elsewhere.
func serverLog(env *Env, verbose bool) *slog.Logger {
	opts := &slog.HandlerOptions{Level: slog.LevelInfo}
	if verbose {
		opts.Level = slog.LevelDebug
	}
	if env.Terminal {
		return slog.New(obs.LogHandler(slog.NewTextHandler(env.Stderr, opts)))
	}
	return slog.New(obs.LogHandler(slog.NewJSONHandler(env.Stderr, opts)))
}
