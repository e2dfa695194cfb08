package playbook

import "slices"

// check looks at what only the whole workflow can tell: names, targets, the
// entry, and what can be reached from it.
func (r *reader) check(p *Playbook, exec *node) {
	index := r.stepIndex(p.Steps)
	r.entry(p, exec, index)
	r.targets(p.Steps, index)
	if !r.routesBroken() {
		r.reachable(p, index)
		r.fanouts(p, index)
	}
	r.shadowedSteps(index)
	r.step = ""
}

// routesBroken tells that arcs were lost to a mistake already reported, so
// that an unreached step is most likely its consequence.
func (r *reader) routesBroken() bool {
	codes := []string{
		"missing_target", "bad_next", "bad_arc", "wrong_type", "missing_step_name", "duplicate_step", "misplaced_key",
	}
	return slices.ContainsFunc(r.problems, func(p Problem) bool {
		return p.Severity == SeverityError && slices.Contains(codes, p.Code)
	})
}

func stepAt(s *Step) place {
	return place{s.Pos, "workflow[" + itoa(s.Index) + "]"}
}

func (r *reader) stepIndex(steps []*Step) map[string]int {
	index := make(map[string]int, len(steps))
	for i, s := range steps {
		if first, dup := index[s.Name]; dup {
			r.step = s.Name
			r.fail(stepAt(s), "duplicate_step", "there are two steps named "+quote(s.Name)+
				"; the first is in line "+itoa(steps[first].Pos.Line), "rename one of them")
			continue
		}
		index[s.Name] = i
	}
	return index
}

// entry chooses the step that starts: the one the executor names, else `start`,
// else the first.
func (r *reader) entry(p *Playbook, exec *node, index map[string]int) {
	r.step = ""
	if i, ok := index["start"]; ok {
		p.Entry = i
	}
	for _, key := range []string{"entry_step", "final_step"} {
		n := exec.get(key)
		if n.str() == "" {
			continue
		}
		i, ok := index[n.str()]
		if !ok {
			r.fail(n.at(), "missing_target", key+" names the step "+quote(n.str())+", which does not exist",
				didYouMean(n.str(), "the steps are:", names(p.Steps)))
		} else if key == "entry_step" {
			p.Entry = i
		}
	}
}

func (r *reader) targets(steps []*Step, index map[string]int) {
	all := names(steps)
	for _, s := range steps {
		r.step = s.Name
		for _, a := range s.Arcs {
			if _, ok := index[a.Target]; ok {
				continue
			}
			remedy := didYouMean(a.Target, "the steps are:", all)
			if a.Target == "end" && !slices.Contains(all, "end") {
				remedy = "add a step named end, or leave next out to end here"
			}
			r.fail(r.arcAt[a], "missing_target",
				"step "+quote(s.Name)+" leads to "+quote(a.Target)+", which does not exist", remedy)
		}
	}
}

// reachable warns about steps that no chain of arcs leads to.
func (r *reader) reachable(p *Playbook, index map[string]int) {
	seen := make([]bool, len(p.Steps))
	queue := []int{p.Entry}
	if i, ok := index[p.Executor.FinalStep]; ok {
		queue = append(queue, i)
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if seen[i] {
			continue
		}
		seen[i] = true
		for _, a := range p.Steps[i].Arcs {
			if t, ok := index[a.Target]; ok && !seen[t] {
				queue = append(queue, t)
			}
		}
	}
	for i, s := range p.Steps {
		if first := index[s.Name]; !seen[i] && first == i {
			r.step = s.Name
			r.warn(stepAt(s), "unreachable_step", "no arc leads to step "+quote(s.Name)+": it never runs",
				"lead an arc to it, or remove it")
		}
	}
}

func names(steps []*Step) []string {
	out := make([]string, len(steps))
	for i, s := range steps {
		out[i] = s.Name
	}
	return out
}

// fanouts warns about steps that go several ways at once, none of which meets
// another again: nothing puts their results together.
func (r *reader) fanouts(p *Playbook, index map[string]int) {
	if p.Executor.FinalStep != "" {
		return // which runs when all of them are done
	}
	for i, s := range p.Steps {
		if s.Mode != Inclusive || index[s.Name] != i {
			continue
		}
		if targets := distinct(s.Arcs); len(targets) > 1 && !meet(p, index, i, targets) {
			r.step = s.Name
			r.warn(stepAt(s), "fanout_no_reducer", "step "+quote(s.Name)+" leads to "+join(targets)+
				" at once, and their branches never meet again", "lead them to one step that puts their results together")
		}
	}
}

func distinct(arcs []*Arc) []string {
	var out []string
	for _, a := range arcs {
		if !slices.Contains(out, a.Target) {
			out = append(out, a.Target)
		}
	}
	return out
}

// meet tells whether some step can be reached from two of the targets without
// starting over at the step they come from. One walk is enough: each step takes
// the colour of the target it is reached from first, and an arc between two
// colours is a meeting.
func meet(p *Playbook, index map[string]int, from int, targets []string) bool {
	colour := make([]int, len(p.Steps))
	var queue []int
	for c, t := range targets {
		i, ok := index[t]
		if !ok {
			return true // a mistake that is reported already
		}
		colour[i] = c + 1
		queue = append(queue, i)
	}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if i == from {
			continue
		}
		for _, a := range p.Steps[i].Arcs {
			switch t := index[a.Target]; colour[t] {
			case colour[i]:
			case 0:
				colour[t] = colour[i]
				queue = append(queue, t)
			default:
				return true
			}
		}
	}
	return false
}

// shadowedSteps warns about variables that hide the result of a step.
func (r *reader) shadowedSteps(index map[string]int) {
	for _, a := range r.sets {
		if _, ok := index[a.key]; ok {
			r.step = a.step
			r.warn(a.set.keyAt(a.entry), "shadows_step", "the variable "+quote(a.key)+" hides the result of the step of that name",
				"choose another name for the variable")
		}
	}
}
