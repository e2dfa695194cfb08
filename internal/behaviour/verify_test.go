package behaviour

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// verify proves the finished log: read back from its stored form it folds to
// the same outcome, every decision follows from what was written before it, and
// nothing is left to decide.
func (w *world) verify() {
	w.t.Helper()
	s, done := w.newState(), 0
	log := w.reread()
	for _, p := range w.passes {
		for ; done < p.from; done++ {
			s.Apply(&log[done])
		}
		recorded := log[p.from:p.to]
		next := 0
		plan := engine.Decide(w.prog, s, engine.Env{Now: p.now, NewID: func() event.ID {
			next++
			if next > len(recorded) {
				return 1 << 40
			}
			return recorded[next-1].EventID
		}})
		if diff := cmp.Diff(lines(recorded), lines(plan.Events)); diff != "" {
			w.fatalf("the decision after event %d differs when it is taken on the stored log (-live +replayed):\n%s", p.from, diff)
		}
		if diff := difference(p.stand, stand(s)); diff != "" {
			w.fatalf("after event %d the steps stand differently on the stored log (-live +replayed):\n%s", p.to, diff)
		}
		done = p.to
	}
	folded := w.newState()
	for i := range log {
		folded.Apply(&log[i])
	}
	if again := engine.Decide(w.prog, folded, w.env()); len(again.Events) > 0 {
		w.fatalf("deciding again yields\n%s", lines(again.Events))
	}
	if diff := cmp.Diff(w.state.Summary(), folded.Summary()); diff != "" {
		w.fatalf("the folded log has another summary (-live +folded):\n%s", diff)
	}
	if diff := difference(stand(w.state), stand(folded)); diff != "" {
		w.fatalf("the folded log has another outcome (-live +folded):\n%s", diff)
	}
	if diff := cmp.Diff(len(w.state.OpenCommands()), len(folded.OpenCommands())); diff != "" {
		w.fatalf("the folded log has other open commands (-live +folded):\n%s", diff)
	}
}

// stand is how the steps of a state stand, a line for each.
func stand(s *engine.State) []string {
	var out []string
	for _, o := range s.Outcome() {
		out = append(out, fmt.Sprintf("%s %s runs=%d %s %s", o.Name, o.Status, o.Runs, o.Result, o.Error))
	}
	return out
}

// difference compares lines whole and shows them short.
func difference(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	return "-" + shorten(strings.Join(want, "\n-")) + "\n+" + shorten(strings.Join(got, "\n+"))
}

// reread is the log as a reader of the store sees it: through its encoded form,
// the payload columns byte by byte, without what the producer had at hand.
func (w *world) reread() []event.Event {
	type row struct {
		event.Event
		Context, Result, Meta string // in place of the columns
	}
	out := make([]event.Event, len(w.log))
	for i, e := range w.log {
		e.Detail = nil
		b, err := json.Marshal(row{e, string(e.Context), string(e.Result), string(e.Meta)})
		if err != nil {
			w.fatalf("encode %s: %v", e.Type, err)
		}
		var r row
		if err := json.Unmarshal(b, &r); err != nil {
			w.fatalf("decode %s: %v", e.Type, err)
		}
		out[i] = r.Event
		out[i].Context, out[i].Result, out[i].Meta = column(r.Context), column(r.Result), column(r.Meta)
	}
	return out
}

func column(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}
