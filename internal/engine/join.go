package engine

// frontier is the set of steps with something still to come: a run that goes
// on, a run whose arcs are not evaluated yet, or a waiting token.
func (d *decider) frontier() bits {
	f := newBits(len(d.p.nodes))
	mark := func(name string) {
		if n, ok := d.p.byName[name]; ok {
			f.add(n.step.Index)
		}
	}
	for _, name := range d.s.order {
		if st := d.s.steps[name]; st.cur != nil && st.cur.phase == running {
			mark(name)
		}
	}
	for _, r := range d.s.unrouted {
		mark(r.step)
	}
	for _, o := range d.s.offers {
		mark(o.target)
	}
	return f
}

// liveReach is the frontier and everything reachable from it.
func (d *decider) liveReach() bits {
	f := d.frontier()
	out := newBits(len(d.p.nodes))
	out.union(f)
	for i, n := range d.p.nodes {
		if f.has(i) {
			out.union(n.reach)
		}
	}
	return out
}

// joinBlocked tells whether a token at t must wait: some upstream has not
// delivered its own token and can still do so in this round.
func (d *decider) joinBlocked(t *node) bool {
	if len(t.waits) == 0 {
		return false
	}
	f := d.frontier()
	for _, w := range t.waits {
		if f.meets(w.live) && !d.hasOffer(t.step.Name, d.p.nodes[w.upstream].step.Name) {
			return true
		}
	}
	return false
}

func (d *decider) hasOffer(target, from string) bool {
	for _, o := range d.s.offers {
		if o.target == target && o.from == from {
			return true
		}
	}
	return false
}

// enterOffered enters every step whose tokens are all there.
func (d *decider) enterOffered() bool {
	changed := false
	for _, o := range d.s.offers { // the slice is replaced, never changed
		if d.stopping() {
			break
		}
		n := d.p.byName[o.target]
		if n == nil || !d.offered(o.target) {
			continue // entered on behalf of an earlier token
		}
		if d.joinBlocked(n) || d.refused(n, o) {
			continue
		}
		d.enter(n, o)
		changed = true
	}
	if changed || len(d.s.offers) == 0 || d.stopping() {
		return changed
	}
	return d.releaseDeadlock()
}

func (d *decider) offered(target string) bool {
	for _, o := range d.s.offers {
		if o.target == target {
			return true
		}
	}
	return false
}

// refused tells whether a token waits for the step's admission.
func (d *decider) refused(n *node, o offer) bool {
	if !n.step.AdmitWaits {
		return false
	}
	ok, err := d.admitted(n, o)
	return !ok && err == nil
}

// releaseDeadlock enters the first waiting step, in workflow order, when
// nothing is left but joins that wait for each other and tokens whose admission
// nothing can change any more. Those are skipped.
func (d *decider) releaseDeadlock() bool {
	if len(d.s.open) > 0 || len(d.s.unrouted) > 0 || len(d.s.loops) > 0 {
		return false
	}
	var first *offer
	for _, blocked := range []bool{false, true} { // a join may still get the token of one that is skipped
		for i := range d.s.offers {
			o := &d.s.offers[i]
			n := d.p.byName[o.target]
			if n != nil && d.joinBlocked(n) == blocked && (first == nil || n.step.Index < d.p.byName[first.target].step.Index) {
				first = o
			}
		}
		if first != nil {
			break
		}
	}
	if first == nil {
		return false
	}
	d.enter(d.p.byName[first.target], *first)
	return true
}
