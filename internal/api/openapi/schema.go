// Package openapi describes an HTTP API as an OpenAPI 3.1 document and as a page
// to read: it holds the parts of such a document, derives JSON Schemas from Go
// types, and writes both forms. It must not know any route, and does no I/O.
package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Schema is a JSON Schema of draft 2020-12, with the keywords we use. The zero
// value allows everything.
type Schema struct {
	Ref         string     `json:"$ref,omitempty"`
	Description string     `json:"description,omitempty"`
	Deprecated  bool       `json:"deprecated,omitempty"`
	Type        Types      `json:"type,omitempty"`
	Format      string     `json:"format,omitempty"`
	Encoding    string     `json:"contentEncoding,omitempty"`
	Pattern     string     `json:"pattern,omitempty"`
	Enum        []any      `json:"enum,omitempty"`
	Default     any        `json:"default,omitempty"`
	Minimum     *int64     `json:"minimum,omitempty"`
	Maximum     *int64     `json:"maximum,omitempty"`
	MaxItems    int        `json:"maxItems,omitempty"`
	Items       *Schema    `json:"items,omitempty"`
	Properties  Properties `json:"properties,omitempty"`
	Required    []string   `json:"required,omitempty"`
	Additional  *Schema    `json:"additionalProperties,omitempty"`
	AnyOf       []*Schema  `json:"anyOf,omitempty"`
}

// Types are the types a value may have: one is written as text, several as a list.
type Types []string

// MarshalJSON writes one type as text.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Properties are the members of an object in the order they are declared.
type Properties []Property

// Property is one of them.
type Property struct {
	Name   string
	Schema *Schema
}

// MarshalJSON keeps the order.
func (p Properties) MarshalJSON() ([]byte, error) {
	return ordered(len(p), func(i int) (string, any) { return p[i].Name, p[i].Schema })
}

// ordered writes n members as an object, in their order.
func ordered(n int, member func(i int) (name string, value any)) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		name, value := member(i)
		key, err := encode(name)
		if err != nil {
			return nil, err
		}
		raw, err := encode(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(raw)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// encode writes JSON without escapes for HTML, which nobody wants to read.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// Of is a schema of one type.
func Of(kind string) *Schema { return &Schema{Type: Types{kind}} }

// Text is a schema of texts in a format.
func Text(format string) *Schema { return &Schema{Type: Types{"string"}, Format: format} }

// List is a schema of lists.
func List(of *Schema) *Schema { return &Schema{Type: Types{"array"}, Items: of} }

// Nullable is s or null. s itself is not changed.
func Nullable(s *Schema) *Schema {
	switch {
	case slices.Contains(s.Type, "null") || slices.ContainsFunc(s.AnyOf, func(o *Schema) bool { return slices.Contains(o.Type, "null") }):
		return s
	case s.Ref != "" || len(s.AnyOf) > 0:
		return &Schema{AnyOf: []*Schema{s, Of("null")}}
	case len(s.Type) == 0: // allows it already
		return s
	}
	with := *s
	with.Type = append(append(Types{}, s.Type...), "null")
	if len(s.Enum) > 0 {
		with.Enum = append(append([]any{}, s.Enum...), nil)
	}
	return &with
}
