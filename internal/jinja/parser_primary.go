package jinja

import "strings"

// primary reads a literal, a name or something in brackets.
func (p *parser) primary() node {
	t := p.cur()
	switch t.kind {
	case tokName:
		return p.nameOrConstant()
	case tokLiteral:
		return p.literal()
	case tokOp:
		switch t.text {
		case "(":
			return p.parenthesis()
		case "[":
			return p.list()
		case "{":
			return p.dict()
		}
	}
	p.unexpected("an expression")
	return p.bad()
}

func (p *parser) nameOrConstant() node {
	t := p.cur()
	switch t.text {
	case "true", "True":
		p.next()
		return &literalNode{p.spot(t.pos), true}
	case "false", "False":
		p.next()
		return &literalNode{p.spot(t.pos), false}
	case "none", "None":
		p.next()
		return &literalNode{p.spot(t.pos), nil}
	case "and", "or", "not", "in", "is", "if", "else":
		p.unexpected("an expression")
		return p.bad()
	}
	p.next()
	return &nameNode{p.spot(t.pos), t.text}
}

// literal reads a number or a string; strings in a row are one.
func (p *parser) literal() node {
	t := p.next()
	s, isString := t.val.(string)
	if !isString {
		return &literalNode{p.spot(t.pos), t.val}
	}
	parts := []string{s}
	for p.cur().kind == tokLiteral {
		more, ok := p.cur().val.(string)
		if !ok {
			break
		}
		parts = append(parts, more)
		p.next()
	}
	return &literalNode{p.spot(t.pos), strings.Join(parts, "")}
}

// parenthesis reads (x), a tuple or the empty tuple.
func (p *parser) parenthesis() node {
	pos := p.next().pos
	if p.skipOp(")") {
		return &listNode{p.spot(pos), nil, true}
	}
	x := p.expressionOrTuple(p.expression)
	p.expectOp(")")
	return x
}

func (p *parser) list() node {
	pos := p.next().pos
	var items []node
	for !p.isOp("]") && p.err == nil {
		items = append(items, p.expression())
		if !p.skipOp(",") {
			break
		}
	}
	p.expectOp("]")
	return &listNode{p.spot(pos, items...), items, false}
}

func (p *parser) dict() node {
	pos := p.next().pos
	var keys, vals []node
	for !p.isOp("}") && p.err == nil {
		keys = append(keys, p.expression())
		p.expectOp(":")
		vals = append(vals, p.expression())
		if !p.skipOp(",") {
			break
		}
	}
	p.expectOp("}")
	return &dictNode{p.spot(pos, append(append([]node{}, keys...), vals...)...), keys, vals}
}

// postfix reads the attributes, subscripts and calls after an operand.
func (p *parser) postfix(x node) node {
	for {
		pos := p.cur().pos
		switch {
		case p.skipOp("."):
			x = p.attribute(x)
		case p.skipOp("["):
			x = p.subscript(x, pos)
			p.expectOp("]")
		case p.isOp("("):
			args := p.arguments()
			children := append([]node{x}, args.nodes()...)
			x = &callNode{p.spot(x.where(), children...), x, args}
		default:
			return x
		}
	}
}

// attribute reads the name, or the number of an element, after a point.
func (p *parser) attribute(x node) node {
	t := p.cur()
	_, isInt := t.val.(int64)
	if t.kind != tokName && !isInt {
		p.unexpected("an attribute name")
		return x
	}
	p.next()
	if isInt {
		key := &literalNode{p.spot(t.pos), t.val}
		return &indexNode{p.spot(t.pos, x), x, key}
	}
	return &attrNode{p.spot(t.pos, x), x, t.text}
}

// subscript reads the inside of x[…]. A constant string is the same as an
// attribute and becomes one.
func (p *parser) subscript(x node, pos int) node {
	var parts [3]node
	n := 0
	for n < 2 {
		if !p.isOp(":") && !p.isOp("]") {
			parts[n] = p.expressionOrTuple(p.expression)
		}
		if !p.skipOp(":") {
			break
		}
		n++
	}
	if n == 2 && !p.isOp("]") {
		parts[2] = p.expression()
	}
	if n > 0 {
		return &sliceNode{p.spot(pos, x, parts[0], parts[1], parts[2]), x, parts[0], parts[1], parts[2]}
	}
	if parts[0] == nil {
		p.unexpected("an index")
		return x
	}
	if key, ok := parts[0].(*literalNode); ok {
		if name, ok := key.val.(string); ok {
			return &attrNode{p.spot(pos, x), x, name}
		}
	}
	return &indexNode{p.spot(pos, x, parts[0]), x, parts[0]}
}

// arguments reads (a, b, name=c).
func (p *parser) arguments() arguments {
	var args arguments
	p.expectOp("(")
	for !p.isOp(")") && p.err == nil {
		if p.isOp("*") || p.isOp("**") {
			p.fail(syntaxError(p.cur().pos, "arguments cannot be unpacked with '%s'", p.cur().text))
			break
		}
		p.argument(&args)
		p.bounded(len(args.pos)+len(args.kw), "arguments")
		if !p.skipOp(",") {
			break
		}
	}
	p.expectOp(")")
	return args
}

// argument reads one argument, by position or by name.
func (p *parser) argument(args *arguments) {
	t := p.cur()
	if n := p.peek(); t.kind == tokName && n.kind == tokOp && n.text == "=" {
		p.next()
		p.next()
		for _, k := range args.kw {
			if k.name == t.text {
				p.fail(syntaxError(t.pos, "the argument '%s' is given twice", t.text))
			}
		}
		args.kw = append(args.kw, keyword{t.text, p.expression(), t.pos})
		return
	}
	if len(args.kw) > 0 {
		p.fail(syntaxError(t.pos, "an argument without a name cannot follow one with a name"))
		return
	}
	args.pos = append(args.pos, p.expression())
}

// nodes returns all argument expressions.
func (a arguments) nodes() []node {
	out := append([]node{}, a.pos...)
	for _, k := range a.kw {
		out = append(out, k.val)
	}
	return out
}
