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
	ServerURL string        `help:"Control plane to report to." default:"http://127.0.0.1:8082" env:"NOETL_SERVER_URL" placeholder:"URL"`
	NATSURL   string        `name:"nats-url" help:"NATS that announces commands." required:"" env:"NATS_URL" placeholder:"URL"`
	ID        string        `name:"id" help:"Name of this worker; unique." env:"WORKER_ID" placeholder:"NAME"`
	Pools     []string      `help:"Pools to serve." default:"shared,system,subscription" env:"NOETL_WORKER_POOL_SEGMENTS" placeholder:"POOL"`
	Slots     *int          `help:"Commands to run at once." env:"WORKER_MAX_CONCURRENT" placeholder:"N"`
	Heartbeat time.Duration `help:"How often to renew claims." default:"15s" env:"NOETL_COMMAND_HEARTBEAT" placeholder:"DURATION"`
	Drain     time.Duration `help:"How long running commands may take to finish after a stop signal." default:"25s" env:"NOETL_WORKER_DRAIN" placeholder:"DURATION"`
	Verbose   bool          `short:"v" help:"Log more." env:"NOETL_DEBUG"`
}

// Run serves commands until the process is told to stop, then drains.
func (c *workerCommand) Run(ctx context.Context, env *Env) error {
	if err := refuseBlank("NOETL_SERVER_URL", "NATS_URL", "WORKER_ID", "NOETL_WORKER_POOL_SEGMENTS"); err != nil {
		return err
	}
	slots, err := slotsOf(c.Slots)
	if err != nil {
		return err
	}
	id := c.ID
	if id == "" {
		host, _ := os.Hostname()
		id = fmt.Sprintf("worker-%s-%d", strings.ToLower(host), os.Getpid())
	}
	node.TuneMemory()
	w, err := node.StartWorker(ctx, node.WorkerOptions{
		ID: id, ServerURL: c.ServerURL, NATSURL: c.NATSURL, Pools: c.Pools, Slots: slots,
		Heartbeat: c.Heartbeat, Drain: c.Drain, Version: Version, Logger: serverLog(env, c.Verbose),
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stdout, "noetl worker %s: pools %s, reporting to %s\n", id, strings.Join(c.Pools, ", "), c.ServerURL)
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
