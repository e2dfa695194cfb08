package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type logsCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	Step      string   `short:"s" help:"Only of this step." placeholder:"STEP"`
	Follow    bool     `short:"f" help:"Keep printing as tools print, until the execution ends."`
	Output    string   `short:"o" help:"text, or json for one object per piece." enum:"text,json,table" default:"text" placeholder:"FORM"`
	JSON      bool     `short:"j" help:"The same as --output json." hidden:""`
}

// Run prints what tools print.
func (c *logsCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	lines := &stepLines{out: env.Stdout, named: c.Step == "", open: map[event.ID]string{}}
	show := lines.add
	if c.Output == "json" || c.JSON {
		show = func(k client.LogChunk) error { return printLine(env, k) }
	}
	if !c.Follow {
		err = cl.Logs(ctx, c.Execution, c.Step, show)
	} else if err = cl.FollowLogs(ctx, c.Execution, c.Step, show); errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, lines.close())
}

// stepLines puts the pieces of several commands together to whole lines, each
// with its step before it.
type stepLines struct {
	out   io.Writer
	named bool
	open  map[event.ID]string // the unfinished line of each command
	steps map[event.ID]string
}

// openLine bounds an unfinished line that is held back.
const openLine = 64 << 10

func (l *stepLines) add(c client.LogChunk) error {
	if l.steps == nil {
		l.steps = map[event.ID]string{}
	}
	l.steps[c.EventID] = c.Step
	text := l.open[c.EventID]
	if c.Dropped > 0 {
		text += fmt.Sprintf("… %d bytes dropped …\n", c.Dropped)
	}
	text += c.Text
	cut := strings.LastIndexByte(text, '\n') + 1
	if c.End || len(text)-cut > openLine {
		cut = len(text)
	}
	if l.open[c.EventID] = text[cut:]; text[cut:] == "" {
		delete(l.open, c.EventID)
	}
	return l.print(c.Step, text[:cut])
}

func (l *stepLines) print(step, text string) error {
	for line := range strings.Lines(text) {
		if l.named {
			line = step + " | " + line
		}
		if !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		if _, err := io.WriteString(l.out, line); err != nil {
			return err
		}
	}
	return nil
}

// close prints the lines that were not finished.
func (l *stepLines) close() error {
	var errs []error
	for id, text := range l.open {
		errs = append(errs, l.print(l.steps[id], text))
	}
	return errors.Join(errs...)
}
