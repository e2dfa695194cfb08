package jinja

import (
	"slices"
	"strings"
)

// Template is a compiled template. It is immutable and safe for concurrent use.
type Template struct {
	src    string
	static bool
	lone   expr   // of a template that is one expression
	place  int    // where lone begins
	body   action // of every other template that is not static
	slots  int
	limits Limits
	free   [][]string
	calls  []string

	heavy      bool // lone needs a frame
	constructs bool // lone may evaluate to internal types
}

// Compile compiles a text template. A source without template syntax is valid
// and stands for itself. The error is an *Error.
func Compile(src string) (*Template, error) {
	t := &Template{src: src, limits: DefaultLimits}
	if !HasSyntax(src) {
		t.static = true
		return t, nil
	}
	if len(src) > maxSource {
		return nil, limitError("the template is longer than %d bytes", maxSource)
	}
	stmts, err := parse(src)
	if err != nil {
		return nil, locate(err, src)
	}
	return t.build(stmts, loneExpression(src, stmts))
}

// CompileCondition compiles a condition: a bare expression, or a template. The
// sources x > 3 and {{ x > 3 }} are the same condition. The error is an *Error.
func CompileCondition(src string) (*Template, error) {
	if HasSyntax(src) {
		return Compile(src)
	}
	if strings.TrimSpace(src) == "" {
		return nil, newError(kindSyntax, "the condition is empty").withRemedy("leave it out, or write true")
	}
	if len(src) > maxSource {
		return nil, limitError("the condition is longer than %d bytes", maxSource)
	}
	x, err := parseExpression(src)
	if err != nil {
		return nil, locate(err, src)
	}
	t := &Template{src: src, limits: DefaultLimits}
	return t.build([]statement{&outputStmt{x}}, x)
}

// loneExpression returns the expression of a template that is nothing else.
func loneExpression(src string, stmts []statement) node {
	trimmed := strings.TrimSpace(src)
	if !strings.HasPrefix(trimmed, "{{") || !strings.HasSuffix(trimmed, "}}") {
		return nil
	}
	var lone node
	for _, s := range stmts {
		switch s := s.(type) {
		case *textStmt:
			if strings.TrimSpace(s.text) != "" {
				return nil
			}
		case *outputStmt:
			if lone != nil {
				return nil
			}
			lone = s.x
		default:
			return nil
		}
	}
	return lone
}

// build compiles statements. A lone expression is compiled first, to learn what
// evaluating it on its own takes.
func (t *Template) build(stmts []statement, lone node) (*Template, error) {
	c := &compiler{fn: &fnScope{}}
	c.open()
	if lone != nil {
		t.lone, t.place = c.expr(lone), start(lone)
		t.heavy, t.constructs = c.heavy, c.constructs
		c.done, c.doneExpr = lone, t.lone
	}
	c.declareAll(stmts)
	t.body = c.body(stmts)
	if c.err != nil {
		return nil, locate(c.err, t.src)
	}
	t.slots = c.fn.slots
	t.free = freePaths(stmts)
	slices.Sort(c.provided)
	t.calls = slices.Compact(c.provided)
	return t, nil
}

// WithLimits returns the same template under other limits.
func (t *Template) WithLimits(l Limits) *Template {
	other := *t
	other.limits = l.withDefaults()
	return &other
}

// Source returns what the template was compiled from.
func (t *Template) Source() string { return t.src }

// Static reports whether the source has no template syntax, so that the value
// is the source itself.
func (t *Template) Static() bool { return t.static }

// Lone reports whether the template is exactly one expression, but for space
// around it.
func (t *Template) Lone() bool { return t.lone != nil }

// Free returns the paths of the names that the template reads from its scope,
// such as [fetch rows] for fetch.rows, in the order of their first appearance.
// A path ends where an index is not a constant. The caller must not modify it.
func (t *Template) Free() [][]string { return t.free }

// Mentions reports whether the template reads a name from its scope.
func (t *Template) Mentions(root string) bool {
	return slices.ContainsFunc(t.free, func(p []string) bool { return p[0] == root })
}

// Calls returns the names of the functions, sorted, that the template calls and
// that its scope must supply as a Func. The caller must not modify it.
func (t *Template) Calls() []string { return t.calls }

// run is what one evaluation needs beyond its scope, allocated at once.
type run struct {
	frame  frame
	budget budget
	out    output
}

func (t *Template) start() *run {
	r := &run{budget: newBudget(t.limits)}
	r.frame = frame{slots: newSlots(t.slots), budget: &r.budget}
	return r
}

// env makes what the template runs in; without a frame it allocates nothing.
func (t *Template) env(s Scope, withFrame bool) env {
	if s == nil {
		s = Vars(nil)
	}
	if !withFrame {
		return env{scope: s}
	}
	return env{s, &t.start().frame}
}

// firstBuffer bounds the buffer that a text starts with, which otherwise is a
// little longer than the source.
const firstBuffer = 4096

// Render returns the text of the template. The error is an *Error.
func (t *Template) Render(s Scope) (string, error) {
	if t.static {
		return t.src, nil
	}
	if s == nil {
		s = Vars(nil)
	}
	r := t.start()
	r.out = output{budget: &r.budget, buf: make([]byte, 0, min(len(t.src)+32, firstBuffer))}
	if err := t.body(env{s, &r.frame}, &r.out); err != nil {
		return "", locate(at(err, 0), t.src)
	}
	return string(r.out.buf), nil
}

// Value returns the native value of a lone expression and the text of any other
// template. An undefined value is nil, and a string made by the tojson filter is
// parsed back. Lists and mappings may be shared with the scope, and inside them
// values may still be lazy JSON; the caller must not modify them. The error is
// an *Error.
func (t *Template) Value(s Scope) (any, error) {
	if t.lone == nil {
		return t.Render(s)
	}
	v, err := t.eval(s)
	if err != nil {
		return nil, err
	}
	if v, err = t.finish(v); err != nil {
		return nil, locate(at(err, t.place), t.src)
	}
	return v, nil
}

// Truth returns the truth of the template as a condition. The error is an *Error.
func (t *Template) Truth(s Scope) (bool, error) {
	if t.lone == nil {
		text, err := t.Render(s)
		return err == nil && Condition(text), err
	}
	v, err := t.eval(s)
	if err != nil {
		return false, err
	}
	return Condition(v), nil
}

func (t *Template) eval(s Scope) (any, error) {
	v, err := t.lone(t.env(s, t.heavy))
	if err != nil {
		return nil, locate(err, t.src)
	}
	return v, nil
}

// finish makes a value that callers can use of one that expressions use.
func (t *Template) finish(v any) (any, error) {
	if text, ok := v.(jsonText); ok {
		return FromJSON([]byte(text))
	}
	if t.constructs {
		x := exporter{left: growthFactor * t.limits.Bytes}
		return x.value(v, 0)
	}
	n, err := base(v)
	if IsUndefined(n) {
		return nil, err
	}
	return n, err
}
