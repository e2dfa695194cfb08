package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// text writes a value so that the type of the column reads it.
func (c *pgColumn) text(v any) string {
	switch v := v.(type) {
	case string:
		switch {
		case c.kind == jsonText && !json.Valid([]byte(v)):
			return string(quoteJSON(v))
		case c.kind == binary && c.base64:
			return `\x` + hex.EncodeToString(bytesOf(v))
		}
		return v
	case bool:
		if c.category == 'N' {
			if v {
				return "1"
			}
			return "0"
		}
	case float64:
		if c.whole && v == math.Trunc(v) && math.Abs(v) < 1e18 {
			return strconv.FormatInt(int64(v), 10)
		}
	case json.Number:
		if c.whole {
			if n, ok := new(big.Rat).SetString(string(v)); ok && n.IsInt() && len(v) < 40 {
				return n.Num().String()
			}
		}
	case []byte:
		if c.kind == binary || !utf8.Valid(v) {
			return `\x` + hex.EncodeToString(v)
		}
		return string(v)
	case json.RawMessage:
		if c.list {
			if list, ok := arrayText(v); ok {
				return list
			}
		}
	}
	return textOf(v)
}

// bytesOf reads bytes that a file or a service holds as text: as base64, else as
// \x and hexadecimal digits, else as they are.
func bytesOf(s string) []byte {
	if rest, ok := strings.CutPrefix(s, `\x`); ok {
		if b, err := hex.DecodeString(rest); err == nil {
			return b
		}
	}
	if b, err := base64.StdEncoding.DecodeString(s); err == nil {
		return b
	}
	return []byte(s)
}

func quoteJSON(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return json.RawMessage(`""`)
	}
	return b
}

// arrayText writes a JSON list the way PostgreSQL writes arrays.
func arrayText(raw json.RawMessage) (string, bool) {
	var list []json.RawMessage
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &list) != nil {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('{')
	for i, item := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		if nested, ok := arrayText(item); ok {
			b.WriteString(nested)
			continue
		}
		v, err := plain(item)
		switch {
		case err != nil:
			return "", false
		case v == nil:
			b.WriteString("NULL")
		default:
			b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(textOf(v)) + `"`)
		}
	}
	b.WriteByte('}')
	return b.String(), true
}

// appendCopy writes a value in the text form of COPY.
func appendCopy(b []byte, s string) []byte {
	from := 0
	for i := range len(s) {
		var c byte
		switch s[i] {
		case '\\':
			c = '\\'
		case '\t':
			c = 't'
		case '\n':
			c = 'n'
		case '\r':
			c = 'r'
		default:
			continue
		}
		b = append(append(b, s[from:i]...), '\\', c)
		from = i + 1
	}
	return append(b, s[from:]...)
}
