package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd        tokenKind = iota // end of the source
	tokText                        // text between tags
	tokVarBegin                    // {{
	tokVarEnd                      // }}
	tokBlockBegin                  // {%
	tokBlockEnd                    // %}
	tokName
	tokLiteral // a string or a number
	tokOp
)

// token is a piece of source. Its text is what was written, except for tokText,
// where whitespace control has been applied.
type token struct {
	kind tokenKind
	pos  int
	text string
	val  any // of a tokLiteral
}

// HasSyntax reports whether a text contains the beginning of a template tag.
func HasSyntax(s string) bool {
	for i := strings.IndexByte(s, '{'); i >= 0 && i+1 < len(s); {
		switch s[i+1] {
		case '{', '%', '#':
			return true
		}
		next := strings.IndexByte(s[i+1:], '{')
		if next < 0 {
			return false
		}
		i += 1 + next
	}
	return false
}

type lexer struct {
	src      string
	pos      int
	tokens   []token
	trimLeft bool // the tag before the text ended with a minus
}

// lex cuts a template into tokens, the last of which is tokEnd.
func lex(src string) ([]token, error) {
	l := &lexer{src: trimNewline(src)}
	for l.pos < len(l.src) {
		if err := l.textAndTag(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEnd, len(l.src), "")
	return l.tokens, nil
}

// lexExpression cuts a bare expression into tokens.
func lexExpression(src string) ([]token, error) {
	l := &lexer{src: src}
	if err := l.inside(tokEnd, "", 0); err != nil {
		return nil, err
	}
	l.emit(tokEnd, len(l.src), "")
	return l.tokens, nil
}

// trimNewline drops one newline at the end of a template, as Jinja2 does.
func trimNewline(s string) string {
	s, cut := strings.CutSuffix(s, "\n")
	if cut {
		s = strings.TrimSuffix(s, "\r")
	}
	return s
}

func (l *lexer) emit(kind tokenKind, pos int, text string) {
	l.tokens = append(l.tokens, token{kind: kind, pos: pos, text: text})
}

// syntaxError is an error of the source at a place.
func syntaxError(pos int, format string, args ...any) *Error {
	e := newError(kindSyntax, format, args...)
	e.place = pos + 1
	return e
}

// limitAt is an error of a source that is too large, at a place.
func limitAt(pos int, format string, args ...any) *Error {
	e := limitError(format, args...)
	e.place = pos + 1
	return e
}

// textAndTag reads the text up to the next tag and that tag.
func (l *lexer) textAndTag() error {
	start, open := l.pos, len(l.src)
	for i := start; i+1 < len(l.src); i++ {
		if l.src[i] == '{' && strings.IndexByte("{%#", l.src[i+1]) >= 0 {
			open = i
			break
		}
	}
	if open == len(l.src) {
		l.text(start, l.src[start:], false)
		l.pos = open
		return nil
	}
	l.pos = open + 2
	sign := l.sign()
	l.text(start, l.src[start:open], sign == '-')
	switch l.src[open+1] {
	case '#':
		return l.comment(open)
	case '%':
		if done, err := l.raw(open); done || err != nil {
			return err
		}
		l.emit(tokBlockBegin, open, "{%")
		return l.inside(tokBlockEnd, "%}", open)
	}
	l.emit(tokVarBegin, open, "{{")
	return l.inside(tokVarEnd, "}}", open)
}

// sign reads the minus or plus of whitespace control, if there is one.
func (l *lexer) sign() byte {
	if l.pos < len(l.src) && (l.src[l.pos] == '-' || l.src[l.pos] == '+') {
		l.pos++
		return l.src[l.pos-1]
	}
	return 0
}

// text emits the text before a tag, trimmed towards tags with a minus.
func (l *lexer) text(pos int, s string, trimRight bool) {
	if l.trimLeft {
		trimmed := strings.TrimLeftFunc(s, unicode.IsSpace)
		pos += len(s) - len(trimmed)
		s = trimmed
	}
	if trimRight {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	}
	l.trimLeft = false
	if s != "" {
		l.emit(tokText, pos, s)
	}
}

func (l *lexer) comment(open int) error {
	end := strings.Index(l.src[l.pos:], "#}")
	if end < 0 {
		return syntaxError(open, "the comment that begins here is not closed with #}").
			withRemedy("a literal {# is written {%% raw %%}{#{%% endraw %%}")
	}
	l.trimLeft = end > 0 && l.src[l.pos+end-1] == '-'
	l.pos += end + 2
	return nil
}

// raw reads {% raw %} … {% endraw %}; done is false if the tag is another one.
func (l *lexer) raw(open int) (done bool, err error) {
	body, trimBody, ok := l.bareTag(l.pos, "raw")
	if !ok {
		return false, nil
	}
	for i := body; ; i++ {
		next := strings.Index(l.src[i:], "{%")
		if next < 0 {
			return true, syntaxError(open, "'raw' is not closed with {%% endraw %%}")
		}
		i += next
		at := l.pos
		l.pos = i + 2
		sign := l.sign()
		after, trimAfter, ok := l.bareTag(l.pos, "endraw")
		l.pos = at
		if !ok {
			continue
		}
		l.trimLeft = trimBody
		l.text(body, l.src[body:i], sign == '-')
		l.pos, l.trimLeft = after, trimAfter
		return true, nil
	}
}

// bareTag matches the rest of a tag that is only a word, and returns where it
// ends and whether it ends with a minus.
func (l *lexer) bareTag(pos int, word string) (end int, minus, ok bool) {
	rest := strings.TrimLeftFunc(l.src[pos:], unicode.IsSpace)
	rest, ok = strings.CutPrefix(rest, word)
	if !ok {
		return 0, false, false
	}
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	minus = strings.HasPrefix(rest, "-")
	if minus || strings.HasPrefix(rest, "+") {
		rest = rest[1:]
	}
	rest, ok = strings.CutPrefix(rest, "%}")
	return len(l.src) - len(rest), minus, ok
}

// inside reads the tokens of a tag up to its end. Inside brackets the end is
// not looked for, so that {{ {'a': {}} }} is one tag.
func (l *lexer) inside(endKind tokenKind, end string, open int) error {
	var brackets []int // offsets of the open ones
	for {
		l.space()
		if len(l.tokens) > maxTokens {
			return limitAt(l.pos, "the template has more than %d words and signs", maxTokens)
		}
		if l.pos >= len(l.src) {
			return l.unclosed(brackets, end, open)
		}
		if end != "" && len(brackets) == 0 && l.tagEnd(endKind, end) {
			return nil
		}
		c, start := l.src[l.pos], l.pos
		switch {
		case c == '\'' || c == '"':
			if err := l.str(c); err != nil {
				return err
			}
		case c >= '0' && c <= '9':
			if err := l.number(); err != nil {
				return err
			}
		case l.name():
			if l.pos-start > maxName {
				return limitAt(start, "the name is longer than %d bytes", maxName)
			}
		case strings.IndexByte("([{", c) >= 0:
			brackets = append(brackets, start)
			l.op(1)
		case strings.IndexByte(")]}", c) >= 0:
			if len(brackets) == 0 {
				return syntaxError(start, "unexpected '%c'", c)
			}
			if closing(l.src[brackets[len(brackets)-1]]) != c {
				return l.unclosed(brackets, end, open)
			}
			brackets = brackets[:len(brackets)-1]
			l.op(1)
		default:
			if !l.operator() {
				r, _ := utf8.DecodeRuneInString(l.src[l.pos:])
				return syntaxError(start, "unexpected character %q", r)
			}
		}
	}
}

func closing(open byte) byte {
	return ")]}"[strings.IndexByte("([{", open)]
}

// unclosed blames the innermost open bracket, or else the tag: where something
// began says more than where the source ran out.
func (l *lexer) unclosed(brackets []int, end string, open int) error {
	if n := len(brackets); n > 0 {
		return syntaxError(brackets[n-1], "'%c' is not closed", l.src[brackets[n-1]])
	}
	if end == "" {
		return nil
	}
	return syntaxError(open, "the tag that begins here is not closed with %s", end).
		withRemedy("literal braces are written {%% raw %%}…{%% endraw %%}")
}

func (l *lexer) space() {
	for l.pos < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[l.pos:])
		if !unicode.IsSpace(r) {
			return
		}
		l.pos += size
	}
}

// tagEnd reads the end of the tag, if it is here, with its whitespace control.
func (l *lexer) tagEnd(kind tokenKind, end string) bool {
	rest := l.src[l.pos:]
	signed := rest[0] == '-' || rest[0] == '+' && kind == tokBlockEnd
	if signed && strings.HasPrefix(rest[1:], end) {
		l.emit(kind, l.pos, end)
		l.trimLeft = rest[0] == '-'
		l.pos += 1 + len(end)
		return true
	}
	if strings.HasPrefix(rest, end) {
		l.emit(kind, l.pos, end)
		l.pos += len(end)
		return true
	}
	return false
}

func (l *lexer) op(n int) {
	l.emit(tokOp, l.pos, l.src[l.pos:l.pos+n])
	l.pos += n
}

func (l *lexer) operator() bool {
	rest := l.src[l.pos:]
	if len(rest) > 1 {
		switch rest[:2] {
		case "**", "//", "==", "!=", "<=", ">=":
			l.op(2)
			return true
		}
	}
	if strings.IndexByte("+-*/%~<>=.,:|", rest[0]) < 0 {
		return false
	}
	l.op(1)
	return true
}

func (l *lexer) name() bool {
	start := l.pos
	for l.pos < len(l.src) {
		r, size := utf8.DecodeRuneInString(l.src[l.pos:])
		if r != '_' && !unicode.IsLetter(r) && (l.pos == start || !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)) {
			break
		}
		l.pos += size
	}
	if l.pos == start {
		return false
	}
	l.emit(tokName, start, l.src[start:l.pos])
	return true
}

// number reads an integer or a float. After a point only an integer is read, so
// that x.0.1 is two steps. An integer too large for 64 bits becomes a float.
func (l *lexer) number() error {
	start := l.pos
	afterPoint := len(l.tokens) > 0 && l.tokens[len(l.tokens)-1].text == "."
	l.digits(isDigit)
	if !afterPoint {
		if prefix := l.src[start:l.pos]; prefix == "0" && l.pos < len(l.src) && strings.IndexByte("xXoObB", l.src[l.pos]) >= 0 {
			l.pos++
			l.digits(isHexDigit)
		} else {
			l.fraction()
		}
	}
	written := l.src[start:l.pos]
	val, err := parseNumber(strings.ReplaceAll(written, "_", ""))
	if err != nil || strings.HasSuffix(written, "_") {
		return syntaxError(start, "%q is not a number", written)
	}
	l.tokens = append(l.tokens, token{kind: tokLiteral, pos: start, text: written, val: val})
	return nil
}

func (l *lexer) digits(accept func(byte) bool) {
	for l.pos < len(l.src) && (accept(l.src[l.pos]) || l.src[l.pos] == '_') {
		l.pos++
	}
}

func isDigit(c byte) bool    { return c >= '0' && c <= '9' }
func isHexDigit(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

// fraction reads .5 and e-3 after digits, if digits follow.
func (l *lexer) fraction() {
	rest := l.src[l.pos:]
	if len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
		l.pos++
		l.digits(isDigit)
		rest = l.src[l.pos:]
	}
	if len(rest) > 1 && rest[0]|0x20 == 'e' {
		exp := strings.TrimLeft(rest[1:min(3, len(rest))], "+-")
		if exp != "" && isDigit(exp[0]) {
			l.pos += 1 + strings.IndexByte(rest[1:], exp[0])
			l.digits(isDigit)
		}
	}
}

func parseNumber(s string) (any, error) {
	if len(s) > 2 && s[0] == '0' && !isDigit(s[1]) && s[1] != '.' && s[1]|0x20 != 'e' {
		n, err := strconv.ParseInt(s, 0, 64)
		return n, err
	}
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, fmt.Errorf("number out of range")
	}
	return f, nil
}

func (l *lexer) str(quote byte) error {
	start := l.pos
	l.pos++
	for l.pos < len(l.src) && l.src[l.pos] != quote {
		if l.src[l.pos] == '\\' {
			l.pos++
		}
		l.pos++
	}
	if l.pos >= len(l.src) {
		return syntaxError(start, "the string that begins here is not closed")
	}
	l.pos++
	written := l.src[start:l.pos]
	l.tokens = append(l.tokens, token{
		kind: tokLiteral, pos: start, text: written, val: unescape(written[1 : len(written)-1]),
	})
	return nil
}
