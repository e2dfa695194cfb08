package playbook

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// previous are the words for the task before the one that jumps.
var previous = []string{"previous", "prev", "_previous", "@previous"}

// defaultAttempts is how often a retried task runs when the rule does not say.
const defaultAttempts = 3

// jump is a `to` waiting for the labels of its step to be known.
type jump struct {
	to   *node
	task int
}

// policy reads the rules of a task; nil when it has none.
func (r *reader) policy(n *node) *Policy {
	if n == nil {
		return nil
	}
	p := &Policy{}
	rules := n.get("rules").list()
	r.deadRules(rules)
	for _, item := range rules {
		if rule, ok := r.rule(item); ok {
			p.Rules = append(p.Rules, rule)
		}
	}
	if u := n.get("on_unmatched"); u.given() {
		p.Rules = append(p.Rules, Rule{
			When: r.condition(textNode(u.pos, "{{ output.status == 'error' }}")),
			Then: Action{Do: Verb(keyword(u))},
			Pos:  u.pos,
		})
	}
	if len(p.Rules) == 0 {
		return nil
	}
	return p
}

// rule reads {when, then} or {else}. The body of either may also stand where
// `then` should be; authors forget that word.
func (r *reader) rule(n *node) (Rule, bool) {
	if n.shape != mapShape {
		r.fail(n.at(), "bad_rule", "a rule is a map, this is "+n.describe(), "write {when: …, then: {do: …}}")
		return Rule{}, false
	}
	rule := Rule{Pos: n.pos}
	body := n
	other, isElse := n.entry("else")
	switch {
	case isElse && other.value.given():
		r.eitherRule(n)
		n = r.conform(n, ruleObject)
		if body = n.get("else"); body == nil {
			return Rule{}, false
		}
		if body.get("then") != nil {
			for _, e := range body.without("then").entries {
				r.unknownKey(body, e, "else", []string{"then"})
			}
		}
	case n.get("then") == nil:
		// The action stands directly in the rule.
		body = n.without(ruleObject.names()...)
		n = r.conform(n.without(actionObject.names()...), ruleObject)
	default:
		n = r.conform(n, ruleObject)
		if body = n.get("then"); body == nil {
			return Rule{}, false
		}
	}
	if !isElse {
		rule.When = r.condition(whenOf(n))
	}
	if then := body.get("then"); then != nil {
		body = then
	} else if n.get("then") == nil && body.shape == mapShape && len(body.entries) > 0 && !r.wire {
		r.warn(body.at(), "old_spelling", "the action of the rule stands without then", "write "+thenForm)
	}
	rule.Then = r.action(body)
	return rule, true
}

// eitherRule refuses a rule that has both a condition and an else: one of them
// would not count.
func (r *reader) eitherRule(n *node) {
	other, ok := n.entry("else")
	if ok && other.value.given() && (n.get("then").given() || whenOf(n).given()) {
		r.fail(n.keyAt(other), "bad_rule", `a rule has either "when" and "then" or "else"`,
			"write else as a rule of its own: - else: {then: …}")
	}
}

// deadRules warns about rules behind one that always matches.
func (r *reader) deadRules(rules []*node) {
	always := func(n *node) bool {
		_, isElse := n.entry("else")
		return n.shape == mapShape && (isElse || !whenOf(n).given())
	}
	if i := slices.IndexFunc(rules, always); i >= 0 && i < len(rules)-1 {
		r.warn(rules[i+1].at(), "dead_rule", "the rules from here on are never asked: the one before has no condition",
			"remove them, or give that one a condition")
	}
}

// idleWords warns about words of an action that belong to another verb.
func (r *reader) idleWords(n *node, do Verb) {
	if r.reported(n.path() + ".do") {
		return
	}
	verbOf := map[string]Verb{"attempts": Retry, "backoff": Retry, "delay": Retry, "to": Jump}
	for _, e := range n.entries {
		if verb, ok := verbOf[e.key]; ok && verb != do && e.value.given() {
			r.warn(n.keyAt(e), "ignored_key", quote(e.key)+" has no effect without do: "+string(verb), "remove it, or write do: "+string(verb))
		}
	}
}

// action reads the `then` of a rule; a lone word is its verb.
func (r *reader) action(n *node) Action {
	var a Action
	switch n.shape {
	case nullShape:
		return a
	case scalarShape:
		if r.wordOf(n, actionObject.field("do")) {
			a.Do = Verb(keyword(n))
		}
	case mapShape:
		n = r.conform(n, actionObject)
		a.Do = Verb(keyword(n.get("do")))
		r.idleWords(n, a.Do)
	default:
		r.fail(n.at(), "wrong_type", "then must be a map, this is "+n.describe(), "write then: {do: …}")
	}
	a.Set = r.taskAssignments(scopedSet(n))
	if a.Do == Retry {
		r.retry(n, &a)
	}
	if a.Do == Jump {
		r.jump(n, &a)
	}
	return a
}

func (r *reader) retry(n *node, a *Action) {
	a.Attempts, a.Backoff, a.Delay = defaultAttempts, "none", 1
	if v := n.get("attempts"); v.given() {
		i, err := strconv.Atoi(strings.TrimSpace(v.str()))
		if err != nil || i < 1 {
			r.fail(v.at(), "bad_attempts", "attempts must be a whole number from 1 on, this is "+quote(v.compact()), "")
		}
		a.Attempts = i
	}
	if v := n.get("delay"); v.given() {
		a.Delay = r.seconds(v)
		a.Backoff = "fixed" // who gives a delay wants to wait
	}
	if w := keyword(n.get("backoff")); w != "" {
		a.Backoff = w
	}
	if a.Backoff == "constant" {
		a.Backoff = "fixed"
	}
}

// seconds reads a delay, which unlike a time limit may be zero.
func (r *reader) seconds(n *node) float64 {
	f, err := strconv.ParseFloat(n.str(), 64)
	if err != nil {
		var d time.Duration
		d, err = time.ParseDuration(n.str())
		f = d.Seconds()
	}
	if err != nil || !(f >= 0 && f < 1e9) {
		r.fail(n.at(), "bad_duration", "delay must be a number of seconds, this is "+quote(n.compact()), "")
		return 0
	}
	return f
}

func (r *reader) jump(n *node, a *Action) {
	to := n.get("to")
	if to.str() == "" {
		r.fail(n.at(), "missing_target", "the jump does not say where to", "add to: with the name of a task")
		return
	}
	a.To = to.text
	if slices.Contains(previous, a.To) {
		a.To = "previous"
	}
	r.jumps = append(r.jumps, jump{to: to})
}

// checkJumps makes sure that every jump lands on a task of the step.
func (r *reader) checkJumps(tasks []*Task) {
	labels := make([]string, len(tasks))
	for i, t := range tasks {
		labels[i] = t.Label
	}
	for _, j := range r.jumps {
		switch to := j.to.text; {
		case slices.Contains(labels, to):
		case slices.Contains(previous, to):
			if j.task == 0 {
				r.fail(j.to.at(), "missing_target", "the first task has no previous one to jump to", "")
			}
		default:
			r.fail(j.to.at(), "missing_target", "the step has no task "+quote(to)+" to jump to",
				didYouMean(to, "its tasks are:", labels))
		}
	}
}
