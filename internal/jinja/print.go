package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is the printed form of a value: what {{ v }} and ~ show.
func text(b *budget, v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case jsonText:
		return string(v), nil
	case Word:
		return v.Text, nil
	}
	dst, err := appendText(nil, b, v)
	return string(dst), err
}

// appendText appends the printed form of a value, spelled as Python does.
func appendText(dst []byte, b *budget, v any) ([]byte, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case string:
		return append(dst, n...), nil
	case Undefined:
		return dst, nil
	}
	return appendRepr(dst, b, n, 0)
}

// appendRepr appends a value as a literal: the form it has inside a printed list.
func appendRepr(dst []byte, b *budget, v any, depth int) ([]byte, error) {
	if depth > maxNesting {
		return nil, nestingError()
	}
	if b != nil && len(dst) > b.limits.Bytes {
		return nil, b.grow(-1)
	}
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case nil:
		return append(dst, "None"...), nil
	case bool:
		if n {
			return append(dst, "True"...), nil
		}
		return append(dst, "False"...), nil
	case int64:
		return strconv.AppendInt(dst, n, 10), nil
	case float64:
		return append(dst, floatText(n)...), nil
	case string:
		return appendQuoted(dst, n), nil
	case Undefined:
		return append(dst, "Undefined"...), nil
	case []any:
		return appendElements(dst, b, n, "[", "]", depth)
	case tuple:
		if len(n) == 1 {
			return appendElements(dst, b, n, "(", ",)", depth)
		}
		return appendElements(dst, b, n, "(", ")", depth)
	case *Dict, map[string]any:
		d, _ := mapping(n)
		return appendEntries(dst, b, d, depth)
	case interface{ String() string }:
		return append(dst, n.String()...), nil
	}
	return append(append(append(dst, '<'), typeName(n)...), '>'), nil
}

func appendElements(dst []byte, b *budget, list []any, left, right string, depth int) ([]byte, error) {
	var err error
	dst = append(dst, left...)
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		if dst, err = appendRepr(dst, b, e, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, right...), nil
}

func appendEntries(dst []byte, b *budget, d *Dict, depth int) ([]byte, error) {
	var err error
	dst = append(dst, '{')
	for i := range d.Len() {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = append(appendQuoted(dst, d.entries[i].key), ": "...)
		if dst, err = appendRepr(dst, b, d.entries[i].val, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// floatText is the text of a float, also of those that have no JSON.
func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return string(appendFloat(nil, f))
}

// appendQuoted quotes a string as Python's repr does: single quotes unless only
// they occur in it.
func appendQuoted(dst []byte, s string) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	dst = append(dst, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, `\n`...)
		case r == '\r':
			dst = append(dst, `\r`...)
		case r == '\t':
			dst = append(dst, `\t`...)
		case unicode.IsPrint(r):
			dst = utf8.AppendRune(dst, r)
		default:
			dst = appendHex(dst, r)
		}
	}
	return append(dst, quote)
}

func appendHex(dst []byte, r rune) []byte {
	mark, width := byte('x'), 2
	if r > 0xff {
		mark, width = 'u', 4
	}
	if r > 0xffff {
		mark, width = 'U', 8
	}
	dst = append(dst, '\\', mark)
	for shift := 4 * (width - 1); shift >= 0; shift -= 4 {
		dst = append(dst, hexDigits[r>>shift&0xf])
	}
	return dst
}
