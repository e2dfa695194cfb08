package openapi

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Document is a description of an API.
type Document struct {
	OpenAPI    string   `json:"openapi"`
	Info       Info     `json:"info"`
	Servers    []Server `json:"servers"`
	Tags       []Tag    `json:"tags"`
	Paths      Paths    `json:"paths"`
	Components Shared   `json:"components"`
}

// Info says what the API is.
type Info struct {
	Title       string `json:"title"`
	Summary     string `json:"summary,omitempty"`
	Description string `json:"description"`
	Version     string `json:"version"`
}

// Server is where the API is.
type Server struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
}

// Tag groups operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Shared is what operations refer to.
type Shared struct {
	Schemas  map[string]*Schema        `json:"schemas"`
	Answers  map[string]*Answer        `json:"responses"`
	Security map[string]SecurityScheme `json:"securitySchemes"`
}

// SecurityScheme is a way to say who calls.
type SecurityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme,omitempty"`
	In          string `json:"in,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description"`
}

// Paths are the paths in the order of the table, each with its methods.
type Paths []Path

// Path is one of them.
type Path struct {
	Path       string
	Operations []*Operation
}

// MarshalJSON keeps the order.
func (p Paths) MarshalJSON() ([]byte, error) {
	return ordered(len(p), func(i int) (string, any) { return p[i].Path, methods(p[i].Operations) })
}

type methods []*Operation

func (m methods) MarshalJSON() ([]byte, error) {
	return ordered(len(m), func(i int) (string, any) { return strings.ToLower(m[i].Method), m[i] })
}

// Operation is one method of a path.
type Operation struct {
	Method string `json:"-"`
	Path   string `json:"-"`

	ID          string                `json:"operationId"`
	Tags        []string              `json:"tags"`
	Summary     string                `json:"summary"`
	Description string                `json:"description,omitempty"`
	Deprecated  bool                  `json:"deprecated,omitempty"`
	Security    []map[string][]string `json:"security"`
	Parameters  []Parameter           `json:"parameters,omitempty"`
	Body        *Body                 `json:"requestBody,omitempty"`
	Answers     Answers               `json:"responses"`

	Role    string `json:"x-noetl-role"`
	Scope   string `json:"x-noetl-scope,omitempty"`    // how the route concerns playbook paths
	MaxBody int64  `json:"x-noetl-max-body,omitempty"` // bytes; 0 when there is no body, -1 when any size will do
	Pattern string `json:"x-noetl-pattern,omitempty"`  // of the server's table, where it is not the path

	Example *Example `json:"-"` // a real exchange, for the page
}

// Add puts an operation under its path.
func (p *Paths) Add(o *Operation) {
	for i := range *p {
		if (*p)[i].Path == o.Path {
			(*p)[i].Operations = append((*p)[i].Operations, o)
			return
		}
	}
	*p = append(*p, Path{o.Path, []*Operation{o}})
}

// Parameter is a part of the path, the query or the headers.
type Parameter struct {
	Name        string  `json:"name"`
	In          string  `json:"in"` // path, query or header
	Required    bool    `json:"required,omitempty"`
	Deprecated  bool    `json:"deprecated,omitempty"`
	Description string  `json:"description,omitempty"`
	Schema      *Schema `json:"schema"`
}

// Body is what a request carries.
type Body struct {
	Description string           `json:"description,omitempty"`
	Required    bool             `json:"required,omitempty"`
	Content     map[string]Media `json:"content"`
}

// Media is one form of a body.
type Media struct {
	Schema  *Schema `json:"schema,omitempty"`
	Example any     `json:"example,omitempty"`
	// Events are the schemas of the data of server-sent events, by their name; *
	// is any other.
	Events map[string]*Schema `json:"x-noetl-events,omitempty"`
}

// Answers are what may come back, by status; "default" is every other.
type Answers []StatusAnswer

// StatusAnswer is the answer under a status.
type StatusAnswer struct {
	Status string
	Answer *Answer
}

// MarshalJSON keeps the order.
func (a Answers) MarshalJSON() ([]byte, error) {
	return ordered(len(a), func(i int) (string, any) { return a[i].Status, a[i].Answer })
}

// Answer is what comes back.
type Answer struct {
	Ref         string            `json:"$ref,omitempty"`
	Description string            `json:"description,omitempty"`
	Headers     map[string]Header `json:"headers,omitempty"`
	Content     map[string]Media  `json:"content,omitempty"`
}

// Header is one of an answer.
type Header struct {
	Description string  `json:"description"`
	Schema      *Schema `json:"schema"`
}

// Example is a real request and what came back. Bodies are JSON, or text.
type Example struct {
	Path    string          `json:"path"` // with the query
	Body    json.RawMessage `json:"body,omitempty"`
	Status  int             `json:"status"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Content string          `json:"content_type,omitempty"`
}

// Encode writes the document with two blanks of indent.
func (d *Document) Encode() ([]byte, error) {
	raw, err := encode(d)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}
