package playbook

import (
	"errors"
	"slices"

	"github.com/noetl/noetl-go/internal/jinja"
)

// workload reads the default inputs and the templates among them. A `vars` map
// at the root is an older spelling of further defaults, with less weight.
func (r *reader) workload(root *node) (*jinja.Dict, []Assignment) {
	n := merged(given(root.get("vars")), given(root.get("workload")))
	if n == nil {
		return jinja.NewDict(0), nil
	}
	var rendered []Assignment
	for _, e := range n.entries {
		t := r.tree(e.value, jinja.TreeOptions{Literal: func(path []string) bool { return r.isText(e.value.child(path)) }})
		if t != nil && !t.Static() {
			rendered = append(rendered, Assignment{Key: e.key, Value: t, Pos: e.pos})
		}
	}
	return n.dict(), rendered
}

// isText tells whether a value of the workload stays as it is although it looks
// like a template: inputs are data and may hold text for other programs, and a
// secret has no place in the log, which keeps the workload.
func (r *reader) isText(n *node) bool {
	t, err := jinja.Compile(n.text)
	if err != nil {
		msg, remedy := err.Error(), ""
		if je, ok := errors.AsType[*jinja.Error](err); ok {
			msg, remedy = je.Message, je.Remedy
		}
		r.warn(n.at(), "workload_text", "the value stays as it is, because it is no template: "+msg, remedy)
		return true
	}
	return slices.Contains(t.Calls(), "token") || slices.ContainsFunc(t.Free(), func(path []string) bool { return path[0] == "keychain" })
}
