// Package form knows what people are asked for: JSON Schemas, the short form
// that authors write instead, and whether an answer fits. It reads nothing but
// what it is given and must not know who asks.
package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxBytes bounds a form: it is kept with every wait.
const maxBytes = 64 << 10

// words are the types a field may have, with what authors also call them.
var words = map[string]string{
	"string": "string", "text": "string", "str": "string",
	"number": "number", "float": "number",
	"integer": "integer", "int": "integer",
	"boolean": "boolean", "bool": "boolean",
	"array": "array", "list": "array",
	"object": "object", "map": "object",
}

// Schema is a form as a JSON Schema: as it is, or made of the short form, which
// names fields and their types. Errors say what is wrong with which field.
func Schema(fields map[string]any) (json.RawMessage, error) {
	schema := fields
	if !isSchema(fields) {
		var err error
		if schema, err = compile(fields); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(schema)
	switch {
	case err != nil:
		return nil, fmt.Errorf("it cannot be written as JSON: %w", err)
	case len(raw) > maxBytes:
		return nil, fmt.Errorf("it has %d bytes, at most %d are possible", len(raw), maxBytes)
	}
	if _, err := read(raw); err != nil {
		return nil, err
	}
	return raw, nil
}

// isSchema tells a JSON Schema from the short form, whose keys are fields.
func isSchema(fields map[string]any) bool {
	for _, mark := range []string{"$schema", "$ref", "$defs", "allOf", "anyOf", "oneOf"} {
		if _, ok := fields[mark]; ok {
			return true
		}
	}
	if _, ok := fields["properties"].(map[string]any); ok {
		return true
	}
	return len(fields) == 1 && fields["type"] == "object"
}

func compile(fields map[string]any) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		property, needed, err := field(fields[name])
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		properties[name] = property
		if needed {
			required = append(required, name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema, nil
}

// field is one field of the short form: a type, or a map with one and more.
func field(v any) (property map[string]any, needed bool, err error) {
	switch v := v.(type) {
	case nil:
		return map[string]any{}, false, nil
	case string:
		t, err := typeOf(v)
		return map[string]any{"type": t}, false, err
	case map[string]any:
		property = maps.Clone(v)
		delete(property, "required")
		switch r := v["required"].(type) {
		case nil:
		case bool:
			needed = r
		default:
			return nil, false, errors.New("required must be true or false")
		}
		if word, ok := v["type"].(string); ok {
			if property["type"], err = typeOf(word); err != nil {
				return nil, false, err
			}
		}
		return property, needed, nil
	}
	return nil, false, fmt.Errorf("want a type (%s) or a map with type, title, enum, default and required", knownTypes)
}

const knownTypes = "string, number, integer, boolean, array, object"

func typeOf(word string) (string, error) {
	if t, ok := words[strings.ToLower(strings.TrimSpace(word))]; ok {
		return t, nil
	}
	return "", fmt.Errorf("there is no type %q; use one of %s", word, knownTypes)
}

// With is a schema of an object that has further fields, given in the short form.
func With(schema json.RawMessage, fields map[string]any) (json.RawMessage, error) {
	more, err := compile(fields)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if err := json.Unmarshal(schema, &all); err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	properties, _ := all["properties"].(map[string]any)
	properties = maps.Clone(properties)
	if properties == nil {
		properties = map[string]any{}
	}
	maps.Copy(properties, more["properties"].(map[string]any))
	required, _ := all["required"].([]any)
	needed, _ := more["required"].([]string)
	for _, name := range needed {
		if !slices.Contains(required, any(name)) {
			required = append(required, name)
		}
	}
	all["type"], all["properties"], all["required"] = "object", properties, required
	return Schema(all)
}

// Misfit is one thing that is wrong with an answer.
type Misfit struct {
	Path    string `json:"path"` // where, as a JSON pointer; "" = the whole
	Message string `json:"message"`
}

// Misfits are all of them.
type Misfits []Misfit

func (m Misfits) Error() string {
	parts := make([]string, len(m))
	for i, f := range m {
		parts[i] = f.Message
		if f.Path != "" {
			parts[i] = f.Path + ": " + f.Message
		}
	}
	return strings.Join(parts, "; ")
}

// Fit checks an answer. What does not fit is told as Misfits.
func Fit(schema, answer json.RawMessage) error {
	s, err := read(schema)
	if err != nil {
		return err
	}
	if len(answer) == 0 {
		answer = json.RawMessage("null")
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err != nil {
		return fmt.Errorf("it is not JSON: %w", err)
	}
	err = s.Validate(v)
	wrong, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var out Misfits
	collect(wrong.BasicOutput(), &out)
	return out
}

// collect finds what is wrong at the bottom: what stands above only says that
// something below is.
func collect(u *jsonschema.OutputUnit, out *Misfits) {
	for i := range u.Errors {
		collect(&u.Errors[i], out)
	}
	if len(u.Errors) == 0 && u.Error != nil {
		*out = append(*out, Misfit{Path: u.InstanceLocation, Message: u.Error.String()})
	}
}

// read compiles a schema. References to anything outside it are refused: a form
// must not make the server read files or call addresses.
func read(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	if err := c.AddResource("form:///form.json", doc); err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	s, err := c.Compile("form:///form.json")
	if err != nil {
		return nil, fmt.Errorf("it is not a JSON Schema: %w", err)
	}
	return s, nil
}

type nowhere struct{}

func (nowhere) Load(url string) (any, error) {
	return nil, fmt.Errorf("a form cannot refer to %s; put what it needs below $defs", url)
}
