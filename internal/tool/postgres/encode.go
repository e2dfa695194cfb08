package postgres

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// encoder appends a value, which the server wrote as text, as JSON. Text that
// is not what it should be becomes a JSON string: no value is ever lost.
type encoder func(dst, src []byte) []byte

// encoder finds the one for a type.
func (k kinds) encoder(oid uint32, numerics string) encoder {
	one := k.get(oid)
	switch one.form {
	case boolean:
		return appendBool
	case integer:
		return appendNumber
	case float:
		return appendNumber
	case numeric:
		return numericEncoder(numerics)
	case document:
		return appendDocument
	case binary:
		return appendBinary
	case timestamp:
		return appendTimestamp
	case timestamptz:
		return appendTimestampTZ
	case vector:
		return appendVector
	case hstore:
		return appendHstore
	case nothing:
		return func(dst, _ []byte) []byte { return append(dst, "null"...) }
	case domain:
		return k.encoder(one.elem, numerics)
	case array:
		return arrayEncoder(k.encoder(one.elem, numerics), one.delim)
	case composite:
		return k.compositeEncoder(one, numerics)
	}
	return appendText
}

func appendBool(dst, src []byte) []byte {
	switch string(src) {
	case "t":
		return append(dst, "true"...)
	case "f":
		return append(dst, "false"...)
	}
	return appendText(dst, src)
}

// appendNumber writes numbers as they are; NaN and Infinity, which JSON does
// not have, as text.
func appendNumber(dst, src []byte) []byte {
	if !isNumber(src) {
		return appendText(dst, src)
	}
	return append(dst, src...)
}

// isNumber tells whether a text is a number in JSON too.
func isNumber(src []byte) bool {
	digits := bytes.TrimPrefix(src, []byte("-"))
	if len(digits) == 0 || digits[0] < '0' || digits[0] > '9' {
		return false
	}
	return len(bytes.Trim(digits, "0123456789.eE+-")) == 0
}

// numericEncoder writes numerics as numbers where nothing is lost by it, or
// always as one of both.
func numericEncoder(mode string) encoder {
	return func(dst, src []byte) []byte {
		if mode == "string" || !isNumber(src) || !numberHolds(string(src), mode == "number") {
			return appendText(dst, src)
		}
		return append(dst, src...)
	}
}

// numberHolds tells whether a reader of the number gets the same value; lossy
// is content with a finite one.
func numberHolds(s string, lossy bool) bool {
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	return lossy || shortened(strconv.FormatFloat(f, 'f', -1, 64)) == shortened(s)
}

// shortened drops zeros at the end of a fraction.
func shortened(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func appendDocument(dst, src []byte) []byte { return append(dst, src...) }

// appendBinary writes bytes in base64.
func appendBinary(dst, src []byte) []byte {
	raw, ok := unescapeBytes(src)
	if !ok {
		return appendText(dst, src)
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, raw)
	return append(dst, '"')
}

// unescapeBytes reads both forms in which servers write bytes.
func unescapeBytes(src []byte) ([]byte, bool) {
	if rest, ok := bytes.CutPrefix(src, []byte(`\x`)); ok {
		out, err := hex.DecodeString(string(rest))
		return out, err == nil
	}
	out := make([]byte, 0, len(src))
	for i := 0; i < len(src); i++ {
		switch {
		case src[i] != '\\':
			out = append(out, src[i])
		case i+1 < len(src) && src[i+1] == '\\':
			out = append(out, '\\')
			i++
		case i+3 < len(src):
			n, err := strconv.ParseUint(string(src[i+1:i+4]), 8, 8)
			if err != nil {
				return nil, false
			}
			out = append(out, byte(n))
			i += 3
		default:
			return nil, false
		}
	}
	return out, true
}

// appendTimestamp puts the T between date and time; infinity stays a word.
func appendTimestamp(dst, src []byte) []byte {
	return appendText(dst, bytes.Replace(src, []byte(" "), []byte("T"), 1))
}

// appendTimestampTZ writes a moment in UTC. What RFC 3339 cannot say (infinity,
// years before 1 and after 9999) is written as the server has it.
func appendTimestampTZ(dst, src []byte) []byte {
	for _, layout := range []string{"2006-01-02 15:04:05.999999-07", "2006-01-02 15:04:05.999999-07:00", "2006-01-02 15:04:05.999999-07:00:00"} {
		t, err := time.Parse(layout, string(src))
		if t = t.UTC(); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t.AppendFormat(dst, `"2006-01-02T15:04:05.999999Z"`)
		}
	}
	return appendTimestamp(dst, src)
}

func appendVector(dst, src []byte) []byte {
	dst = append(dst, '[')
	for i, n := range bytes.Fields(src) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNumber(dst, n)
	}
	return append(dst, ']')
}

const hexDigits = "0123456789abcdef"

// appendText writes a JSON string. Bytes that are no UTF-8, which only servers
// without an encoding send, become replacement characters.
func appendText(dst, src []byte) []byte {
	dst = append(dst, '"')
	from := 0 // of what needs no change and is copied in one go
	for i := 0; i < len(src); {
		c := src[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && size == 1 {
				dst = utf8.AppendRune(append(dst, src[from:i]...), r)
				from = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			dst = appendEscape(append(dst, src[from:i]...), c)
			from = i + 1
		}
		i++
	}
	return append(append(dst, src[from:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\t':
		return append(dst, '\\', 't')
	case '\r':
		return append(dst, '\\', 'r')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
