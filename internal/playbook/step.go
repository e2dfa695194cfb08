package playbook

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

var stepKeys = []string{
	"step", "desc", "tool", "input", "args", "loop", "next", "when", "spec", "set", "output",
}

// ignoredStepKeys are keys of older languages that do nothing at the level of
// a step, with what to write instead.
var ignoredStepKeys = map[string]string{
	"retry":    "write a rule with do: retry under spec.policy.rules of the tool",
	"timeout":  "write it under spec",
	"policy":   "write it under spec",
	"on_error": "add an arc with when: \"{{ output.status == 'error' }}\" to next",
	"sink":     "save the result with a further task or step",
	"save":     "save the result with a further task or step",
	"call":     "use a tool of kind workbook or playbook",
	"return":   "the result of a step is what its tool returns",
	"with":     `write "input"`,
	"iterator": "write it under loop",
	"arcs":     "write it under next",
	"join":     "a step with several arcs into it waits for them by itself",
}

// reserved are names that templates use for something else.
var reserved = []string{
	"output", "ctx", "iter", "event", "workload", "steps", "keychain", "loop", "step", "job", "input",
	"result", "env", "vars", "error",
}

// readStep reads one entry of the workflow; nil when it is no step at all.
func (r *reader) readStep(n *node) *Step {
	if n.shape != mapShape {
		r.step = ""
		r.fail(n.at(), "wrong_type", "a step is a map, this is "+n.describe(), "write - step: name")
		return nil
	}
	s := &Step{Pos: n.pos, Mode: Exclusive}
	r.stepName(n, s)
	s.Desc = n.get("desc").str()
	if d := n.get("description"); s.Desc == "" && d != nil {
		s.Desc = d.str()
	}
	r.stepKeys(n, s)
	r.readTool(n, s)
	s.Input = r.stepInput(n)
	s.Loop = r.readLoop(n)
	s.Set = r.stepSet(n)
	spec := r.stepSpec(n, s)
	s.When = r.guard(n, spec)
	r.readNext(n, spec, s)
	return s
}

func (r *reader) stepName(n *node, s *Step) {
	name := n.get("step")
	s.Name = strings.TrimSpace(name.str())
	r.step = s.Name
	switch {
	case s.Name == "" && n.get("name").str() != "":
		e, _ := n.entry("name")
		s.Name = e.value.str()
		r.fail(n.keyAt(e), "missing_step_name", "the step has no name", "write step: "+s.Name)
	case s.Name == "":
		s.Name = "step_" + strconv.Itoa(n.index)
		r.fail(n.at(), "missing_step_name", "the step has no name", "begin it with - step: name")
	case slices.Contains(reserved, s.Name), strings.HasPrefix(s.Name, "__"):
		r.fail(name.at(), "reserved_name", "a step cannot be called "+quote(s.Name)+": templates use this name for something else",
			"choose another name")
	}
}

// stepKeys complains about keys that a step does not have. A tool's setting at
// this level, or a tool under a wrong key, would make the step do nothing; so
// those are errors.
func (r *reader) stepKeys(n *node, s *Step) {
	where := "step " + quote(s.Name)
	_, scalarTool := toolWord(n)
	for _, e := range n.entries {
		at := n.keyAt(e)
		hint, ignored := ignoredStepKeys[e.key]
		switch {
		case slices.Contains(stepKeys, e.key):
		case slices.Contains([]string{"description", "vars", "set_vars", "result"}, e.key):
		case e.key == "name" && n.get("step") == nil:
		case e.key == "case":
			r.fail(at, "removed_key", `"case" is no longer part of the language (step `+quote(s.Name)+")",
				`use "when" on the step, next.arcs[].when for routing, or a list of tasks with spec.policy.rules`)
		case e.key == "type":
			r.fail(at, "removed_key", `"type" is no longer part of the language (step `+quote(s.Name)+")",
				"write tool: {kind: "+e.value.str()+", …}")
		case ignored:
			r.warn(at, "ignored_key", quote(e.key)+" is ignored at the level of a step", hint)
		case slices.Contains(toolOnly, e.key):
			if !scalarTool {
				r.misplaced(n, e, s)
			}
		case n.get("tool") == nil && misspeltTool(e):
			r.fail(at, "unknown_key", "unknown key "+quote(e.key)+" in "+where, `did you mean "tool"?`)
		default:
			r.unknownKey(n, e, where, stepKeys)
		}
	}
}

// misspeltTool tells that a key looks like, or holds what looks like, a tool.
func misspeltTool(e entry) bool {
	return distance(e.key, "tool") <= 1 || e.key == "tools" || e.value.get("kind") != nil
}

func (r *reader) misplaced(n *node, e entry, s *Step) {
	remedy := "indent it below tool:"
	if n.get("tool") == nil {
		remedy = "write tool: {kind: …, " + e.key + ": …}"
	}
	r.fail(n.keyAt(e), "misplaced_key",
		quote(e.key)+" of step "+quote(s.Name)+" is a setting of a tool and is required inside it", remedy)
}

// stepSpec reads timeout and failure mode. The node is returned for those who
// read the rest of it.
func (r *reader) stepSpec(n *node, s *Step) *node {
	spec := r.mapAt(n, "spec", "a step")
	r.unknownKeys(spec, "spec of a step", []string{"next_mode", "timeout", "policy"}, "on_error")
	if spec == nil {
		return nil
	}
	if e, ok := spec.entry("on_error"); ok {
		r.warn(spec.keyAt(e), "ignored_key", `"on_error" is ignored`, ignoredStepKeys["on_error"])
	}
	s.Timeout = r.duration(spec.get("timeout"), "timeout")
	policy := r.mapAt(spec, "policy", "spec")
	r.unknownKeys(policy, "spec.policy of a step", []string{"admit", "lifecycle", "failure", "emit"})
	if policy == nil {
		return spec
	}
	failure := r.mapAt(policy, "failure", "spec.policy")
	r.unknownKeys(failure, "spec.policy.failure", []string{"mode"})
	s.BestEffort = r.word(failure.get("mode"), "failure mode", []string{"fail_fast", "best_effort"}) == "best_effort"
	life := r.mapAt(policy, "lifecycle", "spec.policy")
	r.unknownKeys(life, "spec.policy.lifecycle", []string{"timeout_s", "deadline_s"})
	if s.Timeout == 0 {
		s.Timeout = r.duration(life.get("timeout_s"), "timeout_s")
	}
	return spec
}

// duration reads 30s, 5m, or a number of seconds.
func (r *reader) duration(n *node, what string) time.Duration {
	if !n.given() {
		return 0
	}
	var d time.Duration
	secs, err := strconv.ParseFloat(n.str(), 64)
	if err == nil && secs < 1e9 {
		d = time.Duration(secs * float64(time.Second))
	} else {
		d, err = time.ParseDuration(strings.ReplaceAll(n.str(), " ", ""))
	}
	if err != nil || d <= 0 {
		r.fail(n.at(), "bad_duration", what+" must be a time such as 30s, 5m or a number of seconds, this is "+quote(n.compact()), "")
		return 0
	}
	return d
}
