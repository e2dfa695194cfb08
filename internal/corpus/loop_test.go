package corpus_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
)

// loopFacts are what the log says about one loop, an item for each time that it
// was entered.
type loopFacts struct {
	mode       string
	iterations []int // as many as it was done with
	rows       []int // of a cursor
}

// loop reads the log for a loop step.
func (h *history) loop(name string) (f loopFacts) {
	for i := range h.events {
		e := &h.events[i]
		if e.NodeName != name {
			continue
		}
		var report struct {
			Context struct {
				Mode       string `json:"mode"`
				Iterations *int   `json:"iterations"`
				Rows       int    `json:"row_count"`
			} `json:"context"`
		}
		_ = json.Unmarshal(e.Result, &report) // an event about something else has none of it
		about := report.Context
		switch e.Type.Canonical() {
		case event.StepEnter:
			f.mode = about.Mode
			f.rows = append(f.rows, 0)
		case event.FrameCommitted:
			f.rows[len(f.rows)-1] += about.Rows
		case event.LoopDone:
			if about.Iterations != nil {
				f.iterations = append(f.iterations, *about.Iterations)
			}
		}
	}
	return f
}

func compareLoops(want *expectation, h *history) string {
	for _, name := range slices.Sorted(maps.Keys(want.Loops)) {
		loop, got := want.Loops[name], h.loop(name)
		if loop.Iterations != nil && !slices.Equal(loop.Iterations, got.iterations) {
			return fmt.Sprintf("%s: want %d iterations, got %d", name, loop.Iterations, got.iterations)
		}
		if loop.Rows != nil && !slices.Equal(loop.Rows, got.rows) {
			return fmt.Sprintf("%s: want %d rows, got %d", name, loop.Rows, got.rows)
		}
		if loop.Mode != "" && loop.Mode != got.mode {
			return fmt.Sprintf("%s: want a %s loop, got %q", name, loop.Mode, got.mode)
		}
		if loop.Results == nil {
			continue
		}
		value, diff := h.result(name)
		if diff == "" {
			diff = partial(loop.Results, value, name)
		}
		if diff != "" {
			return diff
		}
	}
	return ""
}
