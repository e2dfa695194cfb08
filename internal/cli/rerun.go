package cli

import (
	"context"
	"encoding/json"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type rerunCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution to run again."`
	FromStep  string   `help:"Run again from this step on; what ended before it is reused." placeholder:"STEP"`
	payloadFlags
	PlaybookVersion string `name:"version" short:"V" help:"Version, or latest; the one that ran when not given." placeholder:"N"`
	followFlags
}

// Run starts the new execution and, with --wait, follows it.
func (c *rerunCommand) Run(ctx context.Context, env *Env) error {
	payload, err := c.value()
	if err != nil {
		return err
	}
	cl, err := c.client()
	if err != nil {
		return err
	}
	answer, err := cl.Rerun(ctx, c.Execution, client.RerunRequest{Payload: payload, FromStep: c.FromStep, Version: c.PlaybookVersion})
	if err != nil {
		return err
	}
	return c.started(ctx, env, cl, answer, c.Execution.String())
}

// reused shows a step whose outcome was taken over from another execution. Of
// the events that carry a large result the first one tells enough.
func (p *progress) reused(e event.Event) {
	var d struct {
		Context struct {
			Status    string         `json:"status"`
			Execution event.StringID `json:"execution_id"`
		} `json:"context"`
	}
	_ = json.Unmarshal(e.Result, &d)
	if d.Context.Status == "" {
		return
	}
	p.line(e.NodeName).began = e.CreatedAt
	p.ended(e.NodeName, d.Context.Status, "reused from execution "+event.ID(d.Context.Execution).String(), e.CreatedAt)
}
