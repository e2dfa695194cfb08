package jinja

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ToJSON returns a value as compact JSON. See AppendJSON.
func ToJSON(v any) ([]byte, error) { return AppendJSON(nil, v) }

// SortedJSON is ToJSON with the keys of every mapping sorted, which is what the
// tojson filter prints. Equal values have equal bytes.
func SortedJSON(v any) ([]byte, error) {
	w := jsonWriter{sorted: true}
	return w.value(nil, v, 0)
}

// AppendJSON appends a value as compact JSON. A *Dict keeps its order, the keys
// of a map[string]any are sorted, undefined is null, and a float always has a
// point or an exponent so that it is read back as a float. It fails on NaN and
// infinities, on functions, and on values nested too deeply.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	w := jsonWriter{}
	return w.value(dst, v, 0)
}

// jsonWriter writes JSON. With an indent it puts every element on its own line.
// Every value takes at least a byte, so that a limit of bytes bounds the work.
type jsonWriter struct {
	sorted bool
	indent int
	budget *budget
}

func (w *jsonWriter) value(dst []byte, v any, depth int) ([]byte, error) {
	if depth > maxNesting {
		return nil, nestingError()
	}
	if w.budget != nil && len(dst) > w.budget.limits.Bytes {
		return nil, w.budget.grow(-1)
	}
	if raw, ok := v.(json.RawMessage); ok && !w.sorted && w.indent == 0 {
		return appendRaw(dst, raw)
	}
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case nil, Undefined:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, n), nil
	case int64:
		return strconv.AppendInt(dst, n, 10), nil
	case float64:
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, valueError("%s has no JSON form", floatText(n))
		}
		return appendFloat(dst, n), nil
	case string:
		return appendJSONString(dst, n), nil
	}
	if list, ok := sequence(n); ok {
		return w.list(dst, list, depth)
	}
	if d, ok := mapping(n); ok {
		return w.dict(dst, d, depth)
	}
	return nil, typeError("a value of type %s has no JSON form", typeName(n))
}

func (w *jsonWriter) list(dst []byte, list []any, depth int) ([]byte, error) {
	if len(list) == 0 {
		return append(dst, "[]"...), nil
	}
	var err error
	dst = append(dst, '[')
	for i, e := range list {
		dst = w.separate(dst, i, depth+1)
		if dst, err = w.value(dst, e, depth+1); err != nil {
			return nil, err
		}
	}
	return append(w.newline(dst, depth), ']'), nil
}

// dict writes a mapping. Sorting copies the entries: the value may be shared.
func (w *jsonWriter) dict(dst []byte, d *Dict, depth int) ([]byte, error) {
	if d.Len() == 0 {
		return append(dst, "{}"...), nil
	}
	entries := d.entries
	if w.sorted && !slices.IsSortedFunc(entries, byKey) {
		entries = slices.SortedFunc(slices.Values(entries), byKey)
	}
	var err error
	dst = append(dst, '{')
	for i := range entries {
		dst = w.separate(dst, i, depth+1)
		dst = append(appendJSONString(dst, entries[i].key), ':')
		if w.indent > 0 {
			dst = append(dst, ' ')
		}
		if dst, err = w.value(dst, entries[i].val, depth+1); err != nil {
			return nil, err
		}
	}
	return append(w.newline(dst, depth), '}'), nil
}

func byKey(a, b entry) int {
	switch {
	case a.key < b.key:
		return -1
	case a.key > b.key:
		return 1
	}
	return 0
}

func (w *jsonWriter) separate(dst []byte, i, depth int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return w.newline(dst, depth)
}

func (w *jsonWriter) newline(dst []byte, depth int) []byte {
	if w.indent == 0 {
		return dst
	}
	dst = append(dst, '\n')
	for range w.indent * depth {
		dst = append(dst, ' ')
	}
	return dst
}

// appendRaw appends lazy JSON in compact form, refusing what is not JSON.
func appendRaw(dst []byte, raw json.RawMessage) ([]byte, error) {
	v, err := FromJSON(raw)
	if err != nil {
		return nil, err
	}
	return AppendJSON(dst, v)
}

// appendFloat appends the shortest text that reads back as the same float, with
// a point or an exponent in it, switching to exponents where Python does.
func appendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if slices.Contains(dst[start:], '.') {
		return dst
	}
	return append(dst, ".0"...)
}

const hexDigits = "0123456789abcdef"

// appendJSONString quotes a string, escaping only what JSON requires plus the
// two line separators that JavaScript would trip over.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendEscape(dst, c)
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
			start = i + 1
		} else if r == '\u2028' || r == '\u2029' {
			dst = append(append(dst, s[start:i]...), `\u202`...)
			dst = append(dst, hexDigits[r&0xf])
			start = i + size
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}
