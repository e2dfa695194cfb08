package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

const (
	playbookPath = "test/random"
	childPath    = "test/child"
	childPaths   = 8 // what children are looked up by tells those who look at one time apart
)

// childBook is what commands that run another playbook run.
var childBook = book{steps: []bookStep{
	{name: "c0", tool: "{kind: noop}", mode: "inclusive", arcs: []bookArc{{to: "c1"}, {to: "c2", when: "{{ output.n > 0 }}"}}},
	{name: "c1", tool: "{kind: noop}"},
	{name: "c2", tool: "{kind: noop}"},
}}

// book is a playbook as the simulation makes it: in parts that can be taken
// away one by one.
type book struct {
	// tame books hold nothing whose outcome rightly depends on who is first:
	// no cycles, every variable has one writer, and conditions look only at
	// what was there before. Their outcome is a function of what the commands
	// report.
	tame     bool
	deadline string
	steps    []bookStep
}

type bookStep struct {
	name   string
	tool   string // a line of the step; "" for one that only routes
	loop   string
	policy string
	limit  string // on its time
	waits  waits  // what its worker does instead of running the tool
	when   string
	set    string
	mode   string
	arcs   []bookArc
}

// waits is what commands of a step are parked for.
type waits string

const (
	pauses      waits = "a while, then goes on"
	calledBack  waits = "a call that is its result"
	resumed     waits = "a call, then goes on"
	neverCalled waits = "a call that never comes"
	naps        waits = "a while, which is its result"
	signalled   waits = "a signal that is its result"
	signalledOn waits = "a signal, or for a while, then goes on"
	runsChild   waits = "the end of another playbook"
	startsChild waits = "the start of another playbook"
	noChild     waits = "a playbook that is not there"
)

type bookArc struct {
	to        string
	when, set string
	back      bool // it closes a cycle, whose end is in when and set
}

// randomBook makes a small workflow: chains, branches, joins, error arcs,
// cycles that end, loops of each kind, guards and variables.
func randomBook(r *rand.Rand) book {
	g := &generator{r: r, size: 1 + r.IntN(7)}
	g.book.tame = r.IntN(2) == 0
	if !g.book.tame && r.IntN(12) == 0 {
		g.book.deadline = g.one("4s", "15s")
	}
	for i := range g.size {
		g.book.steps = append(g.book.steps, g.step(i))
	}
	return g.book
}

type generator struct {
	r      *rand.Rand
	size   int
	cycles int
	book   book
}

func (g *generator) one(of ...string) string { return of[g.r.IntN(len(of))] }

// variable is what a step writes: one for all, or one for each.
func (b book) variable(step string) string {
	if b.tame {
		return "v_" + step
	}
	return "v"
}

func (g *generator) step(i int) bookStep {
	s := bookStep{name: fmt.Sprintf("s%d", i)}
	if i == 0 || i == g.size-1 || g.r.IntN(6) > 0 {
		s.tool = fmt.Sprintf(`{kind: noop, message: "{{ k }} {{ s%d.n }}"}`, g.r.IntN(g.size))
		switch g.r.IntN(8) {
		case 0:
			s.loop = "{in: [1, 2, 3], iterator: it}"
		case 1:
			s.loop = "{in: [1, 2, 3, 4, 5], iterator: it, spec: {mode: parallel, max_in_flight: 2}}"
		case 2:
			s.loop, s.policy = "{in: [1, 2, 3, 4], iterator: it, spec: {mode: parallel}}", bestEffort
		case 3:
			s.loop, s.policy = `{in: "{{ s0.rows | default([]) }}", iterator: it, spec: {mode: parallel}}`, bestEffort
		case 4:
			s.loop = g.one("{in: [], iterator: it}", cursorLoop)
		}
		g.delays(&s)
	}
	v := g.book.variable(s.name)
	if i > 0 {
		s.when = g.one("", "", "", "{{ s0.n != 1 }}", fmt.Sprintf("{{ %s is not defined or %s < 3 }}", v, v))
	}
	s.set = g.one("", "", fmt.Sprintf(`{ctx.%s: "{{ output.n }}"}`, v), fmt.Sprintf(`{ctx.%s: "{{ %s | default(0) + 1 }}"}`, v, v))
	g.arcs(i, &s)
	return s
}

// delays makes some steps wait for something, and bounds some in time. Bounds
// of loops end all iterations at once, which is not for tame books.
func (g *generator) delays(s *bookStep) {
	if g.r.IntN(5) == 0 {
		s.waits = []waits{pauses, calledBack, resumed, neverCalled, runsChild, runsChild, startsChild, noChild, naps, signalled, signalledOn}[g.r.IntN(11)]
	}
	if g.r.IntN(6) == 0 && (s.loop == "" || !g.book.tame) {
		s.limit = g.one("2s", "8s", "12s")
	}
}

const cursorLoop = `{cursor: {kind: postgres, auth: pg, claim: "SELECT 1"}, iterator: row, spec: {mode: cursor, frame: {max_rows: 2}}}`

const bestEffort = "policy: {failure: {mode: best_effort}}"

// arcs lead forwards, or backwards as often as a counter of their own allows.
func (g *generator) arcs(i int, s *bookStep) {
	n := g.r.IntN(4)
	switch {
	case i == g.size-1:
		n = g.r.IntN(2)
	case i == 0 || g.r.IntN(2) == 0: // most steps lead somewhere
		n = max(n, 1)
	}
	s.mode = g.one("exclusive", "inclusive", "inclusive")
	for first := true; n > 0; n, first = n-1, false {
		last := i == g.size-1
		switch {
		case first && !last && g.r.IntN(2) == 0:
			s.arcs = append(s.arcs, bookArc{to: fmt.Sprintf("s%d", i+1)})
		case !g.book.tame && (last || g.cycles < 2 && g.r.IntN(6) == 0):
			c := fmt.Sprintf("turns%d", g.cycles)
			g.cycles++
			s.arcs = append(s.arcs, bookArc{
				to: fmt.Sprintf("s%d", g.r.IntN(i+1)), back: true,
				when: fmt.Sprintf("{{ %s | default(0) < 2 }}", c), set: fmt.Sprintf(`{ctx.%s: "{{ %s | default(0) + 1 }}"}`, c, c),
			})
		case !last:
			s.arcs = append(s.arcs, g.forward(i))
		}
	}
}

func (g *generator) forward(i int) bookArc {
	a := bookArc{to: fmt.Sprintf("s%d", i+1+g.r.IntN(g.size-i-1))}
	v := g.book.variable(fmt.Sprintf("s%d", i))
	switch g.r.IntN(8) {
	case 0:
		a.when = "{{ output.n == 0 }}"
	case 1:
		a.when = "{{ output.n > 0 }}"
	case 2:
		a.when = fmt.Sprintf("{{ %s is defined and %s > 0 }}", v, v)
	case 3:
		a.when = "{{ event.name == 'call.error' }}"
	case 4:
		a.when, a.set = "{{ output.status == 'error' }}", fmt.Sprintf("{ctx.%s: 9}", v)
	}
	return a
}

// spec joins what a step's spec holds.
func (s bookStep) spec() string {
	if s.limit == "" || s.policy == "" {
		return s.policy + strings.Repeat("timeout: "+s.limit, min(1, len(s.limit)))
	}
	return s.policy + ", timeout: " + s.limit
}

// waitsAt is what the commands of a step are parked for.
func (b book) waitsAt(step string) waits {
	for _, s := range b.steps {
		if s.name == step {
			return s.waits
		}
	}
	return ""
}

// waitsFor tells whether a step is parked for a reason.
func (b book) waitsFor(reason waits) bool {
	return slices.ContainsFunc(b.steps, func(s bookStep) bool { return s.waits == reason })
}

// hasChildren tells whether executions of the book start others.
func (b book) hasChildren() bool {
	return b.waitsFor(runsChild) || b.waitsFor(startsChild) || b.waitsFor(noChild)
}

// String is the book as a person would write it.
func (b book) String() string { return b.at(playbookPath) }

// at is the book under a path.
func (b book) at(path string) string {
	var t strings.Builder
	fmt.Fprintf(&t, "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: random, path: %s}\nworkload: {k: 1}\n", path)
	line := func(format, value string) {
		if value != "" {
			fmt.Fprintf(&t, format, value)
		}
	}
	line("executor: {spec: {timeout: %s}}\n", b.deadline)
	t.WriteString("workflow:\n")
	for _, s := range b.steps {
		line("  - step: %s\n", s.name)
		line("    # its worker parks it: it waits for %s\n", string(s.waits))
		line("    tool: %s\n", s.tool)
		line("    loop: %s\n", s.loop)
		line("    spec: {%s}\n", s.spec())
		line("    when: %q\n", s.when)
		line("    set: %s\n", s.set)
		if len(s.arcs) == 0 {
			continue
		}
		line("    next:\n      spec: {mode: %s}\n      arcs:\n", s.mode)
		for _, a := range s.arcs {
			line("        - step: %s\n", a.to)
			line("          when: %q\n", a.when)
			line("          set: %s\n", a.set)
		}
	}
	return t.String()
}

// smaller lists books with one part less, the largest parts first.
func (b book) smaller() []book {
	var out []book
	for i := len(b.steps) - 1; i >= 0 && len(b.steps) > 1; i-- {
		out = append(out, b.without(i))
	}
	edit := func(i int, f func(s *bookStep)) {
		c := book{tame: b.tame, deadline: b.deadline, steps: slices.Clone(b.steps)}
		c.steps[i].arcs = slices.Clone(c.steps[i].arcs)
		f(&c.steps[i])
		out = append(out, c)
	}
	for i := range b.steps {
		for j := range b.steps[i].arcs {
			edit(i, func(s *bookStep) { s.arcs = slices.Delete(s.arcs, j, j+1) })
		}
	}
	if b.deadline != "" {
		out = append(out, book{tame: b.tame, steps: b.steps})
	}
	for i, s := range b.steps {
		if s.waits != "" {
			edit(i, func(s *bookStep) { s.waits = "" })
		}
		for _, part := range []func(s *bookStep) *string{
			func(s *bookStep) *string { return &s.loop },
			func(s *bookStep) *string { return &s.policy },
			func(s *bookStep) *string { return &s.limit },
			func(s *bookStep) *string { return &s.when },
			func(s *bookStep) *string { return &s.set },
		} {
			if *part(&s) != "" {
				edit(i, func(s *bookStep) { *part(s) = "" })
			}
		}
		for j, a := range s.arcs {
			if !a.back && (a.when != "" || a.set != "") {
				edit(i, func(s *bookStep) { s.arcs[j].when, s.arcs[j].set = "", "" })
			}
		}
		if plain := "{kind: noop}"; s.tool != "" && s.tool != plain {
			edit(i, func(s *bookStep) { s.tool = plain })
		}
	}
	return out
}

// without leaves one step out. What led to it leads to where it led first.
func (b book) without(i int) book {
	gone := b.steps[i]
	out := book{tame: b.tame, deadline: b.deadline}
	for j, s := range b.steps {
		if j == i {
			continue
		}
		var arcs []bookArc
		for _, a := range s.arcs {
			if a.to == gone.name && !a.back {
				if next := slices.IndexFunc(gone.arcs, func(a bookArc) bool { return !a.back }); next >= 0 {
					a.to = gone.arcs[next].to
				}
			}
			if a.to != gone.name && !slices.ContainsFunc(arcs, func(b bookArc) bool { return b.to == a.to }) {
				arcs = append(arcs, a)
			}
		}
		s.arcs = arcs
		out.steps = append(out.steps, s)
	}
	return out
}
