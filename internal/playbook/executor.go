package playbook

import (
	"slices"
	"time"
)

// features are the abilities of the engine that a playbook may insist on.
var features = []string{
	"admission", "cursor_loops", "fanout", "joins", "keychain", "loops", "pipelines", "policy_rules", "result_storage",
	"sub_playbooks", "templates", "workbook",
}

// executor reads the run-wide settings. The node is returned for checks that
// need the steps.
func (r *reader) executor(root *node, x *Executor) *node {
	n := r.part(root, "executor", executorObject)
	if n == nil {
		return nil
	}
	r.requires(r.part(n, "requires", requiresObject), x)
	spec := r.part(n, "spec", executorSpecObject)
	if spec == nil {
		return nil
	}
	x.EntryStep = spec.get("entry_step").str()
	x.FinalStep = spec.get("final_step").str()
	x.NoNextIsError = spec.get("no_next_is_error").isTrue()
	x.Pool = spec.get("pool").str()
	x.Deadline = r.duration(spec.get("timeout"), "timeout")
	policy := r.part(spec, "policy", executorPolicyObject)
	x.StepTimeout = r.duration(r.part(policy, "defaults", executorDefaultsObject).get("timeout_s"), "timeout_s")
	r.limits(r.part(policy, "limits", executorLimitsObject), x)
	return spec
}

// limits reads the older spellings of the bound of an execution; of several
// the smallest holds.
func (r *reader) limits(n *node, x *Executor) {
	if n == nil {
		return
	}
	var least time.Duration
	for _, e := range n.entries {
		if executorLimitsObject.field(e.key) == nil {
			continue
		}
		if d := r.duration(e.value, e.key); d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	if x.Deadline == 0 {
		x.Deadline = least
	}
}

// requires checks what the playbook cannot do without against what there is.
func (r *reader) requires(n *node, x *Executor) {
	if n == nil {
		return
	}
	if tools := n.get("tools"); tools.given() {
		x.RequiredTools = tools.words()
		for _, t := range tools.items {
			if !slices.Contains(kinds, t.str()) {
				r.unknownKind(t, "the playbook requires tools of kind "+quote(t.str())+", which the language does not have")
			}
		}
	}
	if list := n.get("features"); list.given() {
		for _, f := range list.items {
			if !slices.Contains(features, f.str()) {
				r.warn(f.at(), "unknown_feature", "the engine knows no feature "+quote(f.str()), didYouMean(f.str(), "it has:", features))
			}
		}
	}
}
