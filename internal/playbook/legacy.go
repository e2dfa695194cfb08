package playbook

import (
	"slices"
	"strconv"
)

// modernise rewrites the older spellings of a task into the current ones, so
// that everything after it knows one form only. It works on nodes, and the
// rewritten nodes keep the places of what the author wrote.
func (r *reader) modernise(n *node) *node {
	n = r.hoistSpec(n)
	n = r.mergeInput(n)
	n = r.evalRules(n)
	return r.retryRules(n)
}

// mergeInput makes one `input` out of input and args; input wins key by key.
// Where args is the argument list of a program it stays what it is.
func (r *reader) mergeInput(n *node) *node {
	if e, ok := n.entry("with"); ok && e.value.shape == mapShape && n.get("kind").str() == "playbook" {
		r.warn(n.keyAt(e), "old_spelling", `"with" is read as "input"`, `write "input"`)
		n = n.without("with").with("input", e.pos, merged(e.value, given(n.get("input"))))
	}
	e, ok := n.entry("args")
	if !ok || e.value.shape == listShape || n.get("kind").str() == "container" {
		return n
	}
	n = n.without("args")
	if in := merged(given(e.value), given(n.get("input"))); in != nil {
		n = n.with("input", e.pos, in)
	}
	return n
}

// hoistSpec moves settings of the tool that stand under its spec up to where
// they belong, and a policy that stands beside spec down into it.
func (r *reader) hoistSpec(n *node) *node {
	spec := r.mapAt(n, "spec", "a tool")
	if e, ok := n.entry("policy"); ok && e.value.get("rules") != nil && spec.get("policy") == nil {
		r.warn(n.keyAt(e), "old_spelling", `"policy" of a tool is read as spec.policy`, "write it under spec")
		if spec == nil {
			spec = &node{shape: mapShape, pos: e.pos, parent: n, key: "spec"}
		}
		spec = spec.with("policy", e.pos, e.value)
		n = n.without("policy").with("spec", spec.pos, spec)
	}
	if spec == nil {
		return n.without("spec")
	}
	kept := spec
	for _, e := range spec.entries {
		if e.key == "policy" || e.key == "render" {
			continue
		}
		if n.get(e.key) != nil {
			r.warn(spec.keyAt(e), "unknown_key", quote(e.key)+" stands both in the tool and under its spec; the latter is ignored",
				"remove it from spec")
			continue
		}
		r.warn(spec.keyAt(e), "old_spelling", quote(e.key)+" under spec is read as a setting of the tool", "write it beside kind")
		kept = kept.without(e.key)
		n = n.with(e.key, e.pos, e.value)
	}
	if len(kept.entries) == 0 {
		return n.without("spec")
	}
	return n.with("spec", kept.pos, kept)
}

// ruleList appends rules to the policy of a task.
func ruleList(n *node, at Pos, rules []*node) *node {
	spec := given(n.get("spec"))
	if spec == nil {
		spec = &node{shape: mapShape, pos: at, parent: n, key: "spec"}
	}
	policy := given(spec.get("policy"))
	if policy == nil {
		policy = &node{shape: mapShape, pos: at, parent: spec, key: "policy"}
	}
	list := &node{shape: listShape, pos: at, parent: policy, key: "rules", items: rules}
	if old := policy.get("rules"); old.given() {
		list.items = slices.Concat(old.items, rules)
	}
	return n.with("spec", spec.pos, spec.with("policy", policy.pos, policy.with("rules", at, list)))
}

// evalNames maps the words of an eval entry to those of a rule's `then`.
var evalNames = map[string]string{"set_vars": "set", "target": "to"}

// evalRules turns an `eval` list into policy rules.
func (r *reader) evalRules(n *node) *node {
	e, ok := n.entry("eval")
	if !ok {
		return n
	}
	n = n.without("eval")
	r.warn(n.keyAt(e), "old_spelling", `"eval" of a tool is read as spec.policy.rules`, "write {when: …, then: {do: …}} rules there")
	list := r.want(e.value, listShape, "eval must be a list")
	if list == nil {
		return n
	}
	var rules []*node
	for _, item := range list.items {
		if item.shape != mapShape {
			r.fail(item.at(), "bad_rule", "an entry of eval is a map, this is "+item.describe(), "")
			continue
		}
		rule := &node{shape: mapShape, pos: item.pos, parent: list, index: item.index}
		body := item
		if other, ok := item.entry("else"); ok {
			body = other.value
			rule.entries = append(rule.entries, entry{"else", other.pos, &node{pos: other.pos, parent: rule, key: "else"}})
		}
		then := &node{shape: mapShape, pos: body.pos, parent: rule, key: "then"}
		for _, x := range body.entries {
			switch name := evalNames[x.key]; {
			case x.key == "expr" || x.key == "when":
				rule.entries = append(rule.entries, entry{"when", x.pos, x.value})
			case name != "":
				then.entries = append(then.entries, entry{name, x.pos, x.value})
			default:
				then.entries = append(then.entries, x)
			}
		}
		rule.entries = append(rule.entries, entry{"then", body.pos, then})
		rules = append(rules, rule)
	}
	return ruleList(n, e.pos, rules)
}

// retryNames maps the words of a `retry` block to those of a rule's `then`.
var retryNames = map[string]string{
	"max_attempts": "attempts", "attempts": "attempts", "initial_delay": "delay", "delay": "delay",
	"delay_seconds": "delay", "backoff_seconds": "delay", "backoff": "backoff",
}

// retryRules turns a `retry` block into a rule. Blocks that say more than a
// rule can are ignored, and so are those beside rules of the author's own.
func (r *reader) retryRules(n *node) *node {
	e, ok := n.entry("retry")
	if !ok {
		return n
	}
	n = n.without("retry")
	if !e.value.given() {
		return n
	}
	ignore := func(why string) *node {
		r.warn(n.keyAt(e), "ignored_key", `"retry" of a tool is ignored: `+why,
			"write a rule with do: retry under spec.policy.rules")
		return n
	}
	if n.get("spec").get("policy").get("rules").given() {
		return ignore("the tool has policy rules")
	}
	when, then := `{{ output.status == 'error' }}`, &node{shape: mapShape, pos: e.pos, parent: n, key: "retry"}
	then.add("do", textNode(e.pos, "retry"))
	if e.value.shape == scalarShape {
		then.entries = append(then.entries, entry{"attempts", e.pos, e.value})
	}
	for _, x := range e.value.entries {
		name := retryNames[x.key]
		if _, number := x.value.scalar.(string); x.key == "backoff" && !number {
			name = "delay" // a number of seconds
		}
		switch {
		case x.key == "retry_on_status" && x.value.shape == listShape:
			when = `{{ output.status == 'error' and output.http.status in ` + x.value.compact() + ` }}`
		case name != "" && then.get(name) == nil:
			then.entries = append(then.entries, entry{name, x.pos, x.value})
		default:
			return ignore("a rule cannot say " + strconv.Quote(x.key))
		}
	}
	r.warn(n.keyAt(e), "old_spelling", `"retry" of a tool is read as a policy rule with do: retry`,
		"write it under spec.policy.rules")
	rule := &node{shape: mapShape, pos: e.pos, parent: n, key: "retry"}
	rule.add("when", textNode(e.pos, when))
	rule.entries = append(rule.entries, entry{"then", e.pos, then})
	return ruleList(n, e.pos, []*node{rule})
}
