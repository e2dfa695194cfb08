package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// filters are what can follow |.
var filters map[string]*operation

func init() {
	filters = map[string]*operation{
		"default": op(defaultFilter, "default_value?", "boolean?"),
		"int":     op(intFilter, "default?", "base?"),
		"float":   op(floatFilter, "default?"),
		"bool":    op(boolFilter),
		"string":  op(stringFilter),
		"abs":     op(absFilter),
		"round":   op(roundFilter, "precision?", "method?"),
		"length":  op(lengthFilter),
		"attr":    op(attrFilter, "name"),
		"get":     op(getFilter, "key", "default?"),
		"keys":    op(onMapping(dictKeys)),
		"values":  op(onMapping(dictValues)),
		"items":   op(onMapping(dictItems)),
		"pprint":  op(pprintFilter),
		"safe":    op(func(_ env, self any, _ args) (any, error) { return self, nil }),
	}
	for _, more := range []map[string]*operation{textFilters(), layoutFilters(), listFilters(), selectFilters(), encodeFilters()} {
		for name, o := range more {
			filters[name] = o
		}
	}
	for alias, name := range map[string]string{"d": "default", "count": "length", "len": "length", "e": "escape", "forceescape": "escape"} {
		filters[alias] = filters[name]
	}
}

// defaultFilter replaces undefined and none, and with boolean everything falsy.
func defaultFilter(_ env, self any, a args) (any, error) {
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	if n == nil || IsUndefined(n) || a.flag(1, false) && !Truthy(n) {
		return a.or(0, ""), nil
	}
	return self, nil
}

// intFilter reads an integer; what cannot be read is the default.
func intFilter(e env, self any, a args) (any, error) {
	fallback := a.or(0, int64(0))
	radix, err := a.int(1, 10)
	if err != nil {
		return nil, err
	}
	if radix != 0 && (radix < 2 || radix > 36) {
		return nil, valueError("the base of int is 0 or from 2 to 36")
	}
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	if s, ok := n.(string); ok {
		return parseInt(s, int(radix), fallback), e.budget().scan(len(s))
	}
	num, ok := asNumeric(n)
	switch {
	case !ok:
		return fallback, nil
	case num.isFloat:
		return truncated(num.f, fallback), nil
	}
	return num.i, nil
}

// parseInt reads an integer as Python does: signs, underscores and the prefix of
// the base are allowed, and "3.7" is read as a float and cut off.
func parseInt(s string, radix int, fallback any) any {
	s = strings.TrimSpace(s)
	digits := strings.ToLower(strings.ReplaceAll(s, "_", ""))
	sign, digits := cutSign(digits)
	prefix := map[int]string{16: "0x", 8: "0o", 2: "0b"}[radix]
	if prefix != "" {
		digits = strings.TrimPrefix(digits, prefix)
	}
	if i, err := strconv.ParseInt(sign+digits, radix, 64); err == nil {
		return i
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return truncated(f, fallback)
	}
	return fallback
}

func cutSign(s string) (sign, rest string) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		return s[:1], s[1:]
	}
	return "", s
}

// truncated drops the fraction of a float; one that does not fit is the fallback.
func truncated(f float64, fallback any) any {
	if !(f >= -1<<63 && f < 1<<63) {
		return fallback
	}
	return int64(f)
}

func floatFilter(e env, self any, a args) (any, error) {
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	if num, ok := asNumeric(n); ok {
		return num.float(), nil
	}
	if s, ok := n.(string); ok {
		if err := e.budget().scan(len(s)); err != nil {
			return nil, err
		}
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f, nil
		}
	}
	return a.or(0, 0.0), nil
}

// boolFilter is the truth of a condition, so that the text "false" is false.
func boolFilter(e env, self any, _ args) (any, error) {
	n, err := base(self)
	if s, ok := n.(string); ok && err == nil {
		err = e.budget().scan(len(s))
	}
	return Condition(n), err
}

func stringFilter(e env, self any, _ args) (any, error) {
	if w, ok := self.(Word); ok {
		return w, nil
	}
	s, err := text(e.budget(), self)
	if err != nil {
		return nil, err
	}
	return s, e.budget().grow(len(s))
}

// asNumber returns a value that must be a number.
func asNumber(v any) (numeric, error) {
	n, err := base(v)
	if err != nil {
		return numeric{}, err
	}
	if u, ok := n.(Undefined); ok {
		return numeric{}, undefinedError(u)
	}
	num, ok := asNumeric(n)
	if !ok {
		return num, typeError("expected a number, got %s", typeName(n)).withRemedy("convert it with | int or | float")
	}
	return num, nil
}

func absFilter(_ env, self any, _ args) (any, error) {
	n, err := asNumber(self)
	switch {
	case err != nil:
		return nil, err
	case n.isFloat:
		return math.Abs(n.f), nil
	case n.i < 0:
		return negate(n.i)
	}
	return n.i, nil
}

// roundFilter rounds halves to even, as Python does; an integer stays one.
func roundFilter(_ env, self any, a args) (any, error) {
	n, err := asNumber(self)
	if err != nil {
		return nil, err
	}
	precision, err := a.int(0, 0)
	if err != nil {
		return nil, err
	}
	how, err := a.text(1, "common")
	if err != nil {
		return nil, err
	}
	precision = min(max(precision, -300), 300)
	switch how {
	case "common":
		if !n.isFloat {
			return roundInt(n.i, int(-precision))
		}
		return roundTo(n.f, int(precision)), nil
	case "ceil", "floor":
		return roundToward(how, n.float(), math.Pow(10, float64(precision))), nil
	}
	return nil, valueError("the method of round is common, ceil or floor")
}

// roundInt rounds half to even at a number of digits before the point, without
// the detour over a float that would lose digits.
func roundInt(i int64, digits int) (any, error) {
	if digits <= 0 {
		return i, nil
	}
	if digits > 19 {
		return int64(0), nil
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	quo, rem := new(big.Int).DivMod(big.NewInt(i), unit, new(big.Int))
	if c := rem.Lsh(rem, 1).Cmp(unit); c > 0 || c == 0 && quo.Bit(0) == 1 {
		quo.Add(quo, big.NewInt(1))
	}
	if quo.Mul(quo, unit); !quo.IsInt64() {
		return nil, overflow()
	}
	return quo.Int64(), nil
}

func roundToward(how string, f, scale float64) float64 {
	scaled := f * scale
	if math.IsInf(scaled, 0) {
		return f // beyond the precision of floats there is nothing to round
	}
	whole := math.Floor(scaled)
	if how == "ceil" {
		whole = math.Ceil(scaled)
	}
	if whole == 0 {
		return 0 // never -0.0: in Python it is an integer here
	}
	return whole / scale
}

// roundTo rounds half to even at a number of decimal places.
func roundTo(f float64, precision int) float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	if precision < 0 {
		scale := math.Pow(10, float64(-precision))
		return math.RoundToEven(f/scale) * scale
	}
	// Formatting rounds the exact binary value, which scaling would not.
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', precision, 64), 64)
	if err != nil {
		return f
	}
	return rounded
}

// lengthFilter counts characters, elements or entries. Nothing has length 0, so
// that conditions need no test for it.
func lengthFilter(e env, self any, _ args) (any, error) {
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	if list, ok := sequence(n); ok {
		return int64(len(list)), nil
	}
	switch n := n.(type) {
	case nil, Undefined:
		return int64(0), nil
	case string:
		return int64(runeCount(n)), e.budget().scan(len(n))
	case *Dict:
		return int64(n.Len()), nil
	case map[string]any:
		return int64(len(n)), nil
	}
	return nil, typeError("a value of type %s has no length", typeName(n))
}

func attrFilter(e env, self any, a args) (any, error) {
	name, err := a.text(0, "")
	if err != nil {
		return nil, err
	}
	return attribute(e.budget(), self, name, Undefined{Name: name})
}

// getFilter is get for anything that has keys or indexes, and a fallback for
// what has none.
func getFilter(e env, self any, a args) (any, error) {
	fallback := a.or(1, nil)
	v, err := subscript(e.budget(), self, a.vals[0], fallback)
	if err != nil || IsUndefined(v) {
		return fallback, err
	}
	return v, nil
}

// onMapping makes a filter of a method of mappings. Undefined and none have no
// entries.
func onMapping(m method) method {
	return func(e env, self any, a args) (any, error) {
		n, err := base(self)
		if err != nil {
			return nil, err
		}
		if _, ok := mapping(n); ok {
			return m(e, n, a)
		}
		if n == nil || IsUndefined(n) {
			return []any{}, nil
		}
		return nil, typeError("expected a mapping, got %s", typeName(n))
	}
}

func pprintFilter(e env, self any, _ args) (any, error) {
	out, err := appendRepr(nil, e.budget(), self, 0)
	if err != nil {
		return nil, err
	}
	return string(out), e.budget().grow(len(out))
}
