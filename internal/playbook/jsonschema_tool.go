package playbook

import (
	"maps"
	"slices"

	"github.com/noetl/noetl-go/internal/tool/schema"
)

func kindDef(kind string) string { return "kind_" + kind }

// taskSchema describes a tool call: the keys of the language, and by kind the
// settings of the tool. An entry of the workbook need not be complete: it may
// leave to its users what it lacks.
func taskSchema(complete bool) spec {
	s := taskObject.jsonSchema()
	delete(s, "propertyNames") // every kind lists its keys
	props := s["properties"].(spec)
	props["kind"] = spec{"description": "The kind of tool.", "enum": kinds}
	delete(props["retry"].(spec), "type")
	maps.Copy(props["output_select"].(spec), selectText())
	// A policy beside spec.policy has no effect, whatever it is.
	policy := props["policy"].(spec)
	props["policy"] = olderPlace(spec{"description": policy["description"]})
	byKind := []any{spec{
		"if":   holds("spec", holds("policy", spec{"not": spec{"type": "null"}})),
		"else": spec{"properties": spec{"policy": policy}},
	}}
	for _, k := range schema.Kinds() {
		then := ref(kindDef(k.Name))
		if complete && len(k.Needs) > 0 {
			then["allOf"] = needs(k)
		}
		if k.Name == "workbook" {
			then["allOf"] = []any{namesEntry()}
		}
		byKind = append(byKind, spec{
			"if":   holds("kind", spec{"const": k.Name}),
			"then": then,
		})
	}
	s["allOf"] = byKind
	return s
}

// namesEntry says that a reference to the workbook names an entry.
func namesEntry() spec {
	name := spec{"type": []string{"string", "number", "boolean"}, "minLength": 1}
	return spec{
		"if":   holds("task", spec{"not": spec{"type": "null"}}),
		"then": spec{"properties": spec{"task": name}},
		"else": holds("name", name),
	}
}

// kindSchema describes the settings of one kind of tool beside the keys of the
// language. They may also stand under spec, as they did in older playbooks.
func kindSchema(k *schema.Kind) spec {
	props := spec{}
	for i := range taskObject.fields {
		if f := &taskObject.fields[i]; f.gone == "" {
			props[f.name] = true
		}
	}
	for i := range k.Fields {
		f := &k.Fields[i]
		props[f.Name] = toolValue(f)
		for _, alias := range f.Aliases {
			props[alias] = spec{"description": "The same as " + f.Name + ".", "$ref": propertyOf(kindDef(k.Name), f.Name)}
		}
	}
	props["args"] = argsSchema(k)
	s := spec{"title": "kind: " + k.Name, "description": k.Doc + " Returns " + k.Returns + ".", "properties": props}
	if k.NoWorker != "" {
		s["description"] = k.Doc + " No worker runs it: " + k.NoWorker + "."
	}
	if k.Open {
		s["propertyNames"] = spec{"not": spec{"enum": taskObject.goneKeys()}}
		return s
	}
	s["additionalProperties"] = false
	props["spec"] = underSpec(k)
	return s
}

// claimSchema describes the cursors of one kind of tool: the statement is one
// of its settings, and the options are others.
func claimSchema(k *schema.Kind, claim string) spec {
	props := spec{"options": ref(kindDef(k.Name)), "auth": spec{"type": "null"}}
	if f, ok := k.Field(claim); ok {
		props["claim"] = toolValue(f)
	}
	if f, ok := k.Field("auth"); ok {
		props["auth"] = toolValue(f)
	}
	return spec{"properties": props}
}

// argsSchema describes `args`: the same as input, except where it is the list
// of arguments of a program.
func argsSchema(k *schema.Kind) any {
	f, own := k.Field("args")
	switch {
	case own && k.Name == "container":
		return toolValue(f)
	case own:
		return true
	}
	if k.Open {
		return true
	}
	return spec{"not": spec{"type": "array"}}
}

// underSpec describes the spec of a task of one kind.
func underSpec(k *schema.Kind) spec {
	props := spec{}
	older := func(def, name string) {
		if taskSpecObject.field(name) == nil && name != "kind" && name != "spec" {
			props[name] = spec{"$ref": propertyOf(def, name), "deprecated": true}
		}
	}
	for i := range taskObject.fields {
		if f := &taskObject.fields[i]; f.gone == "" {
			older(taskObject.name, f.name)
		}
	}
	for _, name := range append(k.Names(), "args") {
		older(kindDef(k.Name), name)
	}
	for _, name := range taskSpecObject.names() {
		props[name] = spec{"$ref": propertyOf(taskSpecObject.name, name)}
	}
	return spec{"properties": props, "additionalProperties": false}
}

// propertyOf points to the description of a key, so that it is there once.
func propertyOf(def, name string) string { return ref(def)["$ref"].(string) + "/properties/" + name }

func olderPlace(s spec) spec {
	s["deprecated"] = true
	return s
}

// needs says which settings a call of the kind cannot do without.
func needs(k *schema.Kind) []any {
	all := []any{}
	for _, need := range k.Needs {
		either := []any{}
		for _, name := range k.Needed(need) {
			given := holds(name, spec{"not": spec{"type": "null"}})
			either = append(either, given, holds("spec", given))
		}
		all = append(all, spec{"anyOf": either})
	}
	return all
}

// toolValue describes a setting of a tool.
func toolValue(f *schema.Field) spec {
	s := spec{"description": f.Doc}
	if f.Default != "" {
		s["default"] = defaultValue(f)
	}
	if f.Unavailable != "" {
		s["deprecated"] = true
		s["description"] = f.Doc + " It has no effect yet: " + f.Unavailable + "."
		return s
	}
	if f.Shape.Has(schema.Any) {
		return s
	}
	if f.Words != nil {
		for key, v := range wordsSchema(spec{}, []string{"null"}, f.Words, true) {
			s[key] = v
		}
		return s
	}
	s["anyOf"] = shapeSchema(f.Shape)
	return s
}

func defaultValue(f *schema.Field) any {
	if f.Shape.Has(schema.Flag) {
		return f.Default == "true"
	}
	return f.Default
}

// shapeSchema lists the ways to write a value of a shape.
func shapeSchema(shape schema.Shape) []any {
	types := []string{"null"}
	add := func(s schema.Shape, names ...string) {
		if shape&s != 0 {
			types = append(types, names...)
		}
	}
	add(schema.Text, "string", "number", "boolean")
	add(schema.Code, "string")
	add(schema.Flag, "boolean")
	add(schema.Number, "number")
	add(schema.List, "array")
	add(schema.Map, "object")
	slices.Sort(types)
	ways := []any{spec{"type": slices.Compact(types)}}
	if shape.Has(schema.Flag) {
		ways = append(ways, spec{"enum": []any{0, 1}}, textLike(schema.FlagPattern))
	}
	if shape.Has(schema.Number) {
		ways = append(ways, textLike(schema.NumberPattern))
	}
	if shape.Has(schema.Duration) {
		ways = append(ways, spec{"type": "number", "minimum": 0}, textLike(schema.DurationPattern))
	}
	if shape&(schema.Text|schema.Code) == 0 {
		ways = append(ways, templateText)
	}
	return ways
}

func textLike(pattern string) spec { return spec{"type": "string", "pattern": pattern} }
