package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Canonical JSON is the one text of a value that checksums are taken over: no
// blanks, members sorted by the bytes of their names, text escaped no more than
// it must be, and numbers in one notation. Checksums made by other
// implementations of NoETL are over the same text.

// Canonical is the canonical text of the JSON in raw. The error is Invalid
// when raw is not one JSON value.
func Canonical(raw []byte) ([]byte, error) { return AppendCanonical(nil, raw) }

// AppendCanonical appends the canonical text of the JSON in raw to dst.
func AppendCanonical(dst, raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return dst, Errorf(Invalid, "the value is not JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return dst, Errorf(Invalid, "the value is followed by something else")
	}
	return appendCanonical(dst, v), nil
}

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return AppendCanonicalText(b, v)
	case json.Number:
		return appendCanonicalNumber(b, string(v))
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendCanonical(b, e)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendCanonicalText(b, k)
			b = append(b, ':')
			b = appendCanonical(b, v[k])
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("event: %T does not come out of a JSON decoder", v))
}

const hexDigits = "0123456789abcdef"

// AppendCanonicalText appends s as a string: only quotes, backslashes and
// control characters are escaped.
func AppendCanonicalText(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c >= ' ':
			b = append(b, c)
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
	}
	return append(b, '"')
}

// appendCanonicalNumber appends a number. Integers of 64 bits, signed or not,
// are written in full; every other number is a double. A double too large to
// be one keeps its literal, for want of anything better.
func appendCanonicalNumber(b []byte, literal string) []byte {
	if n, err := strconv.ParseInt(literal, 10, 64); err == nil && (n != 0 || literal[0] != '-') {
		return strconv.AppendInt(b, n, 10)
	}
	if n, err := strconv.ParseUint(literal, 10, 64); err == nil {
		return strconv.AppendUint(b, n, 10)
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) {
		return append(b, literal...)
	}
	return appendDouble(b, f)
}

// appendDouble writes the fewest digits that read back as f, always with a
// fraction or an exponent: in decimal notation while the point stands within or
// near the digits, in scientific notation otherwise.
func appendDouble(b []byte, f float64) []byte {
	if math.Signbit(f) {
		b, f = append(b, '-'), -f
	}
	if f == 0 {
		return append(b, "0.0"...)
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64) // d[.ddd]e±dd
	e := bytes.IndexByte(text, 'e')
	exp, _ := strconv.Atoi(string(text[e+1:]))
	digits := append([]byte{text[0]}, bytes.TrimPrefix(text[1:e], []byte("."))...)
	switch point := exp + 1; { // digits before the point
	case point > 16 || point <= -5:
		b = append(b, digits[0])
		if len(digits) > 1 {
			b = append(append(b, '.'), digits[1:]...)
		}
		return strconv.AppendInt(append(b, 'e'), int64(exp), 10)
	case point <= 0:
		b = append(b, "0."...)
		b = append(b, bytes.Repeat([]byte("0"), -point)...)
		return append(b, digits...)
	case point >= len(digits):
		b = append(b, digits...)
		b = append(b, bytes.Repeat([]byte("0"), point-len(digits))...)
		return append(b, ".0"...)
	default:
		b = append(b, digits[:point]...)
		return append(append(b, '.'), digits[point:]...)
	}
}
