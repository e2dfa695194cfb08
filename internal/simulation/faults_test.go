package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// mishap is a fault that happened.
type mishap struct {
	at   time.Duration
	name string
}

// strike decides whether a fault happens where p is its probability and d the
// dice of the place. Its name says what goes wrong where, and is the same in
// every run that comes to this place, so that a scenario can hold some faults
// and leave others out.
func (w *world) strike(d *rand.Rand, p float64, format string, args ...any) bool {
	if hit := d.Float64() < p; !hit || w.calm.Load() {
		return false
	}
	name := fmt.Sprintf(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.places == nil {
		w.places = map[string]int{}
	}
	if w.places[name]++; w.places[name] > 1 {
		name = fmt.Sprintf("%s (%d)", name, w.places[name])
	}
	if w.only != nil && !w.only[name] {
		return false
	}
	w.faults = append(w.faults, mishap{time.Since(w.began), name})
	return true
}

// dice are random numbers that depend on the seed and a name, whoever asks and
// when.
func (w *world) dice(what ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, what...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// script lists the faults that happened, in order.
func (w *world) script() []mishap {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := slices.Clone(w.faults)
	slices.SortFunc(out, func(a, b mishap) int {
		if a.at != b.at {
			return int(a.at - b.at)
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

// append stores a batch and remembers where it begins: between there and the
// append before, everything may crash.
func (w *world) append(ctx context.Context, b *store.Batch) error {
	w.learn(b)
	return w.store.Append(ctx, *b)
}

// learn gives the ids in a batch names by which faults and stories call them.
// Ids come from the clock; names stay the same when the times change.
func (w *world) learn(b *store.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	execution := b.Execution.ExecutionID
	w.heads[execution] = append(w.heads[execution], b.Expected)
	if _, known := w.names[execution]; !known {
		w.started++
		w.names[execution] = fmt.Sprintf("e%d", w.started)
	}
	for i := range b.Events {
		w.seqs[b.Events[i].EventID] = b.Events[i].Seq
	}
	for i := range b.Commands {
		c := &b.Commands[i]
		if _, known := w.names[c.EventID]; known {
			continue
		}
		name := w.names[execution] + "." + c.Step
		if c.IterIndex >= 0 {
			name += fmt.Sprintf("[%d]", c.IterIndex)
		}
		w.issues[name]++
		if n := w.issues[name]; n > 1 {
			name += fmt.Sprintf("'%d", n)
		}
		w.names[c.EventID] = name
	}
}

// name is what an execution or a command is called.
func (w *world) name(id event.ID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n, ok := w.names[id]; ok {
		return n
	}
	return id.String()
}
