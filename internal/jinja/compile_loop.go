package jinja

import "slices"

// forLoop compiles {% for %}. The loop variables and what the body sets live in
// a block of their own that is emptied before each round.
func (c *compiler) forLoop(s *forStmt) action {
	iter, pos := c.expr(s.iter), start(s.iter)
	c.open()
	s.target.names(func(name string) { c.declare(name, true) })
	assign := c.assign(s.target)
	var keep func(env, any) (bool, error)
	if s.filter != nil {
		keep = c.filterItems(s, assign)
	}
	loopSlot := c.declare("loop", true)
	locals := c.declareAll(s.body)
	round := 1 + len(locals)/16
	body := c.body(s.body)
	c.shut()
	c.open()
	elseLocals := c.declareAll(s.otherwise)
	otherwise := c.body(s.otherwise)
	c.shut()
	return func(e env, out *output) error {
		v, err := iter(e)
		if err != nil {
			return err
		}
		items, err := elements(e.budget(), v)
		if err == nil && keep != nil {
			items, err = filtered(e, items, keep)
		}
		if err != nil {
			return at(err, pos)
		}
		if len(items) == 0 {
			clearSlots(e.frame, elseLocals)
			return otherwise(e, out)
		}
		loop := &loopState{items: items}
		for i, item := range items {
			if err := e.frame.budget.step(round); err != nil {
				return at(err, s.pos)
			}
			loop.i = i
			clearSlots(e.frame, locals)
			e.frame.slots[loopSlot] = loop
			if err := assign(e, item); err != nil {
				return err
			}
			if err := body(e, out); err != nil {
				return at(err, s.pos)
			}
		}
		return nil
	}
}

// filterItems compiles the if of a for tag, in which loop is not known yet.
func (c *compiler) filterItems(s *forStmt, assign func(env, any) error) func(env, any) (bool, error) {
	test, work := c.expr(s.filter), 1+weight(s.filter)
	return func(e env, item any) (bool, error) {
		if err := e.budget().step(work); err != nil {
			return false, err
		}
		if err := assign(e, item); err != nil {
			return false, err
		}
		v, err := test(e)
		return Truthy(v), err
	}
}

// filtered picks the items before the first round, because loop.length and
// loop.last speak of the items that are left.
func filtered(e env, items []any, keep func(env, any) (bool, error)) ([]any, error) {
	var out []any
	for _, item := range items {
		ok, err := keep(e, item)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, item)
		}
	}
	return out, nil
}

// elements are the values that iterating over v gives: the elements of a list,
// the keys of a mapping, the characters of a string, nothing for undefined.
func elements(b *budget, v any) ([]any, error) {
	n, err := base(v)
	if err != nil {
		return nil, err
	}
	if list, ok := sequence(n); ok {
		return normAll(b, list)
	}
	switch n := n.(type) {
	case Undefined:
		return nil, nil
	case string:
		if err := b.list(runeCount(n)); err != nil {
			return nil, err
		}
		out := make([]any, 0, len(n))
		for _, r := range n {
			out = append(out, string(r))
		}
		return out, nil
	case *Dict, map[string]any:
		d, _ := mapping(n)
		if err := b.list(d.Len()); err != nil {
			return nil, err
		}
		out := make([]any, d.Len())
		for i := range out {
			out[i] = d.entries[i].key
		}
		return out, nil
	}
	return nil, typeError("a value of type %s cannot be iterated over", typeName(n)).
		withRemedy("give a fallback list, as in x | default([])")
}

// normAll is norm for each element, copying the list only if one changes.
func normAll(b *budget, list []any) ([]any, error) {
	if err := b.step(len(list)); err != nil {
		return nil, err
	}
	out, copied := list, false
	for i, e := range list {
		switch e.(type) {
		case nil, bool, int64, float64, string, []any, *Dict, map[string]any, tuple:
			continue
		}
		n, err := b.read(e)
		if err != nil {
			return nil, err
		}
		if !copied {
			out, copied = slices.Clone(list), true
		}
		out[i] = n
	}
	return out, nil
}

// loopState is the variable loop of a for tag.
type loopState struct {
	items []any
	i     int
	last  any // what changed saw last
	seen  bool
}

// Attr answers the attributes of loop.
func (l *loopState) Attr(name string) (any, bool) {
	n := len(l.items)
	switch name {
	case "index":
		return int64(l.i + 1), true
	case "index0":
		return int64(l.i), true
	case "revindex":
		return int64(n - l.i), true
	case "revindex0":
		return int64(n - l.i - 1), true
	case "first":
		return l.i == 0, true
	case "last":
		return l.i == n-1, true
	case "length":
		return int64(n), true
	case "depth":
		return int64(1), true // only recursive loops go deeper, and there are none
	case "depth0":
		return int64(0), true
	case "previtem":
		if l.i > 0 {
			return l.items[l.i-1], true
		}
		return Undefined{Name: "loop.previtem"}, true
	case "nextitem":
		if l.i < n-1 {
			return l.items[l.i+1], true
		}
		return Undefined{Name: "loop.nextitem"}, true
	}
	return nil, false
}

var loopMethods = map[string]*operation{
	"cycle":   op(loopCycle, "*"),
	"changed": op(loopChanged, "*"),
}

func loopCycle(_ env, self any, a args) (any, error) {
	if len(a.rest) == 0 {
		return nil, valueError("loop.cycle needs values to cycle through")
	}
	return a.rest[self.(*loopState).i%len(a.rest)], nil
}

// loopChanged reports whether its arguments differ from those of the last call.
func loopChanged(e env, self any, a args) (any, error) {
	l := self.(*loopState)
	now := any(append([]any{}, a.rest...))
	same, err := equal(e.budget(), l.last, now)
	if err != nil {
		return nil, err
	}
	changed := !l.seen || !same
	l.last, l.seen = now, true
	return changed, nil
}
