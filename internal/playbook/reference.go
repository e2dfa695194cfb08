package playbook

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/tool/schema"
)

// Reference is the language in Markdown: every key of every map and every
// setting of every tool, from the same tables that Parse reads by.
func Reference() []byte {
	var b bytes.Buffer
	b.WriteString("## Language\n")
	for _, o := range objects() {
		o.describe(&b)
	}
	b.WriteString("\n## Tools\n")
	for _, k := range schema.Kinds() {
		describeKind(&b, k)
	}
	return b.Bytes()
}

func (o *object) describe(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n| Key | Value | Meaning |\n|---|---|---|\n", o.name, cell(o.doc))
	var older []string
	for _, f := range o.fields {
		switch {
		case f.modern != "":
			older = append(older, fmt.Sprintf("- `%s`: write `%s`", f.name, f.modern))
		case f.idle != "":
			older = append(older, fmt.Sprintf("- `%s` has no effect: %s", f.name, f.idle))
		case f.gone != "":
			older = append(older, fmt.Sprintf("- `%s` is refused: %s", f.name, f.gone))
		default:
			fmt.Fprintf(b, "| %s | %s | %s |\n", required(f.name, f.required), f.values(), cell(f.doc))
		}
	}
	if older != nil {
		b.WriteString("\nOlder spellings:\n\n" + strings.Join(older, "\n") + "\n")
	}
}

func required(name string, is bool) string {
	if is {
		return "`" + name + "` (required)"
	}
	return "`" + name + "`"
}

// values says what a key takes, with links to the maps among it.
func (f *field) values() string {
	if f.words != nil {
		return wordList(f.words)
	}
	if f.forms == asAnything {
		return "anything"
	}
	text := f.forms.String()
	link := func(word string, o *object) {
		if o != nil {
			text = strings.Replace(text, word, word+" ([`"+o.name+"`](#"+o.name+"))", 1)
		}
	}
	link("a map", f.object)
	link("a list", f.items)
	return text
}

func wordList(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }

func describeKind(b *bytes.Buffer, k *schema.Kind) {
	fmt.Fprintf(b, "\n### kind: %s\n\n%s", k.Name, k.Doc)
	if k.NoWorker != "" {
		fmt.Fprintf(b, " No worker runs it: %s.\n", k.NoWorker)
	} else {
		fmt.Fprintf(b, " Returns %s.\n", k.Returns)
	}
	if len(k.Fields) == 0 {
		return
	}
	b.WriteString("\n| Field | Value | Meaning |\n|---|---|---|\n")
	for i := range k.Fields {
		f := &k.Fields[i]
		value := f.Shape.String()
		if f.Words != nil {
			value = wordList(f.Words)
		}
		doc := f.Doc
		if f.Default != "" {
			doc += " Default `" + f.Default + "`."
		}
		if f.Unavailable != "" {
			doc += " Has no effect yet: " + f.Unavailable + "."
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.Join(f.Names(), "`, `"), value, cell(doc))
	}
	for _, need := range k.Needs {
		fmt.Fprintf(b, "\nNeeds `%s`.\n", strings.Join(need, "` or `"))
	}
}

// cell is text that fits into a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
