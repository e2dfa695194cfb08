package engine

import (
	"bytes"
	"encoding/json"
)

// members calls f for each member of a JSON object, in order, without copying.
// The text must be valid JSON; anything but an object has no members. Payloads
// of worker events are read this way because every one of them is.
func members(raw []byte, f func(key string, value json.RawMessage)) {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return
	}
	for i = skipSpace(raw, i+1); i < len(raw) && raw[i] == '"'; {
		end := skipValue(raw, i)
		key := text(raw[i:end])
		i = skipSpace(raw, end)
		if i >= len(raw) || raw[i] != ':' {
			return
		}
		i = skipSpace(raw, i+1)
		if end = skipValue(raw, i); end == i {
			return
		}
		f(key, json.RawMessage(raw[i:end:end]))
		if i = skipSpace(raw, end); i >= len(raw) || raw[i] != ',' {
			return
		}
		i = skipSpace(raw, i+1)
	}
}

// text is the content of a JSON string.
func text(quoted []byte) string {
	if len(quoted) >= 2 && bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	_ = json.Unmarshal(quoted, &s) // the text is valid
	return s
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue is the index behind the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 { // a number or a word ended here
				return i
			}
			depth--
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
			continue
		default:
			if depth == 0 && i+1 < len(b) && !delimits(b[i+1]) {
				continue
			}
		}
		if depth == 0 {
			return min(i+1, len(b))
		}
	}
	return min(i, len(b))
}

func delimits(c byte) bool {
	return bytes.IndexByte([]byte(",:}] \n\t\r"), c) >= 0
}
