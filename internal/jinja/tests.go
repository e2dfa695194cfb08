package jinja

import (
	"strings"
	"unicode"
)

// tests are what can follow is.
var tests map[string]*operation

// quickTests are the tests that look at nothing but the value.
var quickTests = map[string]func(any) bool{
	"defined":   func(v any) bool { return !IsUndefined(v) },
	"undefined": IsUndefined,
	"none":      func(v any) bool { return ofType(v, "none") },
	"string":    func(v any) bool { return ofType(v, "string") },
	"number":    func(v any) bool { return ofType(v, "integer", "float", "boolean") },
	"integer":   func(v any) bool { return ofType(v, "integer") },
	"float":     func(v any) bool { return ofType(v, "float") },
	"boolean":   func(v any) bool { return ofType(v, "boolean") },
	"sequence":  func(v any) bool { return ofType(v, "list", "tuple", "string", "mapping") },
	"mapping":   func(v any) bool { return ofType(v, "mapping") },
	"iterable":  func(v any) bool { return ofType(v, "list", "tuple", "string", "mapping", "undefined") },
	"callable":  func(v any) bool { return ofType(v, "function") },
	"true":      func(v any) bool { return isBool(v, true) },
	"false":     func(v any) bool { return isBool(v, false) },
}

func init() {
	tests = map[string]*operation{
		"even":         op(parityTest(0)),
		"odd":          op(parityTest(1)),
		"divisibleby":  op(divisibleTest, "num"),
		"sameas":       op(sameasTest, "other"),
		"in":           op(compareTest("in"), "container"),
		"containing":   op(containingTest, "item"),
		"startingwith": op(textFirst(affixMethod(strings.HasPrefix)), "prefix", "start?", "end?"),
		"endingwith":   op(textFirst(affixMethod(strings.HasSuffix)), "suffix", "start?", "end?"),
		"filter":       op(knownTest(func(name string) bool { return filters[name] != nil })),
		"test":         op(knownTest(func(name string) bool { return tests[name] != nil })),
		"lower":        op(caseTest(unicode.IsUpper, unicode.IsLower)),
		"upper":        op(caseTest(unicode.IsLower, unicode.IsUpper)),
	}
	for name, quick := range quickTests {
		tests[name] = op(func(_ env, self any, _ args) (any, error) { return quick(self), nil })
	}
	for operator, names := range map[string][]string{
		"==": {"eq", "equalto", "=="},
		"!=": {"ne", "!="},
		"<":  {"lt", "lessthan", "<"},
		"<=": {"le", "<="},
		">":  {"gt", "greaterthan", ">"},
		">=": {"ge", ">="},
	} {
		for _, name := range names {
			tests[name] = op(compareTest(operator), "other")
		}
	}
}

// ofType reports whether a value is of one of the types.
func ofType(v any, names ...string) bool {
	is := typeName(v)
	for _, name := range names {
		if is == name {
			return true
		}
	}
	return false
}

func isBool(v any, want bool) bool {
	n, err := base(v)
	is, ok := n.(bool)
	return err == nil && ok && is == want
}

func compareTest(operator string) method {
	holds := comparators[operator]
	return func(e env, self any, a args) (any, error) {
		ok, err := holds(e.budget(), self, a.vals[0])
		return ok, err
	}
}

func parityTest(rest int64) method {
	return func(_ env, self any, _ args) (any, error) {
		n, err := base(self)
		if err != nil {
			return nil, err
		}
		if num, ok := asNumeric(n); ok && num.isFloat {
			_, mod := floatDivMod(num.f, 2)
			return mod == float64(rest), nil
		}
		i, err := asInt(n)
		return i&1 == rest, err
	}
}

func divisibleTest(_ env, self any, a args) (any, error) {
	x, y, err := operands(self, a.vals[0])
	if err != nil {
		return nil, err
	}
	nx, okx := asNumeric(x)
	ny, oky := asNumeric(y)
	if !okx || !oky {
		return nil, operandError("divisibleby", x, y)
	}
	rest, err := arithmetic("%", nx, ny)
	if err != nil {
		return nil, err
	}
	return !Truthy(rest), nil
}

// sameasTest is identity. Values have none, so it is equality of equal types.
func sameasTest(e env, self any, a args) (any, error) {
	same, err := equal(e.budget(), self, a.vals[0])
	return same && typeName(self) == typeName(a.vals[0]), err
}

// caseTest reports whether a text has letters of one case and none of the other.
func caseTest(forbidden, wanted func(rune) bool) method {
	return func(e env, self any, _ args) (any, error) {
		s, err := text(e.budget(), self)
		if err != nil {
			return nil, err
		}
		return strings.IndexFunc(s, forbidden) < 0 && strings.IndexFunc(s, wanted) >= 0, e.budget().scan(len(s))
	}
}

// containingTest is in with its sides exchanged.
func containingTest(e env, self any, a args) (any, error) {
	ok, err := contains(e.budget(), self, a.vals[0])
	return ok, err
}

// knownTest asks whether a text is the name of a filter or a test.
func knownTest(known func(name string) bool) method {
	return func(_ env, self any, _ args) (any, error) {
		n, err := base(self)
		name, ok := n.(string)
		return ok && known(name), err
	}
}
