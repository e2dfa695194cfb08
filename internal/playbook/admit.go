package playbook

import (
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// admit reads the rules that let a step run or not, as one condition: the
// first rule that matches decides, and without a match the step may run.
func (r *reader) admit(n *node, s *Step) {
	if n == nil {
		return
	}
	s.AdmitWaits = keyword(n.get("on_deny")) == "wait"
	rules := n.get("rules")
	if !rules.given() || len(rules.items) == 0 {
		if r.reported(n.path() + ".rules") {
			return
		}
		r.warn(n.at(), "no_rules", "the admission has no rules: it lets the step always run", "add rules: [{when: \"{{ … }}\", then: {allow: true}}]")
		return
	}
	expr, ok := r.admission(rules)
	if !ok {
		return
	}
	t, err := jinja.CompileCondition("{{ " + expr + " }}")
	if err != nil {
		r.fail(rules.at(), "bad_rule", "the admission rules cannot be joined", "write each condition as one expression")
	}
	s.Admit = t
}

// admission joins the rules into one expression.
func (r *reader) admission(rules *node) (string, bool) {
	expr, before := "", r.count[SeverityError]
	for i, item := range rules.items {
		if item.shape != mapShape {
			r.fail(item.at(), "bad_rule", "an admission rule is a map, this is "+item.describe(), "write {when: …, then: {allow: true}}")
			continue
		}
		r.eitherRule(item)
		item = r.conform(item, admitRuleObject)
		when := item.get("when")
		r.condition(when)
		allow := boolText(r.allow(item))
		if when.given() && !item.get("else").given() {
			expr += allow + " if (" + bare(when.text) + ") else "
			continue
		}
		if i < len(rules.items)-1 {
			r.warn(rules.items[i+1].at(), "dead_rule", "the admission rules from here on are never asked: the one before has no condition",
				"remove them, or give that one a condition")
		}
		return expr + allow, r.count[SeverityError] == before
	}
	return expr + "true", r.count[SeverityError] == before
}

// allow reads what a rule decides, from its `then` or its `else`.
func (r *reader) allow(rule *node) bool {
	then := r.part(rule, "then", allowObject)
	if other := r.part(rule, "else", admitElseObject); other != nil {
		then = other
		if t := r.part(other, "then", allowObject); t != nil {
			then = t
		}
	}
	if !then.get("allow").given() {
		if !r.reported(rule.path() + ".then.allow") {
			r.fail(rule.at(), "bad_rule", "the admission rule does not say whether the step may run",
				"write then: {allow: "+boolText(!rule.get("allow").given() || rule.get("allow").isTrue())+"}")
		}
		return false
	}
	return then.get("allow").isTrue()
}

// bare strips the braces off an expression.
func bare(text string) string {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "{{") && strings.HasSuffix(t, "}}") {
		t = strings.TrimSuffix(strings.TrimPrefix(t[2:len(t)-2], "-"), "-")
	}
	return strings.TrimSpace(t)
}

func boolText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
