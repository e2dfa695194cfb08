package playbook

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// assignments reads a `set` map in the order it is written.
func (r *reader) assignments(n *node) []Assignment {
	out := r.taskAssignments(n)
	for i := range out {
		a := &out[i]
		if !ident.MatchString(a.Key) && !strings.HasPrefix(a.Key, "workload.") {
			r.warn(a.at, "bad_set_key", "templates read the variable "+quote(a.Key)+" only as "+string(a.Scope)+"["+quote(a.Key)+"]",
				"use letters, digits and _ in its name; to change one field of a map, set all of the map")
		}
		if readsSecrets(a.Value) {
			r.warn(a.at, "keychain_unread", "the keychain is resolved by workers: here it reads as nothing", "read it in a field of the tool, where it is needed")
		}
	}
	return out
}

// readsSecrets tells whether a template asks for what only workers resolve.
func readsSecrets(t *jinja.Tree) bool {
	return t != nil && (slices.Contains(t.Calls(), "token") || slices.ContainsFunc(t.Free(), func(path []string) bool { return path[0] == "keychain" }))
}

// taskAssignments reads the `set` of a task or a rule, which the worker
// evaluates; a dotted key there is a part of a variable.
func (r *reader) taskAssignments(n *node) []Assignment {
	if n == nil {
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
		if scope == ScopeCtx {
			r.sets = append(r.sets, assigned{key, n, e, r.step})
		}
		out = append(out, Assignment{Scope: scope, Key: key, Value: r.tree(e.value, jinja.TreeOptions{}), Pos: e.pos, at: n.keyAt(e)})
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
func (r *reader) stepSet(n *node) []Assignment { return r.assignments(scopedSet(n)) }

// oldSets are the older spellings of `set`, with the scope that each gives to
// all its keys.
var oldSets = []struct {
	key   string
	scope Scope
}{{"vars", ScopeCtx}, {"set_vars", ScopeCtx}, {"set_ctx", ScopeCtx}, {"set_iter", ScopeIter}}

// scopedSet joins `set` with its older spellings; `set` wins.
func scopedSet(n *node) *node {
	set := given(n.get("set"))
	for _, old := range oldSets {
		if more := given(n.get(old.key)); more != nil {
			set = merged(scoped(more, old.scope), set)
		}
	}
	return set
}

// scoped gives the keys of a `set` map a scope, unless they have one.
func scoped(n *node, scope Scope) *node {
	if scope == ScopeCtx {
		return n // which is where keys without a scope live
	}
	c := *n
	c.entries = slices.Clone(n.entries)
	for i, e := range c.entries {
		if s, key := splitScope(e.key); s == ScopeCtx {
			c.entries[i].key = string(scope) + "." + key
		}
	}
	return &c
}

// given returns nil for null, so that `set:` without a value is no value.
func given(n *node) *node {
	if n.given() {
		return n
	}
	return nil
}

// stepInput reads the input of a step and its other spellings; input wins key
// by key.
func (r *reader) stepInput(n *node) *jinja.Tree {
	in := given(n.get("input"))
	for _, other := range []string{"args", "with"} {
		in = merged(given(n.get(other)), in)
	}
	return r.tree(in, jinja.TreeOptions{})
}

func isTemplate(n *node) bool {
	s, ok := n.scalar.(string)
	return ok && jinja.HasSyntax(s)
}

// assigned is a variable of the context and the entry that sets it.
type assigned struct {
	key   string // without its scope
	set   *node
	entry entry
	step  string
}
