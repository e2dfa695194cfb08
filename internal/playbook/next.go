package playbook

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

var modes = []string{"exclusive", "inclusive"}

// readNext reads every form of `next` into arcs and a mode.
func (r *reader) readNext(step, spec *node, s *Step) {
	if w := r.word(spec.get("next_mode"), "next mode", modes); w != "" {
		s.Mode = Mode(w)
	}
	n := step.get("next")
	switch {
	case !n.given():
	case n.shape == scalarShape:
		s.Arcs = []*Arc{r.arcTo(n)}
	case n.shape == listShape:
		r.nextList(n, s)
	case n.get("arcs") != nil || n.get("spec") != nil:
		r.router(n, s)
	case anyOf(n, "step", "then", "else"):
		s.Arcs = r.arcs(n, false)
	default:
		r.unknownKeys(n, "next", []string{"spec", "arcs", "step"})
		if len(n.entries) > 0 {
			r.fail(n.at(), "bad_next", `next says no step to go to`, "write next: {arcs: [{step: name}]}")
		}
	}
	r.deadArcs(s)
}

// nextList reads a list. Names fan out whatever the mode says; maps are arcs.
func (r *reader) nextList(n *node, s *Step) {
	names := 0
	for _, item := range n.items {
		if item.shape == scalarShape {
			names++
			s.Arcs = append(s.Arcs, r.arcTo(item))
			continue
		}
		s.Arcs = append(s.Arcs, r.arcs(item, false)...)
	}
	if names > 0 && names == len(n.items) {
		s.Mode = Inclusive
	}
}

func (r *reader) router(n *node, s *Step) {
	r.unknownKeys(n, "next", []string{"spec", "arcs"})
	spec := r.mapAt(n, "spec", "next")
	r.unknownKeys(spec, "next.spec", []string{"mode", "on_no_match", "policy"})
	if w := r.word(spec.get("mode"), "mode of next", modes); w != "" {
		s.Mode = Mode(w)
	}
	// When nothing matches a branch just ends; both older words mean that.
	r.word(spec.get("on_no_match"), "value of on_no_match (for an error use executor.spec.no_next_is_error)",
		[]string{"complete", "quiet"})
	list := r.want(n.get("arcs"), listShape, "next.arcs must be a list")
	if list == nil {
		return
	}
	for _, item := range list.items {
		if item.shape == scalarShape {
			s.Arcs = append(s.Arcs, r.arcTo(item))
			continue
		}
		s.Arcs = append(s.Arcs, r.arcs(item, true)...)
	}
}

var arcKeys = []string{"step", "when", "set", "spec"}

// arcs reads one entry of a list of arcs. It is several arcs only in the
// oldest form, {when, then: [targets]}.
func (r *reader) arcs(n *node, routed bool) []*Arc {
	if n.shape != mapShape {
		r.fail(n.at(), "bad_arc", "an arc is the name of a step or a map with a step, this is "+n.describe(), "write {step: name}")
		return nil
	}
	if anyOf(n, "then", "else") {
		return r.branch(n)
	}
	r.unknownKeys(n, "an arc", arcKeys, "args", "cond", "expr", "desc", "description", "name")
	target := n.get("step")
	if target.str() == "" {
		r.fail(n.at(), "bad_arc", "the arc names no step", "add step: name")
		return nil
	}
	arc := r.arcTo(target)
	r.arcCondition(arc, r.whenOf(n))
	set := given(n.get("set"))
	if e, ok := n.entry("args"); ok && e.value.given() {
		if routed {
			r.warn(n.keyAt(e), "old_spelling", `"args" of an arc is read as "set"`, `write "set"`)
		}
		if args := r.want(e.value, mapShape, "args of an arc must be a map"); args != nil {
			set = merged(args, set)
		}
	}
	arc.Set = r.assignments(set)
	return []*Arc{arc}
}

// arcTo makes an arc from the node that names its target.
func (r *reader) arcTo(target *node) *Arc {
	a := &Arc{Target: strings.TrimSpace(target.text), Pos: target.pos}
	r.arcAt[a] = target.at()
	return a
}

// branch reads {when, then} and {else} of the first language.
func (r *reader) branch(n *node) []*Arc {
	r.warn(n.at(), "old_spelling", "{when, then} in next is an older form", "write {step: name, when: …}")
	to := n.get("then")
	if to == nil {
		to = n.get("else")
	}
	list := []*node{to}
	if to.shape == listShape {
		list = to.items
	}
	var out []*Arc
	for _, item := range list {
		var arcs []*Arc
		if item.shape == scalarShape {
			arcs = []*Arc{r.arcTo(item)}
		} else if item.shape == mapShape && !anyOf(item, "then", "else") {
			arcs = r.arcs(item, false)
		} else {
			r.fail(item.at(), "bad_arc", "an arc is the name of a step or a map with a step, this is "+item.describe(), "write {step: name}")
		}
		for _, a := range arcs {
			if a.When == nil {
				r.arcCondition(a, n.get("when"))
			}
		}
		out = append(out, arcs...)
	}
	return out
}

// whenOf finds a condition under its current name or an older one.
func (r *reader) whenOf(n *node) *node {
	when := n.get("when")
	for _, old := range []string{"cond", "expr"} {
		if e, ok := n.entry(old); ok {
			r.warn(n.keyAt(e), "old_spelling", quote(old)+` is read as "when"`, `write "when"`)
			if !when.given() {
				when = e.value
			}
		}
	}
	return when
}

func (r *reader) arcCondition(a *Arc, when *node) {
	a.When = r.condition(when)
	if a.When != nil {
		a.OnError = looksAtError(a.When, when.text)
	} else if when.given() {
		r.broken[a] = true
	}
}

// looksAtError tells whether a condition can be meant for a failed run.
func looksAtError(t *jinja.Template, text string) bool {
	for _, path := range t.Free() {
		switch {
		case path[0] == "error":
			return true
		case path[0] == "output" || path[0] == "outcome":
			if len(path) > 1 && (path[1] == "status" || path[1] == "error") {
				return true
			}
		case path[0] == "event":
			if strings.Contains(text, "call.error") || strings.Contains(text, "step.failed") {
				return true
			}
		}
	}
	return false
}

// deadArcs warns about arcs that an unconditional one before them keeps from
// ever firing.
func (r *reader) deadArcs(s *Step) {
	if s.Mode != Exclusive {
		return
	}
	i := slices.IndexFunc(s.Arcs, func(a *Arc) bool { return a.When == nil && !r.broken[a] })
	if i < 0 {
		return
	}
	for _, a := range s.Arcs[i+1:] {
		if a.OnError {
			continue // it is there for failed runs, in which the others do not count
		}
		r.warn(r.arcAt[a], "dead_arc", "the arc to "+quote(a.Target)+" never fires: the arc to "+
			quote(s.Arcs[i].Target)+" before it has no condition", "put it first, or use mode: inclusive to take both")
	}
}
