package playbook

import (
	"regexp"
	"slices"

	"github.com/noetl/noetl-go/internal/jinja"
)

var (
	barePath = regexp.MustCompile(`^\s*[A-Za-z_]\w*(\.\w+)+\s*$`)
	ident    = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// words are those that a template never takes for a name.
var words = []string{"true", "True", "false", "False", "none", "None", "and", "or", "not", "in", "is", "if", "else"}

// readLoop reads the loop of a step; nil when it has none.
func (r *reader) readLoop(step *node) *Loop {
	written := step.get("loop")
	n := r.part(step, "loop", loopObject)
	if n == nil {
		return nil
	}
	spec := r.part(n, "spec", loopSpecObject)
	r.part(spec, "policy", loopPolicyObject)
	l := &Loop{Pos: n.pos, Mode: Sequential, Iterator: n.get("iterator").str()}
	// Settings directly under loop are an older spelling of those under spec.
	if w := keyword(either(spec.get("mode"), n.get("mode"))); w != "" {
		l.Mode = LoopMode(w)
	}
	r.iterator(n, l)
	l.MaxInFlight = r.tree(given(either(spec.get("max_in_flight"), n.get("max_in_flight"))), jinja.TreeOptions{})
	frame := merged(r.part(n, "frame", frameObject), r.part(spec, "frame", frameObject))
	claims := n.get("cursor").given()
	modeGiven := either(written.get("spec").get("mode"), written.get("mode")).given()
	switch {
	case claims && n.get("in").given():
		r.fail(n.get("in").at(), "wrong_mode", `a loop has either "in" or "cursor"`, "remove one of the two")
	case claims && l.Mode != Cursor && (!modeGiven || keyword(either(spec.get("mode"), n.get("mode"))) != ""):
		r.fail(n.get("cursor").at(), "wrong_mode", "a loop with a cursor needs mode: cursor", "add spec: {mode: cursor}")
	case claims:
		r.readCursor(r.part(n, "cursor", cursorObject), spec, frame, l)
		return l
	case l.Mode == Cursor && !r.reported(n.path()+".cursor"):
		r.fail(n.at(), "missing_cursor", "a loop of mode cursor needs a cursor block", "add cursor: {kind: postgres, auth: …, claim: …}")
	}
	if frame != nil && !claims && l.Mode != Cursor {
		r.warn(frame.at(), "ignored_key", `"frame" has no effect on a loop without a cursor`, "remove it")
	}
	if !claims && l.Mode != Cursor {
		r.loopIn(n, l)
	}
	if max := either(spec.get("max_in_flight"), n.get("max_in_flight")); l.Mode == Sequential && max.given() && max.text != "1" {
		r.warn(max.at(), "ignored_key", `"max_in_flight" has no effect on a sequential loop`, "add mode: parallel, or remove it")
	}
	return l
}

// either returns the first value that the author gave.
func either(a, b *node) *node {
	if a.given() {
		return a
	}
	return b
}

func (r *reader) iterator(n *node, l *Loop) {
	switch {
	case l.Iterator == "" && !r.reported(n.path()+".iterator"):
		r.fail(n.at(), "missing_iterator", "the loop does not name its iterator", "add iterator: item")
	case l.Iterator == "":
	case !ident.MatchString(l.Iterator):
		r.fail(n.get("iterator").at(), "bad_iterator", "the iterator "+quote(l.Iterator)+" is not a name",
			"use letters, digits and _")
	case slices.Contains(words, l.Iterator):
		r.fail(n.get("iterator").at(), "reserved_name", "the iterator cannot be called "+quote(l.Iterator)+
			": templates read it as a word of theirs", "choose another name, such as item")
	case slices.Contains(reserved, l.Iterator):
		r.fail(n.get("iterator").at(), "reserved_name", "the iterator cannot be called "+quote(l.Iterator)+
			": templates use this name for something else", "choose another name, such as item")
	}
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
