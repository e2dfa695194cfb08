package python

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/noetl/noetl-go/internal/tool"
)

// appendValue writes a JSON-like value so that Python reads back the same
// type: a whole float keeps its fraction, which encoding/json would drop, and
// integers keep every digit.
func appendValue(b []byte, v any) ([]byte, error) {
	switch x := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, x), nil
	case int64:
		return strconv.AppendInt(b, x, 10), nil
	case int:
		return strconv.AppendInt(b, int64(x), 10), nil
	case float64:
		return appendFloat(b, x)
	case []any:
		return appendList(b, x)
	case map[string]any:
		return appendMap(b, x)
	case json.RawMessage:
		if len(x) == 0 {
			return append(b, "null"...), nil
		}
		return append(b, x...), nil
	}
	text, err := tool.Encode(v)
	return append(b, text...), err
}

func appendFloat(b []byte, x float64) ([]byte, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil, fmt.Errorf("%v is not a number JSON can carry", x)
	}
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.AppendFloat(b, x, 'f', 1, 64), nil
	}
	return strconv.AppendFloat(b, x, 'g', -1, 64), nil
}

func appendList(b []byte, list []any) (_ []byte, err error) {
	b = append(b, '[')
	for i, item := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = appendValue(b, item); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

func appendMap(b []byte, m map[string]any) ([]byte, error) {
	b = append(b, '{')
	for i, key := range tool.SortedKeys(m) {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := tool.Encode(key)
		if err != nil {
			return nil, err
		}
		b = append(append(b, name...), ':')
		if b, err = appendValue(b, m[key]); err != nil {
			return nil, err
		}
	}
	return append(b, '}'), nil
}
