package api

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/noetl/noetl-go/internal/api/openapi"
)

// description is what the document says of a route beyond what the table does.
type description struct {
	id     string // operationId
	tag    string
	text   string
	path   string // instead of the pattern, where that says less
	params []parameter
	body   *content
	gives  []content // the answers that are successes
	fails  map[int]string
	old    bool // kept for older clients
}

// parameter is one of the query or the headers.
type parameter struct{ openapi.Parameter }

// content is a body or an answer: of a Go type, or as the schema says.
type content struct {
	status   int // of an answer; 200 when 0
	media    string
	of       reflect.Type
	either   []reflect.Type // one of them
	schema   *openapi.Schema
	required []string
	optional bool
	text     string
	headers  map[string]string
	events   map[string]reflect.Type // of a stream
	more     []string                // other types of content it may come as, as text
}

// takes is a JSON body read into a T; the named members must be there.
func takes[T any](required ...string) *content {
	return &content{media: "application/json", of: reflect.TypeFor[T](), required: required}
}

// mayTake is a body that can be left out.
func mayTake[T any]() *content {
	c := takes[T]()
	c.optional = true
	return c
}

// gives is a JSON answer written from a T.
func gives[T any]() []content {
	return []content{{media: "application/json", of: reflect.TypeFor[T]()}}
}

// givesAs is the same under another status.
func givesAs[T any](status int, text string) content {
	return content{status: status, media: "application/json", of: reflect.TypeFor[T](), text: text}
}

func query1(name, text string, schema *openapi.Schema) parameter {
	return parameter{openapi.Parameter{Name: name, In: "query", Description: text, Schema: schema}}
}

// The kinds of parameters.
func textParam(name, text string) parameter { return query1(name, text, openapi.Of("string")) }
func idParam(name, text string) parameter   { return query1(name, text, idText) }
func timeParam(name, text string) parameter { return query1(name, text, openapi.Of("string")) }
func flagParam(name, text string, def bool) parameter {
	return query1(name, text, &openapi.Schema{Type: openapi.Types{"boolean"}, Default: def})
}

func numberParam(name, text string, def, low int64) parameter {
	s := &openapi.Schema{Type: openapi.Types{"integer"}, Minimum: &low}
	if def >= low {
		s.Default = def
	}
	return query1(name, text, s)
}

func choiceParam(name, text, def string, values ...string) parameter {
	s := openapi.Of("string")
	for _, v := range values {
		s.Enum = append(s.Enum, v)
	}
	if def != "" {
		s.Default = def
	}
	return query1(name, text, s)
}

func header(name, text string) parameter {
	return parameter{openapi.Parameter{Name: name, In: "header", Description: text, Schema: openapi.Of("string")}}
}

func (p parameter) must() parameter { p.Required = true; return p }
func (p parameter) older() parameter {
	p.Deprecated = true
	return p
}

// descriptions are those of all routes, by method and pattern.
func descriptions() map[string]description {
	all := map[string]description{}
	for _, part := range []map[string]description{
		healthDescriptions, catalogDescriptions, startDescriptions, workDescriptions, resultDescriptions, executionDescriptions,
		sideDescriptions, internalDescriptions, systemDescriptions, secretDescriptions, docsDescriptions, accessDescriptions, scheduleDescriptions, retentionDescriptions,
	} {
		maps.Copy(all, part)
	}
	return all
}

// document describes the routes. The error names what is missing or too much.
func (s *Server) document() (*openapi.Document, error) {
	d := &describer{server: s, components: s.components(), ids: map[string]string{}}
	doc := &openapi.Document{OpenAPI: "3.1.1", Info: apiInfo, Servers: []openapi.Server{{URL: "/", Description: "this server"}}, Tags: apiTags}
	doc.Info.Version = s.opt.Version
	known := descriptions()
	failed := d.components.Schema(reflect.TypeFor[failure](), openapi.Sent)
	examples := readExamples()
	for _, rt := range s.routes() {
		key := rt.Method + " " + rt.Pattern
		about, ok := known[key]
		if !ok {
			d.errs = append(d.errs, fmt.Errorf("%s has no description: add one to internal/api/describe_*.go", key))
			about = undescribed(rt)
		}
		delete(known, key)
		o := d.operation(rt, about)
		if e, ok := examples[o.ID]; ok {
			o.Example = &e
		}
		doc.Paths.Add(o)
	}
	for _, key := range slices.Sorted(maps.Keys(known)) {
		d.errs = append(d.errs, fmt.Errorf("%s is described and no route: take the description out", key))
	}
	schemas, errs := d.components.All()
	for _, word := range d.components.Unspoken() {
		errs = append(errs, fmt.Errorf("the words about %s belong to no member: take them out", word))
	}
	doc.Components = openapi.Shared{Schemas: schemas, Security: securitySchemes, Answers: map[string]*openapi.Answer{
		"Error": {Description: "What went wrong, in the one form all errors have.", Content: map[string]openapi.Media{"application/json": {Schema: failed}}},
	}}
	return doc, errors.Join(append(d.errs, errs...)...)
}

// undescribed is what can be said of any route, so that the document has all.
func undescribed(rt route) description {
	words := strings.FieldsFunc(strings.TrimPrefix(rt.Pattern, "/api"), func(r rune) bool { return r < 'a' || r > 'z' })
	for i, w := range words {
		words[i] = sentence(w)
	}
	return description{id: strings.ToLower(rt.Method) + strings.Join(words, ""), tag: tagSystem, gives: []content{{media: "application/json", schema: &openapi.Schema{}}}}
}

// describer makes operations of routes.
type describer struct {
	server     *Server
	components *openapi.Components
	ids        map[string]string // operationId → route
	errs       []error
}

func (d *describer) operation(rt route, about description) *openapi.Operation {
	key := rt.Method + " " + rt.Pattern
	if other, taken := d.ids[about.id]; taken || about.id == "" {
		d.errs = append(d.errs, fmt.Errorf("%s needs an operation id of its own, not %q of %s", key, about.id, other))
	}
	d.ids[about.id] = key
	if !slices.ContainsFunc(apiTags, func(t openapi.Tag) bool { return t.Name == about.tag }) {
		d.errs = append(d.errs, fmt.Errorf("%s has the unknown tag %q", key, about.tag))
	}
	o := &openapi.Operation{
		Method: rt.Method, Path: rt.Pattern, ID: about.id, Tags: []string{about.tag}, Summary: sentence(rt.Summary), Description: about.text,
		Deprecated: about.old, Security: securityOf(rt.Role), Role: string(rt.Role), Scope: string(rt.Scope),
	}
	if about.path != "" {
		o.Path, o.Pattern = about.path, rt.Pattern
	}
	o.Parameters = d.pathParameters(o.Path)
	for _, p := range about.params {
		o.Parameters = append(o.Parameters, p.Parameter)
	}
	if about.body != nil {
		o.Body = d.requestBody(about.body)
		if o.MaxBody = max(d.server.opt.MaxBody, rt.maxBody); o.MaxBody == math.MaxInt64 {
			o.MaxBody = -1
		}
	}
	if len(about.gives) == 0 {
		d.errs = append(d.errs, fmt.Errorf("%s says nothing about its answer", key))
	}
	for _, c := range about.gives {
		o.Answers = append(o.Answers, d.success(c))
	}
	for _, status := range slices.Sorted(maps.Keys(about.fails)) {
		o.Answers = append(o.Answers, openapi.StatusAnswer{Status: strconv.Itoa(status), Answer: &openapi.Answer{
			Description: about.fails[status],
			Content:     map[string]openapi.Media{"application/json": {Schema: &openapi.Schema{Ref: "#/components/schemas/Error"}}},
		}})
	}
	o.Answers = append(o.Answers, openapi.StatusAnswer{Status: "default", Answer: &openapi.Answer{Ref: "#/components/responses/Error"}})
	return o
}

var pathParameter = regexp.MustCompile(`\{([a-z_]+)\}`)

func (d *describer) pathParameters(path string) []openapi.Parameter {
	var list []openapi.Parameter
	for _, m := range pathParameter.FindAllStringSubmatch(path, -1) {
		about, ok := pathWords[m[1]]
		if !ok {
			d.errs = append(d.errs, fmt.Errorf("%s: nothing says what %s is", path, m[1]))
		}
		schema := openapi.Of("string")
		if m[1] == "id" || strings.HasSuffix(m[1], "_id") {
			schema = idText
		}
		list = append(list, openapi.Parameter{Name: m[1], In: "path", Required: true, Description: about, Schema: schema})
	}
	return list
}

func (d *describer) requestBody(c *content) *openapi.Body {
	schema := c.schema
	if c.of != nil {
		if len(c.required) > 0 {
			d.components.Require(c.of, c.required)
		}
		schema = d.components.Schema(c.of, openapi.Received)
	}
	return &openapi.Body{Description: c.text, Required: !c.optional, Content: map[string]openapi.Media{c.media: {Schema: schema}}}
}

func (d *describer) success(c content) openapi.StatusAnswer {
	status := c.status
	if status == 0 {
		status = http.StatusOK
	}
	a := &openapi.Answer{Description: c.text}
	if a.Description == "" {
		a.Description = http.StatusText(status)
	}
	for name, text := range c.headers {
		if a.Headers == nil {
			a.Headers = map[string]openapi.Header{}
		}
		a.Headers[name] = openapi.Header{Description: text, Schema: openapi.Of("string")}
	}
	if c.media != "" {
		m := openapi.Media{Schema: c.schema}
		if c.of != nil {
			m.Schema = d.components.Schema(c.of, openapi.Sent)
		}
		if c.either != nil {
			m.Schema = &openapi.Schema{}
			for _, t := range c.either {
				m.Schema.AnyOf = append(m.Schema.AnyOf, d.components.Schema(t, openapi.Sent))
			}
		}
		a.Content = map[string]openapi.Media{c.media: m}
	}
	for _, media := range c.more {
		a.Content[media] = openapi.Media{Schema: openapi.Of("string")}
	}
	if c.events != nil {
		m := openapi.Media{Schema: openapi.Of("string"), Events: map[string]*openapi.Schema{}}
		for name, t := range c.events {
			m.Events[name] = d.components.Schema(t, openapi.Sent)
		}
		if a.Content == nil {
			a.Content = map[string]openapi.Media{}
		}
		a.Content["text/event-stream"] = m
	}
	return openapi.StatusAnswer{Status: strconv.Itoa(status), Answer: a}
}

// sentence begins with a capital letter.
func sentence(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
