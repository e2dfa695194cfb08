package jinja

import (
	"maps"
	"slices"
	"strings"
)

// signature says which arguments an operation takes.
type signature struct {
	params []string
	need   int  // how many of params must be given
	rest   bool // further positional arguments are collected
	kwrest bool // further named arguments are collected
}

// sign builds a signature: "a" must be given, "b?" may be, "*" and "**" collect
// further positional and named arguments.
func sign(params ...string) signature {
	var s signature
	for _, p := range params {
		switch {
		case p == "*":
			s.rest = true
		case p == "**":
			s.kwrest = true
		default:
			name, optional := strings.CutSuffix(p, "?")
			s.params = append(s.params, name)
			if !optional {
				s.need = len(s.params)
			}
		}
	}
	return s
}

// named is an argument given by name.
type named[T any] struct {
	name string
	val  T
}

// bound is a list of arguments sorted into the parameters of a signature. What
// was not given is the missing value of bind.
type bound[T any] struct {
	vals []T // one for each parameter
	rest []T
	kw   []named[T]
}

// bind sorts arguments into parameters. It serves both ends: expressions when a
// template is compiled and values when an operation is picked at run time.
func bind[T any](s signature, what string, missing T, pos []T, kw []named[T]) (bound[T], *Error) {
	out := bound[T]{vals: make([]T, len(s.params))}
	given := make([]bool, len(s.params))
	n := copy(out.vals, pos)
	for i := range out.vals {
		given[i] = i < n
		if i >= n {
			out.vals[i] = missing
		}
	}
	if len(pos) > n {
		if !s.rest {
			return out, typeError("%s takes at most %d arguments, got %d", what, len(s.params), len(pos))
		}
		out.rest = pos[n:]
	}
	for _, k := range kw {
		i := slices.Index(s.params, k.name)
		switch {
		case i >= 0 && given[i]:
			return out, typeError("%s got the argument '%s' twice", what, k.name)
		case i >= 0:
			out.vals[i], given[i] = k.val, true
		case s.kwrest:
			out.kw = append(out.kw, k)
		default:
			return out, unknownArgument(s, what, k.name)
		}
	}
	for i := range s.need {
		if !given[i] {
			return out, typeError("%s needs the argument '%s'", what, s.params[i])
		}
	}
	return out, nil
}

func unknownArgument(s signature, what, name string) *Error {
	e := typeError("%s has no argument '%s'", what, name)
	if len(s.params) > 0 {
		e.Remedy = "it takes " + strings.Join(s.params, ", ")
	}
	return e
}

// operation is a filter, a test, a method or a function. self is the value it
// is applied to and nil for a function.
type operation struct {
	signature
	fn func(e env, self any, a args) (any, error)
}

// op makes an operation of a function and its parameters; see sign.
func op(fn func(e env, self any, a args) (any, error), params ...string) *operation {
	return &operation{sign(params...), fn}
}

// apply runs an operation with arguments that are known only now.
func (o *operation) apply(e env, what string, self any, pos []any, kw []named[any]) (any, error) {
	b, err := bind(o.signature, what, unset, pos, kw)
	if err != nil {
		return nil, err
	}
	return o.fn(e, self, args(b))
}

// args are the arguments of a running operation.
type args bound[any]

func (a args) given(i int) bool { return a.vals[i] != unset }

// or returns an argument, or a fallback if it was not given.
func (a args) or(i int, fallback any) any {
	if !a.given(i) {
		return fallback
	}
	return a.vals[i]
}

// text returns an argument that must be a string.
func (a args) text(i int, fallback string) (string, error) {
	if !a.given(i) {
		return fallback, nil
	}
	return asText(a.vals[i])
}

// asText returns a value that must be a string.
func asText(v any) (string, error) {
	n, err := base(v)
	if err != nil {
		return "", err
	}
	switch n := n.(type) {
	case string:
		return n, nil
	case Undefined:
		return "", undefinedError(n)
	}
	return "", typeError("expected a string, got %s", typeName(n))
}

// int returns an argument that must be an integer.
func (a args) int(i int, fallback int64) (int64, error) {
	if !a.given(i) {
		return fallback, nil
	}
	return asInt(a.vals[i])
}

func asInt(v any) (int64, error) {
	n, err := base(v)
	if err != nil {
		return 0, err
	}
	if u, ok := n.(Undefined); ok {
		return 0, undefinedError(u)
	}
	i, ok := asIndex(n)
	if !ok {
		return 0, typeError("expected an integer, got %s", typeName(n))
	}
	return i, nil
}

// flag returns the truth of an argument.
func (a args) flag(i int, fallback bool) bool {
	if !a.given(i) {
		return fallback
	}
	return Truthy(a.vals[i])
}

// callable is a value that can be called.
type callable interface {
	call(e env, pos []any, kw []named[any]) (any, error)
}

// function is a built-in function as a value.
type function struct {
	name string
	op   *operation
}

func (f *function) call(e env, pos []any, kw []named[any]) (any, error) {
	return f.op.apply(e, "the function "+f.name, nil, pos, kw)
}

func (f *function) String() string { return "<function " + f.name + ">" }

// knownNames are the keys of a table of operations, sorted.
func knownNames[V any](tables ...map[string]V) []string {
	var out []string
	for _, t := range tables {
		out = slices.AppendSeq(out, maps.Keys(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unknownName reports a filter, test or function that does not exist.
func unknownName(what, name string, known []string) *Error {
	if e := refusal(what, name); e != nil {
		return e
	}
	e := newError(kindName, "there is no %s '%s'", what, name)
	if near := nearest(name, known); near != "" {
		e.Remedy = "did you mean '" + near + "'?"
	}
	return e
}
