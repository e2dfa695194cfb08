package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Harvest collects from the log of one execution what another one may take
// over that runs the same playbook again from a step on.
//
// It folds the original's log as if that step had not been entered yet: events
// of the step and of everything behind it are left out from its first entry on,
// while those of branches beside it count. The state this gives is one the
// original could have been in, had the step been slow to start. What ended in it
// is taken over; what was under way, or failed without anybody handling it, gets
// its tokens back and runs again.
type Harvest struct {
	original event.ID
	from     string
	final    bool            // from is the executor's final step, which failures do not stop
	anew     map[string]bool // from and what comes after it
	state    *State
	cut      bool // from was entered
}

// NewHarvest prepares to collect for a run of p from a step on; old is the
// playbook of the original, nil when it cannot be read any more. Invalid when p
// has no such step.
func NewHarvest(original event.ID, p, old *Program, from string) (*Harvest, error) {
	if _, ok := p.byName[from]; !ok {
		return nil, event.Errorf(event.Invalid, "from_step: the playbook has no step %q; its steps are: %s", from, strings.Join(p.stepNames(), ", "))
	}
	h := &Harvest{
		original: original, from: from, final: p.pb.Executor.FinalStep == from,
		anew: map[string]bool{from: true}, state: NewState(original),
	}
	h.leaveOut(p)
	if old != nil && old != p {
		h.leaveOut(old)
	}
	return h, nil
}

// leaveOut marks what a playbook runs after the step, its end included.
func (h *Harvest) leaveOut(p *Program) {
	for _, name := range []string{h.from, p.pb.Executor.FinalStep} {
		n, ok := p.byName[name]
		if !ok {
			continue
		}
		h.anew[name] = true
		for i, other := range p.nodes {
			if n.reach.has(i) {
				h.anew[other.step.Name] = true
			}
		}
	}
}

// Apply takes the next event of the original's log.
func (h *Harvest) Apply(e *event.Event) {
	h.cut = h.cut || h.enters(e)
	if !h.cut || !h.leaves(e) {
		h.state.Apply(e)
	}
}

// enters tells whether an event is the first entry into the step.
func (h *Harvest) enters(e *event.Event) bool {
	if e.NodeName != h.from || e.WorkerID != "" || h.state.runsOf(h.from) > 0 {
		return false
	}
	switch e.Type.Canonical() {
	case event.StepEnter, event.StepFailed:
		return true
	case event.StepSkipped:
		return resultOf[endDetail](e).Gen > 0
	}
	return false
}

// leaves tells whether an event after the first entry is left out.
func (h *Harvest) leaves(e *event.Event) bool {
	if e.Type.IsTerminal() || h.anew[e.NodeName] {
		return true
	}
	c := h.state.commands[e.CommandID]
	return c != nil && h.anew[c.Step]
}

// Check tells, after the last event, why the execution cannot be run again from
// the step with program p; nil when it can.
func (h *Harvest) Check(p *Program) error {
	if !h.cut {
		return h.notReached()
	}
	for _, t := range h.tokens() {
		if _, ok := p.byName[t.Step]; !ok {
			return &event.Error{
				Code: event.Invalid, Reason: "playbook_changed",
				Message: fmt.Sprintf("from_step: execution %s was also about to run step %q, which this version of the playbook does not have", h.original, t.Step),
				Remedy:  "rerun the version the execution ran, or the whole playbook",
			}
		}
	}
	return nil
}

func (h *Harvest) notReached() error {
	st := h.state.steps[h.from]
	if st != nil && st.cur != nil && st.cur.reused != 0 {
		return &event.Error{
			Code: event.Invalid, Reason: "step_reused",
			Message: fmt.Sprintf("from_step: execution %s did not run step %q, it reused the result from execution %s", h.original, h.from, st.cur.reused),
			Remedy:  "rerun execution " + st.cur.reused.String() + " from this step",
		}
	}
	var reached []string
	for _, name := range h.state.order {
		if st := h.state.steps[name]; st.runs > 0 && st.cur.reused == 0 {
			reached = append(reached, name)
		}
	}
	return &event.Error{
		Code: event.Invalid, Reason: "step_not_reached",
		Message: fmt.Sprintf("from_step: execution %s never reached step %q", h.original, h.from),
		Remedy:  "choose one of the steps it reached: " + strings.Join(reached, ", "),
	}
}

// ended tells whether a run's outcome can be taken over.
func (h *Harvest) ended(r *run) bool {
	return r.phase != running && (r.phase != failed || r.handled || h.final)
}

// tokens are what the new execution starts with: the original's waiting ones,
// and for each run that is not taken over those that led to it.
func (h *Harvest) tokens() []tokenDetail {
	var out []tokenDetail
	add := func(step string, from ...string) {
		if len(from) == 0 {
			from = []string{""}
		}
		for _, f := range from {
			if t := (tokenDetail{step, f}); !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	for _, name := range h.state.order {
		if r := h.state.steps[name].cur; r != nil && !h.ended(r) {
			add(name, r.from...)
		}
	}
	for _, o := range h.state.offers {
		add(o.target, o.from)
	}
	if !slices.ContainsFunc(out, func(t tokenDetail) bool { return t.Step == h.from }) && !h.final {
		add(h.from)
	}
	return out
}

// TakeOver makes the events by which a new execution, whose start is applied to
// s, takes over what was collected, and applies them. After them the new log
// says all there is to know: the original is not needed any more.
func (h *Harvest) TakeOver(p *Program, s *State, env Env) Plan {
	d := &decider{p: p, s: s, env: env}
	d.setDeadline()
	if len(h.state.vars) > 0 {
		d.step(event.CtxUpdated, "playbook", event.StatusContext, h.variables(), s.lastEventID)
	}
	for _, name := range h.state.order {
		for _, part := range h.reused(h.state.steps[name]) {
			d.step(event.StepReused, name, event.StatusReused, part, s.lastEventID)
		}
	}
	d.step(event.RerunPrepared, "playbook", event.StatusReused, &preparedDetail{
		Execution: event.StringID(h.original), FromStep: h.from, Tokens: h.tokens(),
	}, s.lastEventID)
	return d.plan
}

// variables are the original's durable variables.
func (h *Harvest) variables() *ctxDetail {
	out := &ctxDetail{Values: map[string]rawJSON{}}
	for _, k := range sortedKeys(h.state.vars) {
		v := h.state.vars[k]
		if v.ref == "" {
			out.Values[k] = compact(nonNil(v.raw))
			continue
		}
		if out.Refs == nil {
			out.Refs = map[string]string{}
		}
		out.Refs[k] = v.ref
	}
	return out
}
