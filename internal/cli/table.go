package cli

import (
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/noetl/noetl-go/internal/event"
)

// table is rows under headings. The columns of a command are part of its
// interface: new ones go to the right.
type table struct {
	head  []string
	rows  [][]string
	names []string // of the rows, for --output name
	bare  bool     // without headings
	empty string   // what is said on a terminal when there are no rows
}

func newTable(head ...string) *table { return &table{head: head} }

// add appends a row; its name is what other commands call the thing.
func (t *table) add(name string, cells ...string) {
	t.names = append(t.names, name)
	for i, c := range cells {
		cells[i] = printable(c)
	}
	t.rows = append(t.rows, cells)
}

// print aligns the columns by what a terminal shows of them.
func (t *table) print(env *Env) error {
	if len(t.rows) == 0 && t.empty != "" {
		_, err := io.WriteString(env.Stdout, t.empty+"\n")
		return err
	}
	var b strings.Builder
	rows := t.rows
	if !t.bare {
		rows = append([][]string{t.head}, rows...)
	}
	widths := make([]int, len(t.head))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], shownWidth(c))
		}
	}
	for n, row := range rows {
		var line strings.Builder
		for i, c := range row {
			text := c
			if n > 0 || t.bare {
				text = env.paint(statusColour(t.head[i], c), c)
			}
			line.WriteString(text)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-shownWidth(c)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(env.Stdout, b.String())
	return err
}

// shownWidth counts the cells of a terminal that a text takes.
func shownWidth(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r == 0x7f || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	}
	for _, w := range wide {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

// wide are the ranges of characters that take two cells: East Asian scripts and
// pictures.
var wide = [][2]rune{
	{0x1100, 0x115f},
	{0x2e80, 0x303e},
	{0x3041, 0x4dbf},
	{0x4e00, 0xa4cf},
	{0xac00, 0xd7a3},
	{0xf900, 0xfaff},
	{0xfe30, 0xfe6f},
	{0xff00, 0xff60},
	{0xffe0, 0xffe6},
	{0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff},
	{0x1f900, 0x1f9ff},
	{0x20000, 0x3fffd},
}

// fit cuts a text to a number of cells and shows that it did.
func fit(s string, cells int) string {
	if shownWidth(s) <= cells {
		return s
	}
	if cells < 1 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n+runeWidth(r) > cells-1 {
			return s[:i] + "…"
		}
		n += runeWidth(r)
	}
	return s
}

// printable takes out what would move the cursor, change colours or break a
// row: the text of tools and playbooks is not ours.
func printable(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < 0x20 || r >= 0x7f && r < 0xa0:
			return -1
		}
		return r
	}
	return strings.Map(clean, s)
}

// statusColour is the colour of a cell that tells how something stands.
func statusColour(column, text string) string {
	if column != "STATUS" {
		return ""
	}
	switch strings.ToUpper(text) {
	case event.StatusCompleted, "READY", "OK", "ACTIVE":
		return green
	case event.StatusFailed, "OFFLINE", "ERROR":
		return red
	case event.StatusRunning, "STARTED":
		return cyan
	case event.StatusSkipped, event.StatusCancelled:
		return grey
	}
	return ""
}

// moment is a point in time: how long ago on a terminal, exactly elsewhere.
func (e *Env) moment(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case !e.Terminal:
		return t.UTC().Format(time.RFC3339)
	}
	return ago(time.Since(t))
}

func ago(d time.Duration) string {
	if d < 0 {
		return "in " + coarse(-d)
	}
	return coarse(d) + " ago"
}

// coarse is a span in its largest unit.
func coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return d.Truncate(time.Minute).String()[:len(d.Truncate(time.Minute).String())-2]
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Truncate(time.Hour).String(), "0m0s")
	}
	return plural(int(d/(24*time.Hour)), "day")
}

// seconds is a span for people, as exact as its size deserves.
func seconds(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
