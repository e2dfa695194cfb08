package jinja

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Undefined is what a missing name or attribute evaluates to. It is falsy,
// prints as nothing and answers every attribute with itself; computing with it
// is an error that says its name.
type Undefined struct{ Name string }

// IsUndefined reports whether a value is Undefined.
func IsUndefined(v any) bool {
	_, ok := v.(Undefined)
	return ok
}

// Object is a custom value. Attr answers x.name and x['name'].
type Object interface {
	Attr(name string) (any, bool)
}

// Indexer is a Wrapper of a list that knows some of its items without the rest:
// x[i] asks it first.
type Indexer interface {
	Item(i int) (v any, ok bool)
}

// Wrapper is an Object that otherwise behaves as the value it wraps: for
// iteration, length, index, printing, JSON, truth and equality. An attribute
// that Attr does not know is looked up in the wrapped value.
type Wrapper interface {
	Object
	Unwrap() any
}

// Word is a string that also equals its synonyms; it prints as Text.
type Word struct {
	Text string
	Same []string
}

func (w Word) is(s string) bool {
	return w.Text == s || slices.Contains(w.Same, s)
}

// spelled is the word with every spelling changed, so that the synonyms of a
// word still equal it after | lower.
func (w Word) spelled(f func(string) string) Word {
	out := Word{Text: f(w.Text), Same: make([]string, len(w.Same))}
	for i, s := range w.Same {
		out.Same[i] = f(s)
	}
	return out
}

// tuple is a list that prints with parentheses. It never leaves the package:
// exported hands out []any instead.
type tuple []any

// jsonText is a string made by the tojson filter. As the value of a lone
// expression it is parsed back.
type jsonText string

// absent marks an argument that was not given and a local that is not yet set.
type absent struct{}

var unset any = absent{}

// maxWraps is how many Wrappers around one value are peeled off.
const maxWraps = 100

// norm brings a value from outside into the value model. Objects stay as they
// are. It fails only on a json.RawMessage that is not JSON.
func norm(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int64, float64, string, []any, *Dict, map[string]any,
		Undefined, Word, tuple, jsonText, absent, callable:
		return v, nil
	case Object:
		return v, nil
	case Vars:
		return map[string]any(v), nil
	case json.RawMessage:
		return FromJSON(v)
	case int:
		return int64(v), nil
	case json.Number:
		return number(string(v))
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		return list, nil
	}
	return foreign(v)
}

// foreign converts any other Go value by its kind, or through its own JSON.
func foreign(v any) (any, error) {
	if m, ok := v.(json.Marshaler); ok {
		if r := reflect.ValueOf(v); r.Kind() == reflect.Pointer && r.IsNil() {
			return nil, nil
		}
		b, err := m.MarshalJSON()
		if err != nil {
			return nil, err
		}
		return FromJSON(b)
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Bool:
		return r.Bool(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return r.Int(), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		if u := r.Uint(); u > math.MaxInt64 {
			return float64(u), nil
		}
		return int64(r.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return r.Float(), nil
	case reflect.String:
		return r.String(), nil
	case reflect.Slice, reflect.Array:
		return foreignList(r), nil
	case reflect.Map:
		return foreignMap(r)
	case reflect.Pointer:
		if r.IsNil() {
			return nil, nil
		}
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, typeError("a Go value of type %T cannot be used in a template", v)
	}
	return FromJSON(b)
}

func foreignList(r reflect.Value) any {
	if r.Kind() == reflect.Slice && r.Type().Elem().Kind() == reflect.Uint8 {
		return string(r.Bytes())
	}
	list := make([]any, r.Len())
	for i := range list {
		list[i] = r.Index(i).Interface()
	}
	return list
}

// foreignMap converts a map whose keys are strings by any name; others go
// through JSON.
func foreignMap(r reflect.Value) (any, error) {
	if r.Type().Key().Kind() != reflect.String {
		b, err := json.Marshal(r.Interface())
		if err != nil {
			return nil, typeError("a Go value of type %s cannot be used in a template", r.Type())
		}
		return FromJSON(b)
	}
	m := make(map[string]any, r.Len())
	for it := r.MapRange(); it.Next(); {
		m[it.Key().String()] = it.Value().Interface()
	}
	return m, nil
}

// base is norm with Wrappers, Words and JSON texts reduced to what they stand for.
func base(v any) (any, error) {
	switch v.(type) {
	case nil, bool, int64, float64, string, []any, *Dict, map[string]any, Undefined, tuple:
		return v, nil
	}
	for range maxWraps {
		n, err := norm(v)
		if err != nil {
			return nil, err
		}
		switch n := n.(type) {
		case Word:
			return n.Text, nil
		case jsonText:
			return string(n), nil
		case Wrapper:
			v = n.Unwrap()
		default:
			return n, nil
		}
	}
	return nil, limitError("a value is wrapped in itself")
}

// sequence returns the elements of a list or tuple.
func sequence(v any) ([]any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case tuple:
		return v, true
	}
	return nil, false
}

// mapping returns a *Dict or a map[string]any as a Dict.
func mapping(v any) (*Dict, bool) {
	switch v := v.(type) {
	case *Dict:
		return v, true
	case map[string]any:
		return sortedDict(v), true
	case *namespace:
		return &v.vars, true
	}
	return nil, false
}

// sortedDict gives a Go map, which has no order, that of its keys.
func sortedDict(m map[string]any) *Dict {
	d := NewDict(len(m))
	for _, k := range sortedKeys(m) {
		d.Set(k, m[k])
	}
	return d
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// typeName is the name of a value's type in messages.
func typeName(v any) string {
	n, err := base(v)
	if err != nil {
		return "invalid JSON"
	}
	switch n.(type) {
	case nil:
		return "none"
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "float"
	case string:
		return "string"
	case []any:
		return "list"
	case tuple:
		return "tuple"
	case *Dict, map[string]any:
		return "mapping"
	case Undefined:
		return "undefined"
	case callable:
		return "function"
	}
	return "object"
}

// Truthy is the truth of a value in and, or, not and if: undefined, none,
// false, zero and empty strings, lists and mappings are false.
func Truthy(v any) bool {
	if b, ok := v.(bool); ok {
		return b
	}
	n, err := base(v)
	if err != nil {
		return true
	}
	switch n := n.(type) {
	case nil, Undefined, absent:
		return false
	case bool:
		return n
	case int64:
		return n != 0
	case float64:
		return n != 0
	case string:
		return n != ""
	case []any:
		return len(n) > 0
	case tuple:
		return len(n) > 0
	case *Dict:
		return n.Len() > 0
	case map[string]any:
		return len(n) > 0
	}
	return true
}

// Condition is the truth of a value in a condition. Beyond what is not Truthy,
// the texts false, 0, no, none, null, off, {} and [] are false too, whatever
// their case and the space around them.
func Condition(v any) bool {
	if b, ok := v.(bool); ok {
		return b
	}
	n, err := base(v)
	if err != nil {
		return true
	}
	s, ok := n.(string)
	if !ok {
		return Truthy(n)
	}
	switch s = strings.TrimSpace(s); len(s) {
	case 0:
		return false
	case 1, 2, 3, 4, 5:
		switch strings.ToLower(s) {
		case "false", "0", "no", "none", "null", "off", "{}", "[]":
			return false
		}
	}
	return true
}

// runeCount is the number of characters of a string.
func runeCount(s string) int { return utf8.RuneCountInString(s) }

// Plain turns every *Dict in a value into a map[string]any and resolves
// wrappers, words and lazy JSON, so that the result holds nothing of this
// package. Undefined becomes nil, as does what cannot be resolved.
func Plain(v any) any { return plain(v, 0) }

func plain(v any, depth int) any {
	n, err := base(v)
	if err != nil || depth > maxNesting {
		return nil
	}
	switch n := n.(type) {
	case nil, bool, int64, float64, string:
		return n
	case *Dict:
		m := make(map[string]any, n.Len())
		for k, e := range n.All() {
			m[k] = plain(e, depth+1)
		}
		return m
	case map[string]any:
		m := make(map[string]any, len(n))
		for k, e := range n {
			m[k] = plain(e, depth+1)
		}
		return m
	}
	if list, ok := sequence(n); ok {
		out := make([]any, len(list))
		for i, e := range list {
			out[i] = plain(e, depth+1)
		}
		return out
	}
	return nil
}
