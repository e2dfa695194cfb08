package playbook

import "slices"

// modernise rewrites the older spellings of a task into the current ones, so
// that everything after it knows one form only. It works on nodes, and the
// rewritten nodes keep the places of what the author wrote.
func (r *reader) modernise(n *node) *node {
	n = r.hoistSpec(n)
	n = r.mergeInput(n)
	n = r.moderniseSet(n)
	n = r.moderniseOutput(n)
	n = r.evalRules(n)
	return r.retryRules(n)
}

// take removes a key in an older spelling from a task. Its value is returned
// when it can be read.
func (r *reader) take(n *node, key string) (*node, entry, bool) {
	e, ok := n.entry(key)
	if !ok {
		return n, e, false
	}
	where, in := taskObject.title, n
	if step := e.value.parent; step.get("step") != nil {
		where, in = stepObject.title, step // where it stands, see intoTool
	}
	ok = r.conforms(in, e, taskObject, taskObject.field(key), where) && e.value.given()
	return n.without(key), e, ok
}

// intoTool moves what older playbooks say about the tool at the level of the
// step into the tool, if there is just one that can be meant.
func (r *reader) intoTool(n *node) *node {
	for _, key := range []string{"retry", "policy"} {
		e, ok := n.entry(key)
		if !ok || !e.value.given() || key == "policy" && e.value.get("rules") == nil {
			continue
		}
		tool, put := onlyTool(n)
		why := ""
		switch {
		case !n.get("tool").given():
			why = "the step has no tool"
		case tool == nil:
			why = "it does not say which task it is for"
		case tool.get(key).given():
			why = "the tool says it too"
		}
		if why != "" {
			r.warn(n.keyAt(e), "ignored_key", quote(key)+" at the level of a step has no effect: "+why,
				"in the task write "+taskObject.field(key).modern)
			n = n.without(key)
			continue
		}
		n = put(n.without(key), tool.with(key, e.pos, e.value))
	}
	return n
}

// onlyTool returns the tool of a step that has one task, and a way to replace
// it.
func onlyTool(step *node) (*node, func(step, tool *node) *node) {
	e, _ := step.entry("tool")
	t := e.value
	switch {
	case t == nil:
	case t.shape == mapShape:
		return t, func(step, tool *node) *node { return step.with("tool", e.pos, tool) }
	case t.shape == listShape && len(t.items) == 1 && t.items[0].shape == mapShape:
		item := t.items[0]
		in := func(step, item *node) *node {
			c := *t
			c.items = []*node{item}
			return step.with("tool", e.pos, &c)
		}
		if item.get("kind") != nil {
			return item, in
		}
		if len(item.entries) == 1 && item.entries[0].value.shape == mapShape {
			label := item.entries[0]
			return label.value, func(step, tool *node) *node { return in(step, item.with(label.key, label.pos, tool)) }
		}
	}
	return nil, nil
}

// mergeInput makes one `input` out of input, args and older spellings; input
// wins key by key. Where args is the argument list of a program it stays what
// it is.
func (r *reader) mergeInput(n *node) *node {
	n, e, ok := r.take(n, "with")
	if ok {
		n = n.with("input", e.pos, merged(e.value, given(n.get("input"))))
	}
	n = r.payload(n)
	e, ok = n.entry("args")
	if !ok || e.value.shape == listShape || n.get("kind").str() == "container" {
		return n
	}
	n = n.without("args")
	if in := merged(given(e.value), given(n.get("input"))); in != nil {
		n = n.with("input", e.pos, in)
	}
	return n
}

// payload reads the older spelling of the input of a playbook, which counts
// when there is no other.
func (r *reader) payload(n *node) *node {
	e, ok := n.entry("payload")
	if !ok || n.get("kind").str() != "playbook" {
		return n
	}
	n = n.without("payload")
	for _, key := range []string{"input", "args"} {
		if v := n.get(key); v.given() && len(v.entries)+len(v.text) > 0 {
			r.warn(n.keyAt(e), "ignored_key", `"payload" has no effect beside `+quote(key), "write all of it under input")
			return n
		}
	}
	r.warn(n.keyAt(e), "old_spelling", `"payload" in a tool of kind playbook is an older spelling`, "write input: {…}")
	if !e.value.given() {
		return n
	}
	if n.get("args") != nil && n.get("args").shape != listShape {
		n = n.without("args")
	}
	return n.with("input", e.pos, e.value)
}

// moderniseSet makes one `set` out of its older spellings; `set` wins.
func (r *reader) moderniseSet(n *node) *node {
	for _, old := range oldSets {
		if taskObject.field(old.key) == nil {
			continue
		}
		rest, e, ok := r.take(n, old.key)
		n = rest
		if ok {
			set := merged(scoped(e.value, old.scope), given(n.get("set")))
			n = n.with("set", set.pos, set)
		}
	}
	return n
}

// hoistSpec moves settings of the tool that stand under its spec up to where
// they belong, and a policy that stands beside spec down into it.
func (r *reader) hoistSpec(n *node) *node {
	spec := r.want(n.get("spec"), mapShape, "spec of a tool must be a map")
	if spec.get("policy").given() && n.get("policy").given() {
		e, _ := n.entry("policy")
		r.warn(n.keyAt(e), "ignored_key", `"policy" of a tool has no effect beside spec.policy`, "remove it")
		n = n.without("policy")
	}
	n, e, ok := r.take(n, "policy")
	if ok {
		if spec == nil {
			spec = &node{shape: mapShape, pos: e.pos, parent: n, key: "spec"}
		}
		spec = spec.with("policy", e.pos, e.value)
		n = n.with("spec", spec.pos, spec)
	}
	if spec == nil {
		return n.without("spec")
	}
	kept := spec
	for _, e := range spec.entries {
		if taskSpecObject.field(e.key) != nil {
			continue
		}
		if n.get(e.key) != nil {
			r.warn(spec.keyAt(e), "unknown_key", quote(e.key)+" stands both in the tool and under its spec; the latter is ignored",
				"remove it from spec")
			continue
		}
		r.warn(spec.keyAt(e), "old_spelling", quote(e.key)+" under spec is read as a setting of the tool",
			"write it beside kind: {kind: "+n.get("kind").str()+", "+e.key+": …}")
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
	n, e, ok := r.take(n, "eval")
	if !ok {
		return n
	}
	var rules []*node
	for _, item := range e.value.items {
		if item.shape != mapShape {
			r.fail(item.at(), "bad_rule", "an entry of eval is a map, this is "+item.describe(), "")
			continue
		}
		item = r.conform(item, evalObject)
		rule := &node{shape: mapShape, pos: item.pos, parent: e.value, index: item.index}
		body := item
		if other, ok := item.entry("else"); ok {
			body = r.conform(other.value, evalObject)
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
