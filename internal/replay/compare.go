package replay

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
)

// Live is what a store's rows say of an execution.
type Live struct {
	Status      string
	LastEventID event.ID
	Events      int64 // in its log
	Commands    []LiveCommand
}

// LiveCommand is what a row says of a command.
type LiveCommand struct {
	CommandID string
	Status    string
	WorkerID  string
}

// Differences compares a replay of the whole log with what the rows say and
// names each contradiction in a sentence; none means they agree.
//
// Not everything the log holds counts for a row: late reports of workers that
// had lost their command stay in the log without effect, so a command with
// several ends is not judged. A state that was folded on a snapshot does not
// know of them; compare states folded from the beginning. The rows of commands
// may be gone once their execution has ended.
func Differences(s *State, live Live) []string {
	var out []string
	differ := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if got := openOr(s.Execution.Status); got != openOr(live.Status) {
		differ("the log says the execution is %s, its row says %s", s.Execution.Status, live.Status)
	}
	if s.EventCount != live.Events {
		differ("the log has %d events, the row counts %d", s.EventCount, live.Events)
	}
	if s.LastEventID != live.LastEventID {
		differ("the log ends with event %d, the row with %d", s.LastEventID, live.LastEventID)
	}
	rows := make(map[string]LiveCommand, len(live.Commands))
	for _, row := range live.Commands {
		rows[row.CommandID] = row
		if c := s.Commands[row.CommandID]; c == nil || c.IssuedEventID == 0 {
			differ("command %s has a row and was never issued", row.CommandID)
		} else if !s.doubtful[row.CommandID] {
			if why := contradiction(c, row); why != "" {
				differ("command %s: %s", row.CommandID, why)
			}
		}
	}
	if event.IsFinal(s.Execution.Status) {
		return out
	}
	for _, name := range slices.Sorted(maps.Keys(s.Commands)) {
		if _, ok := rows[name]; !ok && s.Commands[name].IssuedEventID != 0 {
			differ("command %s was issued and has no row", name)
		}
	}
	return out
}

func contradiction(c *Command, row LiveCommand) string {
	ended := c.TerminalEventID != 0
	switch final := event.IsFinal(row.Status); {
	case final && !ended && c.Status == event.StatusWaiting:
		// What it waited for may end a command without another event of its own.
	case final && !ended:
		return fmt.Sprintf("its row says %s, no event ends it", row.Status)
	case !final && ended && (row.WorkerID == "" || c.WorkerID == row.WorkerID):
		return fmt.Sprintf("event %d ends it, its row says %s", c.TerminalEventID, row.Status)
	case final && ended && endOf("", c.Status) != row.Status:
		return fmt.Sprintf("the log ends it with %s, its row says %s", c.Status, row.Status)
	}
	return ""
}

// openOr is one word for all statuses of what goes on.
func openOr(status string) string {
	if event.IsFinal(status) {
		return status
	}
	return event.StatusRunning
}
