package playbook

import (
	"maps"
	"slices"

	"github.com/noetl/noetl-go/internal/tool/schema"
)

// adjustForms adds what a table of keys cannot say: maps whose keys are names,
// older forms that stand in the place of others, and keys that ask for others.
func adjustForms(defs spec) {
	props := func(o *object) spec { return defs[o.name].(spec)["properties"].(spec) }

	root := defs[rootObject.name].(spec)
	root["patternProperties"] = spec{"^x-": spec{"description": "Notes and anchors of the author."}}
	props(rootObject)["workflow"].(spec)["minItems"] = 1
	props(requiresObject)["tools"].(spec)["items"] = spec{"enum": kinds}
	adjustWorkbook(defs, props)
	adjustStep(defs, props)
	adjustNext(defs, props)
	adjustLoop(defs, props)
	adjustRules(defs, props)
	adjustOutput(props)
}

func hasKeys(keys ...string) spec { return spec{"required": keys} }

func hasAny(keys ...string) spec {
	either := make([]any, 0, len(keys))
	for _, k := range keys {
		either = append(either, hasKeys(k))
	}
	return spec{"anyOf": either}
}

// holds tells that a value is a map that has a key with a value of this
// description.
func holds(key string, value spec) spec {
	return spec{"type": "object", "required": []string{key}, "properties": spec{key: value}}
}

func isMap(def string) spec { return spec{"type": "object", "$ref": ref(def)["$ref"]} }

// adjustWorkbook admits a map of entries by name, also under tasks, and tools
// whose settings stand directly in their entry.
func adjustWorkbook(defs spec, props func(*object) spec) {
	props(workbookObject)["tool"] = isMap("workbook_tool")
	wrapped := clone(defs[workbookObject.name].(spec))
	wrapped["required"] = []string{"tool"}
	wrapped["additionalProperties"] = false
	defs["workbook_wrapped"] = wrapped
	entry := spec{
		"description": workbookObject.doc,
		"if":          spec{"required": []string{"kind"}, "not": hasKeys("tool")},
		"then":        ref("workbook_tool"),
		"else":        ref("workbook_wrapped"),
	}
	defs["workbook_named"] = entry
	listed := clone(entry)
	listed["allOf"] = []any{holds("name", spec{"type": []string{"string", "number", "boolean"}, "minLength": 1})}
	defs[workbookObject.name] = listed

	byName := spec{"type": []string{"object", "null"}, "additionalProperties": isMap("workbook_named")}
	props(rootObject)["workbook"] = spec{
		"description": rootObject.field("workbook").doc,
		"type":        []string{"array", "object", "null"},
		"items":       isMap(workbookObject.name),
		"if":          spec{"type": "object", "required": []string{"tasks"}},
		"then":        spec{"properties": spec{"tasks": byName}, "additionalProperties": false},
		"else":        spec{"additionalProperties": isMap("workbook_named")},
	}
}

// adjustStep admits {label: {kind: …}} in a list of tasks, and the policy of a
// tool at the level of the step.
func adjustStep(defs spec, props func(*object) spec) {
	tool := props(stepObject)["tool"].(spec)
	tool["type"] = []string{"array", "object"}
	tool["minItems"] = 1
	tool["items"] = spec{
		"type": "object", "if": hasKeys("kind"), "then": ref(taskObject.name),
		"else": spec{"minProperties": 1, "maxProperties": 1, "additionalProperties": isMap(taskObject.name)},
	}
	policy := props(stepObject)["policy"].(spec)
	delete(policy, "$ref")
	policy["if"], policy["then"], policy["else"] = hasKeys("rules"), ref(policyObject.name), ref(stepPolicyObject.name)
	// A retry block that says more than a rule can has no effect, and is no mistake.
	lenient := spec{}
	for name, v := range props(retryObject) {
		lenient[name] = spec{"description": v.(spec)["description"]}
	}
	defs[retryObject.name] = spec{"description": retryObject.doc, "properties": lenient}
	delete(props(stepObject)["retry"].(spec), "type")
	adjustAdmission(defs)
}

// adjustAdmission says that a rule decides something.
func adjustAdmission(defs spec) {
	decides := holds("allow", spec{"type": "boolean"})
	defs[admitRuleObject.name].(spec)["anyOf"] = []any{
		holds("then", decides),
		holds("else", spec{"anyOf": []any{decides, holds("then", decides)}}),
	}
	delete(defs[allowObject.name].(spec), "required") // an else may decide instead
}

// adjustNext admits the short form {step: name} of next and the older
// {when, then} arcs.
func adjustNext(defs spec, props func(*object) spec) {
	defs["next_router"] = defs[routerObject.name]
	defs[routerObject.name] = spec{
		"description": routerObject.doc,
		"if":          hasAny("arcs", "spec"),
		"then":        ref("next_router"),
		"else":        spec{"if": spec{"minProperties": 1}, "then": ref(arcObject.name)},
	}
	arc := defs[arcObject.name].(spec)
	delete(arc, "required")
	arc["anyOf"] = []any{hasKeys("step"), hasAny("then", "else")}
	target := isMap(arcObject.name)
	target["type"] = []string{"string", "number", "boolean", "object"}
	target["not"] = spec{"type": "object", "anyOf": hasAny("then", "else")["anyOf"]}
	for _, key := range []string{"then", "else"} {
		older := props(arcObject)[key].(spec)
		maps.Copy(older, target)
		older["type"] = []string{"array", "string", "number", "boolean", "object"}
		older["items"] = target
	}
}

// defaultClaim is the kind of tool that claims when the cursor names none.
const defaultClaim = "postgres"

// adjustLoop says what a loop goes over, and what its names look like.
func adjustLoop(defs spec, props func(*object) spec) {
	cursor := defs[cursorObject.name].(spec)
	able, byKind := []any{nil, ""}, []any{}
	for _, kind := range slices.Sorted(maps.Keys(claimFields)) {
		able = append(able, kind)
		is := holds("kind", spec{"const": kind})
		if kind == defaultClaim {
			is = spec{"properties": spec{"kind": spec{"enum": []any{nil, "", kind}}}}
		}
		k, _ := schema.Lookup(kind)
		byKind = append(byKind, spec{"if": is, "then": claimSchema(k, claimFields[kind])})
	}
	cursor["allOf"] = byKind
	props(cursorObject)["kind"] = spec{"description": cursorObject.field("kind").doc, "enum": able}
	identifier(props(loopObject)["iterator"].(spec), ident.String())

	byCursor := spec{"pattern": anyCase([]string{string(Cursor)}), "type": "string"}
	defs[loopObject.name].(spec)["if"] = spec{"type": "object", "not": spec{"anyOf": []any{
		holds("cursor", spec{"not": spec{"type": "null"}}),
		holds("spec", holds("mode", byCursor)),
		holds("mode", byCursor),
	}}}
	defs[loopObject.name].(spec)["then"] = holds("in", spec{
		"type": []string{"string", "number", "array", "object"}, "minLength": 1,
	})
}

// identifier narrows text to a name. True is one too, as text.
func identifier(s spec, pattern string) {
	types := []string{"string", "boolean"}
	if old, ok := s["type"].([]string); ok && slices.Contains(old, "null") {
		types = append(types, "null")
	}
	s["type"], s["pattern"] = types, pattern
}

// adjustRules admits rules whose action stands beside the condition without
// the word then, actions that are one word, and says what retry takes.
func adjustRules(defs spec, props func(*object) spec) {
	verb := anyCase(actionObject.field("do").words)
	for _, p := range []spec{props(ruleObject), props(elseObject)} {
		for _, key := range []string{"then", "else"} {
			if action, ok := p[key].(spec); ok {
				action["type"], action["pattern"] = []string{"object", "string", "null"}, verb
			}
		}
	}
	action := defs[actionObject.name].(spec)
	retrying(action)
	props(evalObject)["else"] = spec{"description": evalObject.field("else").doc, "type": []string{"object", "null"}, "$ref": ref(evalObject.name)["$ref"]}
	retrying(defs[evalObject.name].(spec))

	inline := maps.Clone(props(ruleObject))
	for name, v := range props(actionObject) {
		if _, own := inline[name]; !own {
			inline[name] = olderPlace(clone(v.(spec)))
		}
	}
	bare := spec{"properties": inline, "additionalProperties": false}
	retrying(bare)
	defs["rule_inline"] = bare
	defs["rule_then"] = spec{"properties": props(ruleObject), "additionalProperties": false}
	given := spec{"not": spec{"type": "null"}}
	defs[ruleObject.name] = spec{
		"description": ruleObject.doc,
		"if":          spec{"anyOf": []any{hasKeys("then"), holds("else", given)}},
		"then":        ref("rule_then"), "else": ref("rule_inline"),
	}
	// else: {do: …} stands for else: {then: {do: …}}.
	defs[elseObject.name] = spec{
		"description": elseObject.doc,
		"if":          hasKeys("then"),
		"then":        spec{"properties": props(elseObject), "additionalProperties": false},
		"else":        ref(actionObject.name),
	}
}

// retrying says what the settings of an action must be when it is a retry:
// otherwise nobody reads them.
func retrying(s spec) {
	number := spec{"type": "number", "minimum": 0}
	s["if"] = holds("do", spec{"type": "string", "pattern": anyCase([]string{string(Retry)})})
	s["then"] = spec{"properties": spec{
		"attempts": spec{"anyOf": []any{
			spec{"type": "null"}, spec{"type": "integer", "minimum": 1}, textLike(`^\s*\+?0*[1-9][0-9]*\s*$`),
		}},
		"delay": spec{"anyOf": []any{spec{"type": "null"}, number, textLike(delayPattern)}},
	}}
}

// delayPattern is a wait as text; unlike a time limit it may be nothing.
const delayPattern = `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$`

// selectText describes the names and paths of a selection.
func selectText() spec {
	const path = `[^\s$.\[\]'"]`
	items := isMap(selectionObject.name)
	items["type"], items["pattern"] = []string{"object", "string", "number", "boolean"}, path
	return spec{"pattern": path, "items": items}
}

// adjustOutput says what names and paths look like.
func adjustOutput(props func(*object) spec) {
	identifier(props(outputObject)["as"].(spec), `^$|`+ident.String())
	maps.Copy(props(outputObject)["select"].(spec), selectText())
	maps.Copy(props(outputObject)["output_select"].(spec), selectText())
	props(selectionObject)["path"].(spec)["pattern"] = selectText()["pattern"]
	store := props(outputObject)["store"].(spec)
	store["type"], store["pattern"] = []string{"object", "string", "null"}, anyCase(storeKinds)
}

func clone(s spec) spec { return maps.Clone(s) }
