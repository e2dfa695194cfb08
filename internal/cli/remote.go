package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type statusCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	outputFlags
}

// Run prints where an execution stands.
func (c *statusCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	st, err := cl.Status(ctx, c.Execution)
	if err != nil {
		return err
	}
	return c.object(env, st, st.ExecutionID.String(), func() error { return showStatus(env, st) })
}

func showStatus(env *Env, st client.Status) error {
	fmt.Fprintf(env.Stdout, "%s  %s  %s of %d done, %d running, %d failed", env.paint(statusColour("STATUS", st.Status), st.Status), printable(st.Path),
		plural(st.Progress.Completed, "step"), st.Progress.Total, st.Progress.Running, st.Progress.Failed)
	if st.CurrentStep != "" && !st.Final() {
		fmt.Fprintf(env.Stdout, ", at %s", st.CurrentStep)
	}
	fmt.Fprintln(env.Stdout)
	if st.Error != "" {
		fmt.Fprintln(env.Stdout, st.Error)
	}
	return nil
}

type cancelCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	Reason    string   `short:"r" help:"Why; kept in the log." placeholder:"TEXT"`
	Cascade   bool     `help:"Cancel its children too." default:"true" negatable:""`
	outputFlags
}

// Run cancels an execution.
func (c *cancelCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	a, err := cl.Cancel(ctx, c.Execution, client.CancelRequest{Reason: c.Reason, Alone: !c.Cascade})
	if err != nil {
		return err
	}
	return c.object(env, a, a.ExecutionID.String(), func() error {
		_, err := fmt.Fprintln(env.Stdout, a.Message)
		return err
	})
}

type cleanupCommand struct {
	serverFlags
	OlderThanMinutes float64 `help:"Minutes of silence after which an open execution that waits for nothing is cancelled." default:"5" placeholder:"N"`
	DryRun           bool    `help:"Only tell which they are."`
	outputFlags
}

// Run cancels executions in which nothing happens.
func (c *cleanupCommand) Run(ctx context.Context, env *Env) error {
	if c.OlderThanMinutes <= 0 {
		return invalidf("--older-than-minutes %g: want a number above 0", c.OlderThanMinutes)
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	a, err := cl.Cleanup(ctx, time.Duration(c.OlderThanMinutes*float64(time.Minute)), c.DryRun)
	if err != nil {
		return err
	}
	if c.form() == "name" {
		for _, id := range a.Executions {
			fmt.Fprintln(env.Stdout, id)
		}
		return nil
	}
	return c.object(env, a, "", func() error {
		fmt.Fprintln(env.Stdout, a.Message)
		for _, id := range a.Executions {
			fmt.Fprintln(env.Stdout, id)
		}
		return nil
	})
}
