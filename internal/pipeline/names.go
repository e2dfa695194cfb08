package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/scope"
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

	ctxSet  *jinja.Dict // ctx.* assignments alone, as the command reports them
	iterSet *jinja.Dict
	stepSet *jinja.Dict
}

func newNames(r *Runner, cmd *event.Command) (*names, error) {
	n := &names{runner: r, cmd: cmd, raw: cmd.Context.RenderContext, base: &jinja.Dict{}}
	if len(n.raw) == 0 {
		n.raw = json.RawMessage("{}")
		return n, nil
	}
	v, err := decode(n.raw)
	if err != nil {
		return nil, fmt.Errorf("read the render context: %w", err)
	}
	d, ok := dict(v)
	if !ok {
		return nil, fmt.Errorf("read the render context: it is not an object")
	}
	if d == nil {
		return n, nil
	}
	n.base = d
	if n.raw[0] == '"' {
		n.raw, err = jinja.ToJSON(d) // it came as JSON within JSON
		if err != nil {
			return nil, err
		}
	}
	return n, n.bindSteps()
}

// bindSteps wraps the names that are step results, so that their accessors
// work here as they do in the control plane.
func (n *names) bindSteps() error {
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
		n.base.Set(name, scope.Step(data, info))
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
	if !all || n.fresh.Len() == 0 {
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
