package worker

import (
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// class is what a command mostly needs, or, before that is known, both.
type class uint8

const (
	classCPU class = 1 << iota // computes on this machine
	classIO                    // waits for others
)

// cpuKinds compute; all other kinds wait.
var cpuKinds = []string{"duckdb", "python", "shell"}

// sequence is the kind of a command that runs several tools.
const sequence = "task_sequence"

// classOf is the class of a kind of tool. A sequence may hold tools of both,
// and of a notification without a kind nothing is known.
func classOf(kind string) class {
	switch kind {
	case "", sequence:
		return classCPU | classIO
	case "duckdb", "python", "shell":
		return classCPU
	}
	return classIO
}

// classOfCommand looks into a sequence: one tool that computes makes it so.
func classOfCommand(cmd *event.Command) class {
	if cmd.Action != sequence {
		return classOf(cmd.Action)
	}
	var tools []json.RawMessage
	if json.Unmarshal(cmd.Context.ToolConfig, &tools) != nil {
		return classCPU | classIO
	}
	for _, raw := range tools {
		if computes(raw, 0) {
			return classCPU
		}
	}
	return classIO
}

// computes looks for a kind in a tool, whether it is written flat or below its
// label.
func computes(raw json.RawMessage, depth int) bool {
	var members map[string]json.RawMessage
	if depth > 1 || json.Unmarshal(raw, &members) != nil {
		return false
	}
	if named, ok := members["kind"]; ok {
		var kind string
		return json.Unmarshal(named, &kind) != nil || classOf(kind)&classCPU != 0
	}
	for _, inner := range members {
		if computes(inner, depth+1) {
			return true
		}
	}
	return false
}

// limits are how many commands of each class run at once; 0 for no limit.
func (w *Worker) limit(c class) int {
	if c == classCPU {
		return w.options.SlotsCPU
	}
	return w.options.SlotsIO
}

func (w *Worker) classed() bool { return w.options.SlotsCPU > 0 || w.options.SlotsIO > 0 }

// enterLocked takes a place in each class of c, or in none.
func (w *Worker) enterLocked(c class) bool {
	for _, one := range [...]class{classCPU, classIO} {
		if n := w.limit(one); c&one != 0 && n > 0 && w.used[one] >= n {
			return false
		}
	}
	for _, one := range [...]class{classCPU, classIO} {
		if c&one != 0 {
			w.used[one]++
		}
	}
	return true
}

func (w *Worker) leaveLocked(c class) {
	for _, one := range [...]class{classCPU, classIO} {
		if c&one != 0 {
			if w.used[one]--; w.used[one] < 0 {
				panic("worker: more places of a class given back than taken")
			}
			w.crowded = 0
		}
	}
}

func (w *Worker) enter(c class) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enterLocked(c)
}

func (w *Worker) leaveClass(c class) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(c)
}

// change exchanges the places of one command for those of another. It is false,
// and nothing is exchanged, when there is no place for the other.
func (w *Worker) change(from, to class) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leaveLocked(from &^ to)
	if w.enterLocked(to &^ from) {
		return true
	}
	w.enterLocked(from &^ to) // nobody could take them meanwhile
	return false
}

// crowd is how long a notification waits that no class has a place for. The
// pause grows while that is so, because there may be many of them.
func (w *Worker) crowd() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := retryDelays[min(w.crowded/w.options.Slots, len(retryDelays)-2)]
	w.crowded++
	return jitter(d)
}

// unwanted are the kinds for which there would be no place if a command of
// class c ended now.
func (w *Worker) unwanted(c class) []string {
	if !w.classed() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.options.SlotsCPU; n > 0 && c&classCPU == 0 && w.used[classCPU] >= n {
		return append([]string{sequence}, cpuKinds...)
	}
	return nil
}
