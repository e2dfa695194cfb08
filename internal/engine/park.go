package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// waiting is what a parked command waits for. It is replaced, never changed.
type waiting struct {
	park     event.Park
	since    time.Time
	timer    event.ID // of its timer.set
	child    event.ID // the execution it asked for
	arranged bool     // the timer is set, or the child is issued
	marked   bool     // a worker of another make parked it, which may be the one that calls back
}

// parkOf tells whether an event gives its command back to wait, and for what.
// Workers of other makes say so by completing the command with a mark.
func parkOf(e *event.Event) (event.Park, bool) {
	d := callOf(e)
	switch {
	case e.Type.Canonical() == event.CommandParked && d.Park != nil:
		return *d.Park, true
	case e.Type.Canonical() == event.CommandParked, e.Type.Canonical() == event.CommandCompleted && d.Pending:
		return event.Park{Callback: "callback"}, true
	}
	return event.Park{}, false
}

// park takes a command off its worker until something wakes it.
func (s *State) park(c *Command, park event.Park, e *event.Event) Effect {
	s.touchCommand(c)
	c.Status, c.Worker, c.LeaseUntil = event.StatusWaiting, "", time.Time{}
	c.wait = &waiting{park: park, since: e.CreatedAt, marked: e.Type.Canonical() != event.CommandParked}
	called := c.called
	c.data, c.ref, c.errRaw, c.called = nil, nil, nil, nil
	if park.Callback == "" || park.Child != nil {
		s.parked = with(s.parked, c)
	}
	s.trimPending()
	if called != nil && park.Callback != "" {
		return s.applyWake(c, called)
	}
	return Effect{Command: c}
}

// wake makes a parked command wait for a worker again, which goes on where the
// last one left off.
func (s *State) wake(c *Command, w event.Wake) {
	s.touchCommand(c)
	c.resume = &event.Resume{State: c.wait.park.Resume, Wake: w}
	c.MaxAttempts = c.Attempt + c.budget
	c.Status = event.StatusPending
	s.unpark(c)
	s.enqueue(c)
}

// unpark ends the wait.
func (s *State) unpark(c *Command) {
	if c.wait == nil {
		return
	}
	if c.wait.timer != 0 {
		drop(s, s.timers, c.wait.timer)
	}
	if !c.wait.arranged {
		s.parked = without(s.parked, c)
	}
	c.wait = nil
}

// applyWake folds an event about a command that waits: news from what it waits
// for, or its end by the control plane. Whoever held it before has no say.
func (s *State) applyWake(c *Command, e *event.Event) Effect {
	t := e.Type.Canonical()
	d := callOf(e)
	_, parks := parkOf(e)
	switch {
	case parks:
		return Effect{Ignored: IgnoredDuplicate}
	case t == event.CallDone && !c.wait.heeds(d, e):
		return Effect{Ignored: IgnoredLate}
	case t == event.CallDone && len(c.wait.park.Resume) > 0:
		w := event.Wake{Data: d.Data, Error: d.Error}
		if d.Ref != nil {
			w.Data, w.Ref = nil, d.Ref.Ref
		}
		if len(w.Error) == 0 && isToolFailure(d.Status, e.Status) {
			w.Error = encode(firstOf(e.Error, "reported status "+firstOf(d.Status, e.Status)))
		}
		if len(w.Error) > 0 {
			w.Data, w.Ref = nil, ""
		}
		s.wake(c, w)
		return Effect{Command: c}
	case t == event.CallDone, t.IsCommandEnd() && e.WorkerID == "":
		s.end(c, e)
		return Effect{Command: c, Ended: true}
	}
	return Effect{Ignored: IgnoredLate}
}

// heeds tells whether news is what the command waits for: of its own child, or
// a call from outside. Our workers are not asked, because the one that parked
// the command may still be talking; those of other makes watch over their jobs
// themselves, and say so when they only repeat themselves.
func (w *waiting) heeds(d *callDetail, e *event.Event) bool {
	switch {
	case w.marked:
		return !d.Pending
	case e.WorkerID != "" || d.Attempt != 0:
		return false
	case w.park.Child != nil:
		return w.child != 0 && d.Child == w.child.String()
	}
	return w.park.Callback != ""
}

// waitingAt is the command of a step that waits to be called back, or is about
// to, for callers who know the step alone; "" when there is none or several.
func (s *State) waitingAt(step string) string {
	var waiting, held []string
	for _, c := range s.open {
		switch {
		case c.Step != step:
		case c.wait == nil && c.Worker != "":
			held = append(held, c.ID)
		case c.wait != nil && c.wait.park.Child == nil && c.wait.park.Callback != "":
			waiting = append(waiting, c.ID)
		}
	}
	switch {
	case len(waiting) == 1:
		return waiting[0]
	case len(waiting) == 0 && len(held) == 1: // the call is faster than the report of who asked for it
		return held[0]
	}
	return ""
}

// Child is an execution that a parked command asked for.
type Child struct {
	ID      event.ID
	Command string // the command that asked
	Request event.ChildRequest
	Iter    json.RawMessage // the iteration it was asked for in; nil outside loops
	Depth   int             // how many executions it is within
}

// Children lists the executions that parked commands wait for, oldest first.
func (s *State) Children() []Child {
	var out []Child
	for _, c := range s.OpenCommands() {
		if c.wait != nil && c.wait.child != 0 {
			out = append(out, s.childOf(c))
		}
	}
	return out
}

func (s *State) childOf(c *Command) Child {
	child := Child{ID: c.wait.child, Command: c.ID, Request: *c.wait.park.Child, Depth: s.depth + 1}
	r := s.currentRun(c.Step, c.Gen)
	switch {
	case r == nil || c.Index < 0:
	case r.loop != nil:
		child.Iter = r.loop.iter(s, c.Index)
	case r.cursor != nil:
		if f := r.cursor.frame(c.place.Frame); f != nil {
			var total int
			child.Iter = r.cursor.iter(s, f, c.Index, &total)
		}
	}
	return child
}

// awaited is the child for whose end a command waits; 0 when it does not.
func (s *State) awaited(command string) event.ID {
	if c := s.commands[command]; c != nil && c.wait != nil && c.wait.child != 0 && c.wait.park.Child.Wait {
		return c.wait.child
	}
	return 0
}

// abandon notes a child whose parent has stopped waiting. One that this very
// plan would have started is not started.
func (pl *Plan) abandon(child event.ID) {
	if i := slices.IndexFunc(pl.Children, func(c Child) bool { return c.ID == child }); i >= 0 {
		pl.Children = slices.Delete(pl.Children, i, i+1)
		return
	}
	pl.Abandoned = append(pl.Abandoned, child)
}

// childDetail is the context of child.issued. The child's execution has the id
// of that event.
type childDetail struct {
	CommandID string         `json:"command_id"`
	Path      string         `json:"path,omitempty"`
	CatalogID event.StringID `json:"catalog_id,omitempty"`
	Version   int            `json:"version,omitempty"`
	Wait      bool           `json:"wait,omitempty"`
}

func (s *State) applyChild(e *event.Event) Effect {
	d := resultOf[childDetail](e)
	c := s.commands[d.CommandID]
	if c == nil || c.wait == nil || c.wait.park.Child == nil || c.wait.child != 0 || e.WorkerID != "" {
		return Effect{Ignored: IgnoredLate}
	}
	w := *c.wait
	w.child, w.arranged = e.EventID, true
	s.touchCommand(c).wait = &w
	s.parked = without(s.parked, c)
	return Effect{}
}

// arrangeParked sets the timers and issues the children that parked commands
// ask for. The id of a child is part of the log before the child starts, so
// that it starts once however often that is tried.
func (d *decider) arrangeParked() {
	for _, c := range d.s.parked {
		park := c.wait.park
		if park.Child == nil {
			at := d.env.Now.Add(seconds(park.Delay))
			d.setTimer(c.Step, timerDetail{Timer: timerPause, Gen: c.Gen, CommandID: c.ID, FiresAt: at}, c.EventID)
			continue
		}
		req := park.Child
		if d.s.depth >= d.p.limits.Depth {
			d.failCommand(c, "child", "DEPTH", fmt.Sprintf("playbook %s is not started: %d executions within each other are enough (does it start itself?)",
				req.Path, d.s.depth+1), c.EventID)
			continue
		}
		d.step(event.ChildIssued, c.Step, event.StatusPending, &childDetail{
			CommandID: c.ID, Path: req.Path, CatalogID: req.CatalogID, Version: req.Version, Wait: req.Wait,
		}, c.EventID)
		d.plan.Children = append(d.plan.Children, d.s.childOf(c))
		if req.Timeout > 0 && req.Wait {
			at := d.env.Now.Add(seconds(req.Timeout))
			d.setTimer(c.Step, timerDetail{Timer: timerChild, Gen: c.Gen, CommandID: c.ID, FiresAt: at}, d.s.lastEventID)
		}
	}
}

// longest is the longest wait that is taken literally.
const longest = 10 * 365 * 24 * time.Hour

// seconds is a number of seconds as a duration that cannot overflow.
func seconds(n float64) time.Duration {
	if n >= longest.Seconds() {
		return longest
	}
	return time.Duration(max(n, 0) * float64(time.Second))
}

// ChildNews makes the event that wakes a command which waits for a child:
// the child has started, or ended, or cannot be started. It returns false when
// the command does not wait for it any more.
func ChildNews(s *State, child Child, data, failure json.RawMessage, ref json.RawMessage, env Env) (event.Event, bool) {
	c := s.commands[child.Command]
	if c == nil || c.wait == nil || c.wait.child != child.ID {
		return event.Event{}, false
	}
	status, word := event.StatusCompleted, event.ToolSuccess
	if len(failure) > 0 {
		status, word = event.StatusFailed, event.ToolError
	}
	o := newObject()
	o.value("command_id", c.ID)
	o.value("child_execution_id", child.ID.String())
	o.value("status", word)
	if len(failure) > 0 {
		o.raw("error", failure)
	} else {
		inner := newObject()
		inner.raw("data", data)
		result := newObject()
		result.value("status", word)
		result.raw("context", inner.bytes())
		if len(ref) > 0 {
			result.raw("reference", ref)
		}
		o.raw("result", result.bytes())
	}
	e := s.commandEvent(c, event.CallDone, status, env)
	e.Error = errorText(failure)
	e.Result = envelope(status, o.bytes())
	e.Meta = emittedByOrchestrator
	return e, true
}
