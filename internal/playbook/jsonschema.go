package playbook

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/tool/schema"
)

// spec is a piece of JSON Schema. Encoding sorts its keys, so that the same
// grammar always gives the same bytes.
type spec = map[string]any

// JSONSchema is the language as a JSON Schema (draft 2020-12), for editors that
// complete and check playbooks while they are written. It is made of the same
// tables that Parse reads by. What only the whole document shows, such as the
// target of an arc, it cannot say.
func JSONSchema() []byte {
	defs := spec{}
	for _, o := range objects() {
		defs[o.name] = o.jsonSchema()
	}
	adjustForms(defs)
	for _, k := range schema.Kinds() {
		defs[kindDef(k.Name)] = kindSchema(k)
	}
	defs[taskObject.name] = taskSchema(true)
	defs["workbook_tool"] = taskSchema(false)
	root := spec{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "NoETL playbook",
		"description": rootObject.doc,
		"type":        "object",
		"$ref":        ref(rootObject.name)["$ref"],
		"$defs":       defs,
	}
	b, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps, lists and text always encode
	}
	return append(b, '\n')
}

func ref(name string) spec { return spec{"$ref": "#/$defs/" + name} }

// jsonSchema describes a map of the language. It does not say that the value is
// a map: that is for the field to say, which may take other forms too.
func (o *object) jsonSchema() spec {
	props, required := spec{}, []string{}
	for i := range o.fields {
		f := &o.fields[i]
		if f.gone != "" {
			continue
		}
		props[f.name] = f.jsonSchema()
		if f.required {
			required = append(required, f.name)
		}
	}
	s := spec{"description": o.doc, "properties": props}
	if len(required) > 0 {
		s["required"] = required
	}
	switch {
	case !o.open:
		s["additionalProperties"] = false
	case len(o.fields) > len(props): // an open map may have anything but these
		s["propertyNames"] = spec{"not": spec{"enum": o.goneKeys()}}
	}
	return s
}

func (o *object) goneKeys() (keys []string) {
	for _, f := range o.fields {
		if f.gone != "" {
			keys = append(keys, f.name)
		}
	}
	return keys
}

// jsonSchema describes the value of a key.
func (f *field) jsonSchema() spec {
	s := f.value()
	s["description"] = f.doc
	switch {
	case f.modern != "":
		s["deprecated"] = true
		s["description"] = f.doc + " An older spelling: write " + f.modern
	case f.idle != "":
		s["deprecated"] = true
		s["description"] = f.doc + " It has no effect: " + f.idle
	}
	return s
}

// templateText is text that stands for a value of any form.
var templateText = spec{"type": "string", "pattern": `\{[{%#]`}

// value describes what a key takes. Keywords of JSON Schema speak about one
// type each, so that the forms of a field stand side by side.
func (f *field) value() spec {
	if f.forms == asAnything {
		return spec{}
	}
	s := spec{}
	types := formTypes(f.forms, !f.required)
	if f.forms&asDict != 0 {
		switch {
		case f.object != nil:
			s["$ref"] = ref(f.object.name)["$ref"]
		case f.each != 0 && f.items == nil:
			s["additionalProperties"] = eachValue(f.each, nil)
		}
	}
	if f.forms&asList != 0 && (f.items != nil || f.each != 0) {
		s["items"] = eachValue(f.each, f.items)
	}
	if f.forms&asCount != 0 && f.forms&(asText|asNumber) == 0 {
		s["minimum"] = 1
	}
	if f.forms&asSpan != 0 && f.forms&asText == 0 {
		s["exclusiveMinimum"] = 0
	}
	switch text := textPattern(f); {
	case f.words != nil:
		return wordsSchema(s, types, f.words, f.forms&asTemplate != 0)
	case text != "":
		s["pattern"] = text
	}
	if len(types) > 0 {
		s["type"] = types
	}
	return s
}

// textPattern says what the text of a field must look like; "" when anything
// goes.
func textPattern(f *field) string {
	switch {
	case f.forms&asText != 0 && f.required:
		return `\S`
	case f.forms&asText != 0:
		return ""
	case f.forms&asExpr != 0:
		return `\S`
	case f.forms&asSpan != 0:
		return spanPattern
	case f.forms&asTemplate != 0:
		return templateText["pattern"].(string)
	}
	return ""
}

// spanPattern is a time as text.
const spanPattern = `^\s*\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*(ns|us|µs|ms|s|m|h)\s*)+)\s*$`

// formTypes lists the types of JSON in which the forms can be written. A key
// without a value is the same as none, where it may be absent.
func formTypes(f forms, null bool) []string {
	set := map[string]bool{"null": null}
	for form, types := range map[forms][]string{
		asText: {"string", "number", "boolean"}, asExpr: {"string", "number", "boolean"}, asFlag: {"boolean"}, asCount: {"integer"},
		asNumber: {"number"}, asSpan: {"string", "number"}, asList: {"array"}, asDict: {"object"}, asTemplate: {"string"},
	} {
		for _, t := range types {
			set[t] = set[t] || f&form != 0
		}
	}
	maps.DeleteFunc(set, func(_ string, has bool) bool { return !has })
	if set["number"] {
		delete(set, "integer")
	}
	return slices.Sorted(maps.Keys(set))
}

// eachValue describes the items of a list, or the values of a map.
func eachValue(each forms, o *object) spec {
	if each == 0 {
		each = asDict
	}
	s := spec{"type": formTypes(each, o == nil)}
	if o != nil && each&asDict != 0 {
		s["$ref"] = ref(o.name)["$ref"]
	}
	return s
}

// wordsSchema describes a value that is one of a few words in any case, among
// the other types it may have. The words as they are usually written come
// first, where editors find them.
func wordsSchema(s spec, types []string, words []string, template bool) spec {
	literal := []any{}
	for _, w := range words {
		literal = append(literal, w)
		if w == "true" || w == "false" {
			literal = append(literal, w == "true")
		}
	}
	either := []any{spec{"enum": literal}, spec{"type": "string", "pattern": anyCase(words)}}
	if template {
		either = append(either, templateText)
	}
	others := slices.DeleteFunc(slices.Clone(types), func(t string) bool {
		return t == "string" || t == "number" || t == "boolean" || t == "integer"
	})
	if len(others) > 0 {
		s["type"] = others
		either = append(either, s)
	}
	return spec{"anyOf": either}
}

// anyCase is a pattern for a word out of a few, in upper and lower case. It
// spells the case out: not every dialect of patterns has a switch for it.
func anyCase(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteByte('|')
		}
		for _, c := range w {
			lower, upper := strings.ToLower(string(c)), strings.ToUpper(string(c))
			switch {
			case lower != upper:
				b.WriteString("[" + lower + upper + "]")
			case strings.ContainsRune(`.\+*?()|[]{}^$/`, c):
				b.WriteString(`\` + string(c))
			default:
				b.WriteRune(c)
			}
		}
	}
	return `^\s*(` + b.String() + `)\s*$`
}
