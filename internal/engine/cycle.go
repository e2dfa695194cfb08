package engine

import "slices"

// arc is an arc by the indexes of its steps.
type arc struct{ from, to int }

// wait says when a join must wait for one of its upstreams: while something is
// to come at any of the steps in live, because from there a token can still
// reach the upstream in the same round.
type wait struct {
	upstream int
	live     bits
}

// planJoins finds, for every step with several upstreams, what its tokens wait
// for. An arc that closes a cycle is not waited for. Paths through an arc that
// closes a cycle around the join do not count either: what comes that way
// belongs to the next round.
func (p *Program) planJoins() {
	cycles := p.cycles()
	for _, t := range p.nodes {
		if len(t.up) < 2 {
			continue
		}
		sameRound := func(a arc) bool {
			around, closes := cycles[a]
			return !closes || !around.has(t.step.Index)
		}
		for _, u := range t.up {
			if _, closes := cycles[arc{u, t.step.Index}]; !closes {
				t.waits = append(t.waits, wait{u, p.upwards(u, sameRound)})
			}
		}
	}
}

// cycles finds the arcs that close a cycle, each with the steps of its cycle.
// Such an arc leads to a step that every path from the entry to its source has
// passed. In a cycle that can be entered at several steps there is no such
// step; there the arcs that lead up in the workflow's order close it.
func (p *Program) cycles() map[arc]bits {
	out := map[arc]bits{}
	open := func(a arc) bool { _, closes := out[a]; return !closes }
	for _, t := range p.nodes {
		to := t.step.Index
		if !t.reach.has(to) {
			continue
		}
		without := p.downwards(p.roots(to), func(a arc) bool { return a.to != to })
		for _, u := range t.up {
			if !without.has(u) {
				out[arc{u, to}] = nil
			}
		}
	}
	for _, t := range p.nodes {
		to := t.step.Index
		for _, u := range t.up {
			if to <= u && open(arc{u, to}) && t.reach.has(u) && p.downwards([]int{to}, open).has(u) {
				out[arc{u, to}] = nil
			}
		}
	}
	for a := range out {
		around := p.upwards(a.from, func(b arc) bool { return b.to != a.to })
		around.add(a.to)
		out[a] = around
	}
	return out
}

// roots are the steps entered without a token, except one.
func (p *Program) roots(except int) []int {
	var out []int
	if p.pb.Entry != except {
		out = append(out, p.pb.Entry)
	}
	if n, ok := p.byName[p.pb.Executor.FinalStep]; ok && n.step.Index != except {
		out = append(out, n.step.Index)
	}
	return out
}

// downwards is the set of steps that the given ones lead to, themselves
// included, along the arcs that may be followed.
func (p *Program) downwards(from []int, follow func(arc) bool) bits {
	return p.walk(from, func(n *node) []int { return n.down }, func(at, to int) bool { return follow(arc{at, to}) })
}

// upwards is the set of steps that lead to one, itself included, along the
// arcs that may be followed.
func (p *Program) upwards(to int, follow func(arc) bool) bits {
	return p.walk([]int{to}, func(n *node) []int { return n.up }, func(at, from int) bool { return follow(arc{from, at}) })
}

// walk is the set of steps found from the given ones by going to neighbours.
func (p *Program) walk(from []int, neighbours func(*node) []int, follow func(at, next int) bool) bits {
	seen := newBits(len(p.nodes))
	for stack := slices.Clone(from); len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen.has(at) {
			continue
		}
		seen.add(at)
		for _, next := range neighbours(p.nodes[at]) {
			if follow(at, next) {
				stack = append(stack, next)
			}
		}
	}
	return seen
}
