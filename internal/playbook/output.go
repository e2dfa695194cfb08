package playbook

import (
	"regexp"
	"strconv"
	"strings"
)

// moderniseOutput brings `output_select` of a task, and inside its output,
// under the name it has now.
func (r *reader) moderniseOutput(n *node) *node {
	if out := n.get("output"); out.given() && out.shape == mapShape {
		if e, ok := out.entry("output_select"); ok {
			n = n.with("output", out.pos, r.selectIn(out.without("output_select"), out.keyAt(e), e))
		}
	}
	e, ok := n.entry("output_select")
	if !ok {
		return n
	}
	at := n.keyAt(e)
	n = n.without("output_select")
	out := given(n.get("output"))
	if out == nil {
		out = &node{shape: mapShape, pos: e.pos, parent: n, key: "output"}
	}
	if out = r.selectIn(out, at, e); len(out.entries) == 0 {
		return n
	}
	return n.with("output", out.pos, out)
}

// selectIn puts the value of an `output_select` into an output. Only lists say
// what to select; maps spoke of when to store, which is inline_max_bytes now.
func (r *reader) selectIn(out *node, at place, e entry) *node {
	switch {
	case !e.value.given():
		return out
	case e.value.shape == mapShape:
		r.warn(at, "ignored_key", `"output_select" has no effect here: it is a map and says nothing to select`,
			"write "+selectForm+", or output: {inline_max_bytes: …} to say when a result is stored apart")
		return out
	case out.get("select").given():
		r.warn(at, "ignored_key", `"output_select" has no effect beside output.select`, "remove it")
		return out
	}
	r.warn(at, "old_spelling", `"output_select" is an older spelling`, "write output: {select: "+e.value.compact()+"}")
	return out.with("select", e.pos, e.value)
}

// stepOutput reads what becomes of the result of a step. What the step says
// wins over what its last task says.
func (r *reader) stepOutput(n *node, s *Step) {
	own := merged(given(n.get("result")), given(n.get("output")))
	if own != nil {
		if e, ok := own.entry("output_select"); ok {
			own = r.selectIn(own.without("output_select"), own.keyAt(e), e)
		}
	}
	for i, out := range r.outputs {
		if out != nil {
			r.output(out) // each is checked, also where another wins
		}
		if i < len(r.outputs)-1 && out != nil {
			r.warn(out.at(), "ignored_key", `"output" has no effect on a task that is not the last of its step`, "write it on the step")
		} else {
			own = merged(out, own)
		}
	}
	if own != nil {
		s.Output = r.output(own)
	}
}

// output reads an output block; nil when it says nothing.
func (r *reader) output(n *node) *Output {
	n = r.conform(n, outputObject)
	o := &Output{As: n.get("as").str()}
	if v := n.get("inline_max_bytes"); v.given() {
		o.InlineMax, _ = strconv.Atoi(v.str()) // a count, as the grammar says
	}
	if v := n.get("store"); v.given() {
		kind := v
		if v.shape == mapShape {
			part := r.part(n, "store", storeObject)
			kind, o.Scope, o.TTL = part.get("kind"), keyword(part.get("scope")), part.get("ttl").str()
		} else if !r.wordOf(v, storeObject.field("kind")) {
			kind = nil
		}
		o.Store = keyword(kind)
	}
	if o.As != "" && !ident.MatchString(o.As) {
		r.fail(n.get("as").at(), "bad_name", quote(o.As)+" is not a name", "use letters, digits and _")
	}
	o.Select = r.selections(n.get("select"))
	if o.Select == nil && o.InlineMax == 0 && o.Store == "" && o.Scope == "" && o.TTL == "" && o.As == "" {
		return nil
	}
	return o
}

func (r *reader) selections(n *node) []Selection {
	if !n.given() {
		return nil
	}
	items := n.items
	if n.shape == scalarShape {
		items = []*node{n}
	}
	var out []Selection
	for _, item := range items {
		path, as := item, ""
		switch item.shape {
		case mapShape:
			c := r.conform(item, selectionObject)
			path, as = c.get("path"), c.get("as").str()
		case scalarShape:
		default:
			r.fail(item.at(), "wrong_type", "a selection is a name or a map with a path, this is "+item.describe(), `write {path: "$.a.b", as: name}`)
			continue
		}
		keys := splitPath(path.str())
		if len(keys) == 0 {
			r.fail(item.at(), "bad_path", "the selection has no path", `write {path: "$.a.b", as: name}`)
			continue
		}
		if as == "" {
			as = keys[len(keys)-1]
		}
		out = append(out, Selection{Path: keys, As: as})
	}
	return out
}

// brackets matches an index or a quoted key in a path.
var brackets = regexp.MustCompile(`\[\s*['"]?([^'"\]]*)['"]?\s*\]`)

// splitPath takes a path such as $.rows[0].id apart; nil when it is none.
func splitPath(s string) []string {
	s = brackets.ReplaceAllString(strings.TrimSpace(s), ".$1")
	s = strings.TrimPrefix(strings.TrimPrefix(s, "$"), ".")
	if s == "" {
		return nil
	}
	keys := strings.Split(s, ".")
	for _, k := range keys {
		if strings.TrimSpace(k) == "" {
			return nil
		}
	}
	return keys
}
