package openapi

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Style and Script are the other files of the page, which refers to them as
// docs/docs.css and docs/docs.js beside itself.
var (
	//go:embed docs.css
	Style []byte
	//go:embed docs.js
	Script []byte
	//go:embed docs.html
	pageText string
)

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Page writes the document as a page. It is complete without its script, which
// adds a search and buttons to copy.
func (d *Document) Page() ([]byte, error) {
	v := pageView{Info: d.Info}
	for _, tag := range d.Tags {
		g := groupView{Tag: tag, Anchor: "tag-" + strings.ToLower(tag.Name)}
		for _, p := range d.Paths {
			for _, o := range p.Operations {
				if slices.Contains(o.Tags, tag.Name) {
					g.Operations = append(g.Operations, d.operationView(o))
				}
			}
		}
		if len(g.Operations) > 0 {
			v.Groups = append(v.Groups, g)
			v.Count += len(g.Operations)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if len(s.Properties) > 0 {
			v.Schemas = append(v.Schemas, schemaView{Name: name, Members: d.members(s, false)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Security)) {
		v.Security = append(v.Security, securityView{name, d.Components.Security[name].Description})
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

type (
	pageView struct {
		Info     Info
		Count    int
		Groups   []groupView
		Schemas  []schemaView
		Security []securityView
	}
	groupView struct {
		Tag        Tag
		Anchor     string
		Operations []operationView
	}
	schemaView struct {
		Name    string
		Members []memberView
	}
	securityView struct{ Name, Text string }
	memberView   struct {
		Name, Text      string
		Type            template.HTML
		Required        bool
		Deprecated      bool
		Values, Default string
	}
	operationView struct {
		*Operation
		Limit   string
		Groups  []parameterView
		Body    *bodyView
		Answers []answerView
		Curl    string
		Sample  string
	}
	parameterView struct {
		In      string
		Members []memberView
	}
	bodyView struct {
		Kind, Text string
		Type       template.HTML
		Required   bool
		Members    []memberView
	}
	answerView struct {
		Status, Text string
		Error        bool
		Bodies       []bodyView
		Headers      []memberView
	}
)

func (d *Document) operationView(o *Operation) operationView {
	v := operationView{Operation: o, Limit: size(o.MaxBody)}
	for _, in := range []string{"path", "query", "header"} {
		g := parameterView{In: in}
		for _, p := range o.Parameters {
			if p.In == in {
				m := d.member(p.Name, p.Schema, true)
				m.Text, m.Required, m.Deprecated = p.Description, p.Required, p.Deprecated
				g.Members = append(g.Members, m)
			}
		}
		if len(g.Members) > 0 {
			v.Groups = append(v.Groups, g)
		}
	}
	if o.Body != nil {
		bodies := d.bodies(o.Body.Content, true)
		v.Body = &bodies[0]
		v.Body.Required, v.Body.Text = o.Body.Required, o.Body.Description
	}
	for _, a := range o.Answers {
		if a.Answer.Ref != "" {
			continue // what every operation may answer stands at the top
		}
		status, _ := strconv.Atoi(a.Status)
		view := answerView{Status: a.Status, Text: a.Answer.Description, Error: status >= 400}
		if !view.Error || !refersTo(a.Answer.Content, "Error") {
			view.Bodies = d.bodies(a.Answer.Content, false)
		}
		for _, name := range slices.Sorted(maps.Keys(a.Answer.Headers)) {
			view.Headers = append(view.Headers, memberView{Name: name, Text: a.Answer.Headers[name].Description})
		}
		v.Answers = append(v.Answers, view)
	}
	v.Curl = curl(o)
	if o.Example != nil && len(o.Example.Answer) > 0 {
		v.Sample = indented(o.Example.Answer)
	}
	return v
}

func refersTo(content map[string]Media, name string) bool {
	s := content["application/json"].Schema
	return s != nil && strings.HasSuffix(s.Ref, "/"+name)
}

func (d *Document) bodies(content map[string]Media, received bool) []bodyView {
	var list []bodyView
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		m := content[kind]
		b := bodyView{Kind: kind}
		if kind == "application/json" && m.Schema != nil {
			b.Type = d.typeText(m.Schema, received)
			b.Members = d.members(d.resolve(m.Schema), received)
		}
		for _, name := range slices.Sorted(maps.Keys(m.Events)) {
			label := "event " + name
			if name == "*" {
				label = "every other event"
			}
			b.Members = append(b.Members, memberView{Name: label, Type: d.typeText(m.Events[name], received), Required: true})
		}
		list = append(list, b)
	}
	return list
}

func (d *Document) resolve(s *Schema) *Schema {
	if s.Ref != "" {
		return d.Components.Schemas[strings.TrimPrefix(s.Ref, refPrefix)]
	}
	return s
}

const refPrefix = "#/components/schemas/"

func (d *Document) members(s *Schema, received bool) []memberView {
	if s == nil {
		return nil
	}
	var list []memberView
	for _, p := range s.Properties {
		m := d.member(p.Name, p.Schema, received)
		m.Required = slices.Contains(s.Required, p.Name)
		list = append(list, m)
	}
	return list
}

func (d *Document) member(name string, s *Schema, received bool) memberView {
	m := memberView{Name: name, Text: s.Description, Type: d.typeText(s, received), Deprecated: s.Deprecated}
	var values []string
	for _, v := range s.Enum {
		if v != nil {
			values = append(values, fmt.Sprint(v))
		}
	}
	m.Values = strings.Join(values, ", ")
	if s.Default != nil {
		m.Default = fmt.Sprint(s.Default)
	}
	return m
}

// typeText says in words what a value may be. That members of a request may be
// null is not worth repeating.
func (d *Document) typeText(s *Schema, received bool) template.HTML {
	var parts []string
	switch {
	case s.Ref != "":
		name := template.HTMLEscapeString(strings.TrimPrefix(s.Ref, refPrefix))
		parts = append(parts, `<a href="#schema-`+name+`">`+name+`</a>`)
	case len(s.AnyOf) > 0:
		for _, o := range s.AnyOf {
			if !received || !slices.Equal(o.Type, Types{"null"}) {
				parts = append(parts, string(d.typeText(o, received)))
			}
		}
	case len(s.Type) == 0:
		parts = append(parts, "any JSON")
	}
	for _, t := range s.Type {
		switch {
		case t == "null" && received:
		case t == "array" && s.Items != nil:
			parts = append(parts, "list of "+string(d.typeText(s.Items, received)))
		case t == "object" && s.Additional != nil:
			parts = append(parts, "object by name, of "+string(d.typeText(s.Additional, received)))
		case t == "string" && s.Format == "date-time":
			parts = append(parts, "time")
		case t == "string" && s.Pattern != "":
			parts = append(parts, "id as text")
		case t == "string" && s.Encoding != "":
			parts = append(parts, "base64")
		case t == "string":
			parts = append(parts, "text")
		case t == "boolean":
			parts = append(parts, "true or false")
		default:
			parts = append(parts, t)
		}
	}
	return template.HTML(strings.Join(parts, " or ")) //nolint:gosec // of our own words and escaped names
}

// reaches are scopes in the words of people.
var reaches = map[string]string{
	"everywhere": "for all playbooks only", "execution": "executions of own playbooks", "permitted": "own playbooks", "filtered": "shows what is own",
}

// Reach is how far the operation goes for a caller who has a role for some
// playbooks; "" when paths have nothing to do with it.
func (o operationView) Reach() string { return reaches[o.Scope] }

// Broken is the path with the places where a line may end.
func (o operationView) Broken() template.HTML {
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(o.Path), "/", "/<wbr>")) //nolint:gosec // escaped
}

// curl is a request to try.
func curl(o *Operation) string {
	path := o.Path
	if o.Example != nil {
		path = o.Example.Path
	}
	b := &strings.Builder{}
	b.WriteString("curl -s")
	if o.Method != "GET" && (o.Method != "POST" || o.Example == nil || len(o.Example.Body) == 0) {
		b.WriteString(" -X " + o.Method)
	}
	fmt.Fprintf(b, " \"$NOETL%s\"", shellText.Replace(path))
	switch o.Role {
	case "anyone":
	case "internal":
		b.WriteString(" \\\n  -H \"Authorization: Bearer $NOETL_INTERNAL_API_TOKEN\"")
	default:
		b.WriteString(" \\\n  -H \"Authorization: Bearer $NOETL_TOKEN\"")
	}
	if o.Example != nil && len(o.Example.Body) > 0 {
		fmt.Fprintf(b, " \\\n  -d '%s'", strings.ReplaceAll(compact(o.Example.Body), "'", `'\''`))
	} else if o.Body != nil && o.Body.Content["*/*"].Schema != nil {
		b.WriteString(" \\\n  --data-binary @file")
	}
	return b.String()
}

// shellText escapes what means something between double quotes.
var shellText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`")

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

func indented(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func size(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 0:
		return "of any size"
	case n%(1<<20) == 0:
		return fmt.Sprintf("at most %d MiB", n>>20)
	}
	return fmt.Sprintf("at most %d bytes", n)
}
