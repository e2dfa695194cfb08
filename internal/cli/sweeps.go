package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
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
	outputFlags
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
	return c.report(env, r, sweptExecutions(r), func() error { return c.show(env, r) })
}

// sweptExecutions are those the sweeps have something to do with.
func sweptExecutions(r control.SweepReport) []string {
	var ids []string
	for _, x := range r.Stalled {
		ids = append(ids, event.ID(x.ExecutionID).String())
	}
	for _, x := range slices.Concat(r.Pending, r.Expired) {
		ids = append(ids, event.ID(x.ExecutionID).String())
	}
	return ids
}

func (c *sweepsCommand) show(env *Env, r control.SweepReport) error {
	out := env.Stdout
	fmt.Fprintf(out, "%s waiting for a worker, %s with a silent worker, %s silent for more than %s (%s)\n",
		plural(r.Counts.Pending, "command"), plural(r.Counts.Expired, "command"), plural(r.Counts.Stalled, "execution"),
		inSeconds(r.GraceSeconds), r.Mode)
	if r.Counts.Truncated {
		fmt.Fprintln(out, "there may be more: only the oldest are shown")
	}
	if len(r.Stalled) > 0 {
		t := newTable("EXECUTION", "PATH", "SILENT", "VERDICT", "CAUSE")
		for _, x := range r.Stalled {
			id := event.ID(x.ExecutionID).String()
			t.add(id, id, x.Path, inSeconds(x.IdleSeconds).String(), x.Verdict, x.Cause)
		}
		fmt.Fprintln(out)
		if err := c.list(env, nil, t); err != nil {
			return err
		}
	}
	if len(r.Pending)+len(r.Expired) == 0 {
		return nil
	}
	t := newTable("COMMAND", "STEP", "POOL", "SINCE", "ATTEMPT", "WORKER", "VERDICT")
	for _, x := range slices.Concat(r.Pending, r.Expired) {
		t.add(x.CommandID, x.CommandID, x.Step, x.Pool, inSeconds(x.AgeSeconds).String(), fmt.Sprintf("%d of %d", x.Attempt, x.MaxAttempts), orText(x.WorkerID, "-"), x.Verdict)
	}
	fmt.Fprintln(out)
	return c.list(env, nil, t)
}

func inSeconds(seconds int64) time.Duration { return time.Duration(seconds) * time.Second }
