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
		v, err := a.Value.Eval(in)
		if err != nil {
			return templateError(err, "set."+string(a.Scope)+"."+a.Key)
		}
		values[i] = v
	}
	for i, a := range set {
		s.names.assign(a.Scope, a.Key, values[i])
	}
	return nil
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
