package jinja

import (
	"slices"
	"strings"
)

// tags are the names that can follow {%, with the reading of each.
var tags map[string]func(*parser, token) statement

func init() {
	tags = map[string]func(*parser, token) statement{
		"if":     (*parser).ifTag,
		"for":    (*parser).forTag,
		"set":    (*parser).setTag,
		"with":   (*parser).withTag,
		"macro":  (*parser).macroTag,
		"filter": (*parser).filterTag,
	}
}

// parse reads a whole template.
func parse(src string) ([]statement, error) {
	tokens, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, tokens: tokens}
	body := p.body()
	if p.err == nil && p.cur().kind != tokEnd {
		p.strayTag()
	}
	return body, p.err
}

// parseExpression reads a source that is one bare expression.
func parseExpression(src string) (node, error) {
	tokens, err := lexExpression(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, tokens: tokens}
	x := p.expressionOrTuple(p.expression)
	if p.err == nil && p.cur().kind != tokEnd {
		p.unexpected("the end of the condition")
	}
	return x, p.err
}

// body reads statements up to a tag that none of them begins with: the caller
// finds the parser at {% and decides whether that tag is its own.
func (p *parser) body() []statement {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	var out []statement
	for {
		t := p.cur()
		switch t.kind {
		case tokText:
			p.next()
			out = append(out, &textStmt{t.text})
		case tokVarBegin:
			p.next()
			x := p.expressionOrTuple(p.expression)
			p.close(tokVarEnd, "'}}'")
			out = append(out, &outputStmt{x})
		case tokBlockBegin:
			read, ok := tags[p.peek().text]
			if !ok || p.peek().kind != tokName {
				return out
			}
			p.next()
			p.next()
			out = append(out, read(p, t))
		default:
			return out
		}
	}
}

func (p *parser) close(kind tokenKind, what string) {
	if p.cur().kind != kind {
		p.unexpected(what)
		return
	}
	p.next()
}

func (p *parser) endOfTag() { p.close(tokBlockEnd, "'%}'") }

// tagIs reports whether the parser is at a tag with one of these names.
func (p *parser) tagIs(names ...string) bool {
	return p.cur().kind == tokBlockBegin && p.peek().kind == tokName && slices.Contains(names, p.peek().text)
}

// skipTag moves behind the {% and the name of a tag.
func (p *parser) skipTag() {
	p.next()
	p.next()
}

// endTag reads {% name %}, which must close the tag that was opened at open.
func (p *parser) endTag(name string, open token) {
	if p.err != nil {
		return
	}
	if !p.tagIs(name) {
		if p.cur().kind == tokBlockBegin && !strings.HasPrefix(p.peek().text, "e") {
			p.strayTag() // more likely a misspelt tag than a missing end
			return
		}
		p.fail(syntaxError(open.pos, "'%s' is not closed with {%% %s %%}", strings.TrimPrefix(name, "end"), name))
		return
	}
	p.skipTag()
	if name == "endmacro" && p.cur().kind == tokName {
		p.next() // the name of the macro may be repeated
	}
	p.endOfTag()
}

// strayTag reports a tag that does not exist, is not offered or has no beginning.
func (p *parser) strayTag() {
	t := p.peek()
	name := t.text
	var e *Error
	switch {
	case t.kind != tokName:
		e = syntaxError(t.pos, "expected a tag name after {%%")
	case refusedTags[name] != "":
		e = syntaxError(t.pos, "'%s' is not available in playbook templates", name).withRemedy("%s", refusedTags[name])
	case strings.HasPrefix(name, "end") || name == "else" || name == "elif":
		e = syntaxError(t.pos, "'%s' has no tag that it belongs to", name)
	default:
		e = syntaxError(t.pos, "unknown tag '%s'", name)
		known := []string{"elif", "else", "endfilter", "endfor", "endif", "endmacro", "endset", "endwith", "filter", "for", "if", "macro", "raw", "set", "with"}
		if near := nearest(name, known); near != "" {
			e.Remedy = "did you mean '" + near + "'?"
		}
	}
	p.fail(e)
}

func (p *parser) ifTag(open token) statement {
	s := &ifStmt{}
	for {
		test := p.expressionOrTuple(p.expression)
		p.endOfTag()
		s.branches = append(s.branches, branch{test, p.body()})
		if !p.tagIs("elif") {
			break
		}
		p.skipTag()
	}
	s.otherwise = p.elseBody()
	p.endTag("endif", open)
	return s
}

// elseBody reads {% else %} and what follows it, if it is there.
func (p *parser) elseBody() []statement {
	if !p.tagIs("else") {
		return nil
	}
	p.skipTag()
	p.endOfTag()
	return p.body()
}

func (p *parser) forTag(open token) statement {
	s := &forStmt{pos: open.pos, target: p.target(false)}
	if !p.skipWord("in") {
		p.unexpected("'in'")
	}
	s.iter = p.expressionOrTuple(p.plainExpression)
	if p.skipWord("if") {
		s.filter = p.expression()
	}
	if p.isWord("recursive") {
		p.fail(syntaxError(p.cur().pos, "recursive loops are not available").
			withRemedy("write a macro that calls itself"))
	}
	p.endOfTag()
	s.body = p.body()
	s.otherwise = p.elseBody()
	p.endTag("endfor", open)
	return s
}

// target reads what a value is assigned to; only set may write an attribute.
func (p *parser) target(attributes bool) target {
	pos := p.cur().pos
	first := p.oneTarget(attributes)
	if !p.isOp(",") {
		return first
	}
	parts := []target{first}
	for p.skipOp(",") && (p.cur().kind == tokName && !p.isWord("in") || p.isOp("(")) {
		parts = append(parts, p.oneTarget(attributes))
	}
	return target{pos: pos, parts: parts}
}

func (p *parser) oneTarget(attributes bool) target {
	t := p.cur()
	if p.skipOp("(") {
		if !p.enter() {
			return target{}
		}
		defer p.leave()
		inner := p.target(attributes)
		p.expectOp(")")
		return inner
	}
	switch t.text {
	case "true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else":
		if t.kind == tokName {
			p.fail(syntaxError(t.pos, "cannot assign to '%s'", t.text))
		}
	}
	out := target{pos: t.pos, name: p.word("a name")}
	if attributes && p.skipOp(".") {
		out.attr = p.word("an attribute name")
	}
	return out
}

// setTag reads both forms: with a value, and around the text to capture.
func (p *parser) setTag(open token) statement {
	to := p.target(true)
	if p.skipOp("=") {
		s := &setStmt{to, p.expressionOrTuple(p.expression)}
		p.endOfTag()
		return s
	}
	if to.parts != nil {
		p.unexpected("'='")
	}
	s := &captureStmt{target: to, chain: p.chain(false)}
	p.endOfTag()
	s.body = p.body()
	p.endTag("endset", open)
	return s
}

// chain reads the filters of a tag that captures text.
func (p *parser) chain(first bool) node {
	var x node = &capturedNode{p.spot(p.cur().pos)}
	if first {
		x = p.filter(x)
	}
	for p.skipOp("|") {
		x = p.filter(x)
	}
	return x
}

func (p *parser) filterTag(open token) statement {
	s := &captureStmt{chain: p.chain(true)}
	p.endOfTag()
	s.body = p.body()
	p.endTag("endfilter", open)
	return s
}

func (p *parser) withTag(open token) statement {
	s := &withStmt{}
	for p.cur().kind == tokName {
		s.names = append(s.names, p.word("a name"))
		p.expectOp("=")
		s.vals = append(s.vals, p.expression())
		p.bounded(len(s.names), "names")
		if !p.skipOp(",") {
			break
		}
	}
	p.endOfTag()
	s.body = p.body()
	p.endTag("endwith", open)
	return s
}

func (p *parser) macroTag(open token) statement {
	s := &macroStmt{pos: open.pos, name: p.word("the name of the macro")}
	p.expectOp("(")
	for p.cur().kind == tokName {
		if slices.Contains(s.params, p.cur().text) {
			p.fail(syntaxError(p.cur().pos, "the parameter '%s' is given twice", p.cur().text))
		}
		s.params = append(s.params, p.word("a parameter"))
		var fallback node
		if p.skipOp("=") {
			fallback = p.expression()
		}
		s.defaults = append(s.defaults, fallback)
		p.bounded(len(s.params), "parameters")
		if !p.skipOp(",") {
			break
		}
	}
	p.expectOp(")")
	p.endOfTag()
	s.body = p.body()
	p.endTag("endmacro", open)
	return s
}
