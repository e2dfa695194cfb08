package engine

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/noetl/noetl-go/internal/event"
)

// TestAnyPlaybookFromAnyStep runs random playbooks some way or to their end,
// runs them again from any step, and again from any step of that, and proves
// each new log as that of any execution: it stands alone, ends once and is
// decided the same from each prefix. What is reused shows what it showed.
func TestAnyPlaybookFromAnyStep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		src := genPlaybook(rt)
		h := newHost(rapidTB{t, rt}, src, Limits{StepRuns: 6, LoopWindow: 3})
		if err := h.start(""); err != nil {
			rt.Fatalf("start: %v\n%s", err, src)
		}
		h.advance(rt, rapid.IntRange(0, 60).Draw(rt, "events"))
		h.input() // what has become due since
		for range 2 {
			h.verify()
			again := h.againFrom(rt, rapid.SampledFrom(h.prog.stepNames()).Draw(rt, "from"))
			if again == nil {
				continue
			}
			again.sameResults(rt, h)
			again.advance(rt, 3000)
			if !again.state.Final() {
				rt.Fatalf("does not end:\n%s\n%s", src, again.state.dump())
			}
			again.verify()
			again.checkEnds(rt, src)
			h = again
		}
	})
}

// advance lets up to n things happen.
func (h *host) advance(rt *rapid.T, n int) {
	past := map[string]event.Event{}
	for range n {
		if h.state.Final() {
			return
		}
		h.randomEvent(rt, past)
	}
}

// againFrom is the rerun from a step; nil when it was not reached.
func (h *host) againFrom(rt *rapid.T, from string) *host {
	again, err := h.rerun(from, "")
	entered := false
	for _, e := range h.log {
		gen := resultOf[endDetail](&e).Gen
		entered = entered || e.NodeName == from && e.WorkerID == "" &&
			(e.Type == event.StepEnter || e.Type == event.StepFailed || e.Type == event.StepSkipped && gen > 0)
		if e.Type == event.StepReused && e.NodeName == from && gen > 0 {
			break
		}
	}
	if (err == nil) != entered {
		rt.Fatalf("from %s, which was entered: %t: %v\n%s", from, entered, err, join(h.log))
	}
	return again
}

// sameResults compares what is reused with what the original said about the
// same run of the step, where that is its last one.
func (h *host) sameResults(rt *rapid.T, original *host) {
	for _, e := range h.log {
		if e.Type != event.StepReused {
			continue
		}
		now, was := h.state.steps[e.NodeName], original.state.steps[e.NodeName]
		if now.cur.reused == 0 || was == nil || was.cur == nil || now.runs != was.runs || now.cur.phase != was.cur.phase {
			continue
		}
		if (now.result == nil) != (was.result == nil) || now.result != nil && string(now.result.JSON()) != string(was.result.JSON()) {
			rt.Fatalf("%s shows %s, showed %s", e.NodeName, now.result.JSON(), was.result.JSON())
		}
	}
}
