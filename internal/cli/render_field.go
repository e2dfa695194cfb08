package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
)

// renderer goes through a step as it is written.
type renderer struct {
	file   string
	pb     *playbook.Playbook
	step   *playbook.Step
	known  jinja.Vars
	fields []renderedField
}

// later are names that get a value only when the step runs.
var later = map[string]string{
	"output": "the tool has run", "outcome": "the tool has run", "error": "the tool has run", "event": "the step has ended",
	"_attempt": "the step runs", "_prev": "the task before has run", "_task": "the step runs", "execution_id": "an execution starts", "catalog_id": "an execution starts",
	"version": "an execution starts", "execution": "an execution starts", "job": "an execution starts", "keychain": "a worker opens the keychain",
	"token": "a worker opens the keychain", "env": "an execution starts", "iter": "the loop runs", "steps": "the steps before have run", "secrets": "a worker opens the keychain",
}

// loop binds the first element of what a step repeats over.
func (r *renderer) loop() {
	l := r.step.Loop
	if l == nil || l.Iterator == "" {
		return
	}
	if l.In == nil || r.waits(l.In.Free()) != "" {
		return
	}
	v, err := l.In.Eval(r.known)
	list, ok := v.([]any)
	if err != nil || !ok || len(list) == 0 {
		return
	}
	iter := jinja.NewDict(2)
	iter.Set(l.Iterator, list[0])
	iter.Set("_index", int64(0))
	r.known[l.Iterator], r.known["iter"] = list[0], iter
}

// input makes the keys of the step's input names of their own, as far as they
// are known.
func (r *renderer) input(node *yaml.Node) {
	for _, at := range []*yaml.Node{node, valueOf(node, "tool")} {
		for _, key := range []string{"input", "args"} {
			n := valueOf(at, key)
			if n == nil || n.Kind != yaml.MappingNode {
				continue
			}
			bound := jinja.NewDict(len(n.Content) / 2)
			for i := 0; i+1 < len(n.Content); i += 2 {
				if v, ok := r.tree(n.Content[i+1]); ok {
					bound.Set(n.Content[i].Value, v)
				}
			}
			r.known["input"], r.known["args"] = bound, bound
			for k, v := range bound.All() {
				if _, taken := r.known[k]; !taken {
					r.known[k] = v
				}
			}
		}
	}
}

// tree evaluates a whole value; false when some of it is not known.
func (r *renderer) tree(n *yaml.Node) (any, bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!str" && jinja.HasSyntax(n.Value) {
			t, err := jinja.Compile(n.Value)
			if err != nil || r.waits(t.Free()) != "" {
				return nil, false
			}
			v, err := t.Value(r.known)
			return v, err == nil
		}
		var v any
		err := n.Decode(&v)
		if i, ok := v.(int); ok {
			v = int64(i)
		}
		return v, err == nil
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, ok := r.tree(c)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	case yaml.MappingNode:
		d := jinja.NewDict(len(n.Content) / 2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			v, ok := r.tree(n.Content[i+1])
			if !ok {
				return nil, false
			}
			d.Set(n.Content[i].Value, v)
		}
		return d, true
	}
	return nil, false
}

// walk evaluates every template below a node.
func (r *renderer) walk(path string, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.walk(joined(path, n.Content[i].Value), n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			r.walk(fmt.Sprintf("%s[%d]", path, i), c)
		}
	case yaml.AliasNode:
		r.walk(path, n.Alias)
	case yaml.ScalarNode:
		condition := strings.HasSuffix(path, "when") && n.Tag == "!!str"
		if condition || n.Tag == "!!str" && jinja.HasSyntax(n.Value) {
			r.fields = append(r.fields, r.field(path, n, condition))
		}
	}
}

func joined(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// field evaluates one template.
func (r *renderer) field(path string, n *yaml.Node, condition bool) renderedField {
	f := renderedField{Field: path, Line: n.Line, Col: n.Column, Source: n.Value}
	compile := jinja.Compile
	if condition && !jinja.HasSyntax(n.Value) {
		compile = jinja.CompileCondition
	}
	t, err := compile(n.Value)
	if err != nil {
		return r.failed(f, n, err)
	}
	if f.Waits = r.waits(t.Free()); f.Waits != "" {
		return f
	}
	if condition {
		f.Value, err = t.Truth(r.known)
	} else {
		f.Value, err = t.Value(r.known)
	}
	if err != nil {
		return r.failed(f, n, err)
	}
	return f
}

// failed says where in the file a template is wrong.
func (r *renderer) failed(f renderedField, n *yaml.Node, err error) renderedField {
	var e *jinja.Error
	if errors.As(err, &e) && e.Line > 0 {
		f.Line, f.Col = templatePlace(n, e.Line, e.Col)
	}
	f.Error, f.Value = err.Error(), nil
	return f
}

// templatePlace is a place in a template as a place in the file.
func templatePlace(n *yaml.Node, line, col int) (int, int) {
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return n.Line + line, col
	case line > 1:
		return n.Line + line - 1, col
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return n.Line, n.Column + col
	}
	return n.Line, n.Column + col - 1
}

// waits says why names cannot be known before the step runs; "" when they can.
func (r *renderer) waits(free [][]string) string {
	var why []string
	note := func(text string) {
		if !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	for _, path := range free {
		name := path[0]
		if (name == "ctx" || name == "vars" || name == "workload" && len(path) == 0) && len(path) > 1 {
			name = path[1]
		}
		if _, ok := r.known[name]; ok {
			continue
		}
		switch _, isStep := r.pb.Step(name); {
		case isStep:
			note("the step " + name + " has run")
		case r.step.Loop != nil && name == r.step.Loop.Iterator:
			note("the loop runs")
		case later[name] != "":
			note(later[name])
		case r.setSomewhere(name):
			note("a step sets " + name)
		}
	}
	return strings.Join(why, ", and ")
}

// setSomewhere tells whether a step gives a variable of that name its value.
func (r *renderer) setSomewhere(name string) bool {
	own := func(list []playbook.Assignment) bool {
		return slices.ContainsFunc(list, func(a playbook.Assignment) bool { return a.Key == name || strings.HasPrefix(a.Key, name+".") })
	}
	for _, s := range r.pb.Steps {
		if own(s.Set) || slices.ContainsFunc(s.Tasks, func(t *playbook.Task) bool { return own(t.Set) }) ||
			slices.ContainsFunc(s.Arcs, func(a *playbook.Arc) bool { return own(a.Set) }) {
			return true
		}
	}
	return false
}

// show prints the fields for people.
func (r *renderer) show(env *Env) error {
	if len(r.fields) == 0 {
		_, err := fmt.Fprintf(env.Stdout, "the step %s has no templates\n", r.step.Name)
		return err
	}
	var b strings.Builder
	for _, f := range r.fields {
		fmt.Fprintf(&b, "%s\n  %s\n", env.paint(bold, printable(f.Field)), env.paint(grey, oneLine(printable(f.Source), 160)))
		switch {
		case f.Error != "":
			fmt.Fprintf(&b, "  %s\n", env.paint(red, fmt.Sprintf("%s:%d:%d: %s", r.file, f.Line, f.Col, f.Error)))
		case f.Waits != "":
			fmt.Fprintf(&b, "  ? known when %s\n", f.Waits)
		default:
			fmt.Fprintf(&b, "  = %s\n", indentLines(cellOf(f.Value)))
		}
	}
	_, err := io.WriteString(env.Stdout, b.String())
	return err
}

func indentLines(s string) string {
	return strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
