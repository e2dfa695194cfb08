package schema

import (
	"regexp"
	"strings"
)

// Shape is the set of values a field takes.
type Shape uint8

// The shapes; a field may take several.
const (
	Text     Shape = 1 << iota // text; a number or a boolean is written out
	Code                       // text, and nothing that YAML reads as something else
	Flag                       // true or false, or a word for one of them
	Number                     // a number, or text that is one
	Duration                   // seconds, or text such as 30s or 5m
	List
	Map
)

// Any is the shape of a field that takes every value.
const Any = Text | List | Map

// The texts that stand for values of other types. They are written for both
// Go's regular expressions and those of JSON Schema.
const (
	FlagPattern     = `^\s*([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]|[Yy][Ee][Ss]|[Nn][Oo]|[Oo][Nn]|[Oo][Ff][Ff]|1|0)\s*$`
	NumberPattern   = `^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$`
	DurationPattern = `^\s*(\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)\s*$`
)

var (
	flagText     = regexp.MustCompile(FlagPattern)
	numberText   = regexp.MustCompile(NumberPattern)
	durationText = regexp.MustCompile(DurationPattern)
)

// Has tells whether all of other is in the set.
func (s Shape) Has(other Shape) bool { return s&other == other }

// Scalar tells whether the set takes a literal: nil is not one, and neither
// are lists and maps.
func (s Shape) Scalar(v any) bool {
	switch v := v.(type) {
	case bool:
		return s&(Text|Flag) != 0
	case int64:
		return s&(Text|Number) != 0 || s.Has(Duration) && v >= 0 || s.Has(Flag) && (v == 0 || v == 1)
	case float64:
		return s&(Text|Number) != 0 || s.Has(Duration) && v >= 0
	case string:
		return s&(Text|Code) != 0 || s.Has(Flag) && flagText.MatchString(v) ||
			s.Has(Number) && numberText.MatchString(v) || s.Has(Duration) && durationText.MatchString(v)
	}
	return false
}

// String names the shape as an author would: "text or a list".
func (s Shape) String() string {
	if s.Has(Any) {
		return "any value"
	}
	var parts []string
	for _, p := range []struct {
		shape Shape
		name  string
	}{
		{Text | Code, "text"},
		{Flag, "true or false"},
		{Number, "a number"},
		{Duration, "seconds or a time such as 30s or 5m"},
		{List, "a list"},
		{Map, "a map"},
	} {
		if s&p.shape != 0 {
			parts = append(parts, p.name)
		}
	}
	if n := len(parts); n > 2 {
		parts = []string{strings.Join(parts[:n-1], ", "), parts[n-1]}
	}
	return strings.Join(parts, " or ")
}
