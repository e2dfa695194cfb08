package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// braceFormat is text.format(…): fields are {}, {0} or {name}, optionally with
// !r or !s and a layout after a colon. Attributes inside fields are refused.
func braceFormat(b *budget, format string, vals []any, kw []named[any]) (any, error) {
	f := &braceFormatter{budget: b, vals: vals, kw: kw}
	for format != "" {
		i := strings.IndexAny(format, "{}")
		if i < 0 {
			f.out = append(f.out, format...)
			break
		}
		f.out = append(f.out, format[:i]...)
		c := format[i]
		format = format[i+1:]
		if format != "" && format[0] == c {
			f.out = append(f.out, c)
			format = format[1:]
			continue
		}
		end := strings.IndexByte(format, '}')
		if c == '}' || end < 0 {
			return nil, valueError("the format has a brace without its partner")
		}
		if err := f.field(format[:end]); err != nil {
			return nil, err
		}
		format = format[end+1:]
	}
	return string(f.out), b.grow(len(f.out))
}

type braceFormatter struct {
	budget *budget
	vals   []any
	kw     []named[any]
	auto   int
	out    []byte
}

// field writes one replacement field.
func (f *braceFormatter) field(field string) error {
	name, layout, _ := strings.Cut(field, ":")
	name, conversion, _ := strings.Cut(name, "!")
	v, err := f.lookup(name)
	if err != nil {
		return err
	}
	spec, err := parseLayout(layout, v)
	if err != nil {
		return err
	}
	switch conversion {
	case "":
	case "r", "s":
		spec.verb = conversion[0]
	default:
		return valueError("the format has an unknown conversion '!%s'", conversion)
	}
	piece, err := spec.format(f.budget, v)
	if err != nil {
		return err
	}
	f.out = append(f.out, piece...)
	return f.budget.grow(len(piece))
}

func (f *braceFormatter) lookup(name string) (any, error) {
	if name == "" {
		name = strconv.Itoa(f.auto)
		f.auto++
	}
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(f.vals) {
			return nil, valueError("the format wants value %d of %d", i, len(f.vals))
		}
		return f.vals[i], nil
	}
	for _, k := range f.kw {
		if k.name == name {
			return k.val, nil
		}
	}
	return nil, valueError("the format wants a value named '%s'", name)
}

// parseLayout reads [[fill]align][sign][#][0][width][,][.precision][verb].
func parseLayout(s string, v any) (formatSpec, error) {
	spec := formatSpec{fill: " ", align: '<', prec: -1, verb: 's'}
	n, err := base(v)
	if err != nil {
		return spec, err
	}
	if s == "" {
		return spec, nil // not even a boolean becomes a number
	}
	num, isNumber := asNumeric(n)
	if isNumber {
		spec.align = '>'
	}
	_, first := utf8.DecodeRuneInString(s)
	filled, aligned := false, true
	switch {
	case len(s) > first && strings.IndexByte("<>^=", s[first]) >= 0:
		spec.fill, spec.align, s, filled = s[:first], s[first], s[first+1:], true
	case s != "" && strings.IndexByte("<>^=", s[0]) >= 0:
		spec.align, s = s[0], s[1:]
	default:
		aligned = false
	}
	p := &percentParser{s: s}
	if c := p.at(); c == '+' || c == ' ' || c == '-' {
		if p.i++; c != '-' {
			spec.sign = c
		}
	}
	if p.at() == '#' {
		spec.alt = true
		p.i++
	}
	if p.at() == '0' {
		if !filled {
			spec.fill = "0"
		}
		if !aligned && isNumber {
			spec.align = '='
		}
		p.i++
	}
	spec.width = p.digits()
	if p.at() == ',' {
		spec.comma = true
		p.i++
	}
	if p.at() == '.' {
		p.i++
		spec.prec = p.digits()
	}
	return p.verb(spec, num, isNumber)
}

// verb reads the verb of a layout, or picks the one that suits the value.
func (p *percentParser) verb(spec formatSpec, num numeric, isNumber bool) (formatSpec, error) {
	c := p.at()
	rest := p.s[p.i:]
	switch {
	case len(rest) == 1 && strings.IndexByte("sdfFeEgGxXobc%", c) >= 0:
		spec.verb = c
	case rest != "":
		return spec, valueError("the format has an unknown layout '%s'", p.s)
	case isNumber && num.isFloat && (spec.prec >= 0 || spec.comma || spec.sign != 0 || spec.align == '='):
		spec.verb = 'g'
	case isNumber && !num.isFloat:
		spec.verb = 'd'
	}
	switch {
	case isNumber && rest == "s", isNumber && num.isFloat && strings.IndexByte("dxXobc", spec.verb) >= 0:
		return spec, valueError("the format has a layout '%s' that is not for this number", p.s)
	case !isNumber && (spec.comma || spec.sign != 0 || spec.align == '='):
		return spec, valueError("the format has a layout '%s' that is for numbers only", p.s)
	case spec.prec >= 0 && strings.IndexByte("dxXobc", spec.verb) >= 0:
		return spec, valueError("a layout for integers has no precision")
	}
	return spec, nil
}
