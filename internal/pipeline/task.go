package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/tool"
)

// try runs one task once. Whatever goes wrong on the way, also while it is
// rendered, becomes its outcome. There is none when the task has to wait for
// something; then the command is to be parked.
func (s *run) try(ctx context.Context, t *task) *outcome {
	out := &outcome{attempt: s.attempts[s.current] + 1}
	started := time.Now()
	view := &view{names: s.names, run: s, task: t.Task, attempt: out.attempt}
	acting, span := s.dispatch(ctx, t, out.attempt, started)
	call, err := s.render(acting, t, view)
	if err == nil {
		call.Trace = s.trace(span)
		out.result, err = s.call(acting, t, call)
	}
	s.vault.clean(out.result, err)
	s.dispatched(span, out.result, err)
	if err == nil && out.result != nil && out.result.Park != nil {
		wait := &waiting{Input: view.input, Began: started.UnixMilli(), Again: out.result.Again}
		if err = s.suspend(ctx, out.result.Park, wait); err == nil {
			return nil
		}
		out.result = nil
	}
	out.err, out.took = err, time.Since(started)
	s.conclude(t, view, out)
	return out
}

// conclude makes an outcome known and lets the task's `set` look at it.
func (s *run) conclude(t *task, view *view, out *outcome) {
	out.settle(s.names.fetch)
	s.keep(t, out)
	if out.err == nil && len(t.Set) > 0 {
		view.output = dataView{out}
		if out.err = s.assign(t.Set, view); out.err != nil {
			// A value that cannot be computed is a failure of the task like
			// any other, and its rules get to see it.
			out.bound = nil
			s.keep(t, out)
		}
	}
}

// keep makes an outcome visible to the tasks and rules that follow.
func (s *run) keep(t *task, out *outcome) {
	s.last = out
	if !t.lasting {
		return
	}
	s.results.put(t.Label, out)
	if !s.plan.single {
		s.names.ownFresh().Set(t.Label, out.value())
	}
}

// render evaluates the input and then, with it in view, the configuration.
func (s *run) render(ctx context.Context, t *task, v *view) (*tool.Call, *tool.Error) {
	if err := s.keychain(ctx, t); err != nil {
		return nil, err
	}
	v.token = s.tokenFunc(ctx)
	in, argv, err := s.renderInput(t, v)
	if err != nil {
		return nil, s.names.because(err)
	}
	v.input, v.local = in, !s.plan.single
	rendered, err := renderConfig(t, v)
	if err != nil {
		return nil, s.names.because(err)
	}
	config := plainMap(rendered)
	s.named(config)
	args, err := encodedMap(in)
	if err != nil {
		return nil, err
	}
	if argv != nil {
		config["args"] = jinja.Plain(argv)
	}
	vars, encodeErr := s.names.variables(t.NeedsAll)
	if err := s.names.unavailable(); err != nil {
		return nil, err
	}
	if encodeErr != nil {
		return nil, contextError(encodeErr)
	}
	call := &tool.Call{
		Config:      config,
		Ordered:     func(field string) (json.RawMessage, error) { return encodeField(rendered, field) },
		Args:        args,
		Variables:   vars,
		ExecutionID: s.cmd.ExecutionID.String(),
		Step:        s.names.step(),
		CommandID:   s.cmd.Meta.CommandID,
		Attempt:     s.cmd.Meta.Attempt,
		Run:         s.runs,
		ServerURL:   s.opt.ServerURL,
		Log:         s.log,
		Credentials: s.vault.credentials,
		Hide:        s.vault.hidden.Add,
		InlineLimit: s.inlineLimit(),
		Again:       s.lookAgain,
	}
	if s.opt.Results != nil {
		call.Blobs = blobs{s}
	}
	s.lookAgain = nil
	return call, nil
}

func renderConfig(t *task, in jinja.Scope) (*jinja.Dict, *tool.Error) {
	if t.Config == nil {
		return jinja.NewDict(0), nil
	}
	v, err := t.Config.Eval(in)
	if err != nil {
		return nil, templateError(err, "")
	}
	d, ok := dict(v)
	if !ok {
		return nil, tool.ConfigErrorf("the configuration of a %s tool must be a map", t.Kind)
	}
	return d, nil
}

func encodeField(config *jinja.Dict, field string) (json.RawMessage, error) {
	v, _ := config.Get(field)
	b, err := jinja.ToJSON(v)
	if err != nil {
		return nil, tool.ConfigErrorf("%s: %v", field, err)
	}
	return b, nil
}

// encodedMap encodes each input, so that objects keep their order and numbers
// their type on the way into another language.
func encodedMap(d *jinja.Dict) (map[string]any, *tool.Error) {
	m := make(map[string]any, d.Len())
	for k, v := range d.All() {
		b, err := jinja.ToJSON(v)
		if err != nil {
			return nil, tool.ConfigErrorf("input.%s: %v", k, err)
		}
		m[k] = json.RawMessage(b)
	}
	return m, nil
}

// renderInput merges the step's input with the task's own, which wins, and for
// single tools in a loop adds the names of the iteration. A task whose args
// are a list keeps them as such: those are arguments of a program, and nothing
// is inherited into them.
func (s *run) renderInput(t *task, in jinja.Scope) (merged *jinja.Dict, argv []any, failed *tool.Error) {
	own, err := evalInput(t.Input, in)
	if err != nil {
		return nil, nil, err
	}
	argv, _ = own.([]any)
	mine, ok := dict(own)
	if !ok && argv == nil {
		return nil, nil, tool.ConfigErrorf("input: must be a map of names to values")
	}
	merged = jinja.NewDict(mine.Len() + 3)
	if t.Kind == "container" || argv != nil || hasArgv(t) {
		copyInto(merged, mine)
		return merged, argv, nil
	}
	inherited, err := evalInput(s.input.tree, in)
	if err != nil {
		return nil, nil, err
	}
	theirs, ok := dict(inherited)
	if !ok {
		return nil, nil, tool.ConfigErrorf("input: the step's input must be a map of names to values")
	}
	copyInto(merged, theirs)
	copyInto(merged, mine)
	if s.plan.single && t.Kind != "playbook" { // what a child gets is its author's choice alone
		s.names.addIteration(merged)
	}
	return merged, nil, nil
}

func evalInput(tree *jinja.Tree, in jinja.Scope) (any, *tool.Error) {
	if tree == nil {
		return nil, nil
	}
	v, err := tree.Eval(in)
	if err != nil {
		return nil, templateError(err, "input")
	}
	return v, nil
}

// hasArgv tells whether the configuration itself carries a list of arguments.
func hasArgv(t *task) bool {
	if t.Config == nil || (t.Kind != "shell" && t.Kind != "script") {
		return false
	}
	config, ok := dict(t.Config.Raw())
	if !ok {
		return false
	}
	args, _ := config.Get("args")
	_, isList := args.([]any)
	return isList
}

func (n *names) addIteration(to *jinja.Dict) {
	meta := &n.cmd.Meta
	if meta.IterationIndex == nil {
		return
	}
	for _, name := range []string{meta.ItemVar, "_index", "_total"} {
		if _, given := to.Get(name); given || name == "" {
			continue
		}
		if v, ok := n.named(name); ok {
			to.Set(name, v)
		}
	}
}

// call runs the tool under its time limit and brings every kind of failure
// into one shape.
func (s *run) call(ctx context.Context, t *task, call *tool.Call) (*tool.Result, *tool.Error) {
	limit, err := call.Fields().Duration("timeout", "timeout_seconds")
	if err != nil {
		return nil, asToolError(err)
	}
	if limit == 0 {
		limit = s.opt.CommandTimeout
	}
	call.Timeout = limit
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	res, err := guarded(ctx, s.opt.Tools[t.Kind], call)
	if res != nil && len(res.Data) > 0 && !json.Valid(res.Data) {
		res.Data = nil // it would spoil the event
		if err == nil {
			err = &tool.Error{
				Kind: tool.KindInternal, Code: "INVALID_DATA",
				Message: fmt.Sprintf("the %s tool returned data that is not JSON", t.Kind),
			}
		}
	}
	if err == nil {
		return res, nil
	}
	failed := asToolError(err)
	if ctx.Err() != nil && failed.Kind != tool.KindTimeout {
		failed = tool.Ended(ctx, "the "+t.Kind+" tool", limit)
	}
	return res, failed
}

// guarded turns a panic of a tool into an error of kind internal.
func guarded(ctx context.Context, t tool.Tool, call *tool.Call) (res *tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(call.Log, "internal error in the %s tool: %v\n%s", t.Kind(), p, debug.Stack())
			res, err = nil, internalError(p)
		}
	}()
	return t.Run(ctx, call)
}

func asToolError(err error) *tool.Error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	return &tool.Error{Kind: tool.KindInternal, Message: err.Error()}
}

func copyInto(dst, src *jinja.Dict) {
	for k, v := range src.All() {
		dst.Set(k, v)
	}
}

func plainMap(d *jinja.Dict) map[string]any {
	m := make(map[string]any, d.Len())
	for k, v := range d.All() {
		m[k] = jinja.Plain(v)
	}
	return m
}
