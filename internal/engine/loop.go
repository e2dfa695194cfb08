package engine

import (
	"encoding/json"
	"fmt"
	"maps"
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
	detail := &enterDetail{
		Gen: gen, Expected: &items.count, Iterator: l.Iterator, Mode: string(l.Mode), MaxInFlight: window,
		Range: items.numbers, Items: items.list,
	}
	if items.size > itemsInline {
		detail.ItemsRef = d.store(n.step.Name+".items", encode(items.list))
		detail.Items = nil
	}
	if l.Mode == playbook.Parallel {
		detail.Vars = d.inline(n, d.vars(n.needs))
		if err := d.s.missingValue(); err != nil {
			d.fail(n.step.Name, gen, "evaluate_error", fmt.Sprintf("step %q: %v", n.step.Name, err), cause)
			return
		}
	}
	d.step(event.StepEnter, n.step.Name, event.StatusEntered, detail, cause)
}

// itemsInline is how many bytes of items an event holds itself.
const itemsInline = 64 << 10

// collected is what a loop runs over.
type collected struct {
	count   int
	numbers bool // the items are 0 … count-1
	list    []json.RawMessage
	size    int
}

// collection evaluates loop.in to its items.
func (d *decider) collection(st *playbook.Step) (collected, error) {
	v, err := d.s.eval(st.Loop.In, names{s: d.s})
	if err != nil {
		return collected{}, fmt.Errorf("step %q, loop.in %q: %w", st.Name, st.Loop.InText, err)
	}
	if n, ok, err := asCount(v); ok {
		if err != nil {
			return collected{}, fmt.Errorf("step %q, loop.in %q: %w", st.Name, st.Loop.InText, err)
		}
		return collected{count: n, numbers: true}, nil
	}
	list, err := asItems(v)
	if err != nil {
		return collected{}, fmt.Errorf("step %q, loop.in %q: %w", st.Name, st.Loop.InText, err)
	}
	out := collected{count: len(list), list: make([]json.RawMessage, len(list))}
	for i, item := range list {
		if out.list[i], err = jinja.ToJSON(item); err != nil {
			return collected{}, fmt.Errorf("step %q, loop.in %q, item %d: %w", st.Name, st.Loop.InText, i, err)
		}
		out.size += len(out.list[i]) + 1
	}
	return out, nil
}

// maxCount bounds a loop over a number.
const maxCount = 10_000_000

// asCount tells whether a value is a number, which a loop counts up to.
func asCount(v any) (int, bool, error) {
	n, ok := v.(int64)
	if f, isFloat := v.(float64); isFloat {
		if f != float64(int64(f)) {
			return 0, true, fmt.Errorf("cannot loop over the number %v: it is not whole", f)
		}
		n, ok = int64(f), true
	}
	if ok && (n < 0 || n > maxCount) {
		return 0, true, fmt.Errorf("cannot loop %d times (0 to %d is possible)", n, maxCount)
	}
	return int(n), ok, nil
}

// asItems turns a value into the list a loop runs over: a list as it is, an
// object as {key, value} pairs by key, a string as a JSON list or split on
// commas and newlines.
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
	case string:
		return splitItems(x), nil
	case bool:
		return nil, fmt.Errorf("cannot loop over a boolean (%t)", x)
	}
	return nil, fmt.Errorf("cannot loop over null: the expression found nothing")
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
	return d.maxInFlight(st)
}

func (d *decider) maxInFlight(st *playbook.Step) (int, error) {
	v, err := d.s.eval(st.Loop.MaxInFlight, names{s: d.s})
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
		if n == nil || (r.cursor != nil) != (n.step.Loop != nil && n.step.Loop.Cursor != nil) {
			continue // the log is not of this playbook
		}
		if r.cursor != nil {
			changed = d.advanceCursor(n, r) || changed
			continue
		}
		halted := r.faulted > 0 && !n.step.BestEffort
		total := r.loop.total
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
	for r.phase == running && r.next < r.loop.total && r.openCmd < r.loop.window {
		i := r.next
		var vars json.RawMessage
		if !r.loop.parallel {
			d.applyIteration(r, i-1)
			vars = d.vars(n.needs)
		}
		d.issue(n, r, issueDetail{Index: &i}, vars)
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
		r.addUpdates(detail, raw)
		d.nest(detail)
		d.update(r.step, detail, r.entered)
	}
}

func (d *decider) closeLoop(r *run) {
	total := r.loop.total
	d.step(event.LoopDone, r.step, event.StatusCompleted,
		&endDetail{Gen: r.gen, Iterations: &total, Failed: r.faulted}, r.entered)
}

func (d *decider) failLoop(r *run) {
	first := slices.Min(slices.Collect(maps.Keys(r.loop.errors)))
	d.fail(r.step, r.gen, "iteration", fmt.Sprintf("%d of %d iterations failed; the first, index %d: %s",
		r.faulted, r.loop.total, first, r.loop.errors[first]), r.entered)
}

// aggregate makes a loop's value of what its iterations left, and lets go of
// them: the iterations' data in index order.
func (r *run) aggregate() {
	if r.cursor != nil {
		r.value = r.cursor.summary()
		return
	}
	l := r.loop
	if l == nil || l.slots.pages == nil {
		return
	}
	size := 2
	for i := range l.total {
		size += len(l.slots.get(i).result) + 5
	}
	b := make([]byte, 0, size)
	b = append(b, '[')
	for i := range l.total {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, nonNil(l.slots.get(i).result)...)
	}
	b = append(b, ']')
	info := &scope.Loop{Total: l.total, Success: r.succeeded, Failed: r.faulted}
	if len(l.refs) > 0 {
		info.Refs = l.refs
	}
	for _, i := range slices.Sorted(maps.Keys(l.errors)) {
		info.Errors = append(info.Errors, scope.LoopError{Index: i, Error: l.errors[i]})
	}
	r.value = scope.Step(json.RawMessage(b), scope.Info{Loop: info})
	slim := *l
	slim.items, slim.shared, slim.slots, slim.refs = nil, nil, slots{}, nil
	r.loop = &slim
}

// newLoopRun is a loop as its entry froze it.
func newLoopRun(d *enterDetail) *loopRun {
	l := &loopRun{
		iterator: d.Iterator, parallel: d.Mode == "parallel", window: d.MaxInFlight,
		items: d.Items, itemsRef: d.ItemsRef, shared: d.Vars, total: len(d.Items),
		errors: map[int]string{}, updates: map[int]json.RawMessage{}, refs: map[int]scope.Reference{},
	}
	if d.Range || d.ItemsRef != "" {
		l.total = min(max(*d.Expected, 0), maxCount)
	}
	l.slots = newSlots(l.total)
	return l
}

// item is what one iteration works on.
func (l *loopRun) item(s *State, i int) json.RawMessage {
	if l.itemsRef != "" && l.items == nil {
		// What a reference stands for never changes, so keeping it is no change
		// of the state.
		_ = json.Unmarshal(s.whole(l.itemsRef), &l.items)
	}
	switch {
	case i < len(l.items):
		return l.items[i]
	case l.itemsRef != "":
		return json.RawMessage("null")
	}
	return strconv.AppendInt(nil, int64(i), 10)
}
