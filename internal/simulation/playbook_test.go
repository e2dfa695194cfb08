package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

const playbookPath = "test/random"

// randomPlaybook makes a small workflow: chains, branches, joins, error arcs,
// cycles that end, loops of each kind, guards and variables.
func randomPlaybook(r *rand.Rand) string {
	g := &generator{r: r, steps: 1 + r.IntN(8)}
	g.printf("apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: random, path: %s}\nworkload: {k: 1}\nworkflow:\n", playbookPath)
	for i := range g.steps {
		g.step(i)
	}
	return g.text.String()
}

type generator struct {
	r      *rand.Rand
	steps  int
	cycles int
	text   strings.Builder
}

func (g *generator) printf(format string, args ...any) { fmt.Fprintf(&g.text, format, args...) }

func (g *generator) one(of ...string) string { return of[g.r.IntN(len(of))] }

func (g *generator) step(i int) {
	g.printf("  - step: s%d\n", i)
	if i == 0 || i == g.steps-1 || g.r.IntN(6) > 0 {
		g.printf("    tool: {kind: noop, message: \"{{ k }} {{ s%d.n }}\"}\n", g.r.IntN(g.steps))
		g.printf("%s", g.one(
			"", "", "",
			"    loop: {in: [1, 2, 3], iterator: it}\n",
			"    loop: {in: [1, 2, 3, 4, 5], iterator: it, spec: {mode: parallel, max_in_flight: 2}}\n",
			"    loop: {in: [1, 2, 3, 4], iterator: it, spec: {mode: parallel}}\n    spec: {policy: {failure: {mode: best_effort}}}\n",
			"    loop: {in: \"{{ s0.rows | default([]) }}\", iterator: it, spec: {mode: parallel}}\n    spec: {policy: {failure: {mode: best_effort}}}\n",
			"    loop: {in: [], iterator: it}\n",
		))
	}
	if i > 0 {
		g.printf("%s", g.one("", "", "", "    when: \"{{ s0.n != 1 }}\"\n", "    when: \"{{ v is not defined or v < 3 }}\"\n"))
	}
	g.printf("%s", g.one("", "", "    set: {ctx.v: \"{{ output.n }}\"}\n", "    set: {ctx.v: \"{{ v | default(0) + 1 }}\"}\n"))
	g.arcs(i)
}

// arcs lead forwards, or backwards as often as a counter of their own allows.
func (g *generator) arcs(i int) {
	n := g.r.IntN(4)
	switch {
	case i == g.steps-1:
		n = g.r.IntN(2)
	case i == 0 || g.r.IntN(2) == 0: // most steps lead somewhere
		n = max(n, 1)
	}
	if n == 0 {
		return
	}
	g.printf("    next:\n      spec: {mode: %s}\n      arcs:\n", g.one("exclusive", "inclusive", "inclusive"))
	for first := true; n > 0; n, first = n-1, false {
		if first && i < g.steps-1 && g.r.IntN(2) == 0 {
			g.printf("        - step: s%d\n", i+1)
			continue
		}
		if i == g.steps-1 || g.cycles < 2 && g.r.IntN(6) == 0 {
			c := fmt.Sprintf("turns%d", g.cycles)
			g.cycles++
			g.printf("        - step: s%d\n          when: \"{{ %s | default(0) < 2 }}\"\n          set: {ctx.%s: \"{{ %s | default(0) + 1 }}\"}\n",
				g.r.IntN(i+1), c, c, c)
			continue
		}
		g.printf("        - step: s%d\n%s", i+1+g.r.IntN(g.steps-i-1), g.one(
			"", "", "",
			"          when: \"{{ output.n == 0 }}\"\n",
			"          when: \"{{ output.n > 0 }}\"\n",
			"          when: \"{{ v is defined and v > 0 }}\"\n",
			"          when: \"{{ event.name == 'call.error' }}\"\n",
			"          when: \"{{ output.status == 'error' }}\"\n          set: {ctx.v: 9}\n",
		))
	}
}
