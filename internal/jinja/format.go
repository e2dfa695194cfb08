package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// formatSpec says how one value is laid out, for both % and {} formatting.
type formatSpec struct {
	fill  string
	align byte // one of < > ^ =
	sign  byte // + or space before a positive number; zero for none
	alt   bool
	comma bool
	width int
	prec  int // -1 if not given
	verb  byte
}

// maxFormatWidth keeps widths and precisions far from overflow; the budget
// bounds them further.
const maxFormatWidth = 1 << 20

// percentOperator is text % value: a tuple gives several values, a mapping
// gives values by name.
func percentOperator(b *budget, format string, v any) (any, error) {
	if d, ok := mapping(v); ok {
		return percentFormat(b, format, []any{v}, d)
	}
	if t, ok := v.(tuple); ok {
		return percentFormat(b, format, t, nil)
	}
	return percentFormat(b, format, []any{v}, nil)
}

// percentFormat is printf-style formatting.
func percentFormat(b *budget, format string, vals []any, byName *Dict) (any, error) {
	out := make([]byte, 0, len(format))
	used := 0
	for i := 0; i < len(format); {
		if format[i] != '%' {
			out = append(out, format[i])
			i++
			continue
		}
		p := &percentParser{s: format, i: i + 1}
		spec, name, err := p.directive()
		if err != nil {
			return nil, err
		}
		i = p.i
		if spec.verb == '%' {
			out = append(out, '%')
			continue
		}
		var v any
		switch {
		case name != "":
			var ok bool
			if v, ok = byName.Get(name); !ok {
				return nil, valueError("the format wants a value named '%s'", name)
			}
		case used >= len(vals):
			return nil, valueError("the format wants more than %d values", len(vals))
		default:
			v = vals[used]
			used++
		}
		piece, err := spec.format(b, v)
		if err != nil {
			return nil, err
		}
		if out = append(out, piece...); len(out) > len(format) {
			if err := b.grow(len(piece)); err != nil {
				return nil, err
			}
		}
	}
	if used < len(vals) && byName == nil {
		return nil, valueError("the format has no place for %d of the values", len(vals)-used)
	}
	return string(out), b.grow(len(out))
}

type percentParser struct {
	s string
	i int
}

func (p *percentParser) at() byte {
	if p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// directive reads (name)flags width .precision verb.
func (p *percentParser) directive() (formatSpec, string, error) {
	spec := formatSpec{fill: " ", align: '>', prec: -1}
	name := ""
	if p.at() == '(' {
		end := strings.IndexByte(p.s[p.i:], ')')
		if end < 0 {
			return spec, "", valueError("the format has an unclosed name")
		}
		name = p.s[p.i+1 : p.i+end]
		p.i += end + 1
	}
	for flag := true; flag; {
		switch p.at() {
		case '-':
			spec.align = '<'
		case '0':
			if spec.align != '<' {
				spec.fill, spec.align = "0", '='
			}
		case '+', ' ':
			spec.sign = p.at()
		case '#':
			spec.alt = true
		default:
			flag = false
			continue
		}
		p.i++
	}
	spec.width = p.digits()
	if p.at() == '.' {
		p.i++
		spec.prec = p.digits()
	}
	spec.verb = p.at()
	if strings.IndexByte("srdiufFeEgGxXoc%", spec.verb) < 0 || spec.verb == 0 {
		return spec, "", valueError("the format has an unknown directive")
	}
	p.i++
	return spec, name, nil
}

func (p *percentParser) digits() int {
	n := 0
	for isDigit(p.at()) {
		n = min(n*10+int(p.at()-'0'), maxFormatWidth)
		p.i++
	}
	return n
}

// format lays out one value.
func (f formatSpec) format(b *budget, v any) (string, error) {
	if err := b.grow(max(f.width, f.prec, 0)); err != nil {
		return "", err
	}
	n, err := base(v)
	if err != nil {
		return "", err
	}
	if u, ok := n.(Undefined); ok && f.verb != 's' {
		return "", undefinedError(u)
	}
	switch f.verb {
	case 's', 'r', 'c':
		return f.text(b, n)
	}
	num, ok := asNumeric(n)
	if !ok {
		return "", typeError("the format wants a number, got %s", typeName(n))
	}
	body, err := f.number(num)
	if err != nil {
		return "", err
	}
	sign := ""
	if rest, negative := strings.CutPrefix(body, "-"); negative {
		sign, body = "-", rest
	} else if f.sign != 0 {
		sign = string(f.sign)
	}
	return f.pad(sign, body), nil
}

// text lays out a value as text. A zero for filling is for numbers only.
func (f formatSpec) text(b *budget, v any) (string, error) {
	s, err := text(b, v)
	if f.verb == 'r' {
		var quoted []byte
		quoted, err = appendRepr(nil, b, v, 0)
		s = string(quoted)
	}
	if f.verb == 'c' {
		s, err = character(v)
	}
	if err != nil {
		return "", err
	}
	if runes := []rune(s); f.prec >= 0 && len(runes) > f.prec {
		s = string(runes[:f.prec])
	}
	if f.align == '=' {
		f.align, f.fill = '>', " "
	}
	return f.pad("", s), nil
}

// character is the text of %c: a code point by its number, or as it is.
func character(v any) (string, error) {
	switch v := v.(type) {
	case bool:
		return character(int64(map[bool]int{true: 1}[v]))
	case int64:
		if v >= 0 && v <= unicode.MaxRune {
			return string(rune(v)), nil
		}
		return "", valueError("%d is not the number of a character", v)
	case string:
		if runeCount(v) == 1 {
			return v, nil
		}
	}
	return "", typeError("the format wants a character or its number, got %s", typeName(v))
}

// number writes the digits of a number, with its sign but without padding.
func (f formatSpec) number(n numeric) (string, error) {
	prec := f.prec
	if prec < 0 {
		prec = 6
	}
	switch f.verb {
	case 'f', 'F':
		return f.grouped(strconv.FormatFloat(n.float(), 'f', prec, 64)), nil
	case '%':
		return strconv.FormatFloat(n.float()*100, 'f', prec, 64) + "%", nil
	case 'e', 'E', 'g', 'G':
		if f.verb|0x20 == 'g' {
			prec = max(prec, 1)
		}
		return strconv.FormatFloat(n.float(), f.verb, prec, 64), nil
	}
	if n.isFloat {
		whole := math.Trunc(n.f)
		if f.verb|0x20 == 'x' || f.verb == 'o' || f.verb == 'b' || !(math.Abs(whole) < 1<<63) {
			return "", typeError("the format wants an integer, got float")
		}
		n.i = int64(whole)
	}
	switch f.verb {
	case 'x':
		return f.prefixed(n.i, 16, "0x"), nil
	case 'X':
		return strings.ToUpper(f.prefixed(n.i, 16, "0x")), nil
	case 'o':
		return f.prefixed(n.i, 8, "0o"), nil
	case 'b':
		return f.prefixed(n.i, 2, "0b"), nil
	}
	digits := strconv.FormatInt(n.i, 10)
	if missing := f.prec - len(strings.TrimPrefix(digits, "-")); missing > 0 {
		at := len(digits) - len(strings.TrimPrefix(digits, "-"))
		digits = digits[:at] + strings.Repeat("0", missing) + digits[at:]
	}
	return f.grouped(digits), nil
}

func (f formatSpec) prefixed(i int64, radix int, prefix string) string {
	digits := strconv.FormatInt(i, radix)
	if !f.alt {
		return digits
	}
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		return "-" + prefix + rest
	}
	return prefix + digits
}

// grouped puts commas between thousands if the spec asks for them.
func (f formatSpec) grouped(s string) string {
	if !f.comma {
		return s
	}
	end := strings.IndexByte(s, '.')
	if end < 0 {
		end = len(s)
	}
	var out strings.Builder
	for i := range end {
		if left := end - i; i > 0 && left%3 == 0 && s[i-1] != '-' {
			out.WriteByte(',')
		}
		out.WriteByte(s[i])
	}
	return out.String() + s[end:]
}

func (f formatSpec) pad(sign, body string) string {
	missing := f.width - runeCount(sign) - runeCount(body)
	if missing <= 0 {
		return sign + body
	}
	switch f.align {
	case '<':
		return sign + body + strings.Repeat(f.fill, missing)
	case '^':
		left := missing / 2
		return strings.Repeat(f.fill, left) + sign + body + strings.Repeat(f.fill, missing-left)
	case '=':
		return sign + strings.Repeat(f.fill, missing) + body
	}
	return strings.Repeat(f.fill, missing) + sign + body
}
