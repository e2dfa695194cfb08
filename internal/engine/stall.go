package engine

import (
	"github.com/noetl/noetl-go/internal/event"
)

// OpenWait is a command without an end and what has to happen first.
type OpenWait struct {
	Command *Command
	event.Wait
	Child event.ID // the execution it waits for, when For is child; 0 before it is issued
}

// Waits tells what the open commands wait for, oldest first.
func (s *State) Waits() []OpenWait {
	open := s.OpenCommands()
	out := make([]OpenWait, len(open))
	for i, c := range open {
		out[i] = OpenWait{Command: c, Wait: explainer{s: s}.command(c)}
		if c.wait != nil {
			out[i].Child = c.wait.child
		}
	}
	return out
}

// ReasonNoProgress marks the end of an execution that nothing would ever have
// ended.
const ReasonNoProgress = "no_progress"

// Stalled makes the events that end an execution which does not get on: its
// open commands first, then the execution, with the cause in words.
func Stalled(s *State, cause string, env Env) []event.Event {
	return append(cancelOpen(s, env), event.Event{
		ExecutionID: s.id, CatalogID: s.catalogID, EventID: env.NewID(), CreatedAt: env.Now,
		Type: event.PlaybookFailed, NodeName: "playbook", NodeType: "execution", Status: event.StatusFailed, Error: cause,
		Result: envelope(event.StatusFailed, encode(map[string]string{"error": cause})),
		Meta:   encode(&terminalMeta{Status: event.StatusFailed, Error: cause, Reason: ReasonNoProgress}),
	})
}
