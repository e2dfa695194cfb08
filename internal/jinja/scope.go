package jinja

// Scope resolves root names. Lookup must answer the same for the length of an
// evaluation.
type Scope interface {
	Lookup(name string) (any, bool)
}

// Vars is a Scope over a map.
type Vars map[string]any

// Lookup returns the value of a key.
func (v Vars) Lookup(name string) (any, bool) {
	x, ok := v[name]
	return x, ok
}

// Layer returns a Scope that asks inner first and outer for what inner does not
// know. Either may be nil.
func Layer(inner, outer Scope) Scope {
	switch {
	case inner == nil && outer == nil:
		return Vars(nil)
	case inner == nil:
		return outer
	case outer == nil:
		return inner
	}
	return layers{inner, outer}
}

type layers struct{ inner, outer Scope }

func (l layers) Lookup(name string) (any, bool) {
	if v, ok := l.inner.Lookup(name); ok {
		return v, true
	}
	return l.outer.Lookup(name)
}
