package playbook

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

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
	n = r.intoTool(n)
	n = r.stepKeys(n, s)
	s.Desc = n.get("desc").str()
	if d := n.get("description"); s.Desc == "" {
		s.Desc = d.str()
	}
	r.readTool(n, s)
	r.stepOutput(n, s)
	s.Input = r.stepInput(n)
	s.Loop = r.readLoop(n)
	s.Set = r.stepSet(n)
	s.When = r.condition(n.get("when"))
	spec := r.stepSpec(n, s)
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
func (r *reader) stepKeys(n *node, s *Step) *node {
	where := "step " + quote(s.Name)
	_, scalarTool := toolWord(n)
	var handled []string
	for _, e := range n.entries {
		switch {
		case stepObject.field(e.key) != nil:
			continue
		case e.key == "name" && n.get("step") == nil:
		case slices.Contains(toolOnly, e.key):
			if !scalarTool {
				r.misplaced(n, e, s)
			}
		case n.get("tool") == nil && misspeltTool(e):
			r.fail(n.keyAt(e), "unknown_key", "unknown key "+quote(e.key)+" in "+where, `did you mean "tool"?`)
		default:
			continue
		}
		handled = append(handled, e.key)
	}
	n = n.without(handled...)
	if !scalarTool {
		return r.conformAs(n, stepObject, where)
	}
	// What a lone word means is said where the tool is read.
	tool, _ := n.entry("tool")
	return r.conformAs(n.without("tool"), stepObject, where).with("tool", tool.pos, tool.value)
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

// stepSpec reads bounds, admission and failure mode. The node is returned for
// those who read the rest of it.
func (r *reader) stepSpec(n *node, s *Step) *node {
	spec := r.part(n, "spec", stepSpecObject)
	s.Timeout = r.duration(spec.get("timeout"), "timeout")
	if old := r.duration(n.get("timeout"), "timeout"); s.Timeout == 0 {
		s.Timeout = old
	}
	policy := r.part(spec, "policy", stepPolicyObject)
	policy = merged(r.part(n, "policy", stepPolicyObject), policy)
	s.BestEffort = keyword(r.part(policy, "failure", failureObject).get("mode")) == "best_effort"
	life := r.part(policy, "lifecycle", lifecycleObject)
	if d := r.duration(life.get("timeout_s"), "timeout_s"); s.Timeout == 0 {
		s.Timeout = d
	}
	s.Deadline = r.duration(life.get("deadline_s"), "deadline_s")
	r.admit(r.part(policy, "admit", admitObject), s)
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
