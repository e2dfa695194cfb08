package playbook

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// readNext reads every form of `next` into arcs and a mode.
func (r *reader) readNext(step, spec *node, s *Step) {
	if w := keyword(spec.get("next_mode")); w != "" {
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
		s.Arcs = r.arcs(n)
	default:
		r.conform(n, routerObject)
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
		s.Arcs = append(s.Arcs, r.arcs(item)...)
	}
	if names > 0 && names == len(n.items) {
		s.Mode = Inclusive
	}
}

func (r *reader) router(n *node, s *Step) {
	n = r.conform(n, routerObject)
	spec := r.part(n, "spec", routerSpecObject)
	if w := keyword(spec.get("mode")); w != "" {
		s.Mode = Mode(w)
	}
	// When nothing matches a branch just ends; both older words mean that.
	s.NoMatchIsError = keyword(spec.get("on_no_match")) == "error"
	list := given(n.get("arcs"))
	if list == nil {
		return
	}
	for _, item := range list.items {
		if item.shape == scalarShape {
			s.Arcs = append(s.Arcs, r.arcTo(item))
			continue
		}
		s.Arcs = append(s.Arcs, r.arcs(item)...)
	}
}

// arcs reads one entry of a list of arcs. It is several arcs only in the
// oldest form, {when, then: [targets]}.
func (r *reader) arcs(n *node) []*Arc {
	if n.shape != mapShape {
		r.fail(n.at(), "bad_arc", "an arc is the name of a step or a map with a step, this is "+n.describe(), "write {step: name}")
		return nil
	}
	if anyOf(n, "then", "else") {
		return r.branch(n)
	}
	n = r.conform(n, arcObject)
	target := n.get("step")
	if target.str() == "" {
		if !r.reported(n.path() + ".step") {
			r.fail(n.at(), "bad_arc", "the arc names no step", "add step: name")
		}
		return nil
	}
	arc := r.arcTo(target)
	r.arcCondition(arc, whenOf(n))
	set := given(n.get("set"))
	for _, old := range []string{"args", "input"} {
		set = merged(given(n.get(old)), set)
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
	n = r.conform(n, arcObject)
	key := "then"
	if n.get(key) == nil {
		key = "else"
	}
	to := n.get(key)
	for _, e := range n.without(key, "when", "cond", "expr", "spec", "desc", "description", "name").entries {
		if arcObject.field(e.key) != nil && e.value.given() {
			r.fail(n.keyAt(e), "bad_arc", quote(e.key)+" cannot stand beside "+quote(key)+" in an arc",
				`write one arc for each target: {step: name, when: "{{ … }}"}`)
		}
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
			arcs = r.arcs(item)
		} else {
			r.fail(item.at(), "bad_arc", "an arc is the name of a step or a map with a step, this is "+item.describe(), "write {step: name}")
		}
		for _, a := range arcs {
			if a.When == nil {
				r.arcCondition(a, whenOf(n))
			}
		}
		out = append(out, arcs...)
	}
	return out
}

// whenOf finds a condition under its current name or an older one.
func whenOf(n *node) *node {
	return either(n.get("when"), either(n.get("cond"), n.get("expr")))
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
