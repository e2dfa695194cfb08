package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

type explainCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	Step      string   `arg:"" optional:"" help:"Step; all of them when not given."`
	outputFlags
}

// Run prints how steps stand and why.
func (c *explainCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	x, err := cl.Explain(ctx, c.Execution, c.Step)
	if err != nil {
		return err
	}
	if c.machine() {
		return c.print(env, x)
	}
	fmt.Fprintf(env.Stdout, "%s  %s\n", env.paint(statusColour("STATUS", x.Status), x.Status), x.Path)
	if x.Error != "" {
		fmt.Fprintln(env.Stdout, x.Error)
	}
	width, failed := 0, map[string]bool{}
	for _, s := range x.Steps {
		width, failed[s.Step] = max(width, len(s.Step)), s.Status == event.StatusFailed
	}
	for _, s := range x.Steps {
		explainStep(env.Stdout, s, width, failed)
	}
	return nil
}

func explainStep(w io.Writer, s event.Explanation, width int, failed map[string]bool) {
	run := ""
	if s.Run > 1 {
		run = fmt.Sprintf(" (run %d)", s.Run)
	}
	fmt.Fprintf(w, "\n%-*s  %s%s: %s\n", width, s.Step, s.Status, run, s.Reason)
	line := func(format string, args ...any) { fmt.Fprintf(w, "  "+format+"\n", args...) }
	if s.Error != "" {
		line("error: %s", s.Error)
	}
	if from := slices.DeleteFunc(slices.Clone(s.From), func(n string) bool { return n == "" }); len(from) > 0 {
		line("came from %s", strings.Join(from, ", "))
	}
	for _, wait := range s.Waits {
		if wait.For == "running" {
			line("%s%s", wait.What, moments(wait))
			continue
		}
		line("waits for %s: %s%s", wait.For, wait.What, moments(wait))
		if wait.Message != "" {
			line("  %s", oneLine(wait.Message, 200))
		}
	}
	for _, a := range s.Led {
		line("%s", arcLine(a, failed[a.From]))
	}
	for _, a := range s.Arcs {
		line("%s", arcLine(a, failed[a.From]))
	}
}

func moments(w event.Wait) string {
	var parts []string
	if w.Index != nil {
		parts = append(parts, fmt.Sprintf("iteration %d", *w.Index))
	}
	if !w.Since.IsZero() {
		parts = append(parts, "since "+w.Since.Local().Format(time.TimeOnly))
	}
	if !w.Until.IsZero() {
		parts = append(parts, "until "+w.Until.Local().Format(time.TimeOnly))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// arcLine is an arc with its condition, the values it read and its outcome.
func arcLine(a event.RoutedArc, failed bool) string {
	text := fmt.Sprintf("%s → %s", a.From, a.To)
	switch {
	case a.Fired:
		text += " fired"
	case a.When != "":
		text += " did not fire"
	case failed:
		return text + " did not fire: " + a.From + " failed, and the arc does not ask for that"
	default:
		return text + " was not asked: an arc before it fired"
	}
	if a.When != "" {
		text += ": " + a.When
	}
	for _, k := range slices.Sorted(maps.Keys(a.Read)) {
		text += fmt.Sprintf(", %s = %s", k, a.Read[k])
	}
	if a.Error != "" {
		text += " (" + a.Error + ")"
	}
	return text
}
