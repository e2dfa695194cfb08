package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// showVerified prints the counts of a check and what it found first.
func showVerified(env *Env, r control.VerifyReport) error {
	t, out := newTable("WHAT", "COUNT", "NOTE"), env.Stdout
	t.bare = true
	line := func(name string, n int64, note string) { t.add(name, name, strconv.FormatInt(n, 10), note) }
	line("executions", r.Executions, byStatus(r.ByStatus))
	line("events", r.Events, "")
	line("commands", r.Commands, noted(r.Purged, "ended and cleaned away"))
	line("references", r.References, noted(r.External, "to outside the database, not followed"))
	line("results", r.Results, "")
	line("children", r.Children, "")
	if r.Busy > 0 {
		line("busy", r.Busy, "written to throughout, not compared")
	}
	line("differences", r.Different, "")
	if err := t.print(env); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nchecked in %s\n", took(r.Seconds))
	if r.Different == 0 {
		fmt.Fprintln(out, "clean: the log is whole and everything beside it is what the log says")
		return nil
	}
	fmt.Fprint(out, "\nThe first difference:\n")
	showDifference(out, r.Differences[0])
	if slices.ContainsFunc(r.Differences, func(d control.Difference) bool { return d.Repairable }) {
		fmt.Fprintln(out, "\nWrite the rows anew from the log with: noetl db rebuild")
	}
	return nil
}

// differentExecutions are those that differences are in.
func differentExecutions(all []control.Difference) []string {
	var ids []string
	for _, d := range all {
		ids = append(ids, event.ID(d.ExecutionID).String())
	}
	return ids
}

func showDifference(out io.Writer, d control.Difference) {
	fmt.Fprintf(out, "  execution %s", event.ID(d.ExecutionID))
	if d.Seq > 0 {
		fmt.Fprintf(out, ", event %d", d.Seq)
	}
	fmt.Fprintf(out, ": %s\n", sayDifferent(d))
	if d.Where != "" {
		fmt.Fprintf(out, "  where  %s\n", d.Where)
	}
	fmt.Fprintf(out, "  want   %s\n  got    %s\n", d.Want, d.Got)
}

// sayDifferent says in words what kind of difference it is.
func sayDifferent(d control.Difference) string {
	words := map[string]string{
		control.DifferentGap:          "the log has a gap: restore it from a backup",
		control.DifferentForeign:      "the log holds an event of another execution",
		control.DifferentStart:        "the log does not begin with its start",
		control.DifferentTerminal:     "the execution ended twice",
		control.DifferentEventID:      "two events have the same id",
		control.DifferentContent:      "an event cannot be read: restore it from a backup",
		control.DifferentPlaybook:     "its playbook cannot be run any more",
		control.DifferentNoRow:        "the execution has no row",
		control.DifferentRow:          "the row of the execution is not what the log says",
		control.DifferentNoCommand:    "a command has no row",
		control.DifferentCommand:      "the row of a command is not what the log says",
		control.DifferentExtraCommand: "there is a row of a command that was never issued",
		control.DifferentStrayCommand: "there is a row of a command whose execution has no log",
		control.DifferentNoLog:        "there is a row of an execution that has no log",
		control.DifferentReference:    "a value the log refers to cannot be read",
		control.DifferentChild:        "an execution it waited for has no log",
		control.DifferentReplay:       "a replay of the log contradicts the rows",
	}
	if text, ok := words[d.What]; ok {
		return text
	}
	return d.What
}

// showRebuilt prints what was written, or would be.
func showRebuilt(out io.Writer, r control.RebuildReport) error {
	verb := "rewrote"
	if r.DryRun {
		verb = "would rewrite"
	}
	fmt.Fprintf(out, "%s the rows of %d of %d executions (%d commands) in %s\n", verb, r.Rebuilt, r.Executions, r.Commands, took(r.Seconds))
	if r.Busy > 0 {
		fmt.Fprintf(out, "%d were written to throughout and left alone; try again\n", r.Busy)
	}
	if len(r.Differences) > 0 {
		fmt.Fprint(out, "\nThe first difference:\n")
		showDifference(out, r.Differences[0])
	}
	if r.LeftTotal > 0 {
		fmt.Fprintf(out, "\n%d differences cannot be mended from the log. The first:\n", r.LeftTotal)
		showDifference(out, r.Left[0])
	}
	return nil
}

func byStatus(counts map[string]int64) string {
	var parts []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[status], status))
	}
	return strings.Join(parts, ", ")
}

func noted(n int64, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s", n, what)
}

func took(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
