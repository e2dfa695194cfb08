package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

// followFlags say how far a command goes along with the execution it started.
type followFlags struct {
	Wait    bool          `help:"Follow the execution to its end; the exit code says how it went."`
	Timeout time.Duration `help:"With --wait: stop waiting after this long; exit code 3." placeholder:"DURATION"`
	outputFlags
}

// started tells of an execution and follows it, if that was asked for. Of says
// what it is a rerun of; "" when it is none.
func (f followFlags) started(ctx context.Context, env *Env, cl *client.Client, a client.ExecuteAnswer, of string) error {
	for _, w := range a.Warnings {
		fmt.Fprintln(env.Stderr, "warning:", w)
	}
	switch {
	case f.Wait:
		return f.follow(ctx, env, cl, a.ExecutionID)
	case f.machine():
		return f.print(env, struct {
			ExecutionID string `json:"execution_id"`
			Status      string `json:"status"`
			RerunOf     string `json:"rerun_of,omitempty"`
		}{a.ExecutionID.String(), a.Status, of})
	case f.form() == "name":
		fmt.Fprintln(env.Stdout, a.ExecutionID)
	case of != "":
		fmt.Fprintf(env.Stdout, "started execution %s, a rerun of %s\n", a.ExecutionID, of)
	default:
		fmt.Fprintf(env.Stdout, "started execution %s\n", a.ExecutionID)
	}
	return nil
}

// follow streams the log until the end. Whoever stops waiting leaves the
// execution running.
func (f followFlags) follow(ctx context.Context, env *Env, cl *client.Client, id event.ID) error {
	waitCtx, cancel := ctx, context.CancelFunc(func() {})
	if f.Timeout > 0 {
		waitCtx, cancel = context.WithTimeout(ctx, f.Timeout)
	}
	defer cancel()
	p := newProgress(env, f.form() != "table")
	err := cl.Stream(waitCtx, id, 0, func(e client.Event) error { p.apply(e); return nil })
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	readCtx, done := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer done()
	detail, readErr := cl.Execution(readCtx, id)
	if readErr != nil {
		return readErr
	}
	o := outcome{
		ExecutionID: event.StringID(id), Status: detail.Status, Error: detail.Error,
		DurationMS: durationOf(detail.StartedAt, detail.CompletedAt), Steps: make(map[string]stepOutcome, len(detail.Steps)),
	}
	for name, s := range detail.Steps {
		o.Steps[name] = stepOutcome{Status: s.Status, Runs: s.Runs, Result: s.Result, Ref: s.Ref, Error: s.Error}
	}
	if !event.IsFinal(detail.Status) {
		o.DurationMS = durationOf(detail.StartedAt, time.Now())
		o.Status, o.Error = timedOut, "the execution goes on; watch it with: noetl watch "+id.String()
		if ctx.Err() != nil {
			o.Status = interrupted
		}
	}
	return o.finish(env, f.outputFlags, p)
}
