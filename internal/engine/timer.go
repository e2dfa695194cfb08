package engine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// What a timer is for.
const (
	timerTimeout  = "timeout"  // a run of a step takes too long
	timerDeadline = "deadline" // the execution takes too long
	timerPause    = "pause"    // a parked command goes on
	timerChild    = "child"    // a child execution takes too long
)

// timer is an alarm that was set in the log and has not fired. It lives as
// long as what it watches.
type timer struct {
	id      event.ID // of its timer.set
	purpose string
	step    string
	gen     int
	command string // the command it wakes or gives up
	at      time.Time
}

// timerDetail is the context of timer.set and timer.fired.
type timerDetail struct {
	Timer     string    `json:"timer"`
	Gen       int       `json:"gen,omitempty"`
	CommandID string    `json:"command_id,omitempty"`
	FiresAt   time.Time `json:"fires_at,omitzero"`
}

// WakeAt is when the earliest timer is due; zero without one.
func (s *State) WakeAt() time.Time {
	var first time.Time
	for _, t := range s.timers {
		if first.IsZero() || t.at.Before(first) {
			first = t.at
		}
	}
	return first
}

// applyTimerSet starts a timer for something that is still under way.
func (s *State) applyTimerSet(e *event.Event) Effect {
	d := resultOf[timerDetail](e)
	t := &timer{id: e.EventID, purpose: d.Timer, step: e.NodeName, gen: d.Gen, command: d.CommandID, at: d.FiresAt}
	switch d.Timer {
	case timerTimeout:
		r := s.currentRun(t.step, t.gen)
		if r == nil || r.phase != running || e.WorkerID != "" {
			return Effect{Ignored: IgnoredLate}
		}
		s.touch(r).timer = t.id
	case timerPause, timerChild:
		c, ok := s.commands[t.command]
		if !ok || c.wait == nil || e.WorkerID != "" {
			return Effect{Ignored: IgnoredLate}
		}
		w := *c.wait
		w.timer, w.arranged = t.id, true
		s.touchCommand(c).wait = &w
		s.parked = without(s.parked, c)
	case timerDeadline:
	default:
		return Effect{Ignored: IgnoredForeign}
	}
	put(s, s.timers, t.id, t)
	return Effect{}
}

// applyTimerFired ends a timer. One that a parked command slept on wakes it.
func (s *State) applyTimerFired(e *event.Event) Effect {
	t, ok := s.timers[e.ParentEventID]
	if !ok || e.WorkerID != "" {
		return Effect{Ignored: IgnoredLate}
	}
	drop(s, s.timers, t.id)
	if t.purpose != timerPause {
		return Effect{}
	}
	c := s.commands[t.command]
	if c == nil || c.wait == nil || c.wait.park.Elapsed != nil { // what that brings is told in an event of its own
		return Effect{}
	}
	s.wake(c, event.Wake{})
	return Effect{Command: c}
}

// setTimer records a timer on behalf of a step or a command.
func (d *decider) setTimer(step string, detail timerDetail, cause event.ID) {
	detail.FiresAt = detail.FiresAt.UTC().Truncate(time.Microsecond)
	d.step(event.TimerSet, step, event.StatusWaiting, &detail, cause)
}

// watchRun sets the timer of a run that was just entered, when the step has a
// bound: on the run itself, or counted from the start of the execution.
func (d *decider) watchRun(n *node, r *run) {
	at := time.Time{}
	if bound := d.p.bound(n); bound > 0 {
		at = d.env.Now.Add(bound)
	}
	if dl := n.step.Deadline; dl > 0 && (at.IsZero() || d.s.startedAt.Add(dl).Before(at)) {
		at = d.s.startedAt.Add(dl)
	}
	if !at.IsZero() {
		d.setTimer(r.step, timerDetail{Timer: timerTimeout, Gen: r.gen, FiresAt: at}, r.entered)
	}
}

// bound is how long a run of the step may take; 0 = any time.
func (p *Program) bound(n *node) time.Duration {
	if n.step.Timeout > 0 {
		return n.step.Timeout
	}
	return p.pb.Executor.StepTimeout
}

// dueTimers are the timers whose time has come, earliest first.
func (d *decider) dueTimers() []*timer {
	var due []*timer
	for _, t := range d.s.timers {
		if !t.at.After(d.env.Now) {
			due = append(due, t)
		}
	}
	slices.SortFunc(due, func(a, b *timer) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	return due
}

// fireTimers fires what is due. A timer that an earlier one has made pointless
// does not fire.
func (d *decider) fireTimers() {
	for _, t := range d.dueTimers() {
		if _, live := d.s.timers[t.id]; !live || d.s.Final() {
			continue
		}
		d.step(event.TimerFired, t.step, event.StatusCompleted,
			&timerDetail{Timer: t.purpose, Gen: t.gen, CommandID: t.command}, t.id)
		cause := d.s.lastEventID
		switch t.purpose {
		case timerTimeout:
			d.timeOutRun(t, cause)
		case timerChild:
			if c := d.s.commands[t.command]; c != nil && c.wait != nil {
				d.giveUp(c, fmt.Sprintf("the child execution %s did not end in time", c.wait.child), cause)
			}
		case timerPause:
			if c := d.s.commands[t.command]; c != nil && c.wait != nil && c.wait.park.Elapsed != nil {
				w := c.wait.park.Elapsed
				d.emit(d.s.news(c, "timer_event_id", t.id, w.Data, w.Error, nil, d.env))
			}
		case timerDeadline:
			d.timeOutExecution(cause)
		}
	}
}

// timeOutRun ends a run that took too long, with what is open of it.
func (d *decider) timeOutRun(t *timer, cause event.ID) {
	r := d.s.currentRun(t.step, t.gen)
	if r == nil {
		return
	}
	text := fmt.Sprintf("step %q did not end within %s", t.step, max(t.at.Sub(r.enteredAt), 0).Round(time.Millisecond))
	for _, c := range d.s.OpenCommands() {
		if c.Step == t.step && c.Gen == t.gen {
			d.giveUp(c, text, cause)
		}
	}
	if r.phase == running {
		d.fail(t.step, t.gen, reasonTimeout, text, cause)
	}
}

// reasonTimeout marks a run that a timer ended.
const reasonTimeout = "timeout"

// giveUp fails an open command because time is over.
func (d *decider) giveUp(c *Command, text string, cause event.ID) {
	d.failCommand(c, "timeout", "TIMEOUT", text, cause)
}

// failCommand ends an open command on the control plane's own account.
func (d *decider) failCommand(c *Command, kind, code, text string, cause event.ID) {
	e := d.s.failedCommand(c, kind, code, text, d.env)
	e.ParentEventID, e.Meta = cause, emittedByOrchestrator
	d.emit(e)
}

// timeOutExecution ends everything because the deadline is over.
func (d *decider) timeOutExecution(cause event.ID) {
	for _, e := range cancelOpen(d.s, d.env) {
		d.emit(e)
	}
	text := fmt.Sprintf("the execution did not end within its deadline of %s", d.p.pb.Executor.Deadline)
	d.emit(event.Event{
		Type: event.PlaybookFailed, NodeName: "playbook", NodeType: "execution", Status: event.StatusFailed,
		ParentEventID: cause, Error: text,
		Result: envelope(event.StatusFailed, encode(map[string]string{"error": text})),
		Meta:   encode(&terminalMeta{Status: event.StatusFailed, Error: text, Reason: timerDeadline}),
	})
}
