package engine

import (
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// waiting is what a parked command waits for. It is replaced, never changed.
type waiting struct {
	park     event.Park
	since    time.Time
	timer    event.ID // of its timer.set
	child    event.ID // the execution it asked for
	signal   *signal  // what came for it and is not handed over yet
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
	if park.Child != nil || park.Delay > 0 || park.Callback == "" && park.Signal == nil {
		s.parked = with(s.parked, c)
	}
	s.trimPending()
	s.takeKept(c)
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
	if c.wait.signal != nil {
		s.signalled = without(s.signalled, c)
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
	case d.Signal != "":
		return w.signal != nil && d.Signal == w.signal.id.String()
	case d.Timer != "":
		return w.timer != 0 && d.Timer == w.timer.String()
	}
	return w.park.Callback != ""
}

// waitingAt is the command of a step that waits to be called back, or is about
// to, for callers who do not know it; "" when there is none or several. One that
// waits for the caller's very job comes first, one that waits for another job is
// not meant.
func (s *State) waitingAt(step string, by caller) string {
	var named, waiting, held []string
	for _, c := range s.open {
		switch {
		case c.Step != step || by.index != nil && *by.index != c.Index:
		case c.wait == nil && c.Worker != "":
			held = append(held, c.ID)
		case c.wait == nil || c.wait.park.Child != nil || c.wait.park.Callback == "":
		case by.isNamed(c.wait.park.Callback):
			named = append(named, c.ID)
		case !by.isAnother(c.wait.park.Callback):
			waiting = append(waiting, c.ID)
		}
	}
	if len(named) > 0 {
		waiting = named
	}
	switch {
	case len(waiting) == 1:
		return waiting[0]
	case len(waiting) == 0 && len(held) == 1: // the call is faster than the report of who asked for it
		return held[0]
	}
	return ""
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
