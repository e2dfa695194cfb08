package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/scope"
)

// enterLoop freezes the collection and the values all iterations share, and
// records them with the entry: what a variable becomes later cannot shift
// items, and a fact common to a thousand iterations is stored once.
func (d *decider) enterLoop(n *node, gen int, cause event.ID) {
	l := n.step.Loop
	items, err := d.collection(n.step)
	if err != nil {
		d.fail(n.step.Name, gen, "loop", err.Error(), cause)
		return
	}
	window, err := d.window(n.step)
	if err != nil {
		d.fail(n.step.Name, gen, "loop", err.Error(), cause)
		return
	}
	count := len(items)
	detail := &enterDetail{
		Gen: gen, Expected: &count, Iterator: l.Iterator, Mode: string(l.Mode), MaxInFlight: window, Items: items,
	}
	if l.Mode == playbook.Parallel {
		detail.Vars = d.s.commandVars(n.needs)
	}
	d.step(event.StepEnter, n.step.Name, event.StatusEntered, detail, cause)
}

// collection evaluates loop.in to its items.
func (d *decider) collection(st *playbook.Step) ([]json.RawMessage, error) {
	v, err := st.Loop.In.Eval(names{s: d.s})
	if err != nil {
		return nil, fmt.Errorf("step %q, loop.in %q: %w", st.Name, st.Loop.InText, err)
	}
	list, err := asItems(v)
	if err != nil {
		return nil, fmt.Errorf("step %q, loop.in %q: %w", st.Name, st.Loop.InText, err)
	}
	out := make([]json.RawMessage, len(list))
	for i, item := range list {
		if out[i], err = jinja.ToJSON(item); err != nil {
			return nil, fmt.Errorf("step %q, loop.in %q, item %d: %w", st.Name, st.Loop.InText, i, err)
		}
	}
	return out, nil
}

// maxCount bounds a loop over a number.
const maxCount = 10_000_000

// asItems turns a value into the list a loop runs over: a list as it is, an
// object as {key, value} pairs by key, a number n as 0 … n-1, a string as a
// JSON list or split on commas and newlines.
func asItems(v any) ([]any, error) {
	if w, ok := v.(jinja.Wrapper); ok {
		v = w.Unwrap()
	}
	switch x := v.(type) {
	case []any:
		return x, nil
	case *jinja.Dict:
		keys := slices.Sorted(slices.Values(x.Keys()))
		out := make([]any, len(keys))
		for i, k := range keys {
			pair := jinja.NewDict(2)
			pair.Set("key", k)
			value, _ := x.Get(k)
			pair.Set("value", value)
			out[i] = pair
		}
		return out, nil
	case int64:
		return countTo(x)
	case float64:
		if x == float64(int64(x)) {
			return countTo(int64(x))
		}
		return nil, fmt.Errorf("cannot loop over the number %v: it is not whole", x)
	case string:
		return splitItems(x), nil
	case bool:
		return nil, fmt.Errorf("cannot loop over a boolean (%t)", x)
	}
	return nil, fmt.Errorf("cannot loop over null: the expression found nothing")
}

func countTo(n int64) ([]any, error) {
	if n < 0 || n > maxCount {
		return nil, fmt.Errorf("cannot loop %d times (0 to %d is possible)", n, maxCount)
	}
	out := make([]any, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out, nil
}

func splitItems(text string) []any {
	if v, err := jinja.FromJSON([]byte(text)); err == nil {
		if list, ok := v.([]any); ok {
			return list
		}
	}
	out := []any{}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '\n' }) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// window is how many iterations may be open at once.
func (d *decider) window(st *playbook.Step) (int, error) {
	if st.Loop.Mode != playbook.Parallel {
		return 1, nil
	}
	if st.Loop.MaxInFlight == nil {
		return d.p.limits.LoopWindow, nil
	}
	v, err := st.Loop.MaxInFlight.Eval(names{s: d.s})
	if err != nil {
		return 0, fmt.Errorf("step %q, loop.max_in_flight: %w", st.Name, err)
	}
	n, ok := v.(int64)
	if text, isText := v.(string); isText {
		parsed, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		n, ok = parsed, err == nil
	}
	if !ok || n < 1 {
		return 0, fmt.Errorf("step %q, loop.max_in_flight: want a whole number of at least 1, got %v", st.Name, v)
	}
	return int(min(n, maxCount)), nil
}

// advanceLoops closes the loops that are done and keeps the others' windows
// full. A failed iteration stops new ones, unless the step is best-effort, and
// so does a failure elsewhere, except in the final step.
func (d *decider) advanceLoops() bool {
	changed := false
	for _, r := range d.s.loops {
		n := d.p.byName[r.step]
		halted := r.faulted > 0 && !n.step.BestEffort
		total := len(r.loop.marks)
		switch {
		case halted && r.openCmd == 0:
			d.failLoop(r)
			changed = true
		case r.succeeded+r.faulted == total && r.openCmd == 0:
			d.closeLoop(r)
			changed = true
		case !halted && (!d.stopping() || r.step == d.p.pb.Executor.FinalStep):
			changed = d.topUp(n, r) || changed
		}
	}
	return changed
}

// topUp issues iterations until the window is full. An iteration without a
// tool has nothing to run and is closed with the loop.
func (d *decider) topUp(n *node, r *run) bool {
	if len(n.step.Tasks) == 0 {
		d.closeLoop(r)
		return true
	}
	changed := false
	for r.next < len(r.loop.marks) && r.openCmd < r.loop.window {
		i := r.next
		var vars json.RawMessage
		if !r.loop.parallel {
			d.applyIteration(r, i-1)
			vars = d.s.commandVars(n.needs)
		}
		d.issue(n, r, &i, vars)
		changed = true
	}
	return changed
}

// applyIteration makes the variables an iteration wrote visible to the next
// one. Iterations of a parallel loop see none of each other's; theirs are
// written together when the loop ends.
func (d *decider) applyIteration(r *run, index int) {
	if raw, ok := r.loop.updates[index]; ok && index >= r.applied {
		detail := &ctxDetail{Step: r.step, Gen: r.gen, Index: &index, Values: map[string]json.RawMessage{}}
		if r.addUpdates(detail, raw); len(detail.Values) > 0 {
			d.step(event.CtxUpdated, r.step, event.StatusContext, detail, r.entered)
		}
	}
}

func (d *decider) closeLoop(r *run) {
	total := len(r.loop.marks)
	d.step(event.LoopDone, r.step, event.StatusCompleted,
		&endDetail{Gen: r.gen, Iterations: &total, Failed: r.faulted}, r.entered)
}

func (d *decider) failLoop(r *run) {
	first := slices.Min(slices.Collect(keysOf(r.loop.errors)))
	d.fail(r.step, r.gen, "iteration", fmt.Sprintf("%d of %d iterations failed; the first, index %d: %s",
		r.faulted, len(r.loop.marks), first, r.loop.errors[first]), r.entered)
}

func keysOf(m map[int]string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// aggregate is the loop's value: the iterations' data in index order.
func (r *run) aggregate() *scope.Value {
	l := r.loop
	size := 2
	for _, res := range l.results {
		size += len(res) + 5
	}
	b := make([]byte, 0, size)
	b = append(b, '[')
	for i, res := range l.results {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, nonNil(res)...)
	}
	b = append(b, ']')
	info := &scope.Loop{Total: len(l.marks), Success: r.succeeded, Failed: r.faulted}
	for _, i := range slices.Sorted(keysOf(l.errors)) {
		info.Errors = append(info.Errors, scope.LoopError{Index: i, Error: l.errors[i]})
	}
	return scope.Step(json.RawMessage(b), scope.Info{Loop: info})
}
