package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/tool"
)

// stepsKey is the reserved name in a render context under which the control
// plane says which of the other names are step results.
const stepsKey = "__steps"

// names is what the templates of one command see. The layers, innermost first:
// what `set` wrote and tasks returned, the iteration, the render context, and
// last the facts about the command itself. The identity of the command cannot
// be shadowed; an author's own names win over all other facts.
type names struct {
	runner *Runner
	cmd    *event.Command
	base   *jinja.Dict // the render context; never nil, owned by this command
	raw    json.RawMessage
	fresh  *jinja.Dict // written while the command runs; last write wins

	keychain *jinja.Dict // the entries that the task in hand reads
	fetch    scope.Fetch // finds the whole of summarised values

	partial bool        // some values are summaries of what is kept elsewhere
	missing *tool.Error // why one of them could not be had

	ctxSet  *jinja.Dict // ctx.* assignments alone, as the command reports them
	iterSet *jinja.Dict
	stepSet *jinja.Dict
}

func newNames(ctx context.Context, r *Runner, cmd *event.Command) (*names, *tool.Error) {
	n := &names{runner: r, cmd: cmd, raw: cmd.Context.RenderContext, base: &jinja.Dict{}}
	n.fetch = n.fetchUnder(ctx)
	d, err := contextOf(n.raw)
	if err == nil && d.Len() > 0 {
		if ref, ok := d.Get(contextRefKey); ok {
			whole, missing := r.whole(ctx, fmt.Sprint(ref))
			if missing != nil {
				return nil, missing
			}
			n.raw = whole
			d, err = contextOf(whole)
		}
	}
	if err != nil {
		return nil, contextError(err)
	}
	if d == nil {
		n.raw = json.RawMessage("{}")
		return n, nil
	}
	n.base = d
	if n.raw[0] == '"' {
		if n.raw, err = jinja.ToJSON(d); err != nil { // it came as JSON within JSON
			return nil, contextError(err)
		}
	}
	if err := n.bindSteps(n.fetch); err != nil {
		return nil, contextError(err)
	}
	return n, nil
}

// contextOf reads a render context; none at all is an empty one.
func contextOf(raw json.RawMessage) (*jinja.Dict, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("read the render context: %w", err)
	}
	d, ok := dict(v)
	if !ok {
		return nil, errors.New("read the render context: it is not an object")
	}
	return d, nil
}

func contextError(err error) *tool.Error {
	return &tool.Error{Kind: tool.KindInternal, Code: "RENDER_CONTEXT", Message: err.Error()}
}

// bindSteps wraps the names that are step results, so that their accessors
// work here as they do in the control plane. Those of which only a summary
// came find the whole through fetch.
func (n *names) bindSteps(fetch scope.Fetch) error {
	listed, ok := n.base.Get(stepsKey)
	if !ok {
		return nil
	}
	n.base.Delete(stepsKey)
	raw, err := jinja.ToJSON(n.base)
	if err != nil {
		return err
	}
	n.raw = raw
	steps, ok := dict(listed)
	if !ok {
		return fmt.Errorf("read the render context: %s is not an object", stepsKey)
	}
	for name, about := range steps.All() {
		data, ok := n.base.Get(name)
		if !ok {
			continue
		}
		b, err := jinja.ToJSON(about)
		if err != nil {
			return err
		}
		var info scope.Info
		if err := json.Unmarshal(b, &info); err != nil {
			return fmt.Errorf("read the render context: %s.%s: %w", stepsKey, name, err)
		}
		n.partial = n.partial || info.Ref != nil
		n.base.Set(name, scope.Step(data, info).Bound(fetch))
	}
	return nil
}

// Lookup implements jinja.Scope.
func (n *names) Lookup(name string) (any, bool) {
	switch name {
	case "execution_id":
		return n.cmd.ExecutionID.String(), true
	case "catalog_id":
		return event.ID(n.cmd.Meta.CatalogID).String(), true
	case "command_id":
		return n.cmd.Meta.CommandID, true
	case "step":
		return stepName{n}, true
	case "iter":
		return n.iter()
	case "keychain":
		if n.keychain != nil {
			return n.keychain, true
		}
	}
	if v, ok := n.named(name); ok {
		return v, true
	}
	return n.fact(name)
}

// named finds a name the author gave, directly or through a step's result.
func (n *names) named(name string) (any, bool) {
	if v, ok := n.fresh.Get(name); ok {
		return v, true
	}
	if v, ok := n.base.Get(name); ok {
		if name == "ctx" && n.ctxSet.Len() > 0 {
			return n.writtenOver(v), true
		}
		return v, true
	}
	switch name {
	case "_index":
		return index(n.cmd.Meta.IterationIndex)
	case "_total":
		return index(n.cmd.Meta.IterationTotal)
	}
	return nil, false
}

// fact is what the worker knows of the command.
func (n *names) fact(name string) (any, bool) {
	switch name {
	case "ctx", "vars", "workload":
		return everything{n}, true
	case "server_url":
		return n.runner.opt.ServerURL, true
	case "worker_id":
		return n.runner.opt.WorkerID, true
	case "action":
		return n.cmd.Action, true
	case "node_name":
		return n.step(), true
	case "loop_index":
		return index(n.cmd.Meta.IterationIndex)
	case "loop":
		return n.loop()
	case "execution":
		return object("id", n.cmd.ExecutionID.String(), "catalog_id", event.ID(n.cmd.Meta.CatalogID).String()), true
	case "job":
		id := n.cmd.ExecutionID.String()
		job := jinja.NewDict(3)
		job.Set("uuid", id)
		job.Set("id", id)
		job.Set("execution_id", id)
		return job, true
	}
	return nil, false
}

func (n *names) step() string { return stepOf(n.cmd) }

func stepOf(cmd *event.Command) string {
	if cmd.NodeName != "" {
		return cmd.NodeName
	}
	return cmd.Meta.Step
}

// iter is the iteration's object: the item under its name, the place in the
// loop, and what `set` wrote to it.
func (n *names) iter() (any, bool) {
	if n.iterSet != nil {
		return n.iterSet, true
	}
	if n.cmd.Meta.IterationIndex == nil {
		return n.base.Get("iter")
	}
	return n.iteration(), true
}

// loop is the place in the loop as one object. Positions count from 0, as
// _index does; a {% for %} within a template has a loop of its own.
func (n *names) loop() (any, bool) {
	at, total := n.cmd.Meta.IterationIndex, n.cmd.Meta.IterationTotal
	if at == nil {
		return nil, false
	}
	d := object("index", int64(*at), "first", *at == 0, "done", false)
	if total != nil {
		d.Set("length", int64(*total))
		d.Set("last", *at == *total-1)
	}
	return d, true
}

// iteration makes the object anew; what the render context says of it wins.
func (n *names) iteration() *jinja.Dict {
	d := jinja.NewDict(6)
	meta := &n.cmd.Meta
	if item, ok := n.base.Get(meta.ItemVar); ok && meta.ItemVar != "" {
		d.Set(meta.ItemVar, item)
	}
	if i := meta.IterationIndex; i != nil {
		d.Set("_index", int64(*i))
		d.Set("index", int64(*i))
		d.Set("_first", *i == 0)
		if total := meta.IterationTotal; total != nil {
			d.Set("_total", int64(*total))
			d.Set("_last", *i == *total-1)
		}
	}
	if given, ok := n.base.Get("iter"); ok {
		if old, ok := dict(given); ok {
			copyInto(d, old)
		}
	}
	return d
}

// variables is the context as JSON, for tools that hand all of it to a program.
func (n *names) variables(all bool) (json.RawMessage, error) {
	if !all || n.fresh.Len() == 0 && !n.partial {
		return n.raw, nil
	}
	return jinja.ToJSON(everything{n}.Unwrap())
}

// everything is all of the author's names as one object.
type everything struct{ n *names }

// Attr implements jinja.Object.
func (e everything) Attr(name string) (any, bool) { return e.n.named(name) }

// Unwrap implements jinja.Wrapper.
func (e everything) Unwrap() any {
	if e.n.fresh.Len() == 0 {
		return e.n.base
	}
	all := e.n.base.Clone()
	for name, v := range e.n.fresh.All() {
		all.Set(name, v)
	}
	return all
}

// stepName prints as the step's name and carries step.* assignments.
type stepName struct{ n *names }

// Attr implements jinja.Object.
func (s stepName) Attr(name string) (any, bool) {
	if v, ok := s.n.stepSet.Get(name); ok {
		return v, true
	}
	if name == "name" {
		return s.n.step(), true
	}
	return nil, false
}

// Unwrap implements jinja.Wrapper.
func (s stepName) Unwrap() any { return s.n.step() }

// writtenOver is the author's own `ctx` with what `set` wrote to it since.
func (n *names) writtenOver(ctx any) any {
	d, ok := dict(ctx)
	if !ok {
		return ctx
	}
	out := d.Clone()
	for key, v := range n.ctxSet.All() {
		write(out, key, v)
	}
	return out
}

// write stores a value under a dotted key as nested mappings. Mappings on the
// way are copied, never changed: others may hold them.
func write(d *jinja.Dict, key string, v any) {
	head, rest, dotted := strings.Cut(key, ".")
	if !dotted {
		d.Set(key, v)
		return
	}
	old, _ := d.Get(head)
	inner, ok := dict(old)
	if !ok || inner == nil {
		inner = jinja.NewDict(1)
	} else {
		inner = inner.Clone()
	}
	write(inner, rest, v)
	d.Set(head, inner)
}

func index(i *int) (any, bool) {
	if i == nil {
		return nil, false
	}
	return int64(*i), true
}
