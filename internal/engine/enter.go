package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
)

// reasonStepRuns marks a step that ran more often than the limits allow.
const reasonStepRuns = "step_runs"

// enter starts a new run of a step, unless its guard says no: then the step is
// skipped and its arcs are followed as if it had ended without a result.
func (d *decider) enter(n *node, token offer) {
	name, cause := n.step.Name, token.cause
	gen := d.s.runsOf(name) + 1
	if gen > d.p.limits.StepRuns {
		d.fail(name, gen, reasonStepRuns, fmt.Sprintf(
			"step %q ran %d times: a cycle of arcs has no way out (give one of its arcs a condition that ends it)", name, gen-1), cause)
		return
	}
	for _, g := range []struct {
		reason, field string
		when          *jinja.Template
	}{{"admit", "spec.policy.admit", n.step.Admit}, {"guard", "when", n.step.When}} {
		if g.when == nil {
			continue
		}
		sc := names{s: d.s, extra: d.trigger(token)}
		ok, err := d.s.truth(g.when, sc)
		if err != nil {
			d.fail(name, gen, "evaluate_error", fmt.Sprintf("step %q, %s %q: %v", name, g.field, g.when.Source(), err), cause)
			return
		}
		if !ok {
			d.step(event.StepSkipped, name, event.StatusSkipped,
				&endDetail{Gen: gen, Reason: g.reason, When: g.when.Source(), Read: d.read(g.when, sc)}, cause)
			return
		}
	}
	switch {
	case n.step.Loop != nil && n.step.Loop.Cursor != nil:
		d.enterCursor(n, gen, cause)
	case n.step.Loop != nil:
		d.enterLoop(n, gen, cause)
	case len(n.step.Tasks) == 0:
		d.step(event.StepEnter, name, event.StatusEntered, &enterDetail{Gen: gen}, cause)
		d.step(event.StepExit, name, event.StatusCompleted, &endDetail{Gen: gen}, d.s.lastEventID)
	default:
		d.step(event.StepEnter, name, event.StatusEntered, &enterDetail{Gen: gen}, cause)
		d.issue(n, d.s.steps[name].cur, issueDetail{}, d.vars(n.needs))
	}
	if r := d.s.currentRun(name, gen); r != nil && r.phase == running {
		d.watchRun(n, r)
	}
}

// trigger binds the event that led to a step, for its guard.
func (d *decider) trigger(token offer) jinja.Vars {
	st, ok := d.s.steps[token.from]
	if !ok || st.cur == nil || st.cur.ended != token.cause {
		return nil
	}
	return jinja.Vars{"event": d.s.boundary(st.cur)["event"]}
}

// admitted tells whether the step's admission lets a token in now.
func (d *decider) admitted(n *node, token offer) (bool, error) {
	if n.step.Admit == nil {
		return true, nil
	}
	return d.s.truth(n.step.Admit, names{s: d.s, extra: d.trigger(token)})
}

// issue emits a command of the run; place says which of a loop's it is.
func (d *decider) issue(n *node, r *run, place issueDetail, vars json.RawMessage) {
	if err := d.s.missingValue(); vars != nil && err != nil {
		d.fail(r.step, r.gen, "evaluate_error", fmt.Sprintf("step %q: %v", r.step, err), r.entered)
		return
	}
	detail := &place
	if detail.Same = sameValues(r.vars, vars); !detail.Same {
		vars = d.inline(n, vars)
	}
	detail.Gen, detail.MaxAttempts, detail.Trace, detail.vars = r.gen, d.p.limits.MaxAttempts, d.s.trace, vars
	kind := n.step.Kind()
	if detail.Cursor != nil && detail.Cursor.Phase == cursorClaim {
		kind = n.step.Loop.Cursor.Kind
	}
	e := event.Event{
		Type: event.CommandIssued, NodeName: r.step, NodeType: kind, Status: event.StatusPending,
		ParentEventID: r.entered, Meta: encode(detail), Detail: detail,
	}
	if detail.Same {
		detail.vars = nil
	} else if len(vars) > 2 {
		o := newObject()
		o.raw("render_context", vars)
		e.Context = o.bytes()
	} else {
		detail.vars = nil
	}
	d.emit(e)
}

// worthSharing is from how many bytes on values that did not change since the
// last command of a loop are not stored again.
const worthSharing = 1 << 10

// commandID is the id workers know a command by.
func commandID(execution event.ID, step string, issued event.ID, index *int) string {
	b := make([]byte, 0, 48+len(step))
	b = strconv.AppendInt(b, int64(execution), 10)
	b = append(b, ':')
	b = append(b, step...)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(issued), 10)
	if index != nil {
		b = append(b, ":i"...)
		b = strconv.AppendInt(b, int64(*index), 10)
	}
	return string(b)
}

// stepsFailed lists the steps whose failure nobody handled, in workflow order.
func (d *decider) stepsFailed() (steps []string, first string) {
	var firstEnd event.ID
	for _, n := range d.p.nodes {
		st := d.s.steps[n.step.Name]
		if st == nil || st.cur == nil || st.cur.phase != failed || st.cur.handled {
			continue
		}
		steps = append(steps, n.step.Name)
		if firstEnd == 0 || st.cur.ended < firstEnd {
			firstEnd, first = st.cur.ended, st.cur.errText
		}
	}
	return steps, first
}

// stepsHandled lists the steps whose failure an arc took up, in workflow order.
func (d *decider) stepsHandled() (steps []string) {
	for _, n := range d.p.nodes {
		if st := d.s.steps[n.step.Name]; st != nil && st.cur != nil && st.cur.phase == failed && st.cur.handled {
			steps = append(steps, n.step.Name)
		}
	}
	return steps
}

// quiet tells whether nothing is left to do: no open command and, unless a
// failure has stopped everything else, no run to route and no waiting token.
func (d *decider) quiet() bool {
	s := d.s
	if s.Final() || len(s.open) > 0 {
		return false
	}
	return d.stopping() || len(s.unrouted) == 0 && len(s.loops) == 0 && len(s.offers) == 0
}

// finalStep is the executor's final step when its time has come: all else is
// quiet and it has not run yet.
func (d *decider) finalStep() (*node, bool) {
	n, ok := d.p.byName[d.p.pb.Executor.FinalStep]
	return n, ok && d.quiet() && d.s.runsOf(n.step.Name) == 0
}

// terminate emits the one terminal event.
func (d *decider) terminate() {
	if !d.stopping() {
		d.emit(event.Event{
			Type: event.PlaybookCompleted, NodeName: "playbook", NodeType: "execution", Status: event.StatusCompleted,
			ParentEventID: d.s.lastEventID, Result: envelope(event.StatusCompleted, nil),
			Meta: encode(&terminalMeta{Status: event.StatusCompleted, Handled: d.stepsHandled()}),
		})
		return
	}
	steps, first := d.stepsFailed()
	text := "Failed steps: " + strings.Join(steps, ", ")
	if len(steps) == 1 {
		for _, twice := range []string{"step " + steps[0] + ": ", fmt.Sprintf("step %q, ", steps[0]), fmt.Sprintf("step %q: ", steps[0])} {
			first = strings.TrimPrefix(first, twice)
		}
	}
	if first != "" {
		text += ": " + first
	}
	d.emit(event.Event{
		Type: event.PlaybookFailed, NodeName: "playbook", NodeType: "execution", Status: event.StatusFailed,
		ParentEventID: d.s.lastEventID, Error: text,
		Result: envelope(event.StatusFailed, encode(map[string]string{"error": text})),
		Meta:   encode(&terminalMeta{Status: event.StatusFailed, Error: text, FailedSteps: steps}),
	})
}
