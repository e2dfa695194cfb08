package playbook

import (
	"regexp"
	"slices"

	"github.com/noetl/noetl-go/internal/jinja"
)

var (
	loopModes = []string{"sequential", "parallel", "cursor"}
	barePath  = regexp.MustCompile(`^\s*[A-Za-z_]\w*(\.\w+)+\s*$`)
	ident     = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// readLoop reads the loop of a step; nil when it has none.
func (r *reader) readLoop(step *node) *Loop {
	n := r.mapAt(step, "loop", "a step")
	if n == nil {
		return nil
	}
	r.unknownKeys(n, "loop", []string{"in", "iterator", "cursor", "spec"}, "mode", "max_in_flight")
	spec := r.mapAt(n, "spec", "loop")
	r.unknownKeys(spec, "loop.spec", []string{"mode", "max_in_flight", "frame", "policy"})
	mode := r.loopSpec(n, spec, "mode")
	l := &Loop{Pos: n.pos, Mode: Sequential, Iterator: n.get("iterator").str()}
	if w := r.word(mode, "loop mode", loopModes); w != "" {
		l.Mode = LoopMode(w)
	}
	switch {
	case l.Iterator == "":
		r.fail(n.at(), "missing_iterator", "the loop does not name its iterator", "add iterator: item")
	case !ident.MatchString(l.Iterator):
		r.fail(n.get("iterator").at(), "bad_iterator", "the iterator "+quote(l.Iterator)+" is not a name",
			"use letters, digits and _")
	case slices.Contains(reserved, l.Iterator):
		r.fail(n.get("iterator").at(), "reserved_name", "the iterator cannot be called "+quote(l.Iterator)+
			": templates use this name for something else", "choose another name, such as item")
	}
	l.MaxInFlight = r.maxInFlight(r.loopSpec(n, spec, "max_in_flight"))
	if l.Mode == Cursor || n.get("cursor").given() {
		r.cursorLoop(n, l)
		return l
	}
	r.loopIn(n, l)
	return l
}

// loopSpec finds a setting under spec or, as older playbooks have it, directly
// under loop.
func (r *reader) loopSpec(n, spec *node, key string) *node {
	if v := spec.get(key); v.given() {
		return v
	}
	if e, ok := n.entry(key); ok {
		r.warn(n.keyAt(e), "old_spelling", quote(key)+" directly under loop is read as spec."+key,
			"write spec: {"+key+": "+e.value.compact()+"}")
		return e.value
	}
	return nil
}

func (r *reader) maxInFlight(n *node) *jinja.Tree {
	if !n.given() {
		return nil
	}
	if i, ok := n.scalar.(int64); (!ok && !isTemplate(n)) || (ok && i < 1) {
		r.fail(n.at(), "wrong_type", "max_in_flight must be a whole number from 1 on, this is "+quote(n.compact()), "")
	}
	return r.tree(n, jinja.TreeOptions{})
}

func (r *reader) loopIn(n *node, l *Loop) {
	in := n.get("in")
	if !in.given() || in.shape == scalarShape && in.text == "" {
		r.fail(n.at(), "missing_in", "the loop does not say what to go over", `add in: "{{ workload.items }}"`)
		return
	}
	if b, ok := in.scalar.(bool); ok && in.shape == scalarShape {
		r.fail(in.at(), "wrong_type", "a loop cannot go over "+quote(boolText(b)), "give a list, a map, a number or text")
	}
	if s, ok := in.scalar.(string); ok && !jinja.HasSyntax(s) && barePath.MatchString(s) {
		r.warn(in.at(), "not_a_template", "the loop goes over the text "+quote(s)+" and not over the value of that name",
			`write "{{ `+s+` }}"`)
	}
	l.InText = in.compact()
	l.In = r.tree(in, jinja.TreeOptions{})
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

// cursorLoop checks the shape of a loop that claims rows and says that it
// cannot run.
func (r *reader) cursorLoop(n *node, l *Loop) {
	c := r.mapAt(n, "cursor", "a loop")
	switch {
	case c == nil && n.get("cursor") == nil:
		r.fail(n.at(), "missing_cursor", "a loop of mode cursor needs a cursor block", "add cursor: {kind: postgres, auth: …, claim: …}")
	case c == nil:
	case l.Mode != Cursor:
		r.fail(c.at(), "wrong_mode", "a loop with a cursor needs mode: cursor", "add spec: {mode: cursor}")
	case n.get("in").given():
		r.fail(n.get("in").at(), "wrong_mode", `a loop has either "in" or "cursor"`, "remove one of the two")
	case c.get("claim").str() == "":
		r.fail(c.at(), "missing_claim", "the cursor has no claim statement", "add claim: | with the statement that takes the next rows")
	}
	r.unknownKeys(c, "cursor", []string{"kind", "auth", "claim", "options"})
	if c != nil {
		r.tree(c, jinja.TreeOptions{})
	}
	r.fail(n.at(), "not_supported_yet", "cursor loops are not supported yet; they come with a later version",
		"read the rows with one step and loop over {{ that_step.rows }} with mode: parallel")
}
