package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// progress shows an execution as it happens, from its log alone: a live view
// that redraws itself on a terminal, one line per change elsewhere.
type progress struct {
	out   io.Writer
	live  bool
	env   *Env
	quiet bool
	width int
	start time.Time
	steps []*stepLine
	drawn int
}

// stepLine is one step of the view.
type stepLine struct {
	name        string
	status      string
	runs        int
	total, done int
	failed      int
	began, over time.Time
	many        bool // a loop: a command that ends does not end the step
	waits       bool // without a worker; note says for what
	resumes     bool // a worker goes on after the wait
	note        string
}

func newProgress(env *Env, quiet bool) *progress {
	p := &progress{out: env.Stdout, env: env, live: env.Terminal && !quiet, quiet: quiet, width: env.Width}
	if p.width < 40 {
		p.width = 80
	}
	return p
}

// apply takes in one event.
func (p *progress) apply(e event.Event) {
	if p.start.IsZero() {
		p.start = e.CreatedAt
	}
	switch e.Type.Canonical() {
	case event.StepEnter:
		p.entered(e)
	case event.CommandCompleted, event.CommandFailed, event.CommandCancelled:
		p.commandEnded(e)
	case event.CommandParked, event.TimerSet, event.ChildIssued:
		p.waits(e)
	case event.CommandClaimed:
		p.goesOn(e.NodeName)
	case event.CallDone:
		p.calledBack(e)
	case event.StepExit, event.LoopDone:
		p.ended(e.NodeName, event.StatusCompleted, "", e.CreatedAt)
	case event.StepFailed:
		p.ended(e.NodeName, event.StatusFailed, e.Error, e.CreatedAt)
	case event.StepSkipped:
		p.line(e.NodeName).began = e.CreatedAt
		p.ended(e.NodeName, event.StatusSkipped, "", e.CreatedAt)
	case event.StepReused:
		p.reused(e)
	}
	p.draw(e.CreatedAt)
}

func (p *progress) line(name string) *stepLine {
	for _, s := range p.steps {
		if s.name == name {
			return s
		}
	}
	s := &stepLine{name: name}
	p.steps = append(p.steps, s)
	return s
}

func (p *progress) entered(e event.Event) {
	var d struct {
		Context struct {
			Expected int  `json:"iterations_expected"`
			Cursor   bool `json:"__cursor_loop"`
		} `json:"context"`
	}
	_ = json.Unmarshal(e.Result, &d)
	s := p.line(e.NodeName)
	s.runs++
	*s = stepLine{
		name: s.name, status: event.StatusRunning, runs: s.runs, began: e.CreatedAt,
		total: d.Context.Expected, many: d.Context.Expected > 0 || d.Context.Cursor,
	}
}

func (p *progress) commandEnded(e event.Event) {
	s := p.line(e.NodeName)
	if s.status != event.StatusRunning {
		return
	}
	s.done++
	ok := succeeded(e)
	if !ok {
		s.failed++
		s.note, s.waits = e.Error, false
	}
	if s.many {
		return // the loop's own end closes the line
	}
	status := event.StatusCompleted
	if !ok {
		status = event.StatusFailed
	}
	p.ended(e.NodeName, status, e.Error, e.CreatedAt)
}

func (p *progress) ended(name, status, note string, at time.Time) {
	s := p.line(name)
	s.status, s.over, s.note = status, at, note
	if !p.live && !p.quiet {
		fmt.Fprintln(p.out, s.text(at, 0))
	}
}

// draw redraws the live view in place.
func (p *progress) draw(now time.Time) {
	if !p.live {
		return
	}
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", p.drawn)
	}
	for _, s := range p.steps {
		b.WriteString("\r\x1b[2K" + p.env.paint(s.colour(), s.text(now, p.width-1)) + "\n")
	}
	p.drawn = len(p.steps)
	_, _ = io.WriteString(p.out, b.String())
}

// text is the line of a step: mark, name, what it did, how long it took. The
// name column keeps lines under each other.
func (s *stepLine) text(now time.Time, width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %-20s", s.mark(), s.name)
	switch {
	case s.status == event.StatusSkipped:
		b.WriteString(" skipped")
	case s.total > 0:
		fmt.Fprintf(&b, " %d/%d", s.done, s.total)
		if s.failed > 0 {
			fmt.Fprintf(&b, ", %d failed", s.failed)
		}
	}
	if s.runs > 1 {
		fmt.Fprintf(&b, " run %d", s.runs)
	}
	if s.status != event.StatusSkipped {
		over := s.over
		if s.status == event.StatusRunning {
			over = now
		}
		fmt.Fprintf(&b, " %s", over.Sub(s.began).Round(time.Millisecond))
	}
	if s.note != "" {
		b.WriteString("  " + strings.ReplaceAll(s.note, "\n", " "))
	}
	return cut(b.String(), width)
}

func (s *stepLine) mark() string {
	switch s.status {
	case event.StatusCompleted:
		return "✓"
	case event.StatusFailed:
		return "✗"
	case event.StatusSkipped:
		return "-"
	}
	return "…"
}

func (s *stepLine) colour() string {
	switch s.status {
	case event.StatusCompleted:
		return "\x1b[32m"
	case event.StatusFailed:
		return "\x1b[31m"
	case event.StatusSkipped:
		return "\x1b[90m"
	}
	return "\x1b[36m"
}

// end prints the last line: how the execution went.
func (p *progress) end(o outcome) {
	if p.quiet {
		return
	}
	fmt.Fprintf(p.out, "%s in %s (execution %s)\n", o.Status, time.Duration(o.DurationMS)*time.Millisecond, event.ID(o.ExecutionID))
	if o.Error != "" {
		fmt.Fprintln(p.out, o.Error)
	}
}
