package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/scope"
)

// routeFailures gives each failed run's error arcs their chance. A failure
// that no arc takes up stops the execution.
func (d *decider) routeFailures() bool {
	changed := false
	for _, r := range d.s.unrouted {
		if r.phase == failed && d.p.byName[r.step] != nil {
			d.route(r)
			changed = true
		}
	}
	return changed
}

// routeEnded evaluates the arcs of every run that ended, oldest end first.
func (d *decider) routeEnded() bool {
	changed := false
	for _, r := range d.s.unrouted {
		if r.phase != failed && !d.stopping() && d.p.byName[r.step] != nil {
			d.route(r)
			changed = true
		}
	}
	return changed
}

// route evaluates a run's arcs exactly once and records the outcome: the
// variables the step sets, which arcs fired and why, and the tokens they left.
func (d *decider) route(r *run) {
	n := d.p.byName[r.step]
	extra := d.s.boundary(r)
	if r.phase == completed {
		d.setVars(r, n.step.Set, "", extra)
	}
	detail := &routeDetail{Step: r.step, Gen: r.gen, Matched: []string{}, Failed: r.phase == failed}
	var fired []*playbook.Arc
	var err error
	if r.reason != reasonStepRuns { // an endless cycle must not be able to catch its own end
		fired, err = d.evalArcs(r, n, extra, detail)
	}
	if err != nil {
		d.fail(r.step, r.gen, "evaluate_error", err.Error(), r.ended)
		return
	}
	if len(fired) == 0 && len(n.step.Arcs) > 0 && r.phase == completed && (d.p.pb.Executor.NoNextIsError || n.step.NoMatchIsError) {
		d.fail(r.step, r.gen, "no_next", fmt.Sprintf("step %q: no arc matched", r.step), r.ended)
		return
	}
	detail.Handled = r.phase == failed && len(fired) > 0
	for _, a := range n.step.Arcs {
		if !slices.Contains(detail.Matched, a.Target) && !slices.Contains(detail.Skipped, a.Target) {
			detail.Skipped = append(detail.Skipped, a.Target)
		}
	}
	for _, a := range fired {
		d.setVars(r, a.Set, a.Target, extra)
	}
	d.step(event.NextEvaluated, r.step, "EVALUATED", detail, r.ended)
	d.skipDead(n, detail.Matched, r.ended)
}

// evalArcs returns the arcs that fire. A failed run sees only its error arcs.
// A condition that cannot be evaluated fails the run, unless the run left no
// result to look at: then the condition does not hold.
func (d *decider) evalArcs(r *run, n *node, extra jinja.Vars, detail *routeDetail) ([]*playbook.Arc, error) {
	var fired []*playbook.Arc
	sc := names{s: d.s, extra: extra}
	for i, a := range n.step.Arcs {
		if r.phase == failed && !a.OnError {
			continue
		}
		ad := arcDetail{Step: a.Target, Outcome: true}
		if a.When != nil {
			ad.When = a.When.Source()
			ok, err := d.s.truth(a.When, sc)
			switch {
			case err != nil && r.phase == completed:
				return nil, fmt.Errorf("step %q, next.arcs[%d].when %q: %w", r.step, i, ad.When, err)
			case err != nil:
				ad.Error = err.Error()
			}
			ad.Outcome, ad.Read = ok && err == nil, d.read(a.When, sc)
		}
		detail.Arcs = append(detail.Arcs, ad)
		if !ad.Outcome {
			continue
		}
		fired = append(fired, a)
		if !slices.Contains(detail.Matched, a.Target) {
			detail.Matched = append(detail.Matched, a.Target)
		}
		if n.step.Mode != playbook.Inclusive {
			break
		}
	}
	return fired, nil
}

// readLimit bounds each value that next.evaluated quotes.
const readLimit = 256

// read quotes the values a condition mentions, so that the log explains itself.
func (d *decider) read(t *jinja.Template, sc jinja.Scope) map[string]json.RawMessage {
	fetch := d.s.fetch
	d.s.fetch = nil // what is not at hand is not worth a look for a quotation
	defer func() { d.s.fetch, d.s.missing = fetch, "" }()
	out := map[string]json.RawMessage{}
	for _, path := range t.Free() {
		var v any
		v, ok := sc.Lookup(path[0])
		key := path[0]
		for _, attr := range path[1:] {
			if !ok {
				break
			}
			v, ok = attrOf(v, attr)
			key += "." + attr
		}
		if !ok || !quotable(v) {
			continue
		}
		d.s.missing = ""
		if b, err := jinja.ToJSON(v); err == nil && len(b) <= readLimit && d.s.missing == "" {
			out[key] = b
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// quotable tells whether a value may be short enough to be quoted.
func quotable(v any) bool {
	switch x := v.(type) {
	case string:
		return len(x) <= readLimit
	case []any:
		return len(x) <= readLimit/2
	case *jinja.Dict:
		return x.Len() <= readLimit/5
	}
	return true
}

// attrOf reads one attribute of a value the way a template would.
func attrOf(v any, name string) (any, bool) {
	if raw, ok := v.(json.RawMessage); ok {
		v, _ = jinja.FromJSON(raw)
	}
	switch x := v.(type) {
	case *jinja.Dict:
		return x.Get(name)
	case jinja.Object:
		return x.Attr(name)
	}
	return nil, false
}

// boundary binds the names that exist only where a run ended: output (and its
// older spellings), event and error.
func (s *State) boundary(r *run) jinja.Vars {
	var out any
	name, status := scope.EventDone, event.StatusCompleted
	switch {
	case r.phase == failed:
		name, status = scope.EventError, event.StatusFailed
		out = s.bound(r.failureValue())
	case r.value != nil:
		out = s.chosen(r.step, s.bound(r.value))
	}
	if (r.loop != nil || r.cursor != nil) && r.phase == completed {
		name = scope.EventLoop
	}
	ev := jinja.NewDict(5)
	ev.Set("name", name)
	ev.Set("step", r.step)
	ev.Set("status", status)
	ev.Set("timestamp", r.endedAt.Format(time.RFC3339Nano))
	extra := jinja.Vars{"event": ev}
	if r.loop != nil {
		about := jinja.NewDict(2)
		about.Set("length", int64(r.loop.total))
		about.Set("done", true)
		extra["loop"] = about
	}
	if out != nil {
		ev.Set("payload", out)
		for _, k := range []string{"output", "outcome", "response", "result"} {
			extra[k] = out
		}
	}
	if r.phase == failed {
		extra["error"] = r.errRaw
	}
	return extra
}

// setVars makes the assignments of a step or an arc durable, together with
// what the step's command asked for.
func (d *decider) setVars(r *run, set []playbook.Assignment, arc string, extra jinja.Vars) {
	detail := &ctxDetail{Step: r.step, Gen: r.gen, Arc: arc, Values: map[string]json.RawMessage{}}
	if arc == "" {
		r.commandUpdates(detail)
		d.nest(detail)
	}
	sc := names{s: d.s, extra: extra}
	if len(set) > 0 && len(detail.Values) > 0 { // the step's own set sees them
		sc.extra = maps.Clone(extra)
		for k, v := range detail.Values {
			sc.extra[k] = v
		}
	}
	for _, a := range set {
		v, err := d.s.eval(a.Value, sc)
		if err != nil {
			detail.Warnings = append(detail.Warnings, fmt.Sprintf("set %s: %v", a.Key, err))
			v = nil
		}
		b, err := jinja.ToJSON(v)
		if err != nil {
			detail.Warnings = append(detail.Warnings, fmt.Sprintf("set %s: %v", a.Key, err))
			b = json.RawMessage("null")
		}
		detail.Values[a.Key] = b
	}
	d.update(r.step, detail, r.ended)
}

// valueInline is how many bytes of a variable an event holds itself.
const valueInline = 64 << 10

// update writes variables, the large ones beside the log.
func (d *decider) update(step string, detail *ctxDetail, cause event.ID) {
	if len(detail.Values) == 0 {
		return
	}
	for _, k := range sortedKeys(detail.Values) {
		if v := detail.Values[k]; len(v) > valueInline {
			if detail.Refs == nil {
				detail.Refs, detail.large = map[string]string{}, map[string]json.RawMessage{}
			}
			detail.Refs[k], detail.large[k] = d.store(step+".set."+k, v), v
			delete(detail.Values, k)
		}
	}
	d.step(event.CtxUpdated, step, event.StatusContext, detail, cause)
}

// nest turns a.b.c, as a task wrote it, into a variable a that has such a part
// beside the parts it has. In the set of a step and of an arc a dot is part of
// the name.
func (d *decider) nest(detail *ctxDetail) {
	for _, k := range sortedKeys(detail.Values) {
		head, path, dotted := strings.Cut(k, ".")
		if !dotted || head == "" {
			continue
		}
		var whole any
		if v, set := detail.Values[head]; set {
			whole, _ = jinja.FromJSON(v)
		} else {
			whole, _ = names{s: d.s}.Lookup(head)
		}
		part, err := jinja.FromJSON(detail.Values[k])
		if err != nil {
			continue
		}
		if b, err := jinja.ToJSON(within(whole, path, part)); err == nil {
			detail.Values[head] = b
			delete(detail.Values, k)
		}
	}
}

// within is a copy of whole with part at a path; what is no map gives way.
func within(whole any, path string, part any) any {
	if w, ok := whole.(jinja.Wrapper); ok {
		whole = w.Unwrap()
	}
	d, ok := whole.(*jinja.Dict)
	if ok {
		d = d.Clone()
	} else {
		d = jinja.NewDict(1)
	}
	head, rest, deeper := strings.Cut(path, ".")
	if deeper {
		inner, _ := d.Get(head)
		part = within(inner, rest, part)
	}
	d.Set(head, part)
	return d
}

// commandUpdates adds the variables that a command's policy rules and task
// sets asked for; a loop's come in index order, the last index winning.
func (r *run) commandUpdates(detail *ctxDetail) {
	r.addUpdates(detail, r.updates)
	if r.loop == nil {
		return
	}
	for _, i := range slices.Sorted(maps.Keys(r.loop.updates)) {
		if i >= r.applied {
			r.addUpdates(detail, r.loop.updates[i])
		}
	}
}

// addUpdates adds the variables one command asked for. Iterations that ran
// side by side and disagree are worth a warning.
func (r *run) addUpdates(detail *ctxDetail, raw json.RawMessage) {
	var values map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &values) != nil {
		return
	}
	asked := make(map[string]json.RawMessage, len(values))
	for _, k := range sortedKeys(values) {
		if key, ok := contextKey(k); ok {
			asked[key] = values[k]
		}
	}
	for _, k := range sortedKeys(asked) {
		old, had := detail.Values[k]
		if had && r.loop != nil && r.loop.parallel && !bytes.Equal(old, asked[k]) {
			warning := fmt.Sprintf("iterations wrote different values to %s, the last one is kept", k)
			if !slices.Contains(detail.Warnings, warning) {
				detail.Warnings = append(detail.Warnings, warning)
			}
		}
		detail.Values[k] = asked[k]
	}
}

// contextKey strips the ctx scope; the other scopes end with their command.
func contextKey(k string) (string, bool) {
	for _, scoped := range []string{"iter.", "step."} {
		if len(k) > len(scoped) && k[:len(scoped)] == scoped {
			return "", false
		}
	}
	if len(k) > 4 && k[:4] == "ctx." {
		return k[4:], true
	}
	return k, true
}

// skipDead records the targets that an evaluation passed over and that no
// live path can reach any more.
func (d *decider) skipDead(n *node, matched []string, cause event.ID) {
	if len(n.step.Arcs) == len(matched) {
		return
	}
	live := d.liveReach()
	for _, a := range n.step.Arcs {
		t := d.p.byName[a.Target]
		if _, known := d.s.steps[a.Target]; known || live.has(t.step.Index) {
			continue
		}
		d.step(event.StepSkipped, a.Target, event.StatusSkipped, &endDetail{Reason: "route"}, cause)
	}
}
