package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/control"
)

type retentionCommand struct {
	Show retentionShowCommand `cmd:"" help:"Show how long a server keeps executions, and when it looks next."`
	Plan retentionPlanCommand `cmd:"" help:"Tell what would be removed now, without removing it."`
	Run  retentionRunCommand  `cmd:"" help:"Remove executions whose time is over now."`
}

type retentionShowCommand struct {
	serverFlags
	outputFlags
}

// Run prints the policy of a server.
func (c *retentionShowCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.Connection.client("", client.WithTimeout(proofTime))
	if err != nil {
		return err
	}
	raw, err := cl.Retention(ctx)
	var s control.RetentionState
	if err := decoded(raw, err, &s); err != nil {
		return err
	}
	return c.report(env, s, s.Rules, func() error { return showPolicy(env.Stdout, s) })
}

func showPolicy(out io.Writer, s control.RetentionState) error {
	if s.Policy == "" {
		_, err := fmt.Fprintln(out, "executions are kept for ever")
		return err
	}
	for _, rule := range s.Rules {
		fmt.Fprintln(out, rule)
	}
	if s.NextRun != nil {
		fmt.Fprintf(out, "next look at %s\n", s.NextRun.Format(time.RFC3339))
	}
	if s.Last != nil {
		fmt.Fprintf(out, "last time %s removed\n", plural(s.Last.Removed, "execution"))
	}
	showRetention(out, s.Pending)
	return nil
}

type retentionPlanCommand struct {
	serverFlags
	outputFlags
	Limit int `help:"Executions at most." placeholder:"N"`
}

// Run prints what would be removed.
func (c *retentionPlanCommand) Run(ctx context.Context, env *Env) error {
	return runRetention(ctx, env, c.serverFlags, c.outputFlags, client.RetentionRequest{DryRun: true, Limit: c.Limit})
}

type retentionRunCommand struct {
	serverFlags
	outputFlags
	Limit  int  `help:"Executions at most." placeholder:"N"`
	DryRun bool `help:"Only tell what would be removed."`
}

// Run removes.
func (c *retentionRunCommand) Run(ctx context.Context, env *Env) error {
	return runRetention(ctx, env, c.serverFlags, c.outputFlags, client.RetentionRequest{DryRun: c.DryRun, Limit: c.Limit})
}

func runRetention(ctx context.Context, env *Env, at serverFlags, form outputFlags, r client.RetentionRequest) error {
	if r.Limit < 0 {
		return invalidf("--limit %d: want a number above 0", r.Limit)
	}
	cl, err := at.Connection.client("", client.WithTimeout(proofTime))
	if err != nil {
		return err
	}
	raw, err := cl.RunRetention(ctx, r)
	var report control.RetentionReport
	if err := decoded(raw, err, &report); err != nil {
		return err
	}
	return form.report(env, report, slices.Sorted(maps.Keys(report.Rules)), func() error {
		showRetention(env.Stdout, report)
		return nil
	})
}

func showRetention(out io.Writer, r control.RetentionReport) {
	if r.Policy == "" {
		fmt.Fprintln(out, "executions are kept for ever: set NOETL_RETENTION on the server")
		return
	}
	word := "removed"
	if r.DryRun {
		word = "would be removed"
	}
	fmt.Fprintf(out, "%s %s, %d looked at", plural(r.Removed, "execution"), word, r.Looked)
	if r.Partitions > 0 {
		fmt.Fprintf(out, ", %s of the log dropped", plural(r.Partitions, "partition"))
	}
	if r.Truncated {
		fmt.Fprint(out, "; there may be more")
	}
	fmt.Fprintln(out)
	for _, rule := range slices.Sorted(maps.Keys(r.Rules)) {
		fmt.Fprintf(out, "  %d by %s\n", r.Rules[rule], rule)
	}
	for _, why := range slices.Sorted(maps.Keys(r.Kept)) {
		fmt.Fprintf(out, "  %d kept: %s\n", r.Kept[why], keptWords(why))
	}
	if r.Strays > 0 {
		fmt.Fprintf(out, "  %d lie outside of the partitions made for their time\n", r.Strays)
	}
}

// keptWords says what keeps an execution whose time is over.
func keptWords(why string) string {
	words := map[string]string{
		"changed": "changed meanwhile", "parent_kept": "the execution that started them is kept", "child_open": "what they started goes on",
		"held": "others are being started from them", "used_elsewhere": "others use their values", "permanent": "they hold values that are kept for ever",
		"value_left": "a value of them could not be removed", "unpublished": "their events wait to be published", "newest": "the newest of their path",
	}
	if text := words[why]; text != "" {
		return text
	}
	return why
}
