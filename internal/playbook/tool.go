package playbook

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// readTool reads the tool of a step: one map, or a list of tasks. A step
// without a tool is a router or an end and has no tasks.
func (r *reader) readTool(step *node, s *Step) {
	r.outputs = nil
	n, present := step.entry("tool")
	if !present {
		return
	}
	if word, ok := toolWord(step); ok {
		r.fail(n.value.at(), "tool_form", "the tool is the word "+quote(word)+" and must be a map",
			"write tool: {kind: "+word+", …} with its settings inside")
		return
	}
	switch n.value.shape {
	case nullShape:
		r.fail(step.keyAt(n), "tool_form", "the tool is empty", "add kind: … below it, or remove it")
	default:
		s.Tasks, s.Single = r.tasks(n.value)
	}
}

// toolWord returns the tool of a step that is written as a bare word.
func toolWord(step *node) (string, bool) {
	t := step.get("tool")
	if t == nil || t.shape != scalarShape {
		return "", false
	}
	return t.text, true
}

// tasks reads a tool in either form and tells whether it was a single one.
func (r *reader) tasks(n *node) ([]*Task, bool) {
	r.jumps = nil
	if n.shape == mapShape {
		t := r.task(n, "")
		if t == nil {
			return nil, true
		}
		if t.Label != unnamed(0) {
			raw := t.Raw.(*jinja.Dict).Clone()
			raw.Set("name", t.Label) // the wire has no other place for it
			t.Raw = raw
		}
		r.checkJumps([]*Task{t})
		return []*Task{t}, true
	}
	if len(n.items) == 0 {
		r.fail(n.at(), "empty_pipeline", "the list of tasks is empty", "add at least one: - {name: …, kind: …}")
	}
	var tasks []*Task
	taken := map[string]bool{}
	for i, item := range n.items {
		spec, label := r.labelled(item, i)
		if spec == nil {
			continue
		}
		if taken[label] {
			r.fail(spec.at(), "duplicate_label", "two tasks of the step are called "+quote(label), "give each a name of its own")
			continue
		}
		taken[label] = true
		mark := len(r.jumps)
		t := r.task(spec, label)
		for j := range r.jumps[mark:] {
			r.jumps[mark+j].task = i
		}
		if t != nil {
			tasks = append(tasks, t)
		}
	}
	if len(tasks) == len(n.items) {
		r.checkJumps(tasks)
	}
	return tasks, false
}

// labelled reads one item of a list: {name, kind, …} or {label: {kind, …}}.
func (r *reader) labelled(item *node, i int) (spec *node, label string) {
	switch {
	case item.shape != mapShape:
		r.fail(item.at(), "bad_task", "a task is a map, this is "+item.describe(), "write - {name: …, kind: …}")
		return nil, ""
	case item.get("kind") != nil:
		return item, taskName(item, unnamed(i))
	case len(item.entries) == 1 && item.entries[0].value.shape == mapShape:
		return item.entries[0].value, item.entries[0].key
	case item.get("name") != nil:
		r.missingKind(item)
		return nil, ""
	}
	r.fail(item.at(), "bad_task", "task["+strconv.Itoa(i)+"] must have a kind, or exactly one entry with its label",
		"write - {name: …, kind: …} or - label: {kind: …}")
	return nil, ""
}

// unnamed is the label of a task that the author gave none.
func unnamed(i int) string { return "task_" + strconv.Itoa(i) }

func taskName(n *node, otherwise string) string {
	if name := n.get("name").str(); name != "" {
		return name
	}
	return otherwise
}

// task reads one tool call; nil when it is too broken to go on with.
func (r *reader) task(n *node, label string) *Task {
	if label == "" {
		label = taskName(n, unnamed(0))
	}
	n, ok := r.inline(n)
	if !ok {
		return nil
	}
	kind, ok := r.kind(n)
	if !ok {
		return nil
	}
	n = r.conform(r.modernise(n), taskObject)
	r.sinkMark(n)
	r.toolFields(n, kind)
	r.noteAuth(n.get("auth"))
	r.outputs = append(r.outputs, given(n.get("output")))
	t := &Task{Label: label, Kind: kind, Pos: n.pos, Raw: n.without("name").native()}
	t.Config, t.NeedsAll = r.config(n, kind)
	t.Input = r.tree(given(n.get("input")), jinja.TreeOptions{})
	t.Set = r.taskAssignments(n.get("set"))
	t.Policy = r.policy(r.part(r.part(n, "spec", taskSpecObject), "policy", policyObject))
	return t
}

// sinkMark reads `sink`, which is a mark in the current language and was a
// block that saved the result in an older one.
func (r *reader) sinkMark(n *node) {
	e, ok := n.entry("sink")
	if _, mark := e.value.scalarValue().(bool); ok && !mark && e.value.given() {
		r.warn(n.keyAt(e), "ignored_key", `"sink" in a tool has no effect`, "save the result with a further task")
	}
}

// notConfig are the keys of a task that its tool never sees. What is left of
// `args` after input is sorted out is a tool's own list of arguments.
var notConfig = slices.DeleteFunc(taskObject.names(), func(k string) bool { return k == "args" })

// config compiles the tool's own settings. The second result tells that code
// among them reads the context in ways that cannot be analysed.
func (r *reader) config(n *node, kind string) (*jinja.Tree, bool) {
	c := n.without(notConfig...)
	if kind == "shell" {
		c = r.protectGo(c)
	}
	code := c.get("code").str()
	literal := code != "" && literalCode(n, code)
	opts := jinja.TreeOptions{Literal: func(path []string) bool {
		return literal && len(path) == 1 && path[0] == "code"
	}}
	return r.tree(c, opts), kind == "python" && readsContext.MatchString(code)
}

var readsContext = regexp.MustCompile(`\b(context|variables)\b`)

// literalCode tells that braces in code are the code's own. They are templates
// only on request, or when the whole block is one expression.
func literalCode(n *node, code string) bool {
	if b, ok := n.get("spec").get("render").scalarValue().(bool); ok && b {
		return false
	}
	c := strings.TrimSpace(code)
	return !strings.HasPrefix(c, "{{") || !strings.HasSuffix(c, "}}") || strings.Count(c, "{{") != 1
}

// scalarValue is the scalar of a node that may be absent.
func (n *node) scalarValue() any {
	if n == nil {
		return nil
	}
	return n.scalar
}

// goTag matches the tags of Go templates, which tools such as docker and
// kubectl take as arguments.
var goTag = regexp.MustCompile("\\{\\{-?\\s*(?:\\.[^{}]*|`[^`]*`|(?:range|if|with|json|index|printf|println|end|else)(?:\\s[^{}]*)?)\\}\\}")

// goHint matches tags that can only be Go's.
var goHint = regexp.MustCompile("\\{\\{-?\\s*(?:[.`]|(?:range|if|with|json|index|printf|println)\\s)")

// protectGo keeps Go templates in shell commands from being taken for ours.
func (r *reader) protectGo(n *node) *node {
	switch n.shape {
	case scalarShape:
		s, ok := n.scalar.(string)
		if !ok || strings.Contains(s, "{% raw") || !goHint.MatchString(s) {
			return n
		}
		r.warn(n.at(), "go_template", "the command holds a Go template; it is passed on as it is",
			"write {% raw %}…{% endraw %} around it to say so")
		c := *n
		c.text = goTag.ReplaceAllStringFunc(s, func(tag string) string { return "{% raw %}" + tag + "{% endraw %}" })
		c.scalar = c.text
		return &c
	case listShape:
		c := *n
		c.items = slices.Clone(n.items)
		for i, item := range c.items {
			c.items[i] = r.protectGo(item)
		}
		return &c
	case mapShape:
		c := *n
		c.entries = slices.Clone(n.entries)
		for i, e := range c.entries {
			c.entries[i].value = r.protectGo(e.value)
		}
		return &c
	}
	return n
}
