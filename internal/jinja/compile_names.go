package jinja

// fnScope is what shares one frame: the template, or the body of a macro.
type fnScope struct {
	up    *fnScope
	slots int
}

// block is the part of a template in which a name means one thing. Names are
// known in the whole block, also before they are set: until then a read goes on
// to the block around it and at last to the caller's scope.
type block struct {
	up    *block
	fn    *fnScope
	names map[string]local
	// capture is the slot of the text that a filter or set tag encloses.
	capture int
}

type local struct {
	slot  int
	fixed bool // always has a value: a loop variable, a parameter
}

// slotRef is a slot as seen from a place in the template.
type slotRef struct {
	up   int // frames to go up
	slot int
}

// in returns the slot as seen from a frame.
func (r slotRef) in(f *frame) *any {
	for range r.up {
		f = f.up
	}
	return &f.slots[r.slot]
}

// open begins a block; the caller ends it with c.block = c.block.up.
func (c *compiler) open() *block {
	c.block = &block{up: c.block, fn: c.fn, names: map[string]local{}}
	return c.block
}

func (c *compiler) shut() { c.block = c.block.up }

func (c *compiler) newSlot() int {
	c.heavy = true
	c.fn.slots++
	return c.fn.slots - 1
}

// declare gives a name a slot in the current block and returns the slot.
func (c *compiler) declare(name string, fixed bool) int {
	if l, ok := c.block.names[name]; ok {
		return l.slot
	}
	slot := c.newSlot()
	c.block.names[name] = local{slot, fixed}
	return slot
}

// declareAll gives slots to the names that statements set in the current block,
// and returns those slots. The branches of an if belong to the block around it.
func (c *compiler) declareAll(body []statement) []int {
	var slots []int
	add := func(name string) { slots = append(slots, c.declare(name, false)) }
	for _, s := range body {
		switch s := s.(type) {
		case *setStmt:
			s.target.names(add)
		case *captureStmt:
			s.target.names(add)
		case *macroStmt:
			add(s.name)
		case *ifStmt:
			for _, b := range s.branches {
				slots = append(slots, c.declareAll(b.body)...)
			}
			slots = append(slots, c.declareAll(s.otherwise)...)
		}
	}
	return slots
}

// resolve returns the slots in which a name may be found, innermost first, and
// whether the last of them always has a value.
func (c *compiler) resolve(name string) (refs []slotRef, fixed bool) {
	up, fn := 0, c.fn
	for b := c.block; b != nil; b = b.up {
		for fn != b.fn {
			fn = fn.up
			up++
		}
		if l, ok := b.names[name]; ok {
			refs = append(refs, slotRef{up, l.slot})
			if l.fixed {
				return refs, true
			}
		}
	}
	return refs, false
}

// name compiles the reading of a name.
func (c *compiler) name(n *nameNode) expr {
	refs, fixed := c.resolve(n.name)
	if fixed && len(refs) == 1 {
		ref := refs[0]
		return func(e env) (any, error) { return *ref.in(e.frame), nil }
	}
	outside := c.outside(n)
	if len(refs) == 0 {
		return outside
	}
	return func(e env) (any, error) {
		for _, ref := range refs {
			if v := *ref.in(e.frame); v != unset {
				return v, nil
			}
		}
		return outside(e)
	}
}

// outside compiles the reading of a name from the caller's scope.
func (c *compiler) outside(n *nameNode) expr {
	name, pos := n.name, n.pos
	var missing any = Undefined{Name: name}
	if op, ok := functions[name]; ok {
		missing = &function{name, op}
		c.constructs = true
	}
	return func(e env) (any, error) {
		v, ok := e.scope.Lookup(name)
		if !ok {
			return missing, nil
		}
		v, err := e.budget().read(v)
		if err != nil {
			return nil, at(err, pos)
		}
		return v, nil
	}
}

// captured compiles the reading of the text that the current tag encloses.
func (c *compiler) captured() expr {
	slot := c.block.capture
	return func(e env) (any, error) { return e.frame.slots[slot], nil }
}
