package jinja

import (
	"encoding/json"
	"slices"
)

// exporter turns the internal types inside a value into public ones, copying
// only what holds any. A value can hold the same list many times over, so what
// it would take when written out is counted against left.
type exporter struct {
	left int
}

func (x *exporter) value(v any, depth int) (any, error) {
	if depth > maxNesting {
		return nil, nestingError()
	}
	if raw, ok := v.(json.RawMessage); ok && depth > 0 {
		return raw, x.charge(len(raw)) // stays lazy
	}
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	if s, ok := n.(string); ok {
		return n, x.charge(len(s))
	}
	if err := x.charge(elementSize / 2); err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case nil, bool, int64, float64:
		return n, nil
	case []any:
		return x.list(n, false, depth)
	case tuple:
		return x.list(n, true, depth)
	case *Dict:
		return x.dict(n, depth)
	case *namespace:
		return x.dict(n.vars.Clone(), depth)
	case map[string]any:
		return n, x.count(n, depth)
	case *loopState:
		return nil, nil
	case Object:
		return n, nil
	}
	return nil, nil // undefined, and functions
}

func (x *exporter) charge(n int) error {
	if x.left -= n; x.left < 0 {
		return limitError("the value of the template is too large")
	}
	return nil
}

// count charges a map, which only the caller can have made: there is nothing
// internal in it to replace.
func (x *exporter) count(m map[string]any, depth int) error {
	for _, e := range m {
		if _, err := x.value(e, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// list copies a list from the first element that had to be replaced; copied says
// that the copy is wanted in any case, for a tuple.
func (x *exporter) list(list []any, copied bool, depth int) (any, error) {
	out := list
	if copied {
		out = slices.Clone(list)
	}
	for i, e := range list {
		v, err := x.value(e, depth+1)
		if err != nil {
			return nil, err
		}
		if !copied && !untouched(v, e) {
			out, copied = slices.Clone(list), true
		}
		if copied {
			out[i] = v
		}
	}
	return out, nil
}

func (x *exporter) dict(d *Dict, depth int) (any, error) {
	out, copied := d, false
	for i := range d.Len() {
		e := d.entries[i]
		v, err := x.value(e.val, depth+1)
		if err != nil {
			return nil, err
		}
		if !copied && !untouched(v, e.val) {
			out, copied = d.Clone(), true
		}
		if copied {
			out.entries[i].val = v
		}
	}
	return out, nil
}

// untouched reports whether a value came through the exporter unreplaced.
func untouched(out, in any) bool {
	switch out := out.(type) {
	case []any:
		in, ok := in.([]any)
		return ok && len(out) == len(in) && (len(out) == 0 || &out[0] == &in[0])
	case map[string]any:
		_, ok := in.(map[string]any)
		return ok
	case json.RawMessage:
		return true
	case nil, bool, int64, float64, string, *Dict:
		return out == in
	}
	return false
}
