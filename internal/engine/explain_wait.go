package engine

import (
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
)

// explainedWaits bounds how many open commands of one step are listed.
const explainedWaits = 20

// running explains what a run is busy with.
func (x explainer) running(n *node, r *run, e *event.Explanation) {
	open := 0
	for _, c := range x.s.OpenCommands() {
		if c.Step != r.step || c.Gen != r.gen {
			continue
		}
		if open++; open <= explainedWaits {
			e.Waits = append(e.Waits, x.command(c))
		}
	}
	x.progress(r, e)
	switch {
	case r.loop != nil && r.next < r.loop.total && r.openCmd >= r.loop.window:
		e.Waits = append(e.Waits, event.Wait{For: "max_in_flight", What: fmt.Sprintf(
			"iteration %d starts when one of the %d open ones ends", r.next, r.openCmd)})
	case open == 1 && e.Waits[0].For == "running":
		e.Reason = e.Waits[0].What
	case open == 1:
		e.Reason = "it waits until " + e.Waits[0].What
	}
	if t, ok := x.s.timers[r.timer]; ok {
		e.Waits = append(e.Waits, event.Wait{For: "timer", What: "it fails if it has not ended by then", Until: t.at})
	}
	if n.step.Loop != nil {
		e.Reason = "it loops: " + e.Progress
	}
}

// command explains where an open command is.
func (x explainer) command(c *Command) event.Wait {
	w := event.Wait{Name: c.ID, Since: c.CreatedAt}
	if c.Index >= 0 {
		w.Index = &c.Index
	}
	switch {
	case c.wait != nil:
		x.parked(c, &w)
	case c.Status == event.StatusPending:
		w.For, w.What = "worker", fmt.Sprintf("a worker of pool %s takes it", x.s.pool)
		if c.resume != nil {
			w.What = fmt.Sprintf("a worker of pool %s goes on with it", x.s.pool)
		}
	default:
		w.For, w.Since, w.Until = "running", c.ClaimedAt, c.LeaseUntil
		w.What = fmt.Sprintf("worker %s runs it (attempt %d of %d)", c.Worker, c.Attempt, c.MaxAttempts)
	}
	return w
}

func (x explainer) parked(c *Command, w *event.Wait) {
	w.Since = c.wait.since
	if t, ok := x.s.timers[c.wait.timer]; ok {
		w.Until = t.at
	}
	switch park := c.wait.park; {
	case park.Child != nil:
		w.For, w.Name = "child", c.wait.child.String()
		verb := "starts"
		if park.Child.Wait {
			verb = "ends"
		}
		w.What = fmt.Sprintf("execution %s of playbook %s %s", c.wait.child, park.Child.Path, verb)
	case park.Signal != nil:
		w.For, w.Name, w.What = "signal", park.Signal.Name, "somebody sends the signal "+park.Signal.Name
		w.Message, w.Form = park.Signal.Message, park.Signal.Form
	case park.Callback == "":
		w.For, w.What = "timer", "its pause is over"
	default:
		w.For, w.What = "callback", "somebody calls back ("+park.Callback+")"
	}
}

// progress counts a loop's iterations.
func (x explainer) progress(r *run, e *event.Explanation) {
	switch {
	case r.loop != nil:
		e.Progress = fmt.Sprintf("%d of %d iterations ended, %d failed, %d open", r.succeeded+r.faulted, r.loop.total, r.faulted, r.openCmd)
	case r.cursor != nil:
		e.Progress = fmt.Sprintf("%d rows ended, %d failed, frame %d, %d open", r.cursor.rows, r.cursor.failed, max(r.cursor.next-1, 0), r.openCmd)
	}
}
