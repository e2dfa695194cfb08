package jinja

// env is what a compiled expression runs in. It is passed by value: three words
// in registers, so that simple expressions allocate nothing.
type env struct {
	scope Scope
	frame *frame // nil for a template that needs no locals and no budget
}

// budget is nil without a frame, which charges nothing.
func (e env) budget() *budget {
	if e.frame == nil {
		return nil
	}
	return e.frame.budget
}

// frame holds the locals of the template or of one call of a macro.
type frame struct {
	up     *frame // the frame in which the macro was defined
	slots  []any
	budget *budget
}

func newFrame(up *frame, slots int, b *budget) *frame {
	return &frame{up: up, slots: newSlots(slots), budget: b}
}

// newSlots makes slots that are all unset. Nil would not do for that: it is
// none, a value a local can have.
func newSlots(n int) []any {
	if n == 0 {
		return nil
	}
	slots := make([]any, n)
	for i := range slots {
		slots[i] = unset
	}
	return slots
}

// expr is a compiled expression.
type expr func(e env) (any, error)

// compiler turns the tree into closures. The first error is kept; what is
// compiled after it is never run.
type compiler struct {
	block *block
	fn    *fnScope
	err   error

	// done and doneExpr are an expression that is compiled already.
	done     node
	doneExpr expr

	// heavy is set when something needs a frame.
	heavy bool
	// provided are the functions it calls that the scope supplies.
	provided []string
	// constructs is set when something may build values of internal types.
	constructs bool
}

// fail keeps the first error and returns something to go on with.
func (c *compiler) fail(err *Error, pos int) expr {
	if c.err == nil {
		c.err = at(err, pos)
	}
	return constant(nil)
}

func constant(v any) expr {
	return func(env) (any, error) { return v, nil }
}

// expr compiles an expression.
func (c *compiler) expr(n node) expr {
	if n == c.done && n != nil {
		return c.doneExpr
	}
	if v, ok := fold(n); ok {
		return constant(v)
	}
	switch n := n.(type) {
	case *nameNode:
		return c.name(n)
	case *attrNode:
		return c.attr(n)
	case *indexNode:
		return c.index(n)
	case *sliceNode:
		return c.slice(n)
	case *callNode:
		return c.call(n)
	case *filterNode:
		return c.filter(n)
	case *testNode:
		return c.test(n)
	case *unaryNode:
		return c.unary(n)
	case *binaryNode:
		return c.binary(n)
	case *logicNode:
		return c.logic(n)
	case *concatNode:
		return c.concat(n)
	case *compareNode:
		return c.compare(n)
	case *condNode:
		return c.cond(n)
	case *listNode:
		return c.list(n)
	case *dictNode:
		return c.dict(n)
	case *capturedNode:
		return c.captured()
	}
	return c.fail(typeError("unknown expression"), n.where())
}

func (c *compiler) exprs(ns []node) []expr {
	out := make([]expr, len(ns))
	for i, n := range ns {
		out[i] = c.expr(n)
	}
	return out
}

// attr compiles x.name. What a missing attribute evaluates to is made here, once,
// so that looking for it allocates nothing.
func (c *compiler) attr(n *attrNode) expr {
	of, name, pos := c.expr(n.of), n.name, n.pos
	var missing any = Undefined{Name: path(n)}
	return func(e env) (any, error) {
		v, err := of(e)
		if err != nil {
			return nil, err
		}
		if v, err = attribute(e.budget(), v, name, missing); err != nil {
			return nil, at(err, pos)
		}
		return v, nil
	}
}

func (c *compiler) index(n *indexNode) expr {
	of, key, pos := c.expr(n.of), c.expr(n.key), n.pos
	var missing any = Undefined{Name: path(n)}
	return func(e env) (any, error) {
		v, err := of(e)
		if err != nil {
			return nil, err
		}
		k, err := key(e)
		if err != nil {
			return nil, err
		}
		if v, err = subscript(e.budget(), v, k, missing); err != nil {
			return nil, at(err, pos)
		}
		return v, nil
	}
}

// slice compiles x[a:b:c]; an absent part is a constant none.
func (c *compiler) slice(n *sliceNode) expr {
	c.heavy = true
	of, pos := c.expr(n.of), n.pos
	var parts [3]expr
	for i, part := range [...]node{n.start, n.stop, n.step} {
		parts[i] = constant(nil)
		if part != nil {
			parts[i] = c.expr(part)
		}
	}
	return func(e env) (any, error) {
		v, err := of(e)
		if err != nil {
			return nil, err
		}
		var bounds [3]any
		for i, part := range parts {
			if bounds[i], err = part(e); err != nil {
				return nil, err
			}
		}
		if v, err = slice(e.budget(), v, sliceBounds{bounds[0], bounds[1], bounds[2]}); err != nil {
			return nil, at(err, pos)
		}
		return v, nil
	}
}

// unary compiles not, minus and plus. Plus leaves numbers alone, but refuses what
// minus would refuse.
func (c *compiler) unary(n *unaryNode) expr {
	x, pos := c.expr(n.x), n.pos
	if n.op == "not" {
		return func(e env) (any, error) {
			v, err := x(e)
			if err != nil {
				return nil, err
			}
			return !Truthy(v), nil
		}
	}
	op := n.op
	return func(e env) (any, error) {
		v, err := x(e)
		if err != nil {
			return nil, err
		}
		signed, err := signed(op, v)
		if err != nil {
			return nil, at(err, blame(err, n.x, v, pos))
		}
		return signed, nil
	}
}

func (c *compiler) binary(n *binaryNode) expr {
	c.heavy = true // text and lists can grow
	x, y, op, pos := c.expr(n.x), c.expr(n.y), n.op, n.pos
	return func(e env) (any, error) {
		l, err := x(e)
		if err != nil {
			return nil, err
		}
		r, err := y(e)
		if err != nil {
			return nil, err
		}
		v, err := binary(e.budget(), op, l, r)
		if err != nil {
			return nil, at(err, culprit(n.x, l, n.y, r, pos))
		}
		return v, nil
	}
}

// logic compiles and and or, which return one of their operands.
func (c *compiler) logic(n *logicNode) expr {
	x, y, stop := c.expr(n.x), c.expr(n.y), n.op == "or"
	return func(e env) (any, error) {
		v, err := x(e)
		if err != nil || Truthy(v) == stop {
			return v, err
		}
		return y(e)
	}
}

// concat compiles a ~ b ~ c, growing one buffer instead of a text per operator.
func (c *compiler) concat(n *concatNode) expr {
	c.heavy = true
	parts, pos := c.exprs(n.parts), n.pos
	return func(e env) (any, error) {
		var out []byte
		for _, part := range parts {
			v, err := part(e)
			if err != nil {
				return nil, err
			}
			size := len(out)
			if out, err = appendText(out, e.budget(), v); err != nil {
				return nil, at(err, pos)
			}
			if err := e.budget().grow(len(out) - size); err != nil {
				return nil, at(err, pos)
			}
		}
		return string(out), nil
	}
}

// compare compiles comparisons. In a chain every operand is evaluated at most
// once, and the first comparison that fails ends it.
func (c *compiler) compare(n *compareNode) expr {
	first := c.expr(n.first)
	if len(n.rest) == 1 {
		return c.comparePair(n, first)
	}
	rest := n.rest
	ys := make([]expr, len(rest))
	ops := make([]comparator, len(rest))
	for i := range rest {
		ys[i], ops[i] = c.expr(rest[i].y), comparators[rest[i].op]
	}
	return func(e env) (any, error) {
		l, err := first(e)
		if err != nil {
			return nil, err
		}
		for i, y := range ys {
			r, err := y(e)
			if err != nil {
				return nil, err
			}
			holds, err := ops[i](e.budget(), l, r)
			if err != nil {
				x := n.first
				if i > 0 {
					x = rest[i-1].y
				}
				return nil, at(err, culprit(x, l, rest[i].y, r, rest[i].pos))
			}
			if !holds {
				return false, nil
			}
			l = r
		}
		return true, nil
	}
}

// comparePair compiles a comparison of two operands, which nearly all are.
func (c *compiler) comparePair(n *compareNode, x expr) expr {
	y, holds := c.expr(n.rest[0].y), comparators[n.rest[0].op]
	return func(e env) (any, error) {
		l, err := x(e)
		if err != nil {
			return nil, err
		}
		r, err := y(e)
		if err != nil {
			return nil, err
		}
		ok, err := holds(e.budget(), l, r)
		if err != nil {
			return nil, at(err, culprit(n.first, l, n.rest[0].y, r, n.pos))
		}
		return ok, nil
	}
}

// cond compiles the inline if; without an else it may be undefined.
func (c *compiler) cond(n *condNode) expr {
	test, then := c.expr(n.test), c.expr(n.then)
	otherwise := constant(Undefined{Name: "the missing else branch"})
	if n.otherwise != nil {
		otherwise = c.expr(n.otherwise)
	}
	return func(e env) (any, error) {
		v, err := test(e)
		switch {
		case err != nil:
			return nil, err
		case Truthy(v):
			return then(e)
		}
		return otherwise(e)
	}
}

func (c *compiler) list(n *listNode) expr {
	items, isTuple, pos := c.exprs(n.items), n.isTuple, n.pos
	c.constructs = true
	return func(e env) (any, error) {
		if err := e.budget().list(len(items)); err != nil {
			return nil, at(err, pos)
		}
		list := make([]any, len(items))
		for i, item := range items {
			v, err := item(e)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		if isTuple {
			return tuple(list), nil
		}
		return list, nil
	}
}

func (c *compiler) dict(n *dictNode) expr {
	keys, vals, pos := c.exprs(n.keys), c.exprs(n.vals), n.pos
	c.constructs = true
	return func(e env) (any, error) {
		if err := e.budget().list(2 * len(keys)); err != nil {
			return nil, at(err, pos)
		}
		d := NewDict(len(keys))
		for i := range keys {
			k, err := keys[i](e)
			if err != nil {
				return nil, err
			}
			v, err := vals[i](e)
			if err != nil {
				return nil, err
			}
			name, err := keyText(k)
			if err != nil {
				return nil, at(err, start(n.keys[i]))
			}
			d.Set(name, v)
		}
		return d, nil
	}
}
