package jinja_test

import (
	"fmt"
	"strings"
)

// macro defines a macro and calls it, by position, by name and with defaults.
// Now and then it is called with too few arguments, which leaves them undefined.
func (g *generator) macro(depth int, open, end string) string {
	g.serial++
	name := fmt.Sprintf("m%d", g.serial)
	first, second := g.pick(anInt, aText, ints), g.pick(anInt, aText, words)
	fallback := g.expr(second, 1)
	outer := len(g.locals)
	p, q := g.bind(first), g.bind(second)
	body := g.body(depth - 1)
	g.locals = g.locals[:outer]
	call := g.oneOf(
		fmt.Sprintf("%s(%s)", name, g.expr(first, 1)),
		fmt.Sprintf("%s(%s, %s)", name, g.expr(first, 1), g.expr(second, 1)),
		fmt.Sprintf("%s(%s, %s=%s)", name, g.expr(first, 1), q, g.expr(second, 1)),
		fmt.Sprintf("%s(%s=%s)", name, q, g.expr(second, 1)),
	)
	return fmt.Sprintf("%s macro %s(%s, %s=%s) %s%s%s endmacro %s%s{{ %s%s }}",
		open, name, p, q, fallback, end, body, open, end, g.text(), call, g.oneOf("", "|upper", "|length", " ~ 'x'", "|trim"))
}

// capture is a set or a filter around a body.
func (g *generator) capture(depth int, open, end string) string {
	if g.IntN(2) == 0 {
		return fmt.Sprintf("%s filter %s %s%s%s endfilter %s", open, g.oneOf("upper", "trim", "replace('a', 'b')|title", "indent(2)"), end, g.body(depth-1), open, end)
	}
	body := g.body(depth - 1)
	name := g.bind(aText)
	return fmt.Sprintf("%s set %s%s %s%s%s endset %s{{ %s }}", open, name, g.oneOf("", " | upper", " | trim | length"), end, body, open, end, name)
}

// counter carries a value out of a loop, which only a namespace can.
func (g *generator) counter(open, end string) string {
	g.serial++
	ns := fmt.Sprintf("ns%d", g.serial)
	outer := len(g.locals)
	source := g.expr(ints, 1)
	item := g.bind(anInt)
	step := g.oneOf(ns+".x + "+item, ns+".x ~ "+item, item+" if loop.changed("+item+" // 2) else "+ns+".x", ns+".x + loop.index", "["+ns+".x, "+item+"]|string|length")
	g.locals = g.locals[:outer]
	return fmt.Sprintf("%s set %s = namespace(x=%s) %s%s for %s in %s %s%s set %s.x = %s %s%s endfor %s{{ %s.x }}",
		open, ns, g.oneOf("0", "n", "d.a"), end, open, item, source, end, open, ns, step, end, open, end, ns)
}

// chain is a run of operators without parentheses, for precedence alone.
func (g *generator) chain(d int) string {
	var b strings.Builder
	b.WriteString(g.expr(anInt, d))
	for range 1 + g.IntN(4) {
		b.WriteString(g.oneOf(" + ", " - ", " * ", " // ", " % ", " ~ ", " and ", " or ", " == ", " < ", " >= ", " != "))
		b.WriteString(g.oneOf("", "", "", "-") + g.expr(g.pick(anInt, anInt, aFloat), d))
	}
	return b.String() + g.oneOf("", "", "|string", " if t else n", " is defined")
}

// literal is a constant in one of its many spellings.
func (g *generator) literal() string {
	return g.oneOf("0x1F", "0b101", "0o17", "1_000", "1_0.5", "2.5e-3", "1E3", `'a\tb'`, `'\x41\u00e9'`, `"a" 'b' "c"`, `'it\'s'`, `"\\n"`, `'\q'`, "True", "none", "None", "()", "(1,)", "(1, 'a')", "[1, [2, (3,)]]", "{'a': {}}", "[[]]", "{'a': none}")
}

// textMethods are calls with more arguments, or methods that few know.
func (g *generator) textMethod(x string) string {
	return "(" + x + ")" + g.oneOf(".swapcase()", ".zfill(8)", ".ljust(9)", ".rjust(9, '.')", ".center(10)", ".center(9, '*')", ".partition('l')|list", ".rpartition('o')|list",
		".find('o', 5)", ".find('l', 1, 3)", ".rfind('l', 0, -2)", ".count('l', 3)", ".startswith('l', 2)", ".endswith('l', 0, 3)", ".startswith(('a', 'H'))", ".isupper()", ".islower()", ".isascii()", ".isdecimal()",
		".find('', 99)", ".count('', 2, 1)", ".find('x', -3)", ".split(none, 1)", ".rsplit(none, 1)", ".strip('Hd')", ".index('l')", ".rindex('zz')", ".splitlines(true)")
}

func (g *generator) format() string {
	directive := g.oneOf("%s", "%5s", "%-7s|", "%.2s", "%r", "%d", "%5d", "%-5d|", "%05d", "%+d", "% d", "%x", "%#x", "%X", "%o", "%f", "%.0f", "%8.3f", "%e", "%.2e", "%g", "%c", "%i", "%%")
	value := g.oneOf("n", "m", "f", "word", "z", "num", "t", "nil", "ints", "g", "big", "65")
	if directive == "%%" {
		return "'%d%%' % n"
	}
	if g.IntN(2) == 0 {
		return "'" + directive + "'|format(" + value + ")"
	}
	layout := g.oneOf("", ":>6", ":<6", ":^7", ":*^9", ":+", ":05", ":,", ":.3", ":.2f", ":10.1f", ":e", ":g", ":x", ":#x", ":b", ":o", ":d", ":s", ":%", ":.0%", "!r", "!s:>8", ":=6", ":+.1f", ":,.2f", ":08.2f", ":c")
	return "'{" + g.oneOf("", "0", "a") + layout + "}'.format(" + value + ", a=" + value + ")"
}
