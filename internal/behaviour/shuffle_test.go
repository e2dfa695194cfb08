package behaviour

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/event"
)

// orders is how many random orders of ends each story is run with.
const orders = 10

// shuffle runs the story again with its independent ends in random orders:
// claims early or late, ends alone or in batches, some of them reported twice.
// What comes out must be what came out in order.
func (s *story) shuffle(payload string) {
	s.t.Helper()
	want := s.w.essence()
	for seed := range uint64(orders) {
		w := newWorld(s.t, s.prog, s.tools)
		w.pos = s.w.pos
		if err := w.start(payload); err != nil {
			w.fatalf("%v", err)
		}
		w.wander(rand.New(rand.NewPCG(seed, 1)))
		if diff := cmp.Diff(want, w.essence()); diff != "" {
			w.fatalf("order %d ends differently (-in order +shuffled):\n%s", seed, diff)
		}
		w.verify()
	}
}

// wander lets things happen in random order until nothing is open.
func (w *world) wander(rnd *rand.Rand) {
	w.t.Helper()
	for rounds := 0; ; rounds++ {
		if rounds > 2000 {
			w.fatalf("the execution does not end")
		}
		open, children := w.runnable(), w.answerable()
		if len(children) > 0 && rnd.IntN(len(open)+1) == 0 {
			w.endChild(children[rnd.IntN(len(children))])
			continue
		}
		if len(open) == 0 {
			if w.wait() {
				continue
			}
			return
		}
		rnd.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
		switch roll := rnd.IntN(10); {
		case roll < 2 && open[0].Status == event.StatusPending:
			if err := w.claim(open[0], "w2"); err != nil {
				w.fatalf("claim %s: %v", open[0].ID, err)
			}
		case roll < 4 && len(w.ended) > 0:
			w.repeat(w.ended[rnd.IntN(len(w.ended))])
		default:
			w.finish(open[:1+rnd.IntN(min(len(open), 3))]...)
		}
	}
}

// essence is what may not depend on the order of independent ends: how
// everything stands, what was called, and what was written, in any order.
func (w *world) essence() []string {
	var written, called []string
	for i := range w.log {
		if !w.thrown[i] {
			written = append(written, describe(&w.log[i]))
		}
	}
	for _, c := range w.worker.calls {
		called = append(called, c.text)
	}
	slices.Sort(written)
	slices.Sort(called)
	return slices.Concat(strings.Split(w.outcome(), "\n"), written, called)
}
