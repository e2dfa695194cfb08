package jinja

// macro is a macro together with the frame it was defined in.
type macro struct {
	def   *macroDef
	scope Scope
	home  *frame
}

type macroDef struct {
	name     string
	sig      signature
	defaults []expr // nil where the parameter has none
	slots    int
	params   []int
	body     action
	work     int // of a call before its body
}

func (m *macro) String() string { return "<macro " + m.def.name + ">" }

// call runs the macro in a frame of its own. A parameter that is not given and
// has no default is undefined.
func (m *macro) call(e env, pos []any, kw []named[any]) (any, error) {
	given, bindErr := bind(m.def.sig, "the macro "+m.def.name, unset, pos, kw)
	if bindErr != nil {
		return nil, bindErr
	}
	b := e.frame.budget
	if err := b.list(m.def.work); err != nil {
		return nil, err
	}
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()
	inner := env{m.scope, newFrame(m.home, m.def.slots, b)}
	for i, slot := range m.def.params {
		v := given.vals[i]
		if v == unset {
			v = Undefined{Name: m.def.sig.params[i]}
			if fallback := m.def.defaults[i]; fallback != nil {
				var err error
				if v, err = fallback(inner); err != nil {
					return nil, err
				}
			}
		}
		inner.frame.slots[slot] = v
	}
	out := &output{budget: b, inner: true}
	if err := m.def.body(inner, out); err != nil {
		return nil, err
	}
	return string(out.buf), nil
}

// macro compiles a macro. It sees the names of the blocks around it.
func (c *compiler) macro(s *macroStmt) action {
	slot := c.declare(s.name, false)
	def := &macroDef{name: s.name, sig: signature{params: s.params}}
	c.fn = &fnScope{up: c.fn}
	c.open()
	for i, p := range s.params {
		def.defaults = append(def.defaults, nil)
		if s.defaults[i] != nil {
			def.defaults[i] = c.expr(s.defaults[i])
		}
		def.params = append(def.params, c.declare(p, true))
	}
	c.declareAll(s.body)
	def.body = c.body(s.body)
	def.slots = c.fn.slots
	def.work = 1 + def.slots + weight(s.defaults...)
	c.shut()
	c.fn = c.fn.up
	return func(e env, _ *output) error {
		e.frame.slots[slot] = &macro{def, e.scope, e.frame}
		return nil
	}
}

// call compiles f(…): a macro or function by name, a method, or any value that
// turns out to be callable.
func (c *compiler) call(n *callNode) expr {
	c.heavy, c.constructs = true, true
	switch fn := n.fn.(type) {
	case *nameNode:
		refs, _ := c.resolve(fn.name)
		op, known := functions[fn.name]
		switch {
		case len(refs) > 0:
			return c.callValue(n)
		case known:
			return c.operation(op, "the function "+fn.name, nil, n.args, n.pos)
		case provided[fn.name] != "":
			return c.callProvided(n, fn)
		}
		names := append(knownNames(functions), knownNames(provided)...)
		return c.fail(unknownName("function", fn.name, names), fn.pos)
	case *attrNode:
		return c.callMethod(n, fn)
	}
	return c.callValue(n)
}

// values compiles arguments whose parameters are known only at run time.
func (c *compiler) values(a arguments) func(e env) ([]any, []named[any], error) {
	pos := c.exprs(a.pos)
	kw := make([]named[expr], len(a.kw))
	for i, k := range a.kw {
		kw[i] = named[expr]{k.name, c.expr(k.val)}
	}
	return func(e env) ([]any, []named[any], error) {
		vals, err := evalAll(e, pos)
		if err != nil {
			return nil, nil, err
		}
		namedVals, err := evalNamed(e, kw)
		return vals, namedVals, err
	}
}

// evalAll evaluates arguments; a nil expression is one that was not given.
func evalAll(e env, xs []expr) ([]any, error) {
	if len(xs) == 0 {
		return nil, nil
	}
	out := make([]any, len(xs))
	for i, x := range xs {
		if x == nil {
			out[i] = unset
			continue
		}
		v, err := x(e)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func evalNamed(e env, kw []named[expr]) ([]named[any], error) {
	if len(kw) == 0 {
		return nil, nil
	}
	out := make([]named[any], len(kw))
	for i, k := range kw {
		v, err := k.val(e)
		if err != nil {
			return nil, err
		}
		out[i] = named[any]{k.name, v}
	}
	return out, nil
}

// callValue compiles the call of a value that is known only at run time.
func (c *compiler) callValue(n *callNode) expr {
	fn, vals, pos, name := c.expr(n.fn), c.values(n.args), n.pos, path(n.fn)
	return func(e env) (any, error) {
		f, err := fn(e)
		if err != nil {
			return nil, err
		}
		a, kw, err := vals(e)
		if err != nil {
			return nil, err
		}
		v, err := callAny(e, f, name, a, kw)
		if err != nil {
			return nil, at(err, pos)
		}
		return v, nil
	}
}

// callAny calls a value, or says why it cannot be called.
func callAny(e env, f any, name string, a []any, kw []named[any]) (any, error) {
	switch f := f.(type) {
	case callable:
		return f.call(e, a, kw)
	case Undefined:
		return nil, undefinedError(f)
	}
	return nil, typeError("'%s' is a %s and cannot be called", name, typeName(f))
}

// callMethod compiles x.name(…). A callable that x holds under the name comes
// before the method of that name, a plain value does not hide it.
func (c *compiler) callMethod(n *callNode, fn *attrNode) expr {
	of, vals, name, pos, full := c.expr(fn.of), c.values(n.args), fn.name, fn.pos, path(fn)
	return func(e env) (any, error) {
		self, err := of(e)
		if err != nil {
			return nil, err
		}
		a, kw, err := vals(e)
		if err != nil {
			return nil, err
		}
		if err := e.budget().step(1); err != nil {
			return nil, at(err, pos)
		}
		held, err := attribute(e.budget(), self, name, unset)
		if err != nil {
			return nil, at(err, pos)
		}
		var v any
		if _, ok := held.(callable); ok {
			v, err = callAny(e, held, full, a, kw)
		} else {
			v, err = callBuiltin(e, self, name, a, kw)
		}
		if err != nil {
			return nil, at(err, blame(err, fn.of, self, pos))
		}
		return v, nil
	}
}

// operation compiles a filter, a test or a function whose name is known.
func (c *compiler) operation(o *operation, what string, of node, a arguments, pos int) expr {
	var self expr
	if of != nil {
		self = c.expr(of)
	}
	c.heavy = true
	kw := make([]named[expr], len(a.kw))
	for i, k := range a.kw {
		kw[i] = named[expr]{k.name, c.expr(k.val)}
	}
	given, err := bind(o.signature, what, nil, c.exprs(a.pos), kw)
	if err != nil {
		return c.fail(err, pos)
	}
	places := o.places(a)
	fn := o.fn
	return func(e env) (any, error) {
		var subject any
		var err error
		if self != nil {
			if subject, err = self(e); err != nil {
				return nil, err
			}
		}
		var a args
		if a.vals, err = evalAll(e, given.vals); err != nil {
			return nil, err
		}
		if a.rest, err = evalAll(e, given.rest); err != nil {
			return nil, err
		}
		if a.kw, err = evalNamed(e, given.kw); err != nil {
			return nil, err
		}
		err = e.frame.budget.step(1)
		var v any
		if err == nil {
			v, err = fn(e, subject, a)
		}
		if err != nil {
			place := blame(err, of, subject, pos)
			for i, v := range append(a.vals, a.rest...) {
				if place == pos {
					place = blame(err, places[i], v, pos)
				}
			}
			return nil, at(err, place)
		}
		return v, nil
	}
}

// places are the nodes of the arguments, sorted as bind sorts their values.
func (o *operation) places(a arguments) []node {
	kw := make([]named[node], len(a.kw))
	for i, k := range a.kw {
		kw[i] = named[node]{k.name, k.val}
	}
	sorted, _ := bind(o.signature, "", nil, a.pos, kw)
	return append(sorted.vals, sorted.rest...)
}

// transparent are the filters that hand on what they are given, or a scalar: a
// value that went through them needs no search for internal types, however
// large it is.
var transparent = map[string]bool{
	"default": true, "d": true, "first": true, "last": true, "get": true, "attr": true, "safe": true,
	"int": true, "float": true, "bool": true, "string": true, "length": true, "count": true, "len": true,
	"lower": true, "upper": true, "trim": true, "replace": true, "join": true, "fromjson": true,
}

// filter compiles x | name. Names and arguments are checked now, so that a
// misspelt filter is found when a playbook is registered, not when it runs.
func (c *compiler) filter(n *filterNode) expr {
	o, ok := filters[n.name]
	if !ok {
		c.expr(n.of) // its errors come first
		return c.fail(unknownName("filter", n.name, knownNames(filters)), n.pos)
	}
	c.checkInner(n)
	c.constructs = c.constructs || !transparent[n.name]
	return c.operation(o, "the filter "+n.name, n.of, n.args, n.pos)
}

// checkInner reports an unknown filter or test that map, select and the like
// are given by a constant name.
func (c *compiler) checkInner(n *filterNode) {
	i, table, what := 0, tests, "test"
	switch n.name {
	case "map":
		table, what = filters, "filter"
	case "select", "reject":
	case "selectattr", "rejectattr":
		i = 1
	default:
		return
	}
	if len(n.args.pos) <= i {
		return
	}
	lit, ok := n.args.pos[i].(*literalNode)
	if !ok {
		return
	}
	name, ok := lit.val.(string)
	if _, known := table[name]; ok && !known {
		c.fail(unknownName(what, name, knownNames(table)), lit.pos)
	}
}

// test compiles x is name. The tests that conditions use most need no frame.
func (c *compiler) test(n *testNode) expr {
	o, ok := tests[n.name]
	if !ok {
		c.expr(n.of) // its errors come first
		return c.fail(unknownName("test", n.name, knownNames(tests)), n.pos)
	}
	negate := n.negate
	if quick, ok := quickTests[n.name]; ok && len(n.args.pos)+len(n.args.kw) == 0 {
		self := c.expr(n.of)
		return func(e env) (any, error) {
			v, err := self(e)
			if err != nil {
				return nil, err
			}
			return quick(v) != negate, nil
		}
	}
	test := c.operation(o, "the test "+n.name, n.of, n.args, n.pos)
	return func(e env) (any, error) {
		v, err := test(e)
		if err != nil {
			return nil, err
		}
		return Truthy(v) != negate, nil
	}
}
