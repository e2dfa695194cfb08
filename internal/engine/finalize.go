package engine

import "github.com/noetl/noetl-go/internal/event"

// Finalize makes the events that end an execution by hand, as completed or
// failed: its open commands first, then the execution. text says why it failed,
// reason why it was ended at all.
func Finalize(s *State, status, text, reason string, env Env) []event.Event {
	out := cancelOpen(s, env)
	e := event.Event{
		ExecutionID: s.id, CatalogID: s.catalogID, EventID: env.NewID(), CreatedAt: env.Now, ParentEventID: s.lastEventID,
		Type: event.PlaybookCompleted, NodeName: "playbook", NodeType: "execution", Status: status,
		Result: envelope(status, nil), Meta: encode(&terminalMeta{Status: status, Error: text, Reason: reason}),
	}
	if status == event.StatusFailed {
		e.Type, e.Error = event.PlaybookFailed, text
		e.Result = envelope(status, encode(map[string]string{"error": text}))
	}
	return append(out, e)
}
