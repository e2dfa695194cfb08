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
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
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
	return o
}

// Runner runs commands. It is safe for concurrent use.
type Runner struct {
	opt    Options
	plans  *cache[*plan]
	inputs *cache[*input]
	kinds  string // the kinds it has tools for, for messages
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
		plans:  newCache[*plan](o.CacheSize),
		inputs: newCache[*input](o.CacheSize),
		kinds:  strings.Join(kinds, ", "),
	}
}

// Run runs a command to its end and returns the event that says how it ended:
// command.completed, command.failed or command.cancelled. It returns no errors
// and does not panic; log receives the live output of the tools.
func (r *Runner) Run(ctx context.Context, cmd *event.Command, log io.Writer) (ended event.Incoming) {
	if log == nil {
		log = io.Discard
	}
	run := &run{Runner: r, cmd: cmd, log: log, started: time.Now(), plan: noPlan}
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(log, "internal error: %v\n%s", p, debug.Stack())
			ended = run.failed(internalError(p))
		}
	}()
	if err := run.prepare(); err != nil {
		return run.failed(err)
	}
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if limit := cmd.Meta.TimeoutSeconds; limit > 0 {
		bounded, cancel = context.WithTimeout(ctx, time.Duration(limit*float64(time.Second)))
	}
	defer cancel()
	if err := run.tasks(bounded); err != nil {
		if err.Kind == tool.KindCancelled && ctx.Err() != nil {
			return run.cancelled(err)
		}
		return run.failed(err)
	}
	return run.completed()
}

// run is one command on its way.
type run struct {
	*Runner
	cmd     *event.Command
	log     io.Writer
	started time.Time

	plan     *plan
	input    *input // the step-level input
	names    *names
	attempts []int // tries of each task since it last succeeded
	results  results
	last     *outcome // of the task that ran last
	current  int      // index of the task that runs or ran last
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
	if s.names, err = newNames(s.Runner, s.cmd); err != nil {
		return &tool.Error{Kind: tool.KindInternal, Code: "RENDER_CONTEXT", Message: err.Error()}
	}
	s.attempts = make([]int, len(s.plan.tasks))
	return nil
}

// tasks runs them in order until one ends the command.
func (s *run) tasks(ctx context.Context) *tool.Error {
	for i, runs := 0, 1; i < len(s.plan.tasks); runs++ {
		s.current = i
		if runs > s.opt.MaxRuns {
			return &tool.Error{
				Kind: tool.KindResourceLimit, Code: "max_iterations_exceeded",
				Message: fmt.Sprintf("more than %d task runs in one command; check the jump and retry rules of the pipeline", s.opt.MaxRuns),
			}
		}
		if ctx.Err() != nil {
			return tool.Ended(ctx, "the command", 0)
		}
		out := s.try(ctx, s.plan.tasks[i])
		if out.err != nil && ctx.Err() != nil {
			// Policy rules are for failures of the task, not for the end of the
			// command it is part of.
			return tool.Ended(ctx, "the command", 0)
		}
		next, err := s.next(ctx, i, out)
		if err != nil {
			return err
		}
		i = next
	}
	return nil
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
