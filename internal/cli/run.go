package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/node"
	"github.com/noetl/noetl-go/internal/obs"
)

type runCommand struct {
	serverFlags
	File string `arg:"" name:"ref" help:"Playbook: a file (- is standard input), catalog://PATH@VERSION, pbk_ID, a path of the catalog, or a step of ./noetl.yaml." placeholder:"REF"`
	payloadFlags
	Runtime         string   `short:"r" help:"Where it runs: local (here), distributed (on the server), or auto: as the context says, else files here and others on the server." enum:"auto,local,distributed" default:"auto" placeholder:"WHERE"`
	Target          string   `short:"t" help:"Step to begin with instead of the first." placeholder:"STEP"`
	PlaybookVersion int      `name:"version" short:"V" help:"Version of a playbook of the catalog; the latest when not given." placeholder:"N"`
	Endpoint        string   `hidden:"" help:"The same as --server-url." placeholder:"URL"`
	DryRun          bool     `help:"Only tell what would be run, where and with which input."`
	Catalog         string   `short:"d" help:"Put the playbooks of this directory into the catalog first, for tasks of kind playbook. Playbooks that tasks name by a path relative to their own file are found without it." placeholder:"DIR"`
	Env             []string `help:"Let templates of the workload read this variable as env.NAME." placeholder:"NAME"`
	DataDir         string   `help:"Keep the execution in this directory; noetl server --data-dir shows it." placeholder:"DIR"`
	Credential      []string `help:"Register the credential in this file first: name, type and data as YAML or JSON. May be given several times." placeholder:"FILE"`
	outputFlags
	Timeout time.Duration `help:"Give up after this long; exit code 3." placeholder:"DURATION"`
	Verbose bool          `short:"v" help:"Show what the node logs."`
	outboundFlags
	traceFlags
}

func (c *runCommand) node(ctx context.Context, env *Env, dir string) (*node.Node, error) {
	outbound, err := c.outboundFlags.options()
	if err != nil {
		return nil, err
	}
	own, err := envSecrets()
	if err != nil {
		return nil, err
	}
	log := c.logger(env)
	tracing, err := c.traceFlags.open(ctx, "noetl-run", log)
	if err != nil {
		return nil, err
	}
	return node.Start(ctx, node.Options{
		DataDir: dir, InProcess: true, Relaxed: c.DataDir == "", TemplateEnv: environ(c.Env), Version: Version, Logger: log,
		Outbound: outbound, EnvSecrets: own, Tracing: tracing,
	})
}

// credentials registers those that came with the command.
func (c *runCommand) credentials(ctx context.Context, env *Env, n *node.Node) error {
	for _, file := range c.Credential {
		r, err := readCredential(env, file)
		if err != nil {
			return err
		}
		if err := n.PutCredential(ctx, r.Name, r.Type, r.Data); err != nil {
			return err
		}
	}
	return nil
}

// Run executes a playbook: here, on a node with temporary storage unless it is
// told otherwise and the same control plane, worker and tools as a server; or
// on a server.
func (c *runCommand) Run(ctx context.Context, env *Env) error {
	if c.Timeout < 0 {
		return invalidf("--timeout %s is less than nothing: give a time such as 30s", c.Timeout)
	}
	payload, err := c.value()
	if err != nil {
		return err
	}
	plan, err := c.plan(ctx, env)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.tell(env, plan, payload)
	}
	if plan.Runtime == distributed {
		return c.distributed(ctx, env, plan, payload)
	}
	return c.local(ctx, env, plan, payload)
}

// local runs the document on a node of its own.
func (c *runCommand) local(ctx context.Context, env *Env, plan runPlan, payload []byte) error {
	src, pb := plan.src, plan.pb
	var err error
	shelf := newShelf(env)
	if err := shelf.fill(c.Catalog); err != nil {
		return err
	}
	if err := shelf.follow(plan.File, pb); err != nil {
		return err
	}
	dir := c.DataDir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "noetl-run-"); err != nil {
			return fmt.Errorf("make temporary directory: %w", err)
		}
		defer os.RemoveAll(dir)
	}
	n, err := c.node(ctx, env, dir)
	if err != nil {
		return err
	}
	err = c.credentials(ctx, env, n)
	if err == nil {
		err = shelf.register(ctx, n.Plane)
	}
	if err == nil {
		err = c.execute(ctx, env, n, src, payload)
	}
	if stopErr := n.Stop(); err == nil && stopErr != nil {
		return stopErr
	}
	return err
}

// environ are the variables of this process that templates may read. One that
// is not set is undefined in a template too.
func environ(names []string) map[string]string {
	out := make(map[string]string, len(names))
	for _, name := range names {
		if v, ok := os.LookupEnv(name); ok {
			out[name] = v
		}
	}
	return out
}

func (c *runCommand) logger(env *Env) *slog.Logger {
	if !c.Verbose {
		return nil
	}
	return slog.New(obs.LogHandler(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

func (c *runCommand) execute(ctx context.Context, env *Env, n *node.Node, src, payload []byte) error {
	reg, err := n.Plane.Register(ctx, control.RegisterRequest{Content: string(src)})
	if err != nil {
		return err
	}
	started := time.Now()
	answer, err := n.Plane.Execute(ctx, control.ExecuteRequest{CatalogID: reg.Entry.CatalogID, Payload: payload, Trace: callersTrace()})
	if err != nil {
		return err
	}
	waitCtx, cancel := ctx, context.CancelFunc(func() {})
	if c.Timeout > 0 {
		waitCtx, cancel = context.WithTimeout(ctx, c.Timeout)
	}
	defer cancel()
	p := newProgress(env, c.form() != "table")
	waitErr := follow(waitCtx, n.Plane, answer.ExecutionID, p)
	if waitErr == nil {
		waitErr = awaitChildren(waitCtx, env, n.Plane, answer.ExecutionID)
	}
	return c.conclude(env, n.Plane, answer.ExecutionID, started, p, waitErr)
}

// follow feeds the log to the progress view until the execution has ended.
func follow(ctx context.Context, plane *control.Plane, id event.ID, p *progress) error {
	wake, stop := plane.Watch(id)
	defer stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var after int64
	for {
		events, err := plane.Events(ctx, id, after, 1000)
		if err != nil {
			return err
		}
		for _, e := range events {
			p.apply(e)
			after = e.Seq
			if e.Type.IsTerminal() {
				return nil
			}
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		case now := <-tick.C:
			p.draw(now)
		}
	}
}

// conclude prints the outcome. An interrupted or timed-out execution is
// cancelled first, so that its tools end before the process does.
func (c *runCommand) conclude(env *Env, plane *control.Plane, id event.ID, started time.Time, p *progress, waitErr error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	late := errors.Is(waitErr, context.DeadlineExceeded)
	if waitErr != nil {
		reason := "interrupted"
		if late {
			reason = fmt.Sprintf("timed out after %s", c.Timeout)
		}
		if _, err := plane.Cancel(ctx, id, control.CancelRequest{Reason: reason, By: "noetl run", Cascade: true}); err != nil && event.CodeOf(err) != event.Invalid {
			return err
		}
	}
	row, err := plane.Execution(ctx, id)
	if err != nil {
		return err
	}
	steps, err := plane.Outcome(ctx, id)
	if err != nil {
		return err
	}
	o := outcome{
		ExecutionID: event.StringID(id), Status: row.Status, Error: row.Error,
		DurationMS: time.Since(started).Milliseconds(), Steps: make(map[string]stepOutcome, len(steps)),
	}
	if late {
		o.Status, o.Error = timedOut, fmt.Sprintf("timed out after %s", c.Timeout)
	}
	for _, s := range steps {
		o.Steps[s.Name] = stepOutcome{Status: s.Status, Runs: s.Runs, Result: s.Result, Ref: s.Ref, Error: s.Error}
	}
	return o.finish(env, c.outputFlags, p)
}
