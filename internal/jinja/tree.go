package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// Tree is a nested YAML or JSON value whose string leaves, and keys with
// template syntax, are templates. It is immutable and safe for concurrent use.
type Tree struct {
	raw   any
	root  branchNode
	free  [][]string
	calls []string
}

// TreeOptions change how a Tree is compiled.
type TreeOptions struct {
	// Literal reports the leaves that are never templates, such as code. The
	// path must not be kept.
	Literal func(path []string) bool
	// Limits bound the evaluation of each leaf; zero stands for DefaultLimits.
	Limits Limits
}

// TreeError is what is wrong with one leaf of a tree.
type TreeError struct {
	Path []string // keys, and indexes as decimal numbers
	Err  error
	Key  bool // the last key of the path is broken, and not its value
}

func (e TreeError) Error() string { return atPath(e.Path, e.Err) }

// Unwrap returns the error of the leaf.
func (e TreeError) Unwrap() error { return e.Err }

// EvalError is the failure to evaluate one leaf of a tree.
type EvalError struct {
	Path []string
	Err  error
}

func (e *EvalError) Error() string { return atPath(e.Path, e.Err) }

// Unwrap returns the error of the leaf.
func (e *EvalError) Unwrap() error { return e.Err }

func atPath(path []string, err error) string {
	if len(path) == 0 {
		return err.Error()
	}
	return strings.Join(path, ".") + ": " + err.Error()
}

// branchNode is a compiled part of a tree. One that is not a template, a list
// or a mapping is a constant, shared by all evaluations.
type branchNode struct {
	constant any
	leaf     *Template
	list     []branchNode
	entries  []treeEntry
	path     []string // of a leaf
}

type treeEntry struct {
	name string
	key  *Template // nil for a constant key
	val  branchNode
	path []string
}

func (n *branchNode) static() bool { return n.leaf == nil && n.list == nil && n.entries == nil }

// CompileTree compiles a value. Mappings become a *Dict, those from a
// map[string]any in the order of their keys. All errors are returned at once;
// with errors the tree is nil.
func CompileTree(v any, o TreeOptions) (*Tree, []TreeError) {
	c := &treeCompiler{options: o, seen: map[string]bool{}}
	root := c.compile(v, nil)
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	slices.Sort(c.calls)
	return &Tree{raw: v, root: root, free: c.free, calls: slices.Compact(c.calls)}, nil
}

type treeCompiler struct {
	options TreeOptions
	errs    []TreeError
	free    [][]string
	calls   []string
	seen    map[string]bool
}

func (c *treeCompiler) fail(path []string, err error) {
	c.errs = append(c.errs, TreeError{Path: slices.Clone(path), Err: err})
}

// compile compiles a part of the tree at a path. What turns out constant is
// folded upwards, so that evaluation visits only what can change.
func (c *treeCompiler) compile(v any, path []string) branchNode {
	n, err := base(v)
	if err == nil && len(path) > maxNesting {
		err = nestingError()
	}
	if err != nil {
		c.fail(path, err)
		return branchNode{}
	}
	if list, ok := sequence(n); ok {
		return c.list(list, path)
	}
	if d, ok := mapping(n); ok {
		return c.dict(d, path)
	}
	if s, ok := n.(string); ok && HasSyntax(s) && !c.literal(path) {
		if t := c.template(s, path); t != nil {
			return branchNode{leaf: t, path: slices.Clone(path)}
		}
	}
	return branchNode{constant: n}
}

func (c *treeCompiler) literal(path []string) bool {
	return c.options.Literal != nil && c.options.Literal(path)
}

// template compiles a leaf or a key and collects what it reads.
func (c *treeCompiler) template(s string, path []string) *Template {
	t, err := Compile(s)
	if err != nil {
		c.fail(path, err)
		return nil
	}
	for _, p := range t.free {
		if key := strings.Join(p, "\x00"); !c.seen[key] {
			c.seen[key] = true
			c.free = append(c.free, p)
		}
	}
	c.calls = append(c.calls, t.calls...)
	return t.WithLimits(c.options.Limits)
}

func (c *treeCompiler) list(list []any, path []string) branchNode {
	nodes := make([]branchNode, len(list))
	static := true
	for i, e := range list {
		nodes[i] = c.compile(e, append(path, strconv.Itoa(i)))
		static = static && nodes[i].static()
	}
	if !static {
		return branchNode{list: nodes}
	}
	out := make([]any, len(nodes))
	for i := range nodes {
		out[i] = nodes[i].constant
	}
	return branchNode{constant: out}
}

func (c *treeCompiler) dict(d *Dict, path []string) branchNode {
	entries := make([]treeEntry, 0, d.Len())
	static := true
	for k, v := range d.All() {
		below := append(path, k)
		e := treeEntry{name: k, val: c.compile(v, below)}
		if HasSyntax(k) && !c.literal(below) {
			before := len(c.errs)
			e.key, e.path = c.template(k, below), slices.Clone(below)
			for i := range c.errs[before:] {
				c.errs[before+i].Key = true
			}
		}
		static = static && e.key == nil && e.val.static()
		entries = append(entries, e)
	}
	if !static {
		return branchNode{entries: entries}
	}
	out := NewDict(len(entries))
	for _, e := range entries {
		out.Set(e.name, e.val.constant)
	}
	return branchNode{constant: out}
}

// Eval evaluates every template of the tree and returns a new value. Parts
// without templates are shared with other evaluations, so the result must not
// be modified. The error is an *EvalError.
func (t *Tree) Eval(s Scope) (any, error) { return t.root.eval(s) }

func (n *branchNode) eval(s Scope) (any, error) {
	switch {
	case n.leaf != nil:
		v, err := n.leaf.Value(s)
		if err != nil {
			return nil, &EvalError{slices.Clone(n.path), err}
		}
		return v, nil
	case n.list != nil:
		out := make([]any, len(n.list))
		for i := range n.list {
			v, err := n.list[i].eval(s)
			if err != nil {
				return nil, err
			}
			out[i] = v
		}
		return out, nil
	case n.entries != nil:
		return n.evalEntries(s)
	}
	return n.constant, nil
}

func (n *branchNode) evalEntries(s Scope) (any, error) {
	out := NewDict(len(n.entries))
	for i := range n.entries {
		e := &n.entries[i]
		name := e.name
		if e.key != nil {
			var err error
			if name, err = e.key.Render(s); err != nil {
				return nil, &EvalError{slices.Clone(e.path), err}
			}
		}
		v, err := e.val.eval(s)
		if err != nil {
			return nil, err
		}
		out.Set(name, v)
	}
	return out, nil
}

// Free returns the paths that the templates of the tree read, in the order of
// the tree. See Template.Free.
func (t *Tree) Free() [][]string { return t.free }

// Calls returns the functions that the templates of the tree call and that the
// scope must supply. See Template.Calls.
func (t *Tree) Calls() []string { return t.calls }

// Static reports whether the tree has no templates.
func (t *Tree) Static() bool { return t.root.static() }

// Raw returns the value the tree was compiled from.
func (t *Tree) Raw() any { return t.raw }
