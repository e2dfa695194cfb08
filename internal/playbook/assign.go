package playbook

import (
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// assignments reads a `set` map in the order it is written.
func (r *reader) assignments(n *node) []Assignment {
	if n = r.want(n, mapShape, "set must be a map of names and values"); n == nil {
		return nil
	}
	out := make([]Assignment, 0, len(n.entries))
	for _, e := range n.entries {
		scope, key := splitScope(e.key)
		switch {
		case key == "":
			r.fail(n.keyAt(e), "bad_set_key", quote(e.key)+" names no variable", "write ctx.name, iter.name or step.name")
			continue
		case strings.HasPrefix(key, "workload."):
			r.warn(n.keyAt(e), "bad_set_key", "the workload cannot be changed: this sets a variable named "+quote(key),
				"write ctx."+strings.TrimPrefix(key, "workload."))
		}
		out = append(out, Assignment{Scope: scope, Key: key, Value: r.tree(e.value, jinja.TreeOptions{}), Pos: e.pos})
	}
	return out
}

// splitScope takes the scope off a key. Keys without one, and those of the
// older `vars.` scope, live in the context.
func splitScope(key string) (Scope, string) {
	head, tail, dotted := strings.Cut(key, ".")
	if !dotted {
		return ScopeCtx, key
	}
	switch Scope(head) {
	case ScopeCtx, ScopeIter, ScopeStep:
		return Scope(head), tail
	}
	if head == "vars" {
		return ScopeCtx, tail
	}
	return ScopeCtx, key
}

// stepSet reads `set` and its older spellings on a step; `set` wins.
func (r *reader) stepSet(n *node) []Assignment {
	set := n.get("set")
	for _, old := range []string{"vars", "set_vars"} {
		if e, ok := n.entry(old); ok {
			r.warn(n.keyAt(e), "old_spelling", quote(old)+" of a step is read as \"set\"", `write "set"`)
			if v := r.want(e.value, mapShape, old+" must be a map of names and values"); v != nil {
				set = merged(v, given(set))
			}
		}
	}
	return r.assignments(set)
}

// given returns nil for null, so that `set:` without a value is no value.
func given(n *node) *node {
	if n.given() {
		return n
	}
	return nil
}

// stepInput reads step-level input and args; input wins key by key.
func (r *reader) stepInput(n *node) *jinja.Tree {
	in, args := given(n.get("input")), given(n.get("args"))
	for _, m := range []*node{in, args} {
		if m != nil && m.shape != mapShape && !isTemplate(m) {
			r.fail(m.at(), "wrong_type", "the input of a step must be a map, this is "+m.describe(), "")
			return nil
		}
	}
	return r.tree(merged(args, in), jinja.TreeOptions{})
}

func isTemplate(n *node) bool {
	s, ok := n.scalar.(string)
	return ok && jinja.HasSyntax(s)
}
