package engine

import (
	"encoding/json"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
)

// names is the base context of templates: what any expression in the playbook
// can mention, resolved only when it is mentioned. Later in this list wins:
// workload keys, step results, durable variables, the execution's ids.
type names struct {
	s     *State
	extra jinja.Vars // names of the place: output, event, loop variables
}

// Lookup implements jinja.Scope.
func (n names) Lookup(name string) (any, bool) {
	if v, ok := n.extra[name]; ok {
		return v, true
	}
	switch name {
	case "execution_id":
		return n.s.id.String(), true
	case "catalog_id":
		return n.s.catalogID.String(), true
	}
	if v, ok := n.s.lookup(name); ok {
		return v, true
	}
	switch name {
	case "workload":
		return n.s.workload, true
	case "ctx", "vars":
		return everything(n), true
	case "steps":
		return allSteps{n.s}, true
	case "path":
		return n.s.path, true
	case "version":
		return int64(n.s.version), true
	case "execution":
		return n.s.identity(), true
	case "iter":
		if len(n.s.parentIter) > 0 {
			return n.s.withParent(nil), true
		}
	case "job":
		d := jinja.NewDict(3)
		for _, k := range []string{"uuid", "id", "execution_id"} {
			d.Set(k, n.s.id.String())
		}
		return d, true
	}
	return nil, false
}

// identity is `execution`: what the execution is, whatever the workload calls
// its own keys.
func (s *State) identity() *jinja.Dict {
	d := jinja.NewDict(4)
	d.Set("id", s.id.String())
	d.Set("path", s.path)
	d.Set("version", int64(s.version))
	d.Set("pool", s.pool)
	return d
}

// lookup finds a name among variables, step results and workload keys.
func (s *State) lookup(name string) (any, bool) {
	if v, ok := s.vars[name]; ok {
		return v.get(s), true
	}
	if st := s.resultNamed(name); st != nil {
		return s.shown(st), true
	}
	return s.workload.Get(name)
}

// resultNamed is the step whose result a name shows; nil when there is none.
func (s *State) resultNamed(name string) *step {
	if s.prog != nil {
		if of, ok := s.prog.aliases[name]; ok {
			name = of
		}
	}
	if st := s.steps[name]; st != nil && st.result != nil {
		return st
	}
	return nil
}

// everything is `ctx`: all names as one object.
type everything names

// Attr implements jinja.Object.
func (e everything) Attr(name string) (any, bool) { return names(e).Lookup(name) }

// Unwrap makes the object printable and iterable.
func (e everything) Unwrap() any {
	out := jinja.NewDict(e.s.workload.Len() + len(e.s.steps) + len(e.s.vars))
	for k, v := range e.s.workload.All() {
		out.Set(k, v)
	}
	for _, name := range e.s.order {
		if st := e.s.steps[name]; st.result != nil {
			out.Set(name, e.s.shown(st).Unwrap())
		}
	}
	for _, k := range sortedKeys(e.s.vars) {
		out.Set(k, e.s.vars[k].get(e.s))
	}
	return out
}

// allSteps is `steps`: the state of each step with its data.
type allSteps struct{ s *State }

// Attr implements jinja.Object.
func (a allSteps) Attr(name string) (any, bool) {
	st, ok := a.s.steps[name]
	if !ok || st.cur == nil {
		return nil, false
	}
	d := jinja.NewDict(4)
	d.Set("status", st.cur.phase.String())
	d.Set("runs", int64(st.runs))
	if st.result != nil {
		d.Set("data", a.s.shown(st))
	}
	if st.cur.errText != "" {
		d.Set("error", st.cur.errText)
	}
	return d, true
}

// Unwrap makes the object printable and iterable.
func (a allSteps) Unwrap() any {
	out := jinja.NewDict(len(a.s.order))
	for _, name := range a.s.order {
		if v, ok := a.Attr(name); ok {
			out.Set(name, v)
		}
	}
	return out
}

// String is the phase as events spell it.
func (p phase) String() string {
	return [...]string{event.StatusRunning, event.StatusCompleted, event.StatusFailed, event.StatusSkipped}[p]
}

// commandVars encodes the values a command of the step needs, as of now.
func (s *State) commandVars(n needs) json.RawMessage {
	o := newObject()
	wanted := n.names
	if n.all {
		wanted = s.allNames()
	}
	var stepNames []string
	for _, name := range wanted {
		if st := s.resultNamed(name); st != nil && s.vars[name] == nil {
			o.raw(name, st.result.JSON())
			stepNames = append(stepNames, name)
			continue
		}
		switch v, ok := s.vars[name]; {
		case ok:
			o.raw(name, v.json(s))
		default:
			s.addBase(o, name)
		}
	}
	s.addWorkload(o, n)
	if len(stepNames) > 0 {
		info := newObject()
		for _, name := range stepNames {
			about := s.shown(s.resultNamed(name)).Info()
			about.Tasks = about.Tasks || about.Sequence
			info.raw(name, encode(about))
		}
		o.raw("__steps", info.bytes())
	}
	return o.bytes()
}

// addBase adds a workload key or one of the engine's own names.
func (s *State) addBase(o *object, name string) {
	if v, ok := s.workload.Get(name); ok {
		o.value(name, v)
		return
	}
	switch name {
	case "path":
		o.value(name, s.path)
	case "version":
		o.value(name, int64(s.version))
	case "steps":
		o.value(name, allSteps{s}.Unwrap())
	case "execution":
		o.value(name, s.identity())
	}
}

func (s *State) addWorkload(o *object, n needs) {
	switch {
	case n.allWorkload || n.all:
		o.value("workload", s.workload)
	case len(n.workload) > 0:
		sub := newObject()
		for _, k := range n.workload {
			if v, ok := s.workload.Get(k); ok {
				sub.value(k, v)
			}
		}
		o.raw("workload", sub.bytes())
	}
}

// allNames lists every name that is bound, each once.
func (s *State) allNames() []string {
	var out []string
	out = append(out, s.workload.Keys()...)
	for _, name := range s.order {
		if s.steps[name].result != nil {
			out = append(out, name)
		}
	}
	out = append(out, sortedKeys(s.vars)...)
	out = append(out, "path")
	slices.Sort(out)
	return slices.Compact(out)
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
