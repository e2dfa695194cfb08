package behaviour

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// payload is what a line about an event can need, as stored.
type payload struct {
	Workload   json.RawMessage            `json:"workload"`
	Gen        int                        `json:"gen"`
	Expected   *int                       `json:"iterations_expected"`
	Window     int                        `json:"max_in_flight"`
	Reason     string                     `json:"reason"`
	Error      json.RawMessage            `json:"error"`
	Iterations *int                       `json:"iterations"`
	Failed     json.RawMessage            `json:"failed"`
	Matched    []string                   `json:"matched"`
	Handled    bool                       `json:"handled"`
	Values     map[string]json.RawMessage `json:"values"`
	Warnings   []string                   `json:"warnings"`
	Handling   []string                   `json:"handled_steps"`
	Attempt    int                        `json:"attempt"`
	Cursor     *event.CursorPlace         `json:"cursor"`
	Timer      string                     `json:"timer"`
	Park       event.Park                 `json:"park"`
	Path       string                     `json:"path"`
	Wait       bool                       `json:"wait"`
	Result     struct {
		Reference struct {
			Ref       string
			Extracted json.RawMessage
		}
	} `json:"result"`
	Arcs []struct {
		Step, When string
		Outcome    bool
	} `json:"arcs"`
}

// iteration finds the index in the id of an iteration's command.
var iteration = regexp.MustCompile(`:i(\d+)$`)

// describe is an event in one line: its type, its step, and the essentials.
func describe(e *event.Event) string {
	var p payload
	for _, column := range []json.RawMessage{e.Context, e.Meta} {
		if len(column) > 0 {
			_ = json.Unmarshal(column, &p)
		}
	}
	var r struct {
		Context json.RawMessage `json:"context"`
	}
	if len(e.Result) > 0 && json.Unmarshal(e.Result, &r) == nil && len(r.Context) > 0 {
		_ = json.Unmarshal(r.Context, &p)
	}
	var b strings.Builder
	b.WriteString(string(e.Type))
	if !e.Type.IsTerminal() && e.Type != event.PlaybookStarted && e.NodeName != "" {
		b.WriteString(" " + e.NodeName)
	}
	b.WriteString(place(e))
	b.WriteString(essentials(e, &p))
	return shorten(b.String())
}

// place is which iteration of its step an event speaks of.
func place(e *event.Event) string {
	if m := iteration.FindStringSubmatch(e.CommandID); m != nil {
		return "[" + m[1] + "]"
	}
	return ""
}

func essentials(e *event.Event, p *payload) string {
	switch e.Type {
	case event.PlaybookStarted:
		return " " + string(p.Workload)
	case event.StepEnter:
		if p.Expected != nil {
			return fmt.Sprintf(" run=%d items=%d window=%d", p.Gen, *p.Expected, p.Window)
		}
		return fmt.Sprintf(" run=%d", p.Gen)
	case event.StepSkipped:
		return " (" + p.Reason + ")"
	case event.StepFailed:
		return " (" + p.Reason + "): " + e.Error
	case event.LoopDone:
		return fmt.Sprintf(" iterations=%d failed=%s", *p.Iterations, orZero(p.Failed))
	case event.NextEvaluated:
		text := " -> [" + strings.Join(p.Matched, " ") + "]"
		for _, a := range p.Arcs {
			if a.When != "" {
				text += fmt.Sprintf(" %s=%t", a.Step, a.Outcome)
			}
		}
		if string(p.Failed) == "true" {
			text += fmt.Sprintf(" handled=%t", p.Handled)
		}
		return text
	case event.CtxUpdated:
		var b strings.Builder
		for _, k := range slices.Sorted(maps.Keys(p.Values)) {
			fmt.Fprintf(&b, " %s=%s", k, p.Values[k])
		}
		for _, text := range p.Warnings {
			fmt.Fprintf(&b, " warning: %s", text)
		}
		return b.String()
	case event.CommandIssued:
		if c := p.Cursor; c != nil {
			return fmt.Sprintf(" %s %s frame=%d", e.NodeType, c.Phase, c.Frame)
		}
		return " " + e.NodeType
	case event.TimerSet, event.TimerFired:
		return " (" + p.Timer + ")"
	case event.CommandParked:
		p.Park.Resume = nil // the worker's own
		return " " + compact(p.Park)
	case event.ChildIssued:
		return fmt.Sprintf(" %s wait=%t", p.Path, p.Wait)
	case event.CallDone:
		if e.Error != "" {
			return ": " + e.Error
		}
	case event.CommandClaimed:
		return fmt.Sprintf(" by=%s attempt=%d", e.WorkerID, p.Attempt)
	case event.CommandCompleted:
		if ref := p.Result.Reference; ref.Ref != "" {
			return fmt.Sprintf(" kept as %s, summary %s", ref.Ref, ref.Extracted)
		}
	case event.CommandFailed:
		var failure struct{ Kind, Code string }
		if json.Unmarshal(p.Error, &failure) == nil && failure.Kind != "" {
			return " (" + failure.Kind + " " + failure.Code + "): " + e.Error
		}
		return ": " + e.Error
	case event.PlaybookFailed:
		return ": " + e.Error
	case event.PlaybookCompleted:
		if len(p.Handling) > 0 {
			return " handled=" + strings.Join(p.Handling, " ")
		}
	}
	return ""
}

func orZero(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "0"
	}
	return string(raw)
}

func lines(events []event.Event) string {
	var b strings.Builder
	for i := range events {
		fmt.Fprintln(&b, describe(&events[i]))
	}
	return b.String()
}

// show is the log from a place on, without the claims every command has.
func (w *world) show(from int) string {
	var b strings.Builder
	for i := from; i < len(w.log); i++ {
		if w.log[i].Type != event.CommandClaimed {
			fmt.Fprintln(&b, describe(&w.log[i]))
		}
	}
	return b.String()
}

// variables are the durable ones, as the log tells them.
func (w *world) variables() map[string]string {
	out := map[string]string{}
	for i := range w.log {
		if w.log[i].Type != event.CtxUpdated {
			continue
		}
		var r struct{ Context payload }
		_ = json.Unmarshal(w.log[i].Result, &r)
		for k, v := range r.Context.Values {
			out[k] = string(v)
		}
	}
	return out
}

// outcome is how the execution stands: its status, its steps in the order of
// the workflow, and its variables.
func (w *world) outcome() string {
	var b strings.Builder
	sum := w.state.Summary()
	b.WriteString(sum.Status)
	if sum.Error != "" {
		b.WriteString(": " + sum.Error)
	}
	b.WriteByte('\n')
	stand := map[string]engine.StepOutcome{}
	for _, o := range w.state.Outcome() {
		stand[o.Name] = o
	}
	for _, s := range w.prog.Playbook().Steps {
		o, ok := stand[s.Name]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "%s %s", o.Name, o.Status)
		if o.Runs != 1 {
			fmt.Fprintf(&b, " runs=%d", o.Runs)
		}
		if o.Result != nil {
			b.WriteString(shorten(" " + string(o.Result)))
		}
		if o.Error != "" {
			fmt.Fprintf(&b, " error: %s", o.Error)
		}
		b.WriteByte('\n')
	}
	vars := w.variables()
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(&b, "%s = %s\n", k, vars[k])
	}
	return b.String()
}

// stored is a command as the log and the playbook hold it, before a worker
// renders it.
func (w *world) stored(name string) string {
	cmd, err := engine.Dispatch(w.prog, w.state, w.anyCommand(name))
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "tool %s\ninput %s\n", cmd.Context.ToolConfig, cmd.Context.Args)
	for i := range w.log {
		if e := &w.log[i]; e.EventID == cmd.EventID {
			fmt.Fprintln(&b, shorten("context "+string(e.Context)))
		}
	}
	return b.String()
}
