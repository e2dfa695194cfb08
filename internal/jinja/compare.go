package jinja

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// equal is ==. Values of different types are unequal, not an error; integers,
// floats and booleans compare by number, lists and tuples by their elements.
func equal(b *budget, x, y any) (bool, error) { return equalAt(b, x, y, 0) }

// equalAt is equal at a depth, so that deep values end in an error and not in an
// exhausted stack. Words come first: reduced to text they would lose synonyms.
func equalAt(b *budget, x, y any, depth int) (bool, error) {
	if s, ok := x.(string); ok {
		if t, ok := y.(string); ok {
			return s == t, b.scan(len(s))
		}
	}
	if w, ok := x.(Word); ok {
		return equalWord(w, y)
	}
	if w, ok := y.(Word); ok {
		return equalWord(w, x)
	}
	x, err := base(x)
	if err != nil {
		return false, err
	}
	if y, err = base(y); err != nil {
		return false, err
	}
	if depth > maxNesting {
		return false, nestingError()
	}
	if err := b.step(1); err != nil {
		return false, err
	}
	return equalBase(b, x, y, depth)
}

// equalBase compares values that are reduced already.
func equalBase(b *budget, x, y any, depth int) (bool, error) {
	switch x := x.(type) {
	case nil:
		return y == nil, nil
	case string:
		s, ok := y.(string)
		return ok && x == s, nil
	case Undefined:
		return IsUndefined(y), nil
	case int64, float64, bool:
		nx, _ := asNumeric(x)
		ny, ok := asNumeric(y)
		return ok && compareNumbers(nx, ny) == 0, nil
	case []any, tuple:
		lx, _ := sequence(x)
		ly, ok := sequence(y)
		if !ok || len(lx) != len(ly) {
			return false, nil
		}
		return equalLists(b, lx, ly, depth)
	case *Dict, map[string]any:
		nx, _ := entryCount(x)
		if ny, ok := entryCount(y); !ok || nx != ny {
			return false, nil
		}
		dx, _ := mapping(x)
		dy, _ := mapping(y)
		return equalDicts(b, dx, dy, depth)
	}
	return identical(x, y), nil
}

// equalWord compares a Word with anything; two Words are equal if they share a
// spelling.
func equalWord(w Word, y any) (bool, error) {
	if o, ok := y.(Word); ok {
		return w.is(o.Text) || o.is(w.Text) || slices.ContainsFunc(w.Same, o.is), nil
	}
	y, err := base(y)
	if err != nil {
		return false, err
	}
	s, ok := y.(string)
	return ok && w.is(s), nil
}

// entryCount is the size of a mapping, without the work of ordering its keys.
func entryCount(v any) (int, bool) {
	switch v := v.(type) {
	case *Dict:
		return v.Len(), true
	case map[string]any:
		return len(v), true
	}
	return 0, false
}

func equalLists(b *budget, x, y []any, depth int) (bool, error) {
	for i := range x {
		if same, err := equalAt(b, x[i], y[i], depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// equalDicts ignores order: two mappings are equal if they have equal entries.
func equalDicts(b *budget, x, y *Dict, depth int) (bool, error) {
	for k, v := range x.All() {
		w, ok := y.Get(k)
		if !ok {
			return false, nil
		}
		if same, err := equalAt(b, v, w, depth+1); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// identical is the equality of values that are not data: the same function, the
// same loop. Types that Go cannot compare are never identical.
func identical(x, y any) bool {
	switch x := x.(type) {
	case *function:
		return y == any(x)
	case *macro:
		return y == any(x)
	case *namespace:
		return y == any(x)
	case *loopState:
		return y == any(x)
	}
	return false
}

// unordered is the outcome of comparing with NaN.
const unordered = 2

// compareNumbers orders two numbers exactly: an integer is never rounded to be
// compared with a float.
func compareNumbers(x, y numeric) int {
	switch {
	case !x.isFloat && !y.isFloat:
		return cmp.Compare(x.i, y.i)
	case x.isFloat && y.isFloat:
		return compareFloats(x.f, y.f)
	case x.isFloat:
		if c := compareIntFloat(y.i, x.f); c != unordered {
			return -c
		}
		return unordered
	}
	return compareIntFloat(x.i, y.f)
}

func compareFloats(x, y float64) int {
	if math.IsNaN(x) || math.IsNaN(y) {
		return unordered
	}
	return cmp.Compare(x, y)
}

// compareIntFloat compares by the whole part and then by the fraction. Floats
// beyond 64 bits are decided first, since converting them is undefined.
func compareIntFloat(i int64, f float64) int {
	switch {
	case math.IsNaN(f):
		return unordered
	case f >= 1<<63:
		return -1
	case f < -1<<63:
		return 1
	}
	whole := math.Trunc(f)
	if c := cmp.Compare(i, int64(whole)); c != 0 {
		return c
	}
	return compareFloats(0, f-whole)
}

// order compares two values that have an order: numbers, texts, and lists of
// such. It returns -1, 0, 1 or unordered; op is the operator to name when the
// values have no order.
func order(b *budget, op string, x, y any) (int, error) {
	if i, ok := x.(int64); ok {
		if j, ok := y.(int64); ok {
			return cmp.Compare(i, j), nil
		}
	}
	return orderAt(b, op, x, y, 0)
}

// orderAt is order at a depth.
func orderAt(b *budget, op string, x, y any, depth int) (int, error) {
	x, y, err := operands(x, y)
	if err != nil {
		return 0, err
	}
	if nx, ok := asNumeric(x); ok {
		if ny, ok := asNumeric(y); ok {
			return compareNumbers(nx, ny), nil
		}
		return 0, operandError(op, x, y)
	}
	if s, ok := x.(string); ok {
		if t, ok := y.(string); ok {
			return strings.Compare(s, t), b.scan(min(len(s), len(t)))
		}
		return 0, operandError(op, x, y)
	}
	lx, okx := sequence(x)
	ly, oky := sequence(y)
	if !okx || !oky {
		return 0, operandError(op, x, y)
	}
	if depth > maxNesting {
		return 0, nestingError()
	}
	return orderLists(b, op, lx, ly, depth)
}

// orderLists is lexicographic: the first unequal elements decide, then length.
func orderLists(b *budget, op string, x, y []any, depth int) (int, error) {
	for i := range min(len(x), len(y)) {
		same, err := equalAt(b, x[i], y[i], depth+1)
		if err != nil {
			return 0, err
		}
		if !same {
			return orderAt(b, op, x[i], y[i], depth+1)
		}
	}
	return cmp.Compare(len(x), len(y)), nil
}

// comparator is a comparison operator.
type comparator func(b *budget, x, y any) (bool, error)

// comparators are looked up when a template is compiled, not when it runs.
var comparators = map[string]comparator{
	"==": equal,
	"!=": func(b *budget, x, y any) (bool, error) {
		same, err := equal(b, x, y)
		return !same, err
	},
	"<": func(b *budget, x, y any) (bool, error) {
		c, err := order(b, "<", x, y)
		return c == -1, err
	},
	"<=": func(b *budget, x, y any) (bool, error) {
		c, err := order(b, "<=", x, y)
		return c <= 0, err
	},
	">": func(b *budget, x, y any) (bool, error) {
		c, err := order(b, ">", x, y)
		return c == 1, err
	},
	">=": func(b *budget, x, y any) (bool, error) {
		c, err := order(b, ">=", x, y)
		return c == 0 || c == 1, err
	},
	"in": func(b *budget, x, y any) (bool, error) { return contains(b, y, x) },
	"not in": func(b *budget, x, y any) (bool, error) {
		found, err := contains(b, y, x)
		return !found, err
	},
}

// contains is item in container. Nothing is in undefined.
func contains(b *budget, container, item any) (bool, error) {
	c, err := base(container)
	if err != nil {
		return false, err
	}
	switch c := c.(type) {
	case Undefined:
		return false, nil
	case string:
		return containsText(b, c, item)
	case *Dict:
		return containsKey(item, func(key string) bool { _, found := c.Get(key); return found })
	case map[string]any:
		return containsKey(item, func(key string) bool { _, found := c[key]; return found })
	}
	list, ok := sequence(c)
	if !ok {
		return false, typeError("'in' does not work on %s", typeName(c)).
			withRemedy("give a fallback list: … in (x | default([]))")
	}
	for _, e := range list {
		if err := b.step(1); err != nil {
			return false, err
		}
		if same, err := equal(b, e, item); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// containsKey looks a key up. Undefined is no key of any mapping.
func containsKey(item any, has func(key string) bool) (bool, error) {
	n, err := base(item)
	if err != nil || IsUndefined(n) {
		return false, err
	}
	key, err := keyText(n)
	return err == nil && has(key), err
}

// containsText is the in of strings: a substring, or any spelling of a Word.
func containsText(b *budget, s string, item any) (bool, error) {
	if err := b.scan(len(s)); err != nil {
		return false, err
	}
	if w, ok := item.(Word); ok {
		return strings.Contains(s, w.Text) ||
			slices.ContainsFunc(w.Same, func(t string) bool { return strings.Contains(s, t) }), nil
	}
	n, err := base(item)
	if err != nil {
		return false, err
	}
	switch n := n.(type) {
	case string:
		return strings.Contains(s, n), nil
	case Undefined:
		return false, undefinedError(n)
	}
	return false, typeError("'in' a string needs a string on the left, not %s", typeName(n))
}
