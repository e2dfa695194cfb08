package jinja

import "math"

// functions are the built-in functions.
var functions map[string]*operation

func init() {
	functions = map[string]*operation{
		"range":     op(rangeFunction, "start", "stop?", "step?"),
		"dict":      op(dictFunction, "pairs?", "**"),
		"namespace": op(namespaceFunction, "pairs?", "**"),
		"debug":     op(debugFunction, "*"),
	}
}

// namespace is the one value that a template can change: {% set ns.x = 1 %}
// reaches out of a loop.
type namespace struct{ vars Dict }

// Attr answers what was set.
func (n *namespace) Attr(name string) (any, bool) { return n.vars.Get(name) }

func (n *namespace) String() string { return "<namespace>" }

// rangeFunction makes the list at once: lists are what templates work on, and
// the budget keeps them small.
func rangeFunction(e env, _ any, a args) (any, error) {
	start, err := a.int(0, 0)
	if err != nil {
		return nil, err
	}
	stop, err := a.int(1, 0)
	if err != nil {
		return nil, err
	}
	if !a.given(1) {
		start, stop = 0, start
	}
	step, err := a.int(2, 1)
	if err != nil {
		return nil, err
	}
	count, err := rangeLength(start, stop, step)
	if err != nil {
		return nil, err
	}
	if count > math.MaxInt32 {
		count = math.MaxInt32 // beyond any limit, and safe to convert
	}
	if err := e.budget().list(int(count)); err != nil {
		return nil, err
	}
	out := make([]any, count)
	for i := range out {
		out[i] = start + int64(i)*step
	}
	return out, nil
}

// rangeLength counts in unsigned arithmetic, where distances cannot overflow.
func rangeLength(start, stop, step int64) (uint64, error) {
	switch {
	case step == 0:
		return 0, valueError("the step of range cannot be zero")
	case step > 0 && stop > start:
		return (uint64(stop)-uint64(start)-1)/uint64(step) + 1, nil
	case step < 0 && stop < start:
		return (uint64(start)-uint64(stop)-1)/magnitude(step) + 1, nil
	}
	return 0, nil
}

func dictFunction(e env, _ any, a args) (any, error) {
	d, err := dictOf(e, a)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func namespaceFunction(e env, _ any, a args) (any, error) {
	d, err := dictOf(e, a)
	if err != nil {
		return nil, err
	}
	return &namespace{*d}, nil
}

// dictOf builds a Dict from a mapping or a list of pairs, and named arguments.
func dictOf(e env, a args) (*Dict, error) {
	d := NewDict(len(a.kw))
	if a.given(0) {
		pairs, err := pairsOf(e, a.vals[0])
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			d.Set(p.key, p.val)
		}
	}
	for _, k := range a.kw {
		d.Set(k.name, k.val)
	}
	return d, nil
}

// pairsOf reads a mapping, or a list of lists of two.
func pairsOf(e env, v any) ([]entry, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	if d, ok := mapping(n); ok {
		return d.entries, e.budget().list(d.Len())
	}
	items, err := elements(e.budget(), n)
	if err != nil {
		return nil, err
	}
	out := make([]entry, len(items))
	for i, item := range items {
		pair, err := elements(e.budget(), item)
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, valueError("element %d is not a pair of key and value", i)
		}
		key, err := keyText(pair[0])
		if err != nil {
			return nil, err
		}
		out[i] = entry{key, pair[1]}
	}
	return out, nil
}

// debugFunction shows values as literals. It never shows the scope by itself,
// which may hold what must not be printed.
func debugFunction(e env, _ any, a args) (any, error) {
	if len(a.rest) == 0 {
		return nil, valueError("debug needs the values to show").withRemedy("name them: debug(x, y)")
	}
	var out []byte
	for i, v := range a.rest {
		if i > 0 {
			out = append(out, ", "...)
		}
		var err error
		if out, err = appendRepr(out, e.budget(), v, 0); err != nil {
			return nil, err
		}
	}
	return string(out), e.budget().grow(len(out))
}
