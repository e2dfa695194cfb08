package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
)

// story is everything a person needs to understand a run.
func (w *world) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nFaults:\n", w.scenario)
	for _, m := range w.script() {
		fmt.Fprintf(&b, "%8.1fs %s\n", m.at.Seconds(), m.name)
	}
	fmt.Fprintf(&b, "\nWhat followed:\n%s\n", strings.Join(w.history, "\n"))
	for _, row := range w.executions() {
		fmt.Fprintf(&b, "\nExecution %s (%s) is %s\n", w.name(row.ExecutionID), row.ExecutionID, row.Status)
		events, err := w.store.Events(context.Background(), row.ExecutionID, 0, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range events {
			b.WriteString(w.line(&events[i]))
		}
	}
	return b.String()
}

func (w *world) line(e *event.Event) string {
	var m commandMeta
	_ = json.Unmarshal(e.Meta, &m)
	var b strings.Builder
	fmt.Fprintf(&b, "%4d %8.1fs %-18s %s", e.Seq, e.CreatedAt.Sub(w.began).Seconds(), e.Type, e.NodeName)
	if m.Index != nil {
		fmt.Fprintf(&b, "[%d]", *m.Index)
	}
	if _, rest, ok := strings.Cut(e.CommandID, ":"); ok {
		fmt.Fprintf(&b, " (%s)", rest)
	}
	if e.WorkerID != "" {
		fmt.Fprintf(&b, " by %s, attempt %d", e.WorkerID, m.Attempt)
	}
	fmt.Fprintf(&b, " #%s", e.EventID)
	if e.Error != "" {
		fmt.Fprintf(&b, ": %s", e.Error)
	}
	if e.Type == event.NextEvaluated {
		fmt.Fprintf(&b, " %s", e.Result)
	}
	return b.String() + "\n"
}
