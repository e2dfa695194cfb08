package duckdb

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// appendJSON writes a value as JSON. Nothing becomes null that is not: numbers
// that JSON's readers would round, and those JSON has no words for, are text.
func appendJSON(b []byte, v any, k *kind) ([]byte, error) {
	switch v := plain(v, k).(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		return appendFloat(b, v), nil
	case json.Number:
		if exact(string(v)) {
			return append(b, v...), nil
		}
		return appendString(b, string(v)), nil
	case string:
		return appendString(b, v), nil
	case []byte:
		return appendString(b, base64.StdEncoding.EncodeToString(v)), nil
	case json.RawMessage:
		return append(b, v...), nil
	case []any:
		return appendList(b, v, k)
	case map[string]any:
		return appendStruct(b, v, k)
	case pairs:
		return appendMap(b, v, k)
	case union:
		return appendUnion(b, v, k)
	default:
		return b, fmt.Errorf("a value of type %T cannot be written as JSON; cast it to VARCHAR", v)
	}
}

// plain turns what the library gives into nil, bool, int64, float64,
// json.Number, string, []byte (a BLOB), json.RawMessage (JSON), or one of the
// nested types.
func plain(v any, k *kind) any {
	if n, isInt := integer(v); isInt {
		return n
	}
	switch v := v.(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
		return json.Number(strconv.FormatUint(v, 10))
	case float32:
		f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
		return f
	case *big.Int:
		if v.IsInt64() {
			return v.Int64()
		}
		return json.Number(v.String())
	case decimal:
		return json.Number(v)
	case interval:
		return v.String()
	case time.Time:
		return formatTime(v, k)
	case []byte:
		if k != nil && k.name == "UUID" && len(v) == 16 {
			return uuid(v)
		}
		return v
	case string:
		if k.isJSON() && json.Valid([]byte(v)) {
			return json.RawMessage(v)
		}
		return v
	case nil, bool, float64, []any, map[string]any, json.Number, pairs, union:
		return v
	}
	if library == nil {
		return v
	}
	switch ours := library.plain(v).(type) {
	case decimal, interval, pairs, union, string:
		return plain(ours, k)
	}
	return v
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case int32:
		return int64(v), true
	case int16:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint8:
		return int64(v), true
	case int:
		return int64(v), true
	}
	return 0, false
}

// exact tells whether a number survives a reader that keeps whole numbers in
// 64 bits and all others as float64.
func exact(text string) bool {
	if !strings.Contains(text, ".") {
		_, err := strconv.ParseInt(text, 10, 64)
		return err == nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	short := strconv.FormatFloat(f, 'f', -1, 64)
	plain := strings.TrimRight(strings.TrimRight(text, "0"), ".")
	return short == plain || plain == "" || plain == "-" || plain == "-0" && f == 0
}

func appendFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	case f == math.Trunc(f) && math.Abs(f) < 1e15: // a float stays one: 2.0
		return strconv.AppendFloat(b, f, 'f', 1, 64)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

const hexDigits = "0123456789abcdef"

// appendString writes text as a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(append(b, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(b, s[from:]...), '"')
}

func appendList(b []byte, list []any, k *kind) (_ []byte, err error) {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendJSON(b, v, k.element()); err != nil {
			return b, err
		}
	}
	return append(b, ']'), nil
}

// appendStruct keeps the order of the type. Values decoded from JSON by the
// library have no type, and are ordered by name.
func appendStruct(b []byte, m map[string]any, k *kind) (_ []byte, err error) {
	names := make([]string, 0, len(m))
	kinds := map[string]*kind{}
	for i := range len(m) {
		if f := k.member(i); f.kind != nil {
			names = append(names, f.name)
			kinds[f.name] = f.kind
		}
	}
	if len(names) != len(m) {
		names = names[:0]
		for name := range m {
			names = append(names, name)
		}
		sort.Strings(names)
	}
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, name), ':')
		if b, err = appendJSON(b, m[name], kinds[name]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// appendMap writes a MAP as an object; keys that are no text are written out.
func appendMap(b []byte, m pairs, k *kind) (_ []byte, err error) {
	var keyKind *kind
	if k != nil {
		keyKind = k.key
	}
	b = append(b, '{')
	for i := range m.keys {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := appendJSON(nil, m.keys[i], keyKind)
		if err != nil {
			return b, err
		}
		if name[0] != '"' {
			name = appendString(nil, string(name))
		}
		b = append(append(b, name...), ':')
		if b, err = appendJSON(b, m.values[i], k.element()); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// appendUnion writes {tag: value}.
func appendUnion(b []byte, u union, k *kind) (_ []byte, err error) {
	var member *kind
	if k != nil {
		for _, f := range k.fields {
			if f.name == u.tag {
				member = f.kind
			}
		}
	}
	b = append(appendString(append(b, '{'), u.tag), ':')
	if b, err = appendJSON(b, u.value, member); err != nil {
		return b, err
	}
	return append(b, '}'), nil
}

// formatTime writes a moment the way ISO does, as precise as it is.
func formatTime(t time.Time, k *kind) string {
	name := ""
	if k != nil {
		name = k.name
	}
	switch name {
	case "DATE":
		switch t.Year() {
		case 5881580:
			return "infinity"
		case -5877641:
			return "-infinity"
		}
		return t.Format("2006-01-02")
	case "TIME":
		return t.Format("15:04:05.999999999")
	case "TIMETZ", "TIME WITH TIME ZONE":
		return t.Format("15:04:05.999999999Z07:00")
	}
	switch t.UnixMicro() {
	case math.MaxInt64:
		return "infinity"
	case -math.MaxInt64:
		return "-infinity"
	}
	if name == "TIMESTAMPTZ" || name == "TIMESTAMP WITH TIME ZONE" {
		return t.Format(time.RFC3339Nano)
	}
	return t.Format("2006-01-02T15:04:05.999999999")
}

// String is the interval as ISO 8601 writes durations: P1M2DT3.5S.
func (v interval) String() string {
	var b strings.Builder
	b.WriteByte('P')
	if v.months != 0 {
		fmt.Fprintf(&b, "%dM", v.months)
	}
	if v.days != 0 {
		fmt.Fprintf(&b, "%dD", v.days)
	}
	if v.micros != 0 || v.months == 0 && v.days == 0 {
		b.WriteByte('T')
		sign, micros := "", uint64(v.micros)
		if v.micros < 0 {
			sign, micros = "-", -micros
		}
		b.WriteString(sign + strconv.FormatUint(micros/1e6, 10))
		if rest := micros % 1e6; rest != 0 {
			b.WriteString("." + strings.TrimRight(fmt.Sprintf("%06d", rest), "0"))
		}
		b.WriteByte('S')
	}
	return b.String()
}

func uuid(b []byte) string {
	h := hex.EncodeToString(b)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}
