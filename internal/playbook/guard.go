package playbook

import (
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// guard reads the condition under which a step runs: its `when`, and the
// admission rules of its policy, which are conditions in another form.
func (r *reader) guard(step, spec *node) *jinja.Template {
	when := r.condition(step.get("when"))
	admit := r.mapAt(spec.get("policy"), "admit", "spec.policy")
	if admit == nil {
		return when
	}
	r.unknownKeys(admit, "admit", []string{"mode", "rules"})
	list := r.want(admit.get("rules"), listShape, "rules must be a list")
	if list == nil {
		return when
	}
	expr, ok := r.admission(list)
	if !ok {
		return when
	}
	if when != nil {
		expr = "(" + expr + ") and (" + bare(step.get("when").text) + ")"
	}
	t, err := jinja.CompileCondition("{{ " + expr + " }}")
	if err != nil {
		r.fail(list.at(), "bad_rule", "the admission rules and the condition of the step cannot be joined",
			"write each as one expression")
	}
	return t
}

// admission joins the rules into one expression: the first that matches says
// whether the step may run, and without a match it may.
func (r *reader) admission(list *node) (string, bool) {
	expr, before := "", len(r.problems)
	for _, item := range list.items {
		r.unknownKeys(item, "an admission rule", []string{"when", "then", "else"})
		when, then := item.get("when"), item.get("then")
		if e := item.get("else"); e.given() {
			then = e
			if t := e.get("then"); t != nil {
				then = t
			}
		}
		allow := boolText(r.flag(then.get("allow"), "allow"))
		if !when.given() {
			return expr + allow, len(r.problems) == before
		}
		r.condition(when)
		expr += allow + " if (" + bare(when.text) + ") else "
	}
	return expr + "true", len(r.problems) == before
}

// bare strips the braces off an expression.
func bare(text string) string {
	t := strings.TrimSpace(text)
	if strings.HasPrefix(t, "{{") && strings.HasSuffix(t, "}}") {
		t = strings.TrimSuffix(strings.TrimPrefix(t[2:len(t)-2], "-"), "-")
	}
	return strings.TrimSpace(t)
}
