package playbook

import (
	"slices"
	"strings"
)

// object is one kind of map in the language. The objects in the grammar files
// are the only list of what may be written where: the reader checks documents
// against them, and the schema for editors is made from them.
type object struct {
	name   string // unique, e.g. "step"
	title  string // how messages call it, e.g. "a step"
	doc    string
	fields []field
	// open tells that further keys have a meaning of their own: settings of a
	// tool, notes of the author.
	open bool
}

// field is one key of an object.
type field struct {
	name  string
	forms forms
	doc   string
	// must completes "<key> …" in the complaint about a value of another form;
	// the forms speak for themselves when it is empty.
	must     string
	words    []string // the words a text may be, nil = any
	noun     string   // what one of the words is called, the key when empty
	required bool
	object   *object // what a map has to look like, nil = any keys
	items    *object // what a map in a list has to look like
	each     forms   // the forms of the items of a list and of the values of a map, 0 = any

	// modern marks an older spelling: the current one as YAML.
	modern string
	// idle marks a key that is accepted and does nothing: what to do instead.
	idle string
	// gone marks a key that is refused: what to write instead.
	gone string
}

// forms are the ways in which a value may be written.
type forms uint16

// The forms. Text is any scalar, because authors leave out quotes.
const (
	asText     forms = 1 << iota
	asFlag           // true or false
	asCount          // a whole number from 1 on
	asNumber         // a number
	asSpan           // a time: 30s, 5m, or seconds
	asExpr           // a condition
	asList           // a list
	asDict           // a map
	asTemplate       // text with a template, which stands for a value of another form
	asAnything = asText | asFlag | asCount | asNumber | asSpan | asExpr | asList | asDict | asTemplate
)

// formWords says in messages what a value of a form is.
var formWords = []struct {
	form  forms
	words string
}{
	{asDict, "a map"},
	{asList, "a list"},
	{asText, "text"},
	{asFlag, "true or false"},
	{asCount, "a whole number from 1 on"},
	{asNumber, "a number"},
	{asSpan, "a time such as 30s, 5m or a number of seconds"},
	{asExpr, "an expression"},
	{asTemplate, "a template"},
}

// String lists the forms for messages: "a map or a list".
func (f forms) String() string {
	var words []string
	for _, w := range formWords {
		if f&w.form != 0 {
			words = append(words, w.words)
		}
	}
	return strings.Join(words, " or ")
}

// has tells whether a value may have the form of n.
func (f forms) has(n *node) bool {
	switch n.shape {
	case listShape:
		return f&asList != 0
	case mapShape:
		return f&asDict != 0
	case nullShape:
		return true
	}
	if f&(asText|asSpan|asExpr) != 0 {
		return true // what the text says is checked by who reads it
	}
	switch v := n.scalar.(type) {
	case bool:
		return f&asFlag != 0
	case int64:
		return f&asNumber != 0 || f&asCount != 0 && v >= 1
	case float64:
		return f&asNumber != 0
	case string:
		return f&asTemplate != 0 && isTemplate(n)
	}
	return false
}

// field finds a key of the object.
func (o *object) field(key string) *field {
	for i := range o.fields {
		if o.fields[i].name == key {
			return &o.fields[i]
		}
	}
	return nil
}

// current are the keys worth suggesting: those that do something and are the
// modern spelling.
func (o *object) current() []string {
	out := make([]string, 0, len(o.fields))
	for _, f := range o.fields {
		if f.modern == "" && f.idle == "" && f.gone == "" {
			out = append(out, f.name)
		}
	}
	return out
}

// names are the keys of an object, whatever their standing.
func (o *object) names() []string {
	out := make([]string, len(o.fields))
	for i, f := range o.fields {
		out[i] = f.name
	}
	return out
}

// objects lists the grammar from the root down, each object once.
func objects() []*object {
	var out []*object
	var walk func(o *object)
	walk = func(o *object) {
		if o == nil || slices.Contains(out, o) {
			return
		}
		out = append(out, o)
		for _, f := range o.fields {
			walk(f.object)
			walk(f.items)
		}
	}
	walk(rootObject)
	return out
}
