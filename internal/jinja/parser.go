package jinja

// parser turns tokens into a tree. The first error is kept and moves the parser
// to the end of its tokens, so that every rule below runs out by itself.
type parser struct {
	src    string
	tokens []token
	i      int
	nested int
	err    error
}

func (p *parser) cur() token { return p.tokens[p.i] }

func (p *parser) next() token {
	t := p.tokens[p.i]
	if p.i < len(p.tokens)-1 {
		p.i++
	}
	return t
}

func (p *parser) peek() token { return p.tokens[min(p.i+1, len(p.tokens)-1)] }

func (p *parser) isOp(op string) bool {
	t := p.cur()
	return t.kind == tokOp && t.text == op
}

func (p *parser) isWord(w string) bool {
	t := p.cur()
	return t.kind == tokName && t.text == w
}

func (p *parser) skipOp(op string) bool {
	if !p.isOp(op) {
		return false
	}
	p.next()
	return true
}

func (p *parser) skipWord(w string) bool {
	if !p.isWord(w) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		p.unexpected("'" + op + "'")
	}
}

// word reads a name.
func (p *parser) word(what string) string {
	if p.cur().kind != tokName {
		p.unexpected(what)
		return ""
	}
	return p.next().text
}

// fail keeps the first error and moves to the end.
func (p *parser) fail(err *Error) {
	if p.err == nil {
		p.err = err
	}
	p.i = len(p.tokens) - 1
}

// unexpected reports the current token where something else should be.
func (p *parser) unexpected(wanted string) {
	t := p.cur()
	found := "'" + t.text + "'"
	switch t.kind {
	case tokEnd:
		found = "the end"
	case tokText:
		found = "text"
	}
	p.fail(syntaxError(t.pos, "expected %s, found %s", wanted, found))
}

// enter counts a level of recursion of the parser; leave ends it.
func (p *parser) enter() bool {
	p.nested++
	if p.nested > maxSyntaxDepth {
		p.tooDeep(p.cur().pos)
		return false
	}
	return true
}

func (p *parser) leave() { p.nested-- }

func (p *parser) tooDeep(pos int) {
	e := syntaxError(pos, "the template is nested too deeply")
	e.Kind = kindLimit
	p.fail(e)
}

// bounded refuses lists whose elements are looked for one by one, when they are
// longer than anyone writes.
func (p *parser) bounded(n int, what string) {
	if n > maxArguments {
		p.fail(limitAt(p.cur().pos, "there are more than %d %s", maxArguments, what))
	}
}

// spot places a node above its children. Chains of operators grow the tree
// without recursion of the parser, which is why depth is checked here too.
func (p *parser) spot(pos int, children ...node) spot {
	deep := 0
	for _, c := range children {
		if c != nil {
			deep = max(deep, c.depth())
		}
	}
	if deep++; deep > maxSyntaxDepth {
		p.tooDeep(pos)
	}
	return spot{pos, deep}
}

// bad stands for an expression that could not be read.
func (p *parser) bad() node { return &literalNode{} }

// expressionOrTuple reads a, b, c as a tuple.
func (p *parser) expressionOrTuple(item func() node) node {
	pos := p.cur().pos
	first := item()
	if !p.isOp(",") {
		return first
	}
	items := []node{first}
	for p.skipOp(",") && p.startsOperand() {
		items = append(items, item())
	}
	return &listNode{p.spot(pos, items...), items, true}
}

// startsOperand reports whether an expression can begin at the current token.
func (p *parser) startsOperand() bool {
	t := p.cur()
	switch t.kind {
	case tokName:
		return t.text != "if" && t.text != "else" && t.text != "in"
	case tokLiteral:
		return true
	case tokOp:
		switch t.text {
		case "(", "[", "{", "-", "+":
			return true
		}
	}
	return false
}

// expression reads an expression, with the inline if that binds loosest.
func (p *parser) expression() node {
	if !p.enter() {
		return p.bad()
	}
	defer p.leave()
	pos := p.cur().pos
	x := p.operators(powerOr)
	for p.skipWord("if") {
		test := p.operators(powerOr)
		var otherwise node
		if p.skipWord("else") {
			otherwise = p.expression()
		}
		x = &condNode{p.spot(pos, test, x, otherwise), test, x, otherwise}
	}
	return x
}

// plainExpression reads an expression that an inline if cannot follow.
func (p *parser) plainExpression() node { return p.operators(powerOr) }

// How tightly operators bind, from loosest to tightest.
const (
	powerNone = iota
	powerOr
	powerAnd
	powerNot
	powerCompare
	powerAdd
	powerConcat
	powerMul
	powerPow
)

// infix returns the operator at the current token and how tightly it binds.
func (p *parser) infix() (string, int) {
	t := p.cur()
	switch t.kind {
	case tokName:
		switch t.text {
		case "or":
			return "or", powerOr
		case "and":
			return "and", powerAnd
		case "in":
			return "in", powerCompare
		case "not":
			if n := p.peek(); n.kind == tokName && n.text == "in" {
				return "not in", powerCompare
			}
		}
	case tokOp:
		switch t.text {
		case "==", "!=", "<", "<=", ">", ">=":
			return t.text, powerCompare
		case "+", "-":
			return t.text, powerAdd
		case "~":
			return t.text, powerConcat
		case "*", "/", "//", "%":
			return t.text, powerMul
		case "**":
			return t.text, powerPow
		}
	}
	return "", powerNone
}

// operators reads operands joined by operators that bind at least this tightly.
func (p *parser) operators(least int) node {
	if !p.enter() {
		return p.bad()
	}
	defer p.leave()
	x := p.prefixed(least)
	for {
		op, power := p.infix()
		if power == powerNone || power < least {
			return x
		}
		pos := p.cur().pos
		switch power {
		case powerCompare:
			x = p.comparison(x)
			continue
		case powerConcat:
			x = p.concatenation(x)
			continue
		}
		p.next()
		y := p.operators(power + 1)
		if power <= powerAnd {
			x = &logicNode{p.spot(pos, x, y), op, x, y}
		} else {
			x = &binaryNode{p.spot(pos, x, y), op, x, y}
		}
	}
}

// comparison reads a chain of comparisons as one node, since a < b < c is not
// (a < b) < c.
func (p *parser) comparison(first node) node {
	pos := p.cur().pos
	var rest []comparison
	children := []node{first}
	for {
		op, power := p.infix()
		if power != powerCompare {
			return &compareNode{p.spot(pos, children...), first, rest}
		}
		at := p.next().pos
		if op == "not in" {
			p.next()
		}
		y := p.operators(powerCompare + 1)
		rest = append(rest, comparison{op, y, at})
		children = append(children, y)
	}
}

func (p *parser) concatenation(first node) node {
	pos := p.cur().pos
	parts := []node{first}
	for p.skipOp("~") {
		parts = append(parts, p.operators(powerConcat+1))
	}
	return &concatNode{p.spot(pos, parts...), parts}
}

// prefixed reads an operand, or not before one. Not binds looser than
// comparisons: not a == b is not (a == b).
func (p *parser) prefixed(least int) node {
	pos := p.cur().pos
	if least <= powerNot && p.skipWord("not") {
		x := p.operators(powerNot)
		return &unaryNode{p.spot(pos, x), "not", x}
	}
	return p.filters(p.signed())
}

// signed reads an operand with its signs. Filters and tests apply to the signed
// operand: -3 | abs is 3.
func (p *parser) signed() node {
	t := p.cur()
	if !p.isOp("-") && !p.isOp("+") {
		return p.postfix(p.primary())
	}
	if !p.enter() {
		return p.bad()
	}
	defer p.leave()
	p.next()
	x := p.signed()
	return &unaryNode{p.spot(t.pos, x), t.text, x}
}

// filters reads | name(args) and is name(args) after an operand.
func (p *parser) filters(x node) node {
	for {
		switch {
		case p.isOp("|"):
			p.next()
			x = p.filter(x)
		case p.isWord("is"):
			p.next()
			x = p.test(x)
		default:
			return x
		}
	}
}

// filter reads the name and arguments of a filter on x.
func (p *parser) filter(x node) node {
	pos := p.cur().pos
	name := p.dotted("a filter name")
	var args arguments
	children := []node{x}
	if p.isOp("(") {
		args = p.arguments()
		children = append(children, args.nodes()...)
	}
	return &filterNode{p.spot(pos, children...), x, name, args}
}

func (p *parser) dotted(what string) string {
	name := p.word(what)
	for p.skipOp(".") {
		name += "." + p.word(what)
	}
	return name
}

// test reads the name and arguments of a test on x. A single argument may
// stand without parentheses: x is divisibleby 3.
func (p *parser) test(x node) node {
	negate := p.skipWord("not")
	pos := p.cur().pos
	name := p.dotted("a test name")
	var args arguments
	switch {
	case p.isOp("("):
		args = p.arguments()
	case p.startsTestArgument():
		args.pos = []node{p.postfix(p.primary())}
	}
	children := append([]node{x}, args.nodes()...)
	return &testNode{p.spot(pos, children...), x, name, args, negate}
}

// startsTestArgument tells x is divisibleby 3 from x is defined and y.
func (p *parser) startsTestArgument() bool {
	t := p.cur()
	switch t.kind {
	case tokName:
		switch t.text {
		case "and", "or", "else", "if", "is", "in", "not", "recursive":
			return false
		}
		return true
	case tokLiteral:
		return true
	}
	return p.isOp("[") || p.isOp("{")
}
