package scope

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	textDepth  = 1000     // of values within each other, as where they are decoded
	textNumber = 64 << 10 // bytes of one number
)

// listener is told what a JSON text consists of while it is read. Strings come
// decoded and cut to what the reader keeps, with their whole length.
type listener interface {
	value()                        // a value begins
	open(c byte)                   // it is a map or a list: '{' or '['
	key(text string, length int64) // of the next value
	scalar(s scalar)               // the value has ended
	close()                        // the map or list has ended
	// raw gets the text piece by piece, without white space between tokens. What
	// belongs to a value comes after value and before scalar or close.
	raw(p []byte)
}

// scalar is a string, or a literal as it is written.
type scalar struct {
	text    string // of a string: its beginning
	literal bool
	length  int64 // of a string: all of it, in bytes
}

// jsonText reads one JSON value that comes in pieces, and keeps of it no more
// than the token under way, cut to keep bytes.
type jsonText struct {
	l     listener
	keep  int
	state textState
	stack []byte // of the open lists and maps: '[' or '{'
	err   error
	pos   int64  // of p
	p     []byte // the piece at hand
	i     int    // the byte under way
	from  int    // of what the listener has not seen

	token    []byte // the number, word or string under way
	length   int64  // of the string so far
	isKey    bool
	escape   int     // digits of a \u escape that are missing; -1 right behind the backslash
	unit     rune    // of the escape under way
	high     rune    // the first half of a surrogate pair, while the second may follow
	utf      [4]byte // a character beyond ASCII that is not complete
	utfCount int
}

type textState int

const (
	wantValue textState = iota
	wantValueOrEnd
	wantKey
	wantKeyOrEnd
	wantColon
	wantCommaOrEnd
	inString
	inLiteral
	textOver
)

func (t *jsonText) fail(what string) error {
	t.err = fmt.Errorf("invalid JSON: %s at byte %d", what, t.pos+int64(t.i))
	return t.err
}

func (t *jsonText) write(p []byte) error {
	if t.err != nil {
		return t.err
	}
	t.p, t.from = p, 0
	for t.i = 0; t.i < len(p); t.i++ {
		switch t.state {
		case inString:
			if n := t.plain(); n > 0 {
				t.add(p[t.i : t.i+n])
				t.i += n - 1
				continue
			}
			t.inString(p[t.i])
		case inLiteral:
			t.inLiteral(p[t.i])
		default:
			t.between(p[t.i])
		}
		if t.err != nil {
			return t.err
		}
	}
	t.flush(len(p))
	t.pos, t.p, t.i = t.pos+int64(len(p)), nil, 0
	return nil
}

// flush hands over the text before a byte.
func (t *jsonText) flush(to int) {
	if t.from < to {
		t.l.raw(t.p[t.from:to])
	}
	t.from = to
}

// plain counts the bytes of a string from here on that mean themselves.
func (t *jsonText) plain() int {
	if t.escape != 0 || t.utfCount != 0 || t.high != 0 {
		return 0
	}
	for n, c := range t.p[t.i:] {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return n
		}
	}
	return len(t.p) - t.i
}

func literalByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// inLiteral takes a byte of a number or a word, or the one behind it.
func (t *jsonText) inLiteral(c byte) {
	if !literalByte(c) {
		t.flush(t.i)
		if t.endLiteral() == nil {
			t.between(c)
		}
		return
	}
	if t.token = append(t.token, c); len(t.token) > textNumber {
		_ = t.fail("a number or word that is too long")
	}
}

// between takes a byte outside of strings and literals.
func (t *jsonText) between(c byte) {
	if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
		t.flush(t.i)
		t.from = t.i + 1
		return
	}
	switch t.state {
	case wantValue, wantValueOrEnd:
		if c == ']' && t.state == wantValueOrEnd {
			t.pop(c)
			return
		}
		t.begin(c)
	case wantKey, wantKeyOrEnd:
		switch {
		case c == '}' && t.state == wantKeyOrEnd:
			t.pop(c)
		case c == '"':
			t.startString(true)
		default:
			_ = t.fail("no key")
		}
	case wantColon:
		if t.state = wantValue; c != ':' {
			_ = t.fail("no colon")
		}
	case wantCommaOrEnd:
		switch {
		case c == ']' || c == '}':
			t.pop(c)
		case c != ',':
			_ = t.fail("no comma or end")
		case t.stack[len(t.stack)-1] == '{':
			t.state = wantKey
		default:
			t.state = wantValue
		}
	default:
		_ = t.fail("text after the value")
	}
}

func (t *jsonText) begin(c byte) {
	if len(t.stack) > textDepth {
		_ = t.fail("too many levels")
		return
	}
	t.flush(t.i)
	t.l.value()
	switch {
	case c == '{' || c == '[':
		t.stack = append(t.stack, c)
		t.l.open(c)
		if t.state = wantValueOrEnd; c == '{' {
			t.state = wantKeyOrEnd
		}
	case c == '"':
		t.startString(false)
	case c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n':
		t.token, t.state = append(t.token[:0], c), inLiteral
	default:
		_ = t.fail("no value")
	}
}

func (t *jsonText) pop(c byte) {
	if t.stack[len(t.stack)-1] != c-2 { // '[' and '{' are two before their ends
		_ = t.fail("a bracket of the wrong kind")
		return
	}
	t.stack = t.stack[:len(t.stack)-1]
	t.flush(t.i + 1)
	t.l.close()
	t.after()
}

// after is the state behind a value.
func (t *jsonText) after() {
	if t.state = wantCommaOrEnd; len(t.stack) == 0 {
		t.state = textOver
	}
}

func (t *jsonText) endLiteral() error {
	text := string(t.token)
	switch {
	case text == "true" || text == "false" || text == "null":
	case !number(text):
		return t.fail("a bad number or an unknown word")
	}
	t.l.scalar(scalar{text: text, literal: true})
	t.after()
	return nil
}

// number tells whether the text is a number as JSON writes it.
func number(s string) bool {
	s = strings.TrimPrefix(s, "-")
	rest := strings.TrimLeft(s, "0123456789")
	if whole := s[:len(s)-len(rest)]; whole == "" || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		if rest = strings.TrimLeft(fraction, "0123456789"); len(rest) == len(fraction) {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if rest[0]|0x20 != 'e' {
		return false
	}
	rest = rest[1:]
	if rest != "" && (rest[0] == '+' || rest[0] == '-') {
		rest = rest[1:]
	}
	return rest != "" && strings.Trim(rest, "0123456789") == ""
}

func (t *jsonText) startString(isKey bool) {
	t.state, t.isKey, t.token, t.length = inString, isKey, t.token[:0], 0
	t.escape, t.high, t.utfCount = 0, 0, 0
}

// add appends to the string under way what is kept of it.
func (t *jsonText) add(p []byte) {
	t.length += int64(len(p))
	t.token = append(t.token, p[:max(0, min(len(p), t.keep-len(t.token)))]...)
}

func (t *jsonText) addRune(r rune) {
	var b [utf8.UTFMax]byte
	t.add(b[:utf8.EncodeRune(b[:], r)])
}

// half ends a surrogate pair whose second half does not follow.
func (t *jsonText) half() {
	if t.high != 0 {
		t.high = 0
		t.addRune(utf8.RuneError)
	}
}

// inString takes a byte of a string that may mean something else.
func (t *jsonText) inString(c byte) {
	switch {
	case t.escape == -1:
		t.escaped(c)
		return
	case t.escape > 0:
		t.digit(c)
		return
	case c >= utf8.RuneSelf:
		t.half()
		t.utf[t.utfCount] = c
		t.utfCount++
		t.drainRune(false)
		return
	}
	t.drainRune(true)
	switch {
	case c == '\\':
		t.escape = -1
	case c == '"':
		t.half()
		t.endString()
	case c < ' ':
		_ = t.fail("a control character in a string")
	default:
		t.half()
		t.add([]byte{c})
	}
}

// drainRune decodes the characters beyond ASCII that are complete, or all that
// is there; broken ones become the replacement character, byte by byte.
func (t *jsonText) drainRune(all bool) {
	for t.utfCount > 0 && (all || utf8.FullRune(t.utf[:t.utfCount])) {
		r, size := utf8.DecodeRune(t.utf[:t.utfCount])
		t.addRune(r)
		copy(t.utf[:], t.utf[size:t.utfCount])
		t.utfCount -= size
	}
}

func (t *jsonText) escaped(c byte) {
	t.escape = 0
	if c == 'u' {
		t.escape, t.unit = 4, 0
		return
	}
	at := strings.IndexByte(`"\/bfnrt`, c)
	if at < 0 {
		_ = t.fail("an unknown escape")
		return
	}
	t.half()
	t.add([]byte{"\"\\/\b\f\n\r\t"[at]})
}

func (t *jsonText) digit(c byte) {
	at := strings.IndexByte("0123456789abcdef", c|0x20)
	if at < 0 || c < '0' {
		_ = t.fail("a bad \\u escape")
		return
	}
	t.unit = t.unit<<4 | rune(at)
	if t.escape--; t.escape > 0 {
		return
	}
	if t.high != 0 {
		if pair := utf16.DecodeRune(t.high, t.unit); pair != utf8.RuneError {
			t.high = 0
			t.addRune(pair)
			return
		}
		t.half()
	}
	switch {
	case !utf16.IsSurrogate(t.unit):
		t.addRune(t.unit)
	case t.unit < 0xDC00:
		t.high = t.unit
	default:
		t.addRune(utf8.RuneError)
	}
}

func (t *jsonText) endString() {
	t.flush(t.i + 1)
	text := string(t.token)
	if t.isKey {
		t.l.key(text, t.length)
		t.state = wantColon
		return
	}
	t.l.scalar(scalar{text: text, length: t.length})
	t.after()
}

// end is told that nothing follows.
func (t *jsonText) end() error {
	if t.err == nil && t.state == inLiteral {
		_ = t.endLiteral()
	}
	if t.err == nil && t.state != textOver {
		return t.fail("unexpected end")
	}
	return t.err
}
