package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Fields reads the rendered config of a call. A field is given by its name and
// aliases; the first one that is present and not null counts. Every complaint
// is an *Error of kind config that names the field as its author wrote it.
type Fields map[string]any

// Fields is the call's config, ready to be read.
func (c *Call) Fields() Fields { return Fields(c.Config) }

// First finds the first of names that is present and not null.
func (f Fields) First(names ...string) (name string, value any, ok bool) {
	for _, n := range names {
		if v := f[n]; v != nil {
			return n, v, true
		}
	}
	return "", nil, false
}

// String is a text field; numbers and booleans are written out. An absent
// field is "".
func (f Fields) String(names ...string) (string, error) {
	name, v, ok := f.First(names...)
	if !ok {
		return "", nil
	}
	switch v.(type) {
	case map[string]any, []any:
		return "", ConfigErrorf("%s must be text, not %s", name, typeName(v))
	}
	return Text(v)
}

// Bool is a yes/no field, def when absent. The words true, false, yes, no, on,
// off, 1 and 0 are understood in any case.
func (f Fields) Bool(def bool, names ...string) (bool, error) {
	name, v, ok := f.First(names...)
	if !ok {
		return def, nil
	}
	if b, isBool := v.(bool); isBool {
		return b, nil
	}
	text, _ := Text(v)
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return def, ConfigErrorf("%s must be true or false, not %q", name, text)
}

// Object is a map field; nil when absent.
func (f Fields) Object(names ...string) (map[string]any, error) {
	name, v, ok := f.First(names...)
	if !ok {
		return nil, nil
	}
	m, isMap := v.(map[string]any)
	if !isMap {
		return nil, ConfigErrorf("%s must be a map of names to values, not %s", name, typeName(v))
	}
	return m, nil
}

// Texts is a map field whose values are written out as text: scalars as they
// read, lists and maps as JSON. Nulls are dropped.
func (f Fields) Texts(names ...string) (map[string]string, error) {
	m, err := f.Object(names...)
	if err != nil || m == nil {
		return nil, err
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		if v == nil {
			continue
		}
		if out[k], err = Text(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Duration is a time field: a number of seconds, the same as text, or a Go
// duration such as "30s" or "5m". An absent field is 0.
func (f Fields) Duration(names ...string) (time.Duration, error) {
	name, v, ok := f.First(names...)
	if !ok {
		return 0, nil
	}
	d, err := ParseDuration(v)
	if err != nil {
		return 0, ConfigErrorf("%s: %v", name, err)
	}
	return d, nil
}

// ParseDuration understands a number of seconds, the same as text, and Go
// durations. Negative values are refused.
func ParseDuration(v any) (time.Duration, error) {
	text, err := Text(v)
	if err != nil {
		return 0, err
	}
	text = strings.TrimSpace(text)
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, numErr := strconv.ParseFloat(text, 64)
		if numErr != nil || math.IsNaN(seconds) {
			return 0, fmt.Errorf("%q is not a duration; write seconds (30) or a text such as 30s or 5m", text)
		}
		// A century: anything above is a mistake, and would overflow.
		if math.Abs(seconds) > 3.2e9 {
			return 0, fmt.Errorf("%q seconds is too long", text)
		}
		d = time.Duration(seconds * float64(time.Second))
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is negative", text)
	}
	return d, nil
}

// Text writes a JSON-like value as text: strings as they are, whole floats
// without a fraction, lists and maps as JSON, nil as "".
func Text(v any) (string, error) {
	switch x := v.(type) {
	case nil:
		return "", nil
	case string:
		return x, nil
	case bool:
		return strconv.FormatBool(x), nil
	case int:
		return strconv.Itoa(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case float64:
		if math.Abs(x) < 1e15 {
			return strconv.FormatFloat(x, 'f', -1, 64), nil
		}
		return strconv.FormatFloat(x, 'g', -1, 64), nil
	}
	b, err := Encode(v)
	return string(b), err
}

// Encode is v as compact JSON without HTML escapes, so that text reads back
// as its author wrote it.
func Encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, ConfigErrorf("value cannot be written as JSON: %v", err)
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// SortedKeys gives a map a stable order, so that the same call always makes
// the same request.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// ConfigErrorf is a complaint about the author's fields: never retried.
func ConfigErrorf(format string, args ...any) *Error {
	return &Error{Kind: KindConfig, Code: "CONFIG", Message: fmt.Sprintf(format, args...)}
}

// typeName names a JSON-like value's type in words authors know.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "text"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	}
	return "a number"
}
