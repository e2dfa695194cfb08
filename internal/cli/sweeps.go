package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// stallFlags say what a server does about executions that do not get on.
type stallFlags struct {
	StallGrace string `help:"Silence after which an execution that waits for nothing counts as stuck; a duration, or seconds. At least 1h." default:"24h" env:"NOETL_NONCONVERGENCE_GRACE" placeholder:"DURATION"`
	StallSweep string `help:"What is done about stuck executions: enforce ends them, report only logs them, off leaves them." default:"enforce" env:"NOETL_NONCONVERGENCE_SWEEP" placeholder:"MODE"`
}

func (f stallFlags) options() (control.StallOptions, error) {
	o := control.StallOptions{Mode: f.StallSweep}
	if err := refuseBlank("NOETL_NONCONVERGENCE_GRACE", "NOETL_NONCONVERGENCE_SWEEP"); err != nil {
		return o, err
	}
	switch f.StallSweep {
	case control.StallEnforce, control.StallReport, control.StallOff:
	default:
		return o, invalidf("--stall-sweep %q: want enforce, report or off", f.StallSweep)
	}
	grace, err := time.ParseDuration(f.StallGrace)
	if seconds, bad := strconv.ParseInt(f.StallGrace, 10, 32); bad == nil {
		grace, err = time.Duration(seconds)*time.Second, nil
	}
	switch {
	case err != nil:
		return o, invalidf("--stall-grace %q: want a duration such as 24h, or a number of seconds", f.StallGrace)
	case grace < control.StallFloor:
		return o, invalidf("--stall-grace %s is too short: healthy executions can be silent for that long (at least %s)", f.StallGrace, control.StallFloor)
	}
	o.Grace = grace
	return o, nil
}

type sweepsCommand struct {
	serverFlags
	JSON bool `short:"j" help:"Print JSON."`
}

// Run prints what the sweeps of a server see and would do now.
func (c *sweepsCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	raw, err := cl.Sweeps(ctx)
	var r control.SweepReport
	if err := decoded(raw, err, &r); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(env, r)
	}
	return showSweeps(env.Stdout, r)
}

func showSweeps(out io.Writer, r control.SweepReport) error {
	fmt.Fprintf(out, "%s waiting for a worker, %s with a silent worker, %s silent for more than %s (%s)\n",
		plural(r.Counts.Pending, "command"), plural(r.Counts.Expired, "command"), plural(r.Counts.Stalled, "execution"),
		ago(r.GraceSeconds), r.Mode)
	if r.Counts.Truncated {
		fmt.Fprintln(out, "there may be more: only the oldest are shown")
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if len(r.Stalled) > 0 {
		fmt.Fprintln(w, "\nEXECUTION\tPATH\tSILENT\tVERDICT\tCAUSE")
		for _, x := range r.Stalled {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", event.ID(x.ExecutionID), x.Path, ago(x.IdleSeconds), x.Verdict, x.Cause)
		}
	}
	if len(r.Pending)+len(r.Expired) > 0 {
		fmt.Fprintln(w, "\nCOMMAND\tSTEP\tPOOL\tSINCE\tATTEMPT\tWORKER\tVERDICT")
		for _, c := range append(r.Pending, r.Expired...) {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d of %d\t%s\t%s\n",
				c.CommandID, c.Step, c.Pool, ago(c.AgeSeconds), c.Attempt, c.MaxAttempts, c.WorkerID, c.Verdict)
		}
	}
	return w.Flush()
}

func ago(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }
