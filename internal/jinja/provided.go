package jinja

// provided are the functions that the scope supplies as a Func, with who puts
// them there. Their names are known when a template is compiled, so that a
// misspelt function is still found then, while calling one where the scope has
// none is an error of the evaluation.
var provided = map[string]string{
	"token": "the worker's keychain",
}

// Func is a function that a scope gives to templates. Arguments are values as
// Value returns them, never undefined; the named ones are in the order in which
// they are written. An error that is not an *Error becomes one of kind value.
type Func func(args []any, named *Dict) (any, error)

func (f Func) call(e env, pos []any, kw []named[any]) (any, error) {
	args := make([]any, len(pos))
	for i, v := range pos {
		var err error
		if args[i], err = argument(e, v); err != nil {
			return nil, err
		}
	}
	byName := NewDict(len(kw))
	for _, k := range kw {
		v, err := argument(e, k.val)
		if err != nil {
			return nil, err
		}
		byName.Set(k.name, v)
	}
	v, err := f(args, byName)
	if err != nil {
		if shared, ok := err.(*Error); ok {
			own := *shared // the host may return it again, for another place
			return nil, &own
		}
		return nil, err
	}
	return norm(v)
}

// argument is a value for a function of the host, which knows nothing of the
// types inside this package.
func argument(e env, v any) (any, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	if u, ok := n.(Undefined); ok {
		return nil, undefinedError(u)
	}
	x := exporter{left: growthFactor * e.budget().limits.Bytes}
	return x.value(n, 0)
}

func (f Func) String() string { return "<function>" }

// callProvided compiles the call of a function that the scope supplies.
func (c *compiler) callProvided(n *callNode, fn *nameNode) expr {
	find, vals, name, pos := c.outside(fn), c.values(n.args), fn.name, n.pos
	c.provided = append(c.provided, name)
	return func(e env) (any, error) {
		f, err := find(e)
		if err != nil {
			return nil, err
		}
		if _, ok := f.(callable); !ok {
			return nil, at(notSupplied(name, f), pos)
		}
		a, kw, err := vals(e)
		if err != nil {
			return nil, err
		}
		if err := e.budget().step(1 + len(a) + len(kw)); err != nil {
			return nil, at(err, pos)
		}
		v, err := callAny(e, f, name, a, kw)
		if err != nil {
			return nil, at(err, pos)
		}
		return v, nil
	}
}

// notSupplied is the error of calling a provided function that is not there, or
// whose name the scope uses for something else.
func notSupplied(name string, found any) *Error {
	if IsUndefined(found) {
		return newError(kindUndefined, "%s() is resolved by %s and is not available here", name, provided[name]).
			withRemedy("use it in a field of a tool, which the worker evaluates")
	}
	return typeError("'%s' is a %s here and cannot be called", name, typeName(found)).
		withRemedy("a variable or step of that name hides the function; rename it")
}
