package engine

import (
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// signal is something that was sent to the execution. It never changes.
type signal struct {
	id   event.ID // of its signal.received
	at   time.Time
	sent event.SentSignal
}

// suits tells whether a parked command waits for the signal.
func (g *signal) suits(c *Command) bool {
	park := &c.wait.park
	switch {
	case park.Signal == nil || park.Child != nil || park.Signal.Name != g.sent.Name:
		return false
	case g.sent.Step != "" && g.sent.Step != c.Step:
		return false
	}
	return g.sent.Index == nil || *g.sent.Index == c.Index
}

// applySignal gives a signal to all commands that wait for it. Without one it is
// kept for the first that will.
func (s *State) applySignal(e *event.Event) Effect {
	g := &signal{id: e.EventID, at: e.CreatedAt, sent: *resultOf[event.SentSignal](e)}
	if e.WorkerID != "" || g.sent.Name == "" {
		return Effect{Ignored: IgnoredForeign}
	}
	taken := false
	for _, c := range s.OpenCommands() {
		if c.wait != nil && c.wait.signal == nil && g.suits(c) {
			s.assign(c, g)
			taken = true
		}
	}
	if !taken {
		s.signals = with(s.signals, g)
	}
	return Effect{}
}

// takeKept gives the oldest signal that was kept for it to a command that has
// begun to wait.
func (s *State) takeKept(c *Command) {
	for _, g := range s.signals {
		if g.suits(c) {
			s.signals = without(s.signals, g)
			s.assign(c, g)
			return
		}
	}
}

func (s *State) assign(c *Command, g *signal) {
	w := *c.wait
	w.signal = g
	s.touchCommand(c).wait = &w
	s.signalled = with(s.signalled, c)
}

// refusedDetail is the context of signal.refused.
type refusedDetail struct {
	CommandID string         `json:"command_id"`
	Signal    event.StringID `json:"signal_event_id"`
	Error     string         `json:"error"`
}

// applyRefused drops a signal that its command cannot use. The command goes on
// waiting, beginning with the next one that was kept.
func (s *State) applyRefused(e *event.Event) Effect {
	d := resultOf[refusedDetail](e)
	c := s.commands[d.CommandID]
	if e.WorkerID != "" || c == nil || c.wait == nil || c.wait.signal == nil || c.wait.signal.id != event.ID(d.Signal) {
		return Effect{Ignored: IgnoredLate}
	}
	w := *c.wait
	w.signal = nil
	s.touchCommand(c).wait = &w
	s.signalled = without(s.signalled, c)
	s.takeKept(c)
	return Effect{}
}

// handSignals wakes the commands for which a signal came.
func (d *decider) handSignals() {
	for len(d.s.signalled) > 0 {
		c := d.s.signalled[0]
		g, want := c.wait.signal, c.wait.park.Signal
		if misfit := d.misfit(want, g); misfit != nil {
			d.step(event.SignalRefused, c.Step, event.StatusWaiting, &refusedDetail{
				CommandID: c.ID, Signal: event.StringID(g.id), Error: misfit.Error(),
			}, g.id)
			continue
		}
		data, failure := g.outcome(want)
		d.emit(d.s.news(c, "signal_event_id", g.id, data, failure, nil, d.env))
	}
}

// misfit tells why what was sent cannot be used.
func (d *decider) misfit(want *event.Signal, g *signal) error {
	if d.env.Fits == nil || len(want.Form) == 0 {
		return nil
	}
	return d.env.Fits(want.Form, nonNil(g.sent.Data))
}

// outcome is the result of a wait that a signal ended.
func (g *signal) outcome(want *event.Signal) (data, failure json.RawMessage) {
	status := "received"
	if want.Approve != "" {
		answer := readApproval(g.sent.Data)
		switch {
		case answer.approved:
			status = "approved"
		case want.Approve == event.RejectGoesOn:
			status = "rejected"
		default:
			return nil, g.rejection(answer.comment)
		}
	}
	o := newObject()
	o.value("status", status)
	o.value("signal", g.sent.Name)
	o.raw("data", nonNil(g.sent.Data))
	o.value("by", g.sent.By)
	o.value("at", g.at.UTC().Format(time.RFC3339Nano))
	return o.bytes(), nil
}

func (g *signal) rejection(comment string) json.RawMessage {
	text := g.sent.Name + " was rejected"
	if g.sent.By != "" {
		text += " by " + g.sent.By
	}
	if comment != "" {
		text += ": " + comment
	}
	return encode(map[string]any{
		"kind": "logic", "code": "REJECTED", "message": text, "retryable": false,
		"details": map[string]any{"signal": g.sent.Name, "by": g.sent.By, "data": nonNil(g.sent.Data)},
	})
}

type approval struct {
	approved bool
	comment  string
}

func readApproval(data json.RawMessage) (a approval) {
	if !json.Valid(data) {
		return a
	}
	members(data, func(key string, v json.RawMessage) {
		switch key {
		case "approved":
			a.approved = isTrue(v)
		case "comment":
			a.comment = word(v)
		}
	})
	return a
}

// Received makes the event of a signal that was sent to the execution.
func Received(s *State, sent event.SentSignal, id event.ID, env Env) event.Event {
	return event.Event{
		ExecutionID: s.id, CatalogID: s.catalogID, EventID: id, CreatedAt: env.Now,
		Type: event.SignalReceived, NodeType: "signal", Status: event.StatusCompleted,
		Result: envelope(event.StatusCompleted, encode(&sent)), Meta: emittedByOrchestrator,
	}
}

// Awaiting lists the commands for which a signal that were sent now would be.
func (s *State) Awaiting(sent event.SentSignal) []event.SignalWait {
	g := &signal{sent: sent}
	var out []event.SignalWait
	for _, c := range s.OpenCommands() {
		if c.wait != nil && c.wait.signal == nil && g.suits(c) {
			out = append(out, s.outsideWait(c))
		}
	}
	return out
}

// OutsideWaits lists the commands that wait for somebody outside or for time to
// pass, oldest first.
func (s *State) OutsideWaits() []event.SignalWait {
	out := []event.SignalWait{}
	for _, c := range s.OpenCommands() {
		if c.wait != nil && c.wait.park.Child == nil {
			out = append(out, s.outsideWait(c))
		}
	}
	return out
}

func (s *State) outsideWait(c *Command) event.SignalWait {
	var wait event.Wait
	explainer{s: s}.parked(c, &wait)
	w := event.SignalWait{
		Step: c.Step, CommandID: c.ID, For: wait.For, Since: wait.Since, Until: wait.Until, Message: wait.Message, Form: wait.Form,
	}
	if c.Index >= 0 {
		w.Index = &c.Index
	}
	if g := c.wait.park.Signal; g != nil {
		w.Signal, w.Approval = g.Name, g.Approve != ""
	}
	if wait.For == "callback" {
		w.Message = c.wait.park.Callback
	}
	return w
}

// KeptSignals is how many signals were sent that nobody has waited for yet.
func (s *State) KeptSignals() int { return len(s.signals) }
