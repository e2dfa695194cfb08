package engine

import (
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// Statuses of steps without a run.
const (
	explainWaiting    = event.StatusWaiting
	explainNotReached = "NOT_REACHED"
)

// Explain says how a step stands and why; with an empty name, all steps in
// workflow order.
func Explain(p *Program, s *State, step string) ([]event.Explanation, error) {
	if step != "" {
		n, ok := p.byName[step]
		if !ok {
			return nil, event.Errorf(event.NotFound, "the playbook has no step %q; its steps are: %s", step, strings.Join(p.stepNames(), ", "))
		}
		return []event.Explanation{explainer{p, s}.step(n)}, nil
	}
	out := make([]event.Explanation, len(p.nodes))
	for i, n := range p.nodes {
		out[i] = explainer{p, s}.step(n)
	}
	return out, nil
}

func (p *Program) stepNames() []string {
	out := make([]string, len(p.nodes))
	for i, n := range p.nodes {
		out[i] = n.step.Name
	}
	return out
}

type explainer struct {
	p *Program
	s *State
}

func (x explainer) step(n *node) event.Explanation {
	e := event.Explanation{Step: n.step.Name}
	if x.offered(n.step.Name) {
		x.waiting(n, &e)
		return e
	}
	st := x.s.steps[n.step.Name]
	if st == nil || st.cur == nil {
		x.notReached(n, &e)
		return e
	}
	r := st.cur
	e.Run, e.Entered, e.Ended, e.From = r.gen, r.enteredAt, r.endedAt, r.from
	e.Status = x.s.statusOf(r)
	switch {
	case e.Status == event.StatusCancelled:
		e.Reason = "the execution ended while it ran"
	case r.phase == running:
		e.Reason = "it runs"
		x.running(n, r, &e)
	case r.phase == skipped:
		x.skipped(n, r, &e)
	case r.phase == failed:
		x.failed(n, r, &e)
	default:
		e.Reason = "it completed"
		x.progress(r, &e)
	}
	if r.reused != 0 {
		e.Reason += ", reused from execution " + r.reused.String()
	}
	if st.routed != nil && st.routed.Gen == r.gen {
		for _, a := range st.routed.Arcs {
			e.Arcs = append(e.Arcs, event.RoutedArc{From: st.name, To: a.Step, When: a.When, Fired: a.Outcome, Read: a.Read, Error: a.Error})
		}
	}
	return e
}

func (x explainer) offered(step string) bool {
	for _, o := range x.s.offers {
		if o.target == step {
			return true
		}
	}
	return false
}

// waiting explains a token that has not entered its step.
func (x explainer) waiting(n *node, e *event.Explanation) {
	e.Status = explainWaiting
	for _, o := range x.s.offers {
		if o.target == n.step.Name {
			e.From = append(e.From, o.from)
		}
	}
	d := &decider{p: x.p, s: x.s}
	f := d.frontier()
	var names []string
	for _, w := range n.waits {
		up := x.p.nodes[w.upstream].step.Name
		if f.meets(w.live) && !d.hasOffer(n.step.Name, up) {
			e.Waits = append(e.Waits, event.Wait{For: "join", Name: up, What: "the branch through " + up + " can still arrive"})
			names = append(names, up)
		}
	}
	switch {
	case len(names) > 0:
		e.Reason = "it waits for " + strings.Join(names, " and ")
	case n.step.AdmitWaits:
		e.Reason = "its admission says no for now"
		e.Waits = append(e.Waits, event.Wait{For: "admission", What: "until " + n.step.Admit.Source()})
	case d.stopping():
		e.Reason = "a failure elsewhere keeps new steps from starting"
	default:
		e.Reason = "it is about to be entered"
	}
}

// notReached explains a step without a run by the arcs that lead to it.
func (x explainer) notReached(n *node, e *event.Explanation) {
	e.Status = explainNotReached
	e.Led = x.arcsTo(n)
	d := &decider{p: x.p, s: x.s}
	switch {
	case !x.s.Final() && d.liveReach().has(n.step.Index):
		e.Reason = "it may still be reached"
	case !x.s.Started():
		e.Reason = "the execution has not started"
	case len(n.up) == 0:
		e.Reason = "no arc leads to it"
	case len(e.Led) > 0:
		e.Reason = "no arc that leads to it fired"
	default:
		e.Reason = "no step before it ran"
	}
}

// arcsTo are the evaluated arcs to a step that did not fire.
func (x explainer) arcsTo(n *node) []event.RoutedArc {
	var out []event.RoutedArc
	for _, u := range n.up {
		st := x.s.steps[x.p.nodes[u].step.Name]
		if st == nil || st.routed == nil {
			continue
		}
		evaluated := false
		for _, a := range st.routed.Arcs {
			if a.Step == n.step.Name && !a.Outcome {
				out = append(out, event.RoutedArc{From: st.name, To: a.Step, When: a.When, Read: a.Read, Error: a.Error})
				evaluated = true
			}
		}
		if !evaluated {
			out = append(out, event.RoutedArc{From: st.name, To: n.step.Name})
		}
	}
	return out
}

func (x explainer) skipped(n *node, r *run, e *event.Explanation) {
	switch r.reason {
	case "guard":
		e.Reason = "its guard did not hold: " + r.skip.When
	case "admit":
		e.Reason = "it was not admitted: " + r.skip.When
	default:
		e.Reason = "no arc that leads to it fired"
		e.Led = x.arcsTo(n)
	}
	for _, k := range sortedKeys(r.skip.Read) {
		e.Reason += fmt.Sprintf(", %s = %s", k, r.skip.Read[k])
	}
}

func (x explainer) failed(_ *node, r *run, e *event.Explanation) {
	e.Error, e.Handled = r.errText, r.handled
	switch {
	case r.handled:
		e.Reason = "it failed, and an arc took the failure up"
	case r.reason != "":
		e.Reason = "it failed (" + r.reason + ")"
	default:
		e.Reason = "it failed"
	}
	x.progress(r, e)
}
