package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape resolves the escapes of a string literal. As in Python, a backslash
// before anything else stands for itself.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			i++
			continue
		}
		size := 0
		out, size = appendUnescaped(out, s[i+1:])
		i += 1 + size
	}
	return string(out)
}

// appendUnescaped appends what the escape at the start of s means and returns
// how long it is.
func appendUnescaped(out []byte, s string) ([]byte, int) {
	switch c := s[0]; c {
	case '\\', '\'', '"':
		return append(out, c), 1
	case '\n':
		return out, 1 // a continued line
	case 'n':
		return append(out, '\n'), 1
	case 't':
		return append(out, '\t'), 1
	case 'r':
		return append(out, '\r'), 1
	case 'a', 'b', 'f', 'v':
		return append(out, "\a\b\f\v"[strings.IndexByte("abfv", c)]), 1
	case 'x':
		return appendCode(out, s, 2)
	case 'u':
		return appendCode(out, s, 4)
	case 'U':
		return appendCode(out, s, 8)
	case '0', '1', '2', '3', '4', '5', '6', '7':
		n := 1
		for n < min(3, len(s)) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		code, _ := strconv.ParseUint(s[:n], 8, 32)
		return utf8.AppendRune(out, rune(code)), n
	}
	return append(out, '\\'), 0
}

// appendCode appends the character whose code is the digits after the mark.
func appendCode(out []byte, s string, digits int) ([]byte, int) {
	if len(s) > digits {
		code, err := strconv.ParseUint(s[1:1+digits], 16, 32)
		if err == nil && code <= utf8.MaxRune {
			return utf8.AppendRune(out, rune(code)), 1 + digits
		}
	}
	return append(out, '\\'), 0
}
