package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/client"
	"github.com/noetl/noetl-go/internal/event"
)

type eventsCommand struct {
	serverFlags
	Execution event.ID `arg:"" help:"Execution id."`
	Follow    bool     `short:"f" help:"Keep printing as events happen, until the execution ends."`
	outputFlags
}

// Run prints the log in order.
func (c *eventsCommand) Run(ctx context.Context, env *Env) error {
	cl, err := c.client()
	if err != nil {
		return err
	}
	show := func(e client.Event) error { return c.show(env, e) }
	if c.Follow {
		err := cl.Stream(ctx, c.Execution, 0, show)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	}
	for after := int64(0); ; {
		events, err := cl.Events(ctx, c.Execution, after, 1000)
		if err != nil {
			return err
		}
		for _, e := range events {
			if err := show(e); err != nil {
				return err
			}
			after = e.Seq
		}
		if len(events) == 0 {
			return nil
		}
	}
}

func (c *eventsCommand) show(env *Env, e client.Event) error {
	if c.form() == "name" {
		_, err := fmt.Fprintln(env.Stdout, e.EventID)
		return err
	}
	if c.machine() {
		return c.one(env, eventView{
			Seq: e.Seq, EventID: e.EventID, Type: e.Type, Node: e.NodeName, Status: e.Status, At: e.CreatedAt,
			CommandID: e.CommandID, WorkerID: e.WorkerID, Context: e.Context, Result: e.Result, Meta: e.Meta, Error: e.Error,
		})
	}
	_, err := fmt.Fprintf(env.Stdout, "%5d  %s  %-18s %-20s %s %s\n", e.Seq,
		e.CreatedAt.Local().Format("15:04:05.000"), e.Type, e.NodeName, e.Status, oneLine(e.Error, 100))
	return err
}

// eventView is an event as one line of JSON.
type eventView struct {
	Seq       int64           `json:"seq"`
	EventID   event.ID        `json:"event_id"`
	Type      event.Type      `json:"event_type"`
	Node      string          `json:"node_name,omitempty"`
	Status    string          `json:"status"`
	At        time.Time       `json:"created_at"`
	CommandID string          `json:"command_id,omitempty"`
	WorkerID  string          `json:"worker_id,omitempty"`
	Context   json.RawMessage `json:"context,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Meta      json.RawMessage `json:"meta,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// one writes an event so that many of them can be read as a stream: one line of
// JSON, or one document of YAML, each.
func (c *eventsCommand) one(env *Env, v eventView) error {
	if c.form() == "yaml" {
		fmt.Fprintln(env.Stdout, "---")
		return printYAML(env, v)
	}
	return printLine(env, v)
}
