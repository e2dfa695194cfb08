package simulation

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

const (
	shrinkTries = 600 // runs made to find a smaller scenario that fails
	otherSeeds  = 5   // further seeds tried for each
)

// attempt makes the run of a scenario and proves it.
func attempt(t *testing.T, sc scenario) (w *world) {
	synctest.Test(t, func(t *testing.T) {
		w = simulate(t, sc)
		w.verify()
	})
	return w
}

// shrinker looks for a small scenario that breaks one of the same rules.
type shrinker struct {
	t     *testing.T
	try   func(t *testing.T, sc scenario) *world
	rules map[check]bool
	tries int
	best  *world
}

// shrink makes the scenario of a failed run smaller for as long as a smaller
// one fails too: parts of the playbook, clients, planes, workers, kinds of
// faults; in the end single faults.
func shrink(t *testing.T, failed *world, try func(t *testing.T, sc scenario) *world) *world {
	s := &shrinker{t: t, try: try, rules: failed.broken(), tries: shrinkTries, best: failed}
	for s.smaller() {
	}
	s.fewerFaults()
	for s.smaller() {
		s.fewerFaults()
	}
	return s.best
}

// broken is the set of rules a run broke.
func (w *world) broken() map[check]bool {
	out := map[check]bool{}
	for _, p := range w.problems {
		out[p.check] = true
	}
	return out
}

// smaller takes every part away that can be missed, and tells whether there
// was one.
func (s *shrinker) smaller() (found bool) {
	for at := 0; ; {
		parts := s.best.scenario.smaller()
		if at >= len(parts) || s.tries == 0 {
			return found
		}
		if s.missed(parts[at]) {
			found = true
		} else {
			at++
		}
	}
}

// missed tells whether a scenario fails as well. Where faults are still drawn,
// another seed may do.
func (s *shrinker) missed(sc scenario) bool {
	if s.keep(sc) {
		return true
	}
	for i := range uint64(otherSeeds) {
		if sc.seed = s.best.seed + 1_000_003*(i+1); sc.only == nil && s.keep(sc) {
			return true
		}
	}
	return false
}

// fewerFaults takes faults away, in halves, quarters and at last one by one.
func (s *shrinker) fewerFaults() {
	for size := len(s.best.script()); size > 0 && s.tries > 0; size /= 2 {
		for from := 0; s.tries > 0; {
			faults := s.best.script()
			if from >= len(faults) {
				break
			}
			sc := s.best.scenario
			sc.only = map[string]bool{}
			for i, m := range faults {
				sc.only[m.name] = i < from || i >= from+size
			}
			if !s.keep(sc) {
				from += size
			}
		}
	}
}

// keep makes the run and remembers it when it breaks one of the rules.
func (s *shrinker) keep(sc scenario) bool {
	if s.tries == 0 {
		return false
	}
	if _, err := compile(sc.book); err != nil {
		return false
	}
	s.tries--
	w := s.try(s.t, sc)
	for c := range w.broken() {
		if s.rules[c] {
			s.best = w
			return true
		}
	}
	return false
}

// TestAFailureIsReportedWithASmallScenario proves the shrinker on rules that
// are kept in truth: it pretends that something rare must not happen, and
// expects hardly more than that to be left.
func TestAFailureIsReportedWithASmallScenario(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		breaks func(w *world) bool
	}{
		{"a second attempt in a parallel loop", func(w *world) bool { return w.tells("attempt 2", "[1]") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			try := func(t *testing.T, sc scenario) *world {
				w := attempt(t, sc)
				if len(w.problems) > 0 {
					t.Fatalf("%v\n%s", w.problems, w.story())
				}
				if c.breaks(w) {
					w.problem(answers, "pretended")
				}
				return w
			}
			var failed *world
			for seed := uint64(1); failed == nil || len(failed.problems) == 0; seed++ {
				failed = try(t, randomScenario(seed))
			}
			small := shrink(t, failed, try)
			t.Logf("from %d steps and %d faults to\n%s", len(failed.book.steps), len(failed.script()), small.story())
			if n := len(small.book.steps); n > 2 {
				t.Errorf("%d steps are left", n)
			}
			if n := len(small.script()); n > 4 {
				t.Errorf("%d faults are left", n)
			}
			again := try(t, small.scenario)
			if !small.book.hasChildren() && again.story() != small.story() {
				t.Error("the small scenario makes another run when it is repeated")
			}
		})
	}
}

// tells tells whether a line of the story holds all the words.
func (w *world) tells(words ...string) bool {
	for line := range strings.Lines(w.story()) {
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return true
		}
	}
	return false
}
