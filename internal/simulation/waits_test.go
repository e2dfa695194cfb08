package simulation

import (
	"context"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
)

// timer is an alarm as the log tells it.
type timer struct {
	due     time.Time
	command string
	purpose string
	fired   bool
}

// time follows timers, and the executions that commands ask for.
func (p *proof) time(e *event.Event) {
	var d struct {
		Context struct {
			Timer     string    `json:"timer"`
			CommandID string    `json:"command_id"`
			FiresAt   time.Time `json:"fires_at"`
		} `json:"context"`
	}
	switch e.Type {
	case event.TimerSet, event.ChildIssued:
		_ = json.Unmarshal(e.Result, &d)
	case event.TimerFired:
		p.fired(e)
		return
	default:
		return
	}
	if e.Type == event.TimerSet {
		p.timers[e.EventID] = timer{due: d.Context.FiresAt, command: d.Context.CommandID, purpose: d.Context.Timer}
		return
	}
	c := p.tasks[d.Context.CommandID]
	if c == nil || c.waits == nil || c.waits.Child == nil || c.child != 0 {
		p.problem(families, "a child is issued that nobody waits for, seq %d", e.Seq)
		return
	}
	c.child, c.request = e.EventID, *c.waits.Child
	p.children[e.EventID] = c
}

func (p *proof) fired(e *event.Event) {
	t, known := p.timers[e.ParentEventID]
	switch {
	case !known || t.fired:
		p.problem(timers, "a timer fires that is not set, or that has fired, seq %d", e.Seq)
	case e.CreatedAt.Before(t.due):
		p.problem(timers, "the timer due at %v fires at %v, seq %d", t.due, e.CreatedAt, e.Seq)
	}
	t.fired = true
	p.timers[e.ParentEventID] = t
	if c := p.tasks[t.command]; c != nil && t.purpose == "pause" {
		if c.waits == nil {
			p.problem(parked, "%s: a pause ends that it does not make, seq %d", t.command, e.Seq)
		} else if c.waits.Elapsed != nil {
			return // what that brings is told in an event of its own
		}
		c.waits = nil
	}
}

// parked compares whether the fold parks a command with whether it should: its
// holder decides, and only once.
func (p *proof) parked(c *task, e *event.Event, m commandMeta, eff engine.Effect) {
	want := c.ends == 0 && c.waits == nil && c.holder == e.WorkerID && c.attempt == m.Attempt
	if got := eff.Ignored == ""; got != want {
		p.problem(parked, "%s: parked by %q in attempt %d at seq %d: accepted %t, want %t (held by %q, attempt %d)",
			e.CommandID, e.WorkerID, m.Attempt, e.Seq, got, want, c.holder, c.attempt)
	}
	if eff.Ignored != "" {
		return
	}
	var d struct {
		Context struct {
			Park event.Park `json:"park"`
		} `json:"context"`
	}
	_ = json.Unmarshal(e.Result, &d)
	c.waits, c.holder, c.child = &d.Context.Park, "", 0
}

// called is news for a command that waits: it goes on, or has ended.
func (p *proof) called(c *task, e *event.Event, eff engine.Effect) {
	if eff.Ignored != "" {
		p.problem(parked, "%s: what it waits for came at seq %d and is ignored: %s", e.CommandID, e.Seq, eff.Ignored)
		return
	}
	if len(c.waits.Resume) == 0 {
		c.ends++
		p.open[e.NodeName]--
	}
	c.waits = nil
}

// checkFamily looks at the executions that commands asked for.
func (p *proof) checkFamily() {
	for id, c := range p.children {
		row, err := p.w.store.Execution(context.Background(), id)
		switch {
		case err != nil && c.waits != nil && p.terminals == 0:
			p.problem(families, "the child %s was never started", id)
		case err != nil:
		case row.ParentExecutionID != p.row.ExecutionID:
			p.problem(families, "the child %s has parent %s", p.w.name(id), row.ParentExecutionID)
		case c.request.Wait && c.waits == nil && !event.IsFinal(row.Status):
			p.problem(families, "nobody waits for the child %s any more and it is %s", p.w.name(id), row.Status)
		}
	}
}

// atRest tells whether an execution waits for something that does not come by
// itself, and says for what.
func (w *world) atRest(s *engine.State) bool {
	open := s.OpenCommands()
	if len(open) == 0 || !s.WakeAt().IsZero() {
		return false
	}
	children := map[string]event.ID{}
	for _, c := range s.Children() {
		children[c.Command] = c.ID
	}
	for _, c := range open {
		switch {
		case c.Status != event.StatusWaiting:
			return false
		case children[c.ID] != 0:
			row, err := w.store.Execution(context.Background(), children[c.ID])
			if err != nil || event.IsFinal(row.Status) {
				return false
			}
		case w.book.waitsAt(c.Step) != neverCalled:
			return false
		}
	}
	return true
}

// resting tells whether an open execution will not go on by itself.
func (w *world) resting(id event.ID) bool {
	events, err := w.store.Events(context.Background(), id, 0, 0)
	if err != nil {
		return false
	}
	s := engine.NewState(id)
	for i := range events {
		s.Apply(&events[i])
	}
	return w.atRest(s)
}
