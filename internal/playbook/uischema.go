package playbook

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Form is what a user interface needs to ask for the inputs of a playbook.
type Form struct {
	Title       string
	Description string // Markdown
	Exposed     bool   // user interfaces may offer the playbook
	Fields      []Field
}

// Field is one input of a playbook.
type Field struct {
	Name           string   `json:"name"`
	Kind           string   `json:"kind"` // string, integer, number, boolean, object, array, null, enum
	Default        any      `json:"default"`
	Description    *string  `json:"description"`
	Secret         bool     `json:"secret"`
	CredentialGlob *string  `json:"credential_glob"`
	Options        []string `json:"options"`
	Children       []Field  `json:"children"`
}

// FormOf derives a form from the workload of a document. Comments at the keys
// of the workload refine it:
//
//	# ui:description=Which table to fill
//	# ui:enum=[orders,items]
//	# ui:credential=pg_*
//	# ui:secret
//
// A document that cannot be read has an empty form: whoever wants to know why
// validates it.
func FormOf(src []byte) Form {
	r := newReader("", src)
	root := r.load(src)
	form := Form{Exposed: true, Fields: []Field{}}
	if root == nil {
		return form
	}
	meta := root.get("metadata")
	form.Title = meta.get("title").str()
	if form.Title == "" {
		form.Title = meta.get("name").str()
	}
	form.Description = meta.get("description").str()
	if n := meta.get("exposed_in_ui"); n.given() {
		form.Exposed = n.isTrue()
	}
	workload := root.get("workload")
	if !workload.given() || workload.shape != mapShape {
		return form
	}
	hints := hintsOf(src)
	for _, e := range workload.entries {
		f := fieldOf(e.key, e.value, formDepth)
		f.apply(hints[e.key])
		form.Fields = append(form.Fields, f)
	}
	return form
}

// formDepth is how many levels of maps a form takes apart; what lies deeper is
// part of the default of the field above it.
const formDepth = 8

// fieldOf describes a value of the workload. The keys of a map become children.
func fieldOf(name string, n *node, depth int) Field {
	f := Field{Name: name, Kind: "null", Options: []string{}, Children: []Field{}}
	switch n.shape {
	case nullShape:
		return f
	case listShape:
		f.Kind = "array"
	case mapShape:
		f.Kind = "object"
		for _, e := range n.entries {
			if depth > 1 {
				f.Children = append(f.Children, fieldOf(e.key, e.value, depth-1))
			}
		}
	case scalarShape:
		f.Kind = scalarKind(n.scalar)
	}
	f.Default = n.native()
	return f
}

func scalarKind(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case int64:
		return "integer"
	case float64:
		return "number"
	}
	return "string"
}

// apply refines a field by the comments at its key. The default of a secret is
// not shown.
func (f *Field) apply(comments []string) {
	for _, c := range comments {
		name, text, _ := strings.Cut(c, "=")
		name, text = strings.TrimSpace(name), strings.TrimSpace(text)
		switch name {
		case "secret":
			f.Secret, f.Default, f.Children = true, nil, []Field{}
		case "description":
			f.Description = &text
		case "credential":
			f.CredentialGlob = &text
		case "enum":
			f.Kind, f.Options = "enum", options(text)
		}
	}
}

// options reads [a, b, "c d"].
func options(text string) []string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	out := []string{}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.Trim(strings.TrimSpace(word), `"'`); word != "" && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}

// hintsOf collects the comments at the keys of the workload that begin with
// ui:, by key and without it.
func hintsOf(src []byte) map[string][]string {
	hints := map[string][]string{}
	loader, err := yaml.NewLoader(bytes.NewReader(src))
	if err != nil {
		return hints
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil || len(doc.Content) != 1 {
		return hints
	}
	workload := valueOf(doc.Content[0], "workload")
	for i := 0; workload != nil && i+1 < len(workload.Content); i += 2 {
		k, v := workload.Content[i], workload.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			continue
		}
		comments := []string{k.HeadComment, k.LineComment, v.LineComment}
		if v.Kind == yaml.MappingNode && v.Style&yaml.FlowStyle == 0 {
			comments = comments[:2] // a comment behind the last key of a map is that key's
		}
		for line := range strings.SplitSeq(strings.Join(comments, "\n"), "\n") {
			if hint, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimLeft(line, "# ")), "ui:"); ok {
				hints[k.Value] = append(hints[k.Value], hint)
			}
		}
	}
	return hints
}

// valueOf is the map under a key of a map, aliases followed once.
func valueOf(m *yaml.Node, key string) *yaml.Node {
	for i := 0; m.Kind == yaml.MappingNode && i+1 < len(m.Content); i += 2 {
		v := m.Content[i+1]
		if v.Kind == yaml.AliasNode && v.Alias != nil {
			v = v.Alias
		}
		if m.Content[i].Value == key && v.Kind == yaml.MappingNode {
			return v
		}
	}
	return nil
}
