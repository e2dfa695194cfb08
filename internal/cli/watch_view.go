package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// frame is the whole screen at a moment: as many lines as it has, none wider.
func (w *watch) frame(now time.Time) []string {
	width, height := max(w.width, 20), max(w.height, 6)
	lines := w.header(now, width)
	room := height - len(lines) - 1 // the last line is for the keys
	below := 0
	if room >= 8 {
		below = room / 2
	}
	steps := w.steps(now, width, room-below)
	lines = append(lines, steps...)
	lines = append(lines, w.panes(width, room-len(steps))...)
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	return append(lines[:height-1], w.footer(width))
}

// header says what this is and how it stands.
func (w *watch) header(now time.Time, width int) []string {
	over := w.over
	if over.IsZero() {
		over = now
	}
	done := 0
	for _, s := range w.progress.steps {
		if s.status != event.StatusRunning {
			done++
		}
	}
	title := fit(fmt.Sprintf("%s version %d  execution %s", printable(w.path), w.version, w.id), width)
	status := fmt.Sprintf("%-9s", w.status)
	rest := fit(fmt.Sprintf("  %s  %d of %s done", seconds(max(0, over.Sub(w.began))), done, plural(len(w.progress.steps), "step")), width-len(status))
	lines := []string{w.env.paint(bold, title), w.env.paint(statusColour("STATUS", w.status), status) + rest}
	if w.err != "" {
		lines = append(lines, w.env.paint(red, fit(printable(w.err), width)))
	}
	if w.link != "" {
		lines = append(lines, w.env.paint(red, fit(printable(w.link), width)))
	}
	return append(lines, w.env.paint(grey, strings.Repeat("─", width)))
}

// steps are those that fit, the ones around the scroll position; it stays at
// the newest until somebody scrolls.
func (w *watch) steps(now time.Time, width, room int) []string {
	all := w.progress.steps
	room = max(1, room)
	most := max(0, len(all)-room)
	w.scroll = min(0, max(w.scroll, -most)) // counted from the end
	first := max(0, most+w.scroll)
	var lines []string
	for _, s := range all[first:min(len(all), first+room)] {
		text := s.text(now, 0)
		if n := w.tries[s.name]; n > 1 {
			text += fmt.Sprintf("  try %d", n)
		}
		lines = append(lines, w.env.paint(s.colour(), fit(printable(text), width)))
	}
	if len(lines) == 0 {
		lines = append(lines, w.env.paint(grey, "waiting for the first step"))
	}
	return lines
}

// panes are the ends of the output and of the log.
func (w *watch) panes(width, room int) []string {
	if room < 2 {
		return nil
	}
	show := func(title string, t *tail, n int) []string {
		lines := []string{w.env.paint(grey, fit("── "+title+" "+strings.Repeat("─", width), width))}
		for _, line := range t.last(n - 1) {
			lines = append(lines, fit(line, width))
		}
		for len(lines) < n {
			lines = append(lines, "")
		}
		return lines
	}
	switch {
	case w.pane == "output":
		return show("output", w.output, room)
	case w.pane == "events":
		return show("events", w.events, room)
	case room < 4:
		return show("events", w.events, room)
	}
	half := room / 2
	return append(show("output", w.output, half), show("events", w.events, room-half)...)
}

// footer is what can be done, or what is asked.
func (w *watch) footer(width int) string {
	switch {
	case w.asking:
		return w.env.paint(bold, fit("Cancel this execution? y/n", width))
	case w.notice != "":
		return fit(printable(w.notice), width)
	}
	return w.env.paint(grey, fit("q quit  c cancel  l output  e events  ↑↓ scroll", width))
}
