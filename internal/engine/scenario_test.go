package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/noetl/noetl-go/internal/event"
)

// TestScenarios runs the stories in testdata. Each line of a story is one
// thing that happens; below it stand the events that follow. Run with -rewrite
// to accept what the engine says now.
//
//	playbook            the YAML that follows
//	start [payload]     start the execution
//	done STEP [index=N] [json]      a command's tool succeeded
//	fail STEP [index=N] [text]      a command's tool failed
//	both STEP STEP      two commands succeed in one batch
//	claim STEP [index=N] WORKER     a worker claims
//	expire              the leases of all claims pass
//	lost STEP           a command's last attempt is given up
//	release STEP        its worker gives a command back
//	report STEP type=T [worker=W] [json]   an event as workers of other makes send it
//	call STEP [json]    somebody who knows the step alone calls back
//	signal NAME [step=S] [index=N] [by=B] [json]   somebody sends a signal to the execution
//	waits               what commands wait for that comes from outside
//	pending             the commands nobody has claimed, oldest first
//	tick DURATION       time passes
//	park STEP [index=N] json        a worker gives a command back to wait; the JSON is what for
//	news STEP [index=N] [failed] [json]   the child that a command waits for has started or ended
//	children            the executions that commands wait for
//	explain STEP        how a step stands and why
//	cancel              the execution is cancelled
//	finalize STATUS [text]          the execution is ended by hand
//	rerun STEP [payload]            the execution is run again from a step on; what follows is about the new one
//	dispatch STEP [index=N]         what a worker receives
//	open                the open commands
//	outcome             the steps and what their names show
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		var st *story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "playbook" {
				if st != nil {
					st.h.verify()
				}
				st = &story{h: newHost(t, d.Input, Limits{StepRuns: 5, LoopWindow: 4})}
				return ""
			}
			st.h.t = t
			return st.tell(d)
		})
		if st != nil {
			st.h.t = t
			st.h.verify()
		}
	})
}

type story struct {
	h    *host
	last event.Event
}

func (s *story) tell(d *datadriven.TestData) string {
	h := s.h
	switch d.Cmd {
	case "start":
		if err := h.start(d.Input); err != nil {
			return "refused: " + err.Error()
		}
		return join(h.log)
	case "done":
		return s.report(h.success(s.command(d), data(d)))
	case "fail":
		return s.report(h.failure(s.command(d), d.Input))
	case "again":
		return join(h.input(s.repeat()))
	case "both":
		var events []event.Event
		for _, arg := range d.CmdArgs {
			events = append(events, h.success(find(h, arg.Key, -1), data(d)))
		}
		return join(h.input(events...))
	case "claim":
		var worker string
		d.ScanArgs(h.t.(*testing.T), "worker", &worker)
		e, err := Claim(h.state, s.command(d), worker, h.now.Add(time.Minute), h.env())
		if err != nil {
			return "refused: " + err.Error()
		}
		return join(h.input(e))
	case "expire":
		h.now = h.now.Add(time.Hour)
		return ""
	case "lost":
		return join(h.input(Lost(h.state, s.command(d), "lease_expired", h.env())))
	case "release":
		return join(h.input(Release(h.state, s.command(d), h.env())))
	case "call":
		e, err := Ingest(h.state, event.Incoming{Type: event.CallDone, Step: d.CmdArgs[0].Key, Payload: data(d)}, "", h.env())
		if err != nil {
			return "refused: " + err.Error()
		}
		return join(h.input(e))
	case "signal":
		return s.signal(d)
	case "waits":
		var b strings.Builder
		for _, w := range h.state.OutsideWaits() {
			fmt.Fprintf(&b, "%s\n", encode(w))
		}
		fmt.Fprintf(&b, "kept %d\n", h.state.KeptSignals())
		return b.String()
	case "report":
		return s.foreign(d)
	case "pending":
		var b strings.Builder
		for _, c := range h.state.Pending(100) {
			fmt.Fprintln(&b, label(c))
		}
		return b.String()
	case "tick":
		d2, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			h.t.Fatalf("%s: %v", d.Pos, err)
		}
		h.now = h.now.Add(d2)
		return join(h.input())
	case "park":
		return s.report(h.report(s.command(d), event.CommandParked, map[string]any{"park": data(d)}))
	case "news":
		return s.news(d)
	case "explain":
		return s.explain(d.CmdArgs[0].Key)
	case "children":
		var b strings.Builder
		for _, c := range h.state.Children() {
			fmt.Fprintf(&b, "%s for %s wait=%t\n", c.Request.Path, label(h.state.commands[c.Command]), c.Request.Wait)
		}
		return b.String()
	case "cancel":
		return join(h.input(Cancel(h.state, d.Input, "tester", h.env())...))
	case "finalize":
		return join(h.input(Finalize(h.state, d.CmdArgs[0].Key, d.Input, "finalized", h.env())...))
	case "rerun":
		h.verify()
		again, err := h.rerun(d.CmdArgs[0].Key, d.Input)
		if err != nil {
			return "refused: " + err.Error()
		}
		s.h = again
		return join(again.log)
	case "dispatch":
		cmd, err := Dispatch(h.prog, h.state, s.command(d))
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%s tool=%s args=%s context=%s", cmd.Action, cmd.Context.ToolConfig, cmd.Context.Args, cmd.Context.RenderContext)
	case "open":
		var b strings.Builder
		for _, c := range h.state.OpenCommands() {
			fmt.Fprintf(&b, "%s %s\n", label(c), c.Status)
		}
		return b.String()
	case "outcome":
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s\n", h.state.Summary().Status, h.state.Summary().Error)
		for _, o := range h.state.Outcome() {
			fmt.Fprintf(&b, "%s %s runs=%d result=%s %s\n", o.Name, o.Status, o.Runs, o.Result, o.Error)
		}
		return b.String()
	}
	h.t.Fatalf("%s: unknown story line %q", d.Pos, d.Cmd)
	return ""
}

// report feeds a worker's event and remembers it for `again`.
func (s *story) report(e event.Event) string {
	s.last = e
	return join(s.h.input(e))
}

// signal sends something to the execution.
func (s *story) signal(d *datadriven.TestData) string {
	sent := event.SentSignal{Name: d.CmdArgs[0].Key, Data: data(d)}
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "step":
			sent.Step = a.Vals[0]
		case "by":
			sent.By = a.Vals[0]
		case "index":
			n, err := strconv.Atoi(a.Vals[0])
			if err != nil {
				s.h.t.Fatalf("%s: %v", d.Pos, err)
			}
			sent.Index = &n
		}
	}
	env := s.h.env()
	return join(s.h.input(Received(s.h.state, sent, env.NewID(), env)))
}

// foreign feeds an event whose payload is given word for word, plus the id of
// the step's command when it has one open.
func (s *story) foreign(d *datadriven.TestData) string {
	h := s.h
	var kind, worker string
	d.ScanArgs(h.t.(*testing.T), "type", &kind)
	if d.HasArg("worker") {
		d.ScanArgs(h.t.(*testing.T), "worker", &worker)
	}
	in := event.Incoming{Type: event.Type(kind), Step: d.CmdArgs[0].Key, Payload: data(d)}
	for _, c := range h.state.OpenCommands() {
		if c.Step == in.Step {
			in.Meta = encode(map[string]string{"command_id": c.ID})
		}
	}
	e, err := Ingest(h.state, in, worker, h.env())
	if err != nil {
		return "refused: " + err.Error()
	}
	return join(h.input(e))
}

// news tells a command of its child.
func (s *story) news(d *datadriven.TestData) string {
	h, c := s.h, s.command(d)
	child := Child{ID: h.state.awaited(c.ID), Command: c.ID}
	var failure json.RawMessage
	if d.HasArg("failed") {
		failure = data(d)
	}
	e, ok := ChildNews(h.state, child, data(d), failure, nil, h.env())
	if !ok {
		return "nobody waits for it"
	}
	return s.report(e)
}

func (s *story) explain(step string) string {
	all, err := Explain(s.h.prog, s.h.state, step)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s %s: %s\n", e.Step, e.Status, e.Reason)
		for _, w := range e.Waits {
			fmt.Fprintf(&b, "  waits for %s: %s\n", w.For, w.What)
		}
		for _, a := range append(e.Arcs, e.Led...) {
			fmt.Fprintf(&b, "  %s -> %s fired=%t when=%s read=%s\n", a.From, a.To, a.Fired, a.When, encode(a.Read))
		}
	}
	return b.String()
}

// repeat is the last report under a new event id: a worker that lost the answer.
func (s *story) repeat() event.Event {
	e := s.last
	e.Seq = 0
	e.EventID = s.h.env().NewID()
	return e
}

func (s *story) command(d *datadriven.TestData) *Command {
	index := -1
	for _, a := range d.CmdArgs {
		if a.Key == "index" {
			index, _ = strconv.Atoi(a.Vals[0])
		}
	}
	return find(s.h, d.CmdArgs[0].Key, index)
}

func find(h *host, step string, index int) *Command {
	for _, c := range h.state.OpenCommands() {
		if c.Step == step && (index < 0 || c.Index == index) {
			return c
		}
	}
	for _, e := range h.state.ended {
		if c := e.cmd; c.Step == step && (index < 0 || c.Index == index) {
			return c
		}
	}
	h.t.Fatalf("no command of step %s (index %d)", step, index)
	return nil
}

func label(c *Command) string {
	if c.Index >= 0 {
		return fmt.Sprintf("%s[%d]", c.Step, c.Index)
	}
	return c.Step
}

func data(d *datadriven.TestData) json.RawMessage {
	if strings.TrimSpace(d.Input) == "" {
		return json.RawMessage(`{}`)
	}
	return json.RawMessage(d.Input)
}

func join(events []event.Event) string {
	if len(events) == 0 {
		return ""
	}
	return strings.Join(lines(events), "\n") + "\n"
}
