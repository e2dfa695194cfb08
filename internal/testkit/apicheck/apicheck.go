// Package apicheck holds what an API really says against its OpenAPI document,
// for tests: every answer must have a status, a content type and a body that the
// document describes, without members it does not name, and every request that
// was accepted must fit it, too. It also remembers which operations were called
// and one exchange of each.
package apicheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker knows a document.
type Checker struct {
	mux        *http.ServeMux
	operations map[string]*operation // by method and pattern
	failure    *jsonschema.Schema

	mu       sync.Mutex // guards what follows
	called   map[string]bool
	examples map[string]Example
}

type operation struct {
	id       string
	query    map[string]bool
	body     *jsonschema.Schema // nil = none, or of any kind
	bodyMust bool
	anyBody  bool
	answers  map[string]map[string]*media // status → type of content
}

type media struct {
	schema *jsonschema.Schema // nil for what is not JSON
	events map[string]*jsonschema.Schema
}

// Example is a real exchange.
type Example struct {
	Path    string          `json:"path"`
	Body    json.RawMessage `json:"body,omitempty"`
	Status  int             `json:"status"`
	Answer  json.RawMessage `json:"answer,omitempty"`
	Content string          `json:"content_type,omitempty"`
}

// New reads a document.
func New(document []byte) (*Checker, error) {
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	doc, ok := tree.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the document is no object")
	}
	strict(doc)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("openapi.json", doc); err != nil {
		return nil, err
	}
	r := &reader{compiler: compiler}
	c := &Checker{mux: http.NewServeMux(), operations: map[string]*operation{}, called: map[string]bool{}, examples: map[string]Example{}}
	c.failure = r.compile("#/components/schemas/Error")
	paths, _ := doc["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for method, o := range methods {
			op, _ := o.(map[string]any)
			pattern := path
			if own, ok := op["x-noetl-pattern"].(string); ok {
				pattern = own
			}
			key := strings.ToUpper(method) + " " + pattern
			c.operations[key] = r.operation(op, "#/paths/"+escape(path)+"/"+method)
			c.mux.Handle(key, http.NotFoundHandler())
		}
	}
	return c, r.err
}

var escape = strings.NewReplacer("~", "~0", "/", "~1").Replace

// strict closes the objects that answers hold: what they do not name must not
// be there. The document leaves them open, for servers may learn to say more.
func strict(doc map[string]any) {
	components, _ := doc["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	seen := map[string]bool{}
	var shut func(v any)
	shut = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				shut(item)
			}
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok && !seen[ref] {
				seen[ref] = true
				shut(schemas[strings.TrimPrefix(ref, "#/components/schemas/")])
			}
			if properties, ok := v["properties"].(map[string]any); ok {
				if _, said := v["additionalProperties"]; !said {
					v["additionalProperties"] = false
				}
				for _, p := range properties {
					shut(p)
				}
			}
			for _, key := range []string{"items", "anyOf", "additionalProperties", "schema", "x-noetl-events", "content"} {
				shut(v[key])
			}
			if v["properties"] == nil && v["type"] == nil && v["$ref"] == nil {
				for _, member := range v { // maps of content, statuses and events
					shut(member)
				}
			}
		}
	}
	shut(schemas["Error"])
	paths, _ := doc["paths"].(map[string]any)
	for _, item := range paths {
		methods, _ := item.(map[string]any)
		for _, o := range methods {
			op, _ := o.(map[string]any)
			shut(op["responses"])
		}
	}
}

// reader makes operations of the document; the first error is kept.
type reader struct {
	compiler *jsonschema.Compiler
	err      error
}

func (r *reader) compile(place string) *jsonschema.Schema {
	s, err := r.compiler.Compile("openapi.json" + place)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", place, err)
	}
	return s
}

func (r *reader) operation(op map[string]any, place string) *operation {
	o := &operation{id: fmt.Sprint(op["operationId"]), query: map[string]bool{}, answers: map[string]map[string]*media{}}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		if p, _ := p.(map[string]any); p["in"] == "query" {
			o.query[fmt.Sprint(p["name"])] = true
		}
	}
	if body, ok := op["requestBody"].(map[string]any); ok {
		o.bodyMust = body["required"] == true
		content, _ := body["content"].(map[string]any)
		if o.anyBody = content["application/json"] == nil; !o.anyBody {
			o.body = r.compile(place + "/requestBody/content/application~1json/schema")
		}
	}
	answers, _ := op["responses"].(map[string]any)
	for status, a := range answers {
		answer, _ := a.(map[string]any)
		o.answers[status] = map[string]*media{}
		content, _ := answer["content"].(map[string]any)
		for kind, m := range content {
			here := place + "/responses/" + status + "/content/" + escape(kind)
			found := &media{}
			m, _ := m.(map[string]any)
			if kind == "application/json" {
				found.schema = r.compile(here + "/schema")
			}
			events, _ := m["x-noetl-events"].(map[string]any)
			for name := range events {
				if found.events == nil {
					found.events = map[string]*jsonschema.Schema{}
				}
				found.events[name] = r.compile(here + "/x-noetl-events/" + name)
			}
			o.answers[status][kind] = found
		}
	}
	return o
}

// Operations lists the ids of all operations.
func (c *Checker) Operations() []string {
	var list []string
	for _, o := range c.operations {
		list = append(list, o.id)
	}
	slices.Sort(list)
	return list
}

// Uncalled lists the operations that nobody has called with success.
func (c *Checker) Uncalled() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(c.Operations(), func(id string) bool { return c.called[id] })
}

// Examples are the exchanges that were kept, by operation.
func (c *Checker) Examples() map[string]Example {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.examples)
}

// exchange is a request and what came back.
type exchange struct {
	method    string
	url       *url.URL
	body      []byte
	bodyCut   bool // only the beginning is there
	status    int
	header    http.Header
	answer    []byte
	answerCut bool
}

// judge says what is wrong with an exchange.
func (c *Checker) judge(e *exchange) []string {
	o := c.find(e.method, e.url)
	if o == nil {
		return c.unrouted(e)
	}
	var bad []string
	complain := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	answers, said := o.answers[strconv.Itoa(e.status)]
	switch {
	case !said && e.status < 400:
		complain("the status %d is not described", e.status)
		return bad
	case !said:
		return c.refused(e)
	}
	if e.status < 400 {
		c.accepted(o, e, complain)
	}
	if len(answers) == 0 {
		if len(e.answer) > 0 {
			complain("an answer of %d bytes, and none is described", len(e.answer))
		}
		return bad
	}
	kind, _, _ := mime.ParseMediaType(e.header.Get("Content-Type"))
	m := answers[kind]
	if m == nil {
		m = answers["*/*"]
	}
	switch {
	case m == nil:
		complain("an answer of type %q; described are %v", kind, slices.Sorted(maps.Keys(answers)))
	case e.method == http.MethodHead || e.answerCut || e.header.Get("Content-Encoding") != "":
	case m.events != nil:
		bad = append(bad, frames(m.events, e.answer)...)
	case m.schema != nil:
		if err := fits(m.schema, e.answer); err != nil {
			complain("the answer does not fit: %v\n%s", err, short(e.answer))
		}
	}
	return bad
}

// accepted checks a request that was taken.
func (c *Checker) accepted(o *operation, e *exchange, complain func(string, ...any)) {
	query, err := url.ParseQuery(e.url.RawQuery)
	if err != nil {
		complain("a query that cannot be read was accepted: %v", err)
	}
	for name := range query {
		if !o.query[name] {
			complain("the parameter %s is not described", name)
		}
	}
	empty := len(bytes.TrimSpace(e.body)) == 0
	switch {
	case o.anyBody || e.bodyCut:
	case empty && o.bodyMust:
		complain("a request without a body was accepted")
	case o.body != nil && !empty:
		if err := fits(o.body, bytes.TrimPrefix(e.body, []byte("\ufeff"))); err != nil {
			complain("a request was accepted that does not fit: %v\n%s", err, short(e.body))
		}
	}
	if e.method != http.MethodHead {
		c.mu.Lock()
		c.called[o.id] = true
		c.mu.Unlock()
	}
}

// refused checks an answer that is no success.
func (c *Checker) refused(e *exchange) []string {
	if kind := e.header.Get("Content-Type"); kind != "application/json" {
		return []string{fmt.Sprintf("an error of type %q", kind)}
	}
	if e.method == http.MethodHead || e.answerCut {
		return nil
	}
	if err := fits(c.failure, e.answer); err != nil {
		return []string{fmt.Sprintf("the error does not fit: %v\n%s", err, short(e.answer))}
	}
	return nil
}

// unrouted checks what no operation answered.
func (c *Checker) unrouted(e *exchange) []string {
	if !strings.HasPrefix(e.url.Path, "/api/") || e.status == http.StatusNoContent && e.method == http.MethodOptions {
		return nil
	}
	if e.status < 400 {
		return []string{"there is no such operation in the document"}
	}
	return c.refused(e)
}

func (c *Checker) find(method string, at *url.URL) *operation {
	r := &http.Request{Method: method, URL: at, Host: "x"}
	_, pattern := c.mux.Handler(r)
	if pattern == "" {
		return nil
	}
	return c.operations[pattern]
}

func fits(s *jsonschema.Schema, body []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// frames checks the server-sent events of a stream.
func frames(known map[string]*jsonschema.Schema, stream []byte) (bad []string) {
	for frame := range strings.SplitSeq(string(stream), "\n\n") {
		name, data := "", ""
		for line := range strings.Lines(frame) {
			if v, ok := strings.CutPrefix(line, "event: "); ok {
				name = strings.TrimSpace(v)
			}
			if v, ok := strings.CutPrefix(line, "data: "); ok {
				data = v
			}
		}
		s := known[name]
		if s == nil {
			s = known["*"]
		}
		if data == "" {
			continue
		}
		if s == nil {
			bad = append(bad, fmt.Sprintf("an event %q that is not described", name))
		} else if err := fits(s, []byte(data)); err != nil {
			bad = append(bad, fmt.Sprintf("the event %s does not fit: %v\n%s", name, err, short([]byte(data))))
		}
	}
	return bad
}

func short(b []byte) []byte { return b[:min(len(b), 2000)] }

// Judge says what is wrong with an example of an operation.
func (c *Checker) Judge(id string, e Example) []string {
	for key, o := range c.operations {
		if o.id != id {
			continue
		}
		method, _, _ := strings.Cut(key, " ")
		u, err := url.Parse(e.Path)
		if err != nil {
			return []string{err.Error()}
		}
		if found := c.find(method, u); found != o {
			return []string{method + " " + e.Path + " is another operation"}
		}
		x := &exchange{method: method, url: u, body: e.Body, status: e.Status, header: http.Header{"Content-Type": {e.Content}}, answer: e.Answer}
		if e.Answer == nil {
			x.answerCut = true // it is no JSON
		}
		return c.judge(x)
	}
	return []string{"there is no such operation"}
}
