package jinja

import "slices"

// action is a compiled statement.
type action func(e env, out *output) error

// output collects the text of a template or of a captured part of it.
type output struct {
	buf    []byte
	budget *budget
	// inner is set for captured text, which counts as a value that is built.
	inner bool
}

// check is called after every write. The excess of a single write is bounded,
// because no value is larger than the limit either.
func (o *output) check(added int) error {
	if len(o.buf) > o.budget.limits.Bytes {
		return limitError("the template prints more than %d bytes", o.budget.limits.Bytes)
	}
	if o.inner {
		return o.budget.grow(added)
	}
	return nil
}

// body compiles statements. The names they set must be declared already.
func (c *compiler) body(stmts []statement) action {
	actions := make([]action, len(stmts))
	for i, s := range stmts {
		actions[i] = c.statement(s)
	}
	work := bodyWeight(stmts)
	return func(e env, out *output) error {
		if err := e.frame.budget.step(work); err != nil {
			return err
		}
		for _, a := range actions {
			if err := a(e, out); err != nil {
				return err
			}
		}
		return nil
	}
}

func (c *compiler) statement(s statement) action {
	switch s := s.(type) {
	case *textStmt:
		return textAction(s.text)
	case *outputStmt:
		return c.output(s)
	case *ifStmt:
		return c.ifElse(s)
	case *forStmt:
		return c.forLoop(s)
	case *setStmt:
		return c.set(s)
	case *captureStmt:
		return c.capture(s)
	case *withStmt:
		return c.with(s)
	case *macroStmt:
		return c.macro(s)
	}
	c.fail(typeError("unknown statement"), 0)
	return nil
}

func textAction(text string) action {
	return func(_ env, out *output) error {
		out.buf = append(out.buf, text...)
		return out.check(len(text))
	}
}

// output compiles {{ x }}, printing straight into the output.
func (c *compiler) output(s *outputStmt) action {
	x, pos := c.expr(s.x), s.x.where()
	return func(e env, out *output) error {
		v, err := x(e)
		if err != nil {
			return err
		}
		size := len(out.buf)
		buf, err := appendText(out.buf, out.budget, v)
		if err != nil {
			return at(err, pos)
		}
		out.buf = buf
		if err := out.check(len(buf) - size); err != nil {
			return at(err, pos)
		}
		return nil
	}
}

// ifElse compiles {% if %}. Its bodies share the block around it, so that what
// they set is seen after it.
func (c *compiler) ifElse(s *ifStmt) action {
	tests := make([]expr, len(s.branches))
	bodies := make([]action, len(s.branches))
	for i, b := range s.branches {
		tests[i], bodies[i] = c.expr(b.test), c.body(b.body)
	}
	otherwise := c.body(s.otherwise)
	return func(e env, out *output) error {
		for i, test := range tests {
			v, err := test(e)
			if err != nil {
				return err
			}
			if Truthy(v) {
				return bodies[i](e, out)
			}
		}
		return otherwise(e, out)
	}
}

// assign compiles the writing of a target. Its names are declared in the
// current block.
func (c *compiler) assign(t target) func(e env, v any) error {
	switch {
	case t.attr != "":
		return c.assignAttr(t)
	case t.parts == nil:
		slot := c.declare(t.name, false)
		return func(e env, v any) error {
			e.frame.slots[slot] = v
			return nil
		}
	}
	parts := make([]func(env, any) error, len(t.parts))
	for i, p := range t.parts {
		parts[i] = c.assign(p)
	}
	return func(e env, v any) error {
		items, err := elements(e.budget(), v)
		if err != nil {
			return at(err, t.pos)
		}
		if len(items) != len(parts) {
			return at(valueError("cannot unpack %d values into %d names", len(items), len(parts)), t.pos)
		}
		for i, assign := range parts {
			if err := assign(e, items[i]); err != nil {
				return err
			}
		}
		return nil
	}
}

// assignAttr compiles the writing of an attribute of a namespace.
func (c *compiler) assignAttr(t target) func(e env, v any) error {
	of := c.name(&nameNode{spot{pos: t.pos}, t.name})
	return func(e env, v any) error {
		x, err := of(e)
		if err != nil {
			return err
		}
		ns, ok := x.(*namespace)
		if !ok {
			return at(typeError("cannot set an attribute of %s", typeName(x)).
				withRemedy("only a namespace(…) can be changed: {%% set %s = namespace() %%}", t.name), t.pos)
		}
		ns.vars.Set(t.attr, v)
		return nil
	}
}

// set compiles {% set x = v %}. The value is compiled before the target, so
// that x in {% set x = x + 1 %} is still the outer one.
func (c *compiler) set(s *setStmt) action {
	val, assign := c.expr(s.val), c.assign(s.target)
	return func(e env, _ *output) error {
		v, err := val(e)
		if err != nil {
			return err
		}
		return assign(e, v)
	}
}

// capture compiles {% set name %}…{% endset %} and {% filter … %}.
func (c *compiler) capture(s *captureStmt) action {
	slot := c.newSlot()
	c.open().capture = slot
	locals := c.declareAll(s.body)
	body := c.body(s.body)
	chain, pos := c.expr(s.chain), s.chain.where()
	c.shut()
	var assign func(env, any) error
	if s.target.name != "" {
		assign = c.assign(s.target)
	}
	return func(e env, out *output) error {
		clearSlots(e.frame, locals)
		inner := &output{budget: out.budget, inner: true}
		if err := body(e, inner); err != nil {
			return err
		}
		e.frame.slots[slot] = string(inner.buf)
		v, err := chain(e)
		if err != nil {
			return err
		}
		if assign != nil {
			return assign(e, v)
		}
		size := len(out.buf)
		if out.buf, err = appendText(out.buf, out.budget, v); err != nil {
			return at(err, pos)
		}
		if err := out.check(len(out.buf) - size); err != nil {
			return at(err, pos)
		}
		return nil
	}
}

// clearSlots makes locals unset when their block is entered again.
func clearSlots(f *frame, slots []int) {
	for _, s := range slots {
		f.slots[s] = unset
	}
}

// with compiles {% with a = 1, b = 2 %}; the values do not see the names.
func (c *compiler) with(s *withStmt) action {
	vals := c.exprs(s.vals)
	c.open()
	slots := make([]int, len(s.names))
	for i, name := range s.names {
		slots[i] = c.declare(name, true)
	}
	locals := c.declareAll(s.body)
	locals = slices.DeleteFunc(locals, func(l int) bool { return slices.Contains(slots, l) })
	body := c.body(s.body)
	c.shut()
	return func(e env, out *output) error {
		given := make([]any, len(vals))
		for i, val := range vals {
			v, err := val(e)
			if err != nil {
				return err
			}
			given[i] = v
		}
		clearSlots(e.frame, locals)
		for i, slot := range slots {
			e.frame.slots[slot] = given[i]
		}
		return body(e, out)
	}
}
