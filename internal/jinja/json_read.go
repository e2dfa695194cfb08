package jinja

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON reads one JSON value: integers that fit are int64, other numbers
// float64, objects a *Dict in their order, of equal keys the last wins. Trailing
// text is an error, and so is nesting beyond what can be printed again.
func FromJSON(b []byte) (any, error) {
	r := jsonReader{b: b}
	v, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if r.space(); r.i < len(b) {
		return nil, r.fail("text after the value")
	}
	return v, nil
}

type jsonReader struct {
	b []byte
	i int
}

func (r *jsonReader) fail(what string) error {
	if r.i >= len(r.b) {
		return valueError("invalid JSON: unexpected end")
	}
	return valueError("invalid JSON: %s at byte %d", what, r.i)
}

func (r *jsonReader) space() {
	for r.i < len(r.b) {
		switch r.b[r.i] {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return
		}
	}
}

// peek returns the next byte after white space, or zero at the end.
func (r *jsonReader) peek() byte {
	r.space()
	if r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0
}

func (r *jsonReader) value(depth int) (any, error) {
	if depth > maxNesting {
		return nil, nestingError()
	}
	switch c := r.peek(); {
	case c == '{':
		return r.object(depth)
	case c == '[':
		return r.array(depth)
	case c == '"':
		return r.str()
	case c == '-' || c >= '0' && c <= '9':
		return r.num()
	case c == 't':
		return true, r.word("true")
	case c == 'f':
		return false, r.word("false")
	case c == 'n':
		return nil, r.word("null")
	}
	return nil, r.fail("no value")
}

func (r *jsonReader) word(w string) error {
	if len(r.b)-r.i < len(w) || string(r.b[r.i:r.i+len(w)]) != w {
		return r.fail("an unknown word")
	}
	r.i += len(w)
	return nil
}

func (r *jsonReader) array(depth int) (any, error) {
	r.i++
	list := []any{}
	if r.peek() == ']' {
		r.i++
		return list, nil
	}
	for {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		switch r.peek() {
		case ',':
			r.i++
		case ']':
			r.i++
			return list, nil
		default:
			return nil, r.fail("no comma or closing bracket")
		}
	}
}

func (r *jsonReader) object(depth int) (any, error) {
	r.i++
	d := NewDict(4)
	if r.peek() == '}' {
		r.i++
		return d, nil
	}
	for {
		if r.peek() != '"' {
			return nil, r.fail("no key")
		}
		k, err := r.str()
		if err != nil {
			return nil, err
		}
		if r.peek() != ':' {
			return nil, r.fail("no colon")
		}
		r.i++
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		d.Set(k, v)
		switch r.peek() {
		case ',':
			r.i++
		case '}':
			r.i++
			return d, nil
		default:
			return nil, r.fail("no comma or closing brace")
		}
	}
}

// num reads a number. The grammar is checked here because strconv accepts more
// than JSON does.
func (r *jsonReader) num() (any, error) {
	start := r.i
	if r.b[r.i] == '-' {
		r.i++
	}
	switch {
	case r.i < len(r.b) && r.b[r.i] == '0':
		r.i++
	case !r.digits():
		return nil, r.fail("a bad number")
	}
	whole := true
	if r.i < len(r.b) && r.b[r.i] == '.' {
		whole = false
		if r.i++; !r.digits() {
			return nil, r.fail("a bad number")
		}
	}
	if r.i < len(r.b) && r.b[r.i]|0x20 == 'e' {
		whole = false
		r.i++
		if r.i < len(r.b) && (r.b[r.i] == '+' || r.b[r.i] == '-') {
			r.i++
		}
		if !r.digits() {
			return nil, r.fail("a bad number")
		}
	}
	text := string(r.b[start:r.i])
	if whole {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) {
		return nil, valueError("invalid JSON: number out of range at byte %d", start)
	}
	return f, nil
}

func (r *jsonReader) digits() bool {
	start := r.i
	for r.i < len(r.b) && r.b[r.i] >= '0' && r.b[r.i] <= '9' {
		r.i++
	}
	return r.i > start
}

// number reads a JSON number on its own.
func number(s string) (any, error) {
	r := jsonReader{b: []byte(s)}
	if c := r.peek(); c != '-' && (c < '0' || c > '9') {
		return nil, valueError("%q is not a number", s)
	}
	v, err := r.num()
	if err == nil && r.i < len(r.b) {
		err = valueError("%q is not a number", s)
	}
	return v, err
}

// str reads a string without escapes in one piece.
func (r *jsonReader) str() (string, error) {
	r.i++
	start := r.i
	for r.i < len(r.b) {
		switch c := r.b[r.i]; {
		case c == '"':
			s := string(r.b[start:r.i])
			r.i++
			return s, nil
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return r.slowStr(start)
		}
		r.i++
	}
	return "", r.fail("")
}

// slowStr reads a string that holds escapes or text beyond ASCII; broken UTF-8
// becomes the replacement character.
func (r *jsonReader) slowStr(start int) (string, error) {
	out := append([]byte(nil), r.b[start:r.i]...)
	for r.i < len(r.b) {
		switch c := r.b[r.i]; {
		case c == '"':
			r.i++
			return string(out), nil
		case c < ' ':
			return "", r.fail("a control character in a string")
		case c == '\\':
			ch, err := r.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, ch)
		case c < utf8.RuneSelf:
			out = append(out, c)
			r.i++
		default:
			ch, size := utf8.DecodeRune(r.b[r.i:])
			out = utf8.AppendRune(out, ch)
			r.i += size
		}
	}
	return "", r.fail("")
}

func (r *jsonReader) escape() (rune, error) {
	r.i++
	if r.i >= len(r.b) {
		return 0, r.fail("")
	}
	c := r.b[r.i]
	r.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return r.unicode()
	}
	r.i--
	return 0, r.fail("an unknown escape")
}

// unicode reads the digits of \u, and of the second half of a surrogate pair;
// half a pair is the replacement character.
func (r *jsonReader) unicode() (rune, error) {
	ch, ok := r.hex4()
	if !ok {
		return 0, r.fail("a bad \\u escape")
	}
	if !utf16.IsSurrogate(ch) {
		return ch, nil
	}
	if r.i+1 < len(r.b) && r.b[r.i] == '\\' && r.b[r.i+1] == 'u' {
		mark := r.i
		r.i += 2
		if low, ok := r.hex4(); ok {
			if pair := utf16.DecodeRune(ch, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
		r.i = mark
	}
	return utf8.RuneError, nil
}

func (r *jsonReader) hex4() (rune, bool) {
	if len(r.b)-r.i < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(r.b[r.i:r.i+4]), 16, 32)
	if err != nil {
		return 0, false
	}
	r.i += 4
	return rune(n), true
}
