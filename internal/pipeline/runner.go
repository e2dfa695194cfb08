// Package pipeline runs the tasks of one command on a worker: it renders each
// task exactly once per try, calls its tool, and lets the task's policy decide
// what happens next. What comes out is the one event that ends the command.
//
// Template text comes from the playbook alone (the tool configuration and the
// step's input); everything else a command carries is data and is never parsed.
// The package must not know where commands come from, how events travel, or
// what the workflow around the step looks like.
package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/tool"
)

// Options configure a Runner. The zero value runs nothing: it has no tools.
type Options struct {
	Tools          tool.Set
	MaxRuns        int           // task runs within one command; 0 = 1,000,000
	CommandTimeout time.Duration // bound of one tool call that names none; 0 = 30 minutes
	ServerURL      string
	WorkerID       string
	// Sleep waits between tries and returns early with ctx's error; nil = a
	// real timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// CacheSize bounds the compiled commands kept for the next one of the same
	// step; 0 = 1024.
	CacheSize int
	// Results keeps data too large for an event; nil = all data travels in it.
	Results Results
	// InlineLimit is how many bytes of data travel in the event; 0 = 100 KiB.
	InlineLimit int
	// Secrets finds credentials; nil = there are none but the worker's own.
	Secrets Secrets
	// EnvSecrets are the worker's own secrets by name.
	EnvSecrets map[string]string
	// Tracer makes a span of every action; nil = none.
	Tracer *obs.Tracer
}

func (o Options) withDefaults() Options {
	if o.MaxRuns <= 0 {
		o.MaxRuns = 1_000_000
	}
	if o.CommandTimeout <= 0 {
		o.CommandTimeout = 30 * time.Minute
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.CacheSize <= 0 {
		o.CacheSize = 1024
	}
	if o.InlineLimit <= 0 {
		o.InlineLimit = 100 << 10
	}
	return o
}

// Runner runs commands. It is safe for concurrent use.
type Runner struct {
	opt    Options
	plans  *cache[*plan]
	inputs *cache[*input]
	wholes *cache[json.RawMessage] // fetched results by reference
	kinds  string                  // the kinds it has tools for, for messages
}

// New makes a Runner.
func New(o Options) *Runner {
	o = o.withDefaults()
	kinds := make([]string, 0, len(o.Tools))
	for kind := range o.Tools {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return &Runner{
		opt:    o,
		plans:  newCache[*plan](o.CacheSize, nil),
		inputs: newCache[*input](o.CacheSize, nil),
		wholes: newCache(wholesKept, func(raw json.RawMessage) int { return len(raw) }),
		kinds:  strings.Join(kinds, ", "),
	}
}

// Run runs a command and returns the event that says how it ended,
// command.completed, command.failed or command.cancelled, or that it waits for
// something without a worker, command.parked. An event without a type says that
// the command could not begin for a reason that will pass, and is to be given
// back. It returns no errors and does not panic; log receives the live output of
// the tools, without secrets.
func (r *Runner) Run(ctx context.Context, cmd *event.Command, log io.Writer) (ended event.Incoming) {
	if log == nil {
		log = io.Discard
	}
	run := newRun(r, cmd, log)
	defer run.kept.close()
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(run.log, "internal error: %v\n%s", p, debug.Stack())
			ended = run.failed(ctx, internalError(p))
		}
	}()
	err := run.prepare()
	if err == nil {
		err = run.resume(ctx)
	}
	if err != nil {
		return run.failed(ctx, err)
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if limit := cmd.Meta.TimeoutSeconds; limit > 0 {
		end := run.started.Add(time.Duration(limit * float64(time.Second)))
		bounded, cancel = context.WithDeadline(ctx, end)
	}
	defer cancel()
	err = run.bind(bounded)
	if err == nil {
		err = run.tasks(bounded)
	}
	switch {
	case err != nil && err.Kind == tool.KindCancelled && ctx.Err() != nil:
		return run.cancelled(err)
	case run.vault.away != nil:
		return event.Incoming{}
	case err != nil:
		return run.failed(ctx, err)
	case run.park != nil:
		return run.parked()
	}
	return run.completed(ctx)
}

// run is one command on its way.
type run struct {
	*Runner
	cmd     *event.Command
	log     *cleanLog
	kept    *keptLog
	vault   *vault
	started time.Time

	plan      *plan
	input     *input // the step-level input
	names     *names
	attempts  []int // tries of each task since it last succeeded
	results   results
	last      *outcome // of the task that ran last
	current   int      // index of the task that runs or ran last
	runs      int      // of all tasks
	resumed   *checkpoint
	park      *event.Park     // set when the command is to wait without a worker
	lookAgain json.RawMessage // the note of a task that looks again, see tool.Result.Again
}

func newRun(r *Runner, cmd *event.Command, live io.Writer) *run {
	s := &run{Runner: r, cmd: cmd, started: time.Now(), plan: noPlan, kept: newKeptLog(live)}
	s.vault = newVault(s)
	s.log = &cleanLog{filter: s.vault.hidden.Text(s.kept)}
	return s
}

// prepare compiles the command, or finds it compiled, and binds its names.
func (s *run) prepare() *tool.Error {
	var err error
	if s.plan, err = s.planFor(s.cmd); err != nil {
		s.plan = noPlan
		return tool.ConfigErrorf("%s", err)
	}
	for _, t := range s.plan.tasks {
		if _, ok := s.opt.Tools[t.Kind]; !ok {
			return s.noTool(t.Kind)
		}
	}
	if s.input, err = s.inputFor(s.cmd.Context.Args); err != nil {
		return templateError(err, "input")
	}
	s.attempts = make([]int, len(s.plan.tasks))
	return nil
}

// bind makes the names of the command; values that are kept elsewhere are
// fetched under ctx.
func (s *run) bind(ctx context.Context) *tool.Error {
	n, err := newNames(ctx, s.Runner, s.cmd)
	if err != nil {
		return err
	}
	s.names = n
	if s.resumed != nil {
		if err := n.restore(s.resumed, &s.results); err != nil {
			return checkpointError(err)
		}
	}
	return nil
}

// tasks runs them in order until one ends the command or has to wait.
func (s *run) tasks(ctx context.Context) *tool.Error {
	i, err := s.first(ctx)
	for err == nil && s.park == nil && i < len(s.plan.tasks) {
		s.current = i
		if s.runs++; s.runs > s.opt.MaxRuns {
			return &tool.Error{
				Kind: tool.KindResourceLimit, Code: "max_iterations_exceeded",
				Message: fmt.Sprintf("more than %d task runs in one command; check the jump and retry rules of the pipeline", s.opt.MaxRuns),
			}
		}
		if ctx.Err() != nil {
			return tool.Ended(ctx, "the command", 0)
		}
		if out := s.try(ctx, s.plan.tasks[i]); s.park == nil {
			i, err = s.after(ctx, i, out)
		}
	}
	return err
}

// after decides which task follows. Policy rules are for failures of the task,
// not for the end of the command it is part of.
func (s *run) after(ctx context.Context, i int, out *outcome) (int, *tool.Error) {
	if out.err != nil && ctx.Err() != nil {
		return 0, tool.Ended(ctx, "the command", 0)
	}
	if s.vault.away != nil {
		return 0, s.vault.away
	}
	return s.next(ctx, i, out)
}

// noTool explains why a kind cannot run here.
func (s *run) noTool(kind string) *tool.Error {
	if hint, known := refused[kind]; known {
		return tool.ConfigErrorf("tools of kind %q cannot be run: %s", kind, hint)
	}
	if s.kinds == "" {
		return tool.ConfigErrorf("no tool of kind %q on this worker; it has none", kind)
	}
	return tool.ConfigErrorf("no tool of kind %q on this worker; it has: %s", kind, s.kinds)
}

// refused are the kinds the language knows and no worker runs.
var refused = map[string]string{
	"rhai":     "rhai scripts have no interpreter here; write the step as kind python",
	"provider": "cloud providers are not managed from here; call their API with kind http",
	"agent":    "agent frameworks are not hosted here; call them with kind http or python",
	"wasm":     "WebAssembly modules are not hosted here; wrap the program in kind shell",
}

func internalError(p any) *tool.Error {
	return &tool.Error{
		Kind: tool.KindInternal, Code: "PANIC",
		Message: fmt.Sprintf("internal error: %v; the worker's log has the details", p),
	}
}

// templateError turns a failed rendering into a tool error that says where.
func templateError(err error, prefix string) *tool.Error {
	path := prefix
	if e, ok := asEvalError(err); ok {
		if at := strings.Join(e.Path, "."); at != "" {
			path = strings.Trim(prefix+"."+at, ".")
		}
		err = e.Err
	}
	msg := err.Error()
	if e, ok := asTemplateError(err); ok {
		if e.Source != "" && len(e.Source) <= 200 && !strings.Contains(e.Source, "\n") {
			msg += " in " + e.Source
		}
		if e.Remedy != "" {
			msg += "; " + e.Remedy
		}
	}
	if path != "" {
		msg = path + ": " + msg
	}
	return &tool.Error{Kind: tool.KindTemplate, Code: "TEMPLATE", Message: msg}
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// dict is v as a mapping; nil and undefined are an empty one.
func dict(v any) (*jinja.Dict, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case *jinja.Dict:
		return v, true
	case jinja.Wrapper:
		return dict(v.Unwrap())
	}
	return nil, jinja.IsUndefined(v)
}
