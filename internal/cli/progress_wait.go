package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// waits notes what a step waits for that has given its worker back.
func (p *progress) waits(e event.Event) {
	s := p.line(e.NodeName)
	if s.status != event.StatusRunning {
		return
	}
	d := waitDetailOf(e)
	if e.Type.Canonical() == event.CommandParked {
		s.resumes = len(d.Park.Resume) > 0
	}
	what := d.words(e)
	if what == "" || s.waits && e.Type.Canonical() == event.TimerSet { // it waits for more than time
		return
	}
	s.note, s.waits = what, true
	if !p.live && !p.quiet && !s.many {
		fmt.Fprintln(p.out, s.text(e.CreatedAt, 0))
	}
}

// calledBack ends a command whose result is what it waited for.
func (p *progress) calledBack(e event.Event) {
	if s := p.line(e.NodeName); s.waits && !s.resumes {
		p.goesOn(e.NodeName)
		p.commandEnded(e)
	}
}

// succeeded tells whether an event that ends a command says that it went well.
func succeeded(e event.Event) bool {
	switch e.Type.Canonical() {
	case event.CallDone:
		return e.Status != event.StatusFailed
	case event.CommandCompleted:
		return e.Status != event.ToolError && e.Status != event.ToolTimeout
	}
	return false
}

// goesOn forgets what a step waited for: a worker has it again.
func (p *progress) goesOn(name string) {
	if s := p.line(name); s.waits {
		s.note, s.waits = "", false
	}
}

// waitDetail is what the events of a wait hold.
type waitDetail struct {
	Timer string     `json:"timer"`
	At    time.Time  `json:"fires_at"`
	Path  string     `json:"path"`
	Wait  bool       `json:"wait"`
	Park  event.Park `json:"park"`
}

func waitDetailOf(e event.Event) waitDetail {
	var d struct {
		Context waitDetail `json:"context"`
	}
	_ = json.Unmarshal(e.Result, &d) // what cannot be read is not shown
	return d.Context
}

// words say what an event makes its step wait for; "" when it does not, or when
// a later event says it better.
func (d waitDetail) words(e event.Event) string {
	switch {
	case e.Type.Canonical() == event.ChildIssued && d.Wait:
		return fmt.Sprintf("waits for execution %s of %s", e.EventID, d.Path)
	case e.Type.Canonical() == event.ChildIssued:
		return fmt.Sprintf("starts execution %s of %s", e.EventID, d.Path)
	case d.Timer == "pause":
		return "pauses until " + d.At.Local().Format(time.TimeOnly)
	case d.Park.Signal != nil && d.Park.Signal.Message != "":
		return "waits for the signal " + d.Park.Signal.Name + ": " + oneLine(d.Park.Signal.Message, 80)
	case d.Park.Signal != nil:
		return "waits for the signal " + d.Park.Signal.Name
	case d.Park.Callback != "":
		return "waits to be called back (" + d.Park.Callback + ")"
	}
	return ""
}
