package pipeline

import (
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/tool"
)

// assign evaluates all values of a `set` block against one state of the names
// and then stores them, so that no entry sees another's new value.
func (s *run) assign(set []playbook.Assignment, in jinja.Scope) *tool.Error {
	if len(set) == 0 {
		return nil
	}
	values := make([]any, len(set))
	for i, a := range set {
		place := "set." + string(a.Scope) + "." + a.Key
		v, err := a.Value.Eval(in)
		if err != nil {
			return s.names.because(templateError(err, place))
		}
		if values[i], err = settled(v); err != nil {
			return templateError(err, place)
		}
		if err := s.names.unavailable(); err != nil {
			return err
		}
	}
	for i, a := range set {
		s.names.assign(a.Scope, a.Key, values[i])
	}
	return nil
}

// settled is a value as it is remembered: data, which reads the same for a
// later task, for a later step and after the command was parked. A live object
// such as an outcome becomes the data it stands for.
func settled(v any) (any, error) {
	if plain(v) {
		return v, nil
	}
	b, err := jinja.ToJSON(v)
	if err != nil {
		return nil, err
	}
	return jinja.FromJSON(b)
}

// plain tells that a value is nothing but data all the way down.
func plain(v any) bool {
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return true
	case []any:
		for _, e := range v {
			if !plain(e) {
				return false
			}
		}
		return true
	case *jinja.Dict:
		for _, e := range v.All() {
			if !plain(e) {
				return false
			}
		}
		return true
	}
	return false
}

func (n *names) assign(where playbook.Scope, key string, v any) {
	switch where {
	case playbook.ScopeIter:
		if n.iterSet == nil {
			n.iterSet = n.iteration()
		}
		write(n.iterSet, key, v)
	case playbook.ScopeStep:
		if n.stepSet == nil {
			n.stepSet = jinja.NewDict(1)
		}
		write(n.stepSet, key, v)
	default:
		n.assignCtx(key, v)
	}
}

// assignCtx makes a value visible to later tasks, nested, and reports it to
// the control plane under the key as written.
func (n *names) assignCtx(key string, v any) {
	if n.ctxSet == nil {
		n.ctxSet = jinja.NewDict(1)
	}
	n.ctxSet.Set(key, v)
	d := n.ownFresh()
	if head := firstSegment(key); head != key {
		if _, written := d.Get(head); !written {
			if old, ok := n.base.Get(head); ok {
				d.Set(head, old)
			}
		}
	}
	write(d, key, v)
}

func (n *names) ownFresh() *jinja.Dict {
	if n.fresh == nil {
		n.fresh = jinja.NewDict(4)
	}
	return n.fresh
}

func firstSegment(key string) string {
	for i := range len(key) {
		if key[i] == '.' {
			return key[:i]
		}
	}
	return key
}
