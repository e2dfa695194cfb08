// Package sqltext reads the text of SQL as far as every dialect here agrees on
// it: where a statement ends, what is quoted or a comment, and where parameters
// stand. It knows nothing of databases and does not judge the SQL: text that no
// database would take comes out as it went in.
package sqltext

import (
	"strings"
	"unicode/utf8"
)

// class is what a piece of SQL text is.
type class int

const (
	space     class = iota
	comment         // -- … and /* … */, which nest
	quoted          // '…', E'…', "…", $tag$…$tag$
	word            // keywords and plain names
	number          // 12, 1.5e3
	parameter       // $1
	symbol          // any other single character
)

// scan gives the end and the class of the piece that begins at i. An unclosed
// quote or comment runs to the end of the text.
func scan(s string, i int) (int, class) {
	c := s[i]
	switch {
	case isSpace(c):
		for i < len(s) && isSpace(s[i]) {
			i++
		}
		return i, space
	case strings.HasPrefix(s[i:], "--"):
		return lineComment(s, i), comment
	case strings.HasPrefix(s[i:], "/*"):
		return blockComment(s, i), comment
	case c == '\'' || c == '"':
		return closing(s, i+1, c), quoted
	case (c == 'e' || c == 'E') && i+1 < len(s) && s[i+1] == '\'':
		return escaped(s, i+2), quoted
	case c == '$':
		return dollar(s, i)
	case isDigit(c):
		return numeral(s, i), number
	case isWordStart(c):
		for i < len(s) && (isWordPart(s[i]) || s[i] == '$') {
			i++
		}
		return i, word
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	return i + size, symbol
}

func lineComment(s string, i int) int {
	if n := strings.IndexAny(s[i:], "\r\n"); n >= 0 {
		return i + n
	}
	return len(s)
}

func blockComment(s string, i int) int {
	depth := 0
	for i < len(s) {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i += 2
		case strings.HasPrefix(s[i:], "*/"):
			depth--
			i += 2
			if depth == 0 {
				return i
			}
		default:
			i++
		}
	}
	return len(s)
}

// closing finds the end of a quoted text; a doubled quote does not end it.
func closing(s string, i int, quote byte) int {
	for ; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		if i+1 < len(s) && s[i+1] == quote {
			i++
			continue
		}
		return i + 1
	}
	return len(s)
}

// escaped finds the end of a text with backslash escapes. Such a text goes on
// in a quote on a later line, backslashes and all.
func escaped(s string, i int) int {
	for ; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '\'':
			if i+1 < len(s) && s[i+1] == '\'' {
				i++
				continue
			}
			next, ok := continued(s, i+1)
			if !ok {
				return i + 1
			}
			i = next
		}
	}
	return len(s)
}

// continued tells whether the next thing on a later line is another quote.
func continued(s string, i int) (int, bool) {
	lines := false
	for i < len(s) {
		switch {
		case s[i] == '\n' || s[i] == '\r':
			lines = true
			i++
		case isSpace(s[i]):
			i++
		case strings.HasPrefix(s[i:], "--"):
			i = lineComment(s, i)
		default:
			return i, lines && s[i] == '\''
		}
	}
	return i, false
}

// dollar reads $1, $tag$…$tag$ or a lone dollar sign.
func dollar(s string, i int) (int, class) {
	end := i + 1
	if end < len(s) && isDigit(s[end]) {
		for end < len(s) && isDigit(s[end]) {
			end++
		}
		return end, parameter
	}
	for end < len(s) && isWordPart(s[end]) {
		end++
	}
	if end >= len(s) || s[end] != '$' {
		return i + 1, symbol
	}
	tag := s[i : end+1]
	n := strings.Index(s[end+1:], tag)
	if n < 0 {
		return len(s), quoted
	}
	return end + 1 + n + len(tag), quoted
}

func numeral(s string, i int) int {
	for i < len(s) {
		switch c := s[i]; {
		case isWordPart(c):
		case c == '.' && i+1 < len(s) && isDigit(s[i+1]):
		default:
			return i
		}
		i++
	}
	return i
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' || c == '\v'
}
func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}
func isWordPart(c byte) bool { return isWordStart(c) || isDigit(c) }
