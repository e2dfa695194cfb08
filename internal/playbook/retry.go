package playbook

import (
	"slices"
	"strconv"
	"strings"
)

// retryNames maps the words of a `retry` block to those of a rule's `then`.
var retryNames = map[string]string{
	"max_attempts": "attempts", "attempts": "attempts", "initial_delay": "delay", "delay": "delay",
	"delay_seconds": "delay", "backoff_seconds": "delay", "backoff": "backoff",
}

// retryCauses are the words for what is worth another try, as conditions.
var retryCauses = map[string]string{
	"error":            "output.status == 'error'",
	"any":              "output.status == 'error'",
	"all":              "output.status == 'error'",
	"exception":        "output.status == 'error'",
	"timeout":          "output.error.kind == 'timeout'",
	"connection":       "output.error.kind == 'connection'",
	"connection_error": "output.error.kind == 'connection'",
	"network":          "output.error.kind == 'connection'",
	"rate_limit":       "output.error.kind == 'rate_limit'",
	"server_error":     "output.error.kind == 'server_error'",
	"5xx":              "output.error.kind == 'server_error'",
	"retryable":        "output.error.retryable",
	"transient":        "output.error.retryable",
}

// retryBlock is a `retry` block on its way to becoming a rule.
type retryBlock struct {
	then   *node
	causes []string // any of them is worth another try
	stop   string   // unless this holds
	cannot string   // what a rule cannot say
}

// retryRules turns a `retry` block into a rule. Blocks that say more than a
// rule can are ignored, and so are those beside rules of the author's own.
func (r *reader) retryRules(n *node) *node {
	e, ok := n.entry("retry")
	if !ok {
		return n
	}
	n = n.without("retry")
	if off, isFlag := e.value.scalarValue().(bool); !e.value.given() || isFlag && !off {
		return n
	}
	where, at := taskObject.title, n.keyAt(e)
	if step := e.value.parent; step.get("step") != nil {
		where, at = stepObject.title, step.keyAt(e) // where it stands, see intoTool
	}
	b := &retryBlock{then: &node{shape: mapShape, pos: e.pos, parent: n, key: "retry"}}
	b.then.add("do", textNode(e.pos, "retry"))
	b.read(e.value, e.pos)
	if n.get("spec").get("policy").get("rules").given() {
		b.cannot = "the tool has policy rules"
	}
	if b.cannot != "" {
		r.warn(at, "ignored_key", `"retry" in `+where+" has no effect: "+b.cannot, "in the tool write "+retryForm)
		return n
	}
	when, then := b.when(), b.then
	r.warn(at, "old_spelling", `"retry" in `+where+" is an older spelling", "in the tool write "+b.yaml(when))
	for _, x := range e.value.entries {
		if f := retryObject.field(x.key); f != nil && f.idle != "" {
			r.warn(e.value.keyAt(x), "ignored_key", quote(x.key)+" in retry has no effect", f.idle)
		}
	}
	rule := &node{shape: mapShape, pos: e.pos, parent: n, key: "retry"}
	rule.add("when", textNode(e.pos, "{{ "+when+" }}"))
	rule.entries = append(rule.entries, entry{"then", e.pos, then})
	return ruleList(n, e.pos, []*node{rule})
}

// read takes the settings of a block, which may also be just a number of
// tries, or stand under on_error.
func (b *retryBlock) read(v *node, at Pos) {
	if _, isFlag := v.scalarValue().(bool); v.shape == scalarShape && !isFlag {
		b.put("attempts", at, v)
	}
	if v.shape == listShape {
		b.cannot = "it is a list"
	}
	if inner := v.get("on_error"); len(v.entries) == 1 && inner.given() && inner.shape == mapShape {
		v = inner
	}
	for _, x := range v.entries {
		if x.value.given() {
			b.setting(x)
		}
	}
}

func (b *retryBlock) put(name string, at Pos, v *node) {
	if b.then.get(name) == nil {
		b.then.entries = append(b.then.entries, entry{name, at, v})
	}
}

func (b *retryBlock) setting(x entry) {
	name := retryNames[x.key]
	if _, word := x.value.scalar.(string); x.key == "backoff" && !word {
		name = "delay" // a number of seconds
	}
	f := retryObject.field(x.key)
	switch {
	case f == nil:
		b.cannot = "a rule cannot say " + strconv.Quote(x.key)
	case !f.forms.has(x.value):
		b.cannot = x.key + " must be " + f.forms.String()
	case name != "":
		b.put(name, x.pos, x.value)
	case x.key == "backoff_multiplier":
		b.multiplier(x)
	case x.key == "retry_on":
		b.retryOn(x.value)
	case x.key == "retry_on_status", x.key == "status_codes", x.key == "retryable_status_codes":
		b.statuses(x.value)
	case x.key == "when", x.key == "retry_when":
		b.causes = append(b.causes, bare(x.value.text))
	case x.key == "stop_when":
		b.stop = bare(x.value.text)
	}
}

// multiplier reads by what the waiting grows. Rules know constant waits and
// doubled ones.
func (b *retryBlock) multiplier(x entry) {
	switch x.value.text {
	case "1", "1.0":
		b.put("backoff", x.pos, textNode(x.pos, "fixed"))
	case "2", "2.0":
		b.put("backoff", x.pos, textNode(x.pos, "exponential"))
	default:
		b.cannot = "a rule cannot multiply the delay by " + x.value.compact()
	}
}

// retryOn reads a list of causes: words, and status codes of HTTP.
func (b *retryBlock) retryOn(v *node) {
	items := v.items
	if v.shape == scalarShape {
		items = []*node{v}
	}
	codes := &node{shape: listShape}
	for _, item := range items {
		if _, err := strconv.Atoi(item.str()); err == nil {
			codes.items = append(codes.items, item)
			continue
		}
		cause := retryCauses[strings.ToLower(item.str())]
		if cause == "" {
			b.cannot = "a rule cannot say retry_on " + quote(item.compact())
			return
		}
		if !slices.Contains(b.causes, cause) {
			b.causes = append(b.causes, cause)
		}
	}
	if len(codes.items) > 0 {
		b.statuses(codes)
	}
}

func (b *retryBlock) statuses(v *node) {
	codes := make([]string, 0, len(v.items))
	for _, w := range v.words() {
		if _, err := strconv.Atoi(w); err != nil {
			b.cannot = quote(w) + " is no status code"
			return
		}
		codes = append(codes, w)
	}
	b.causes = append(b.causes, "output.http.status in ["+join(codes)+"]")
}

// when joins the conditions. A block that only says when to stop goes on until
// then.
func (b *retryBlock) when() string {
	if len(b.causes) == 0 && b.stop == "" {
		return retryCauses["error"]
	}
	expr := strings.Join(b.causes, " or ")
	switch {
	case b.stop == "":
		return expr
	case expr == "":
		return "not (" + b.stop + ")"
	}
	return "(" + expr + ") and not (" + b.stop + ")"
}

// yaml shows the block as the rule it is read as.
func (b *retryBlock) yaml(when string) string {
	words := make([]string, 0, len(b.then.entries))
	for _, x := range b.then.entries {
		words = append(words, x.key+": "+x.value.compact())
	}
	return `spec: {policy: {rules: [{when: "{{ ` + when + ` }}", then: {` + join(words) + `}}]}}`
}
