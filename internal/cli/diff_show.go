package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// show prints a difference for people.
func (d *difference) show(env *Env) error {
	fmt.Fprint(env.Stdout, d.text(env, ""))
	if len(d.Steps) == 0 {
		return nil
	}
	fmt.Fprintln(env.Stdout)
	t := newTable("STEP", "A", "B", "TIME A", "TIME B", "CHANGE")
	for _, s := range d.Steps {
		t.add(s.Step, s.Step, orText(s.StatusA, "-"), orText(s.StatusB, "-"), stepTime(s.StatusA, s.AMS), stepTime(s.StatusB, s.BMS), s.change())
	}
	return t.print(env)
}

func stepTime(status string, ms int64) string {
	if status == "" {
		return "-"
	}
	return seconds(time.Duration(ms) * time.Millisecond)
}

// change says how much longer the step took.
func (s stepTiming) change() string {
	if s.StatusA == "" || s.StatusB == "" {
		return "only in one"
	}
	by := time.Duration(s.BMS-s.AMS) * time.Millisecond
	if by >= 0 {
		return "+" + seconds(by)
	}
	return "-" + seconds(-by)
}

// text is everything but the table.
func (d *difference) text(env *Env, indent string) string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(indent + fmt.Sprintf(format, args...) + "\n") }
	for _, s := range []struct {
		name string
		side
	}{{"A", d.A}, {"B", d.B}} {
		line("%s  %s  %s version %d  %s  %s", s.name, s.ID, printable(s.Path), s.Version,
			env.paint(statusColour("STATUS", s.Status), s.Status), seconds(time.Duration(s.DurationMS)*time.Millisecond))
	}
	if d.A.Path != d.B.Path {
		line("different playbooks")
	} else if d.A.Version != d.B.Version {
		line("different versions: %d and %d", d.A.Version, d.B.Version)
	}
	if d.Same {
		line("the same inputs, the same way, the same results")
		return b.String()
	}
	list := func(head string, changed []change) {
		if len(changed) == 0 {
			return
		}
		line("\n%s%s", indent, env.paint(bold, head))
		for i, ch := range changed {
			if i == maxChanges {
				line("  … and %d more; --output json has all", len(changed)-i)
				break
			}
			line("  %s: %s → %s", printable(ch.Path), brief(ch.A), brief(ch.B))
		}
	}
	list("Changed inputs", d.Inputs)
	if d.Divergence != nil {
		line("\n%s%s", indent, env.paint(bold, "First divergence"))
		line("  %s", d.Divergence.text())
		for _, ch := range changes("", d.Divergence.A, d.Divergence.B) {
			if len(d.Divergence.A) > 0 && len(d.Divergence.B) > 0 {
				line("    %s: %s → %s", orText(printable(ch.Path), "value"), brief(ch.A), brief(ch.B))
			}
		}
		if d.Divergence.Child != nil {
			line("  in the executions it started:")
			b.WriteString(d.Divergence.Child.text(env, indent+"    "))
		}
	}
	list("Changed results", d.Results)
	return b.String()
}

// maxChanges is how many changes people are shown.
const maxChanges = 20

func (x *divergence) text() string {
	where := "step " + printable(place(x.Step, x.Index))
	if x.Run > 1 {
		where += fmt.Sprintf(", run %d", x.Run)
	}
	says := map[string]string{
		"reached": "began with something else", "input": "got another input", "outcome": "came out differently",
		"route": "led elsewhere", "end": "ended differently",
	}[x.What]
	seqs := fmt.Sprintf(" (event %d of A, %d of B)", x.SeqA, x.SeqB)
	switch {
	case x.SeqB == 0:
		says, seqs = "is only in A: "+x.What, fmt.Sprintf(" (event %d of A)", x.SeqA)
	case x.SeqA == 0:
		says, seqs = "is only in B: "+x.What, fmt.Sprintf(" (event %d of B)", x.SeqB)
	}
	return where + " " + says + seqs
}

// brief is a value in a few words.
func brief(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	return oneLine(printable(string(raw)), 80)
}
