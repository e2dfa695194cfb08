package client

import (
	"context"
	"fmt"

	"github.com/noetl/noetl-go/internal/event"
)

// Report makes events durable; the whole report is stored or none of it. It
// may be repeated when its events carry ids. With Eager set the answer holds
// further commands of the execution, already claimed for the worker.
func (c *Client) Report(ctx context.Context, r Report) (ReportAnswer, error) {
	var a ReportAnswer
	err := c.post(ctx, "/api/events/batch", r, &a)
	return a, err
}

// Claim asks for the right to run a command. Conflict means that somebody else
// has it or that it is over (the reason says which), NotFound that it never
// was, Unavailable that the claim should be tried again.
func (c *Client) Claim(ctx context.Context, r ClaimRequest) (*Command, error) {
	var cmd Command
	if err := c.post(ctx, commandPath(r.EventID, "claim"), r, &cmd); err != nil {
		return nil, err
	}
	return &cmd, nil
}

// Claimed is how the claim of one command among several went.
type Claimed struct {
	EventID ID       `json:"event_id"`
	Status  string   `json:"status"` // ok, conflict, not_found or retry
	Command *Command `json:"command,omitempty"`
	Message string   `json:"error,omitempty"`
	Reason  string   `json:"reason,omitempty"`
}

// ClaimAll asks for several commands, at most 256, for one worker. Each is
// decided on its own, and answers come in the order of the requests.
func (c *Client) ClaimAll(ctx context.Context, worker string, heartbeats bool, commands []ClaimRequest) ([]Claimed, error) {
	type item struct {
		EventID     ID `json:"event_id"`
		ExecutionID ID `json:"execution_id,omitempty"`
	}
	in := struct {
		WorkerID   string `json:"worker_id"`
		Heartbeats bool   `json:"heartbeats,omitempty"`
		Commands   []item `json:"commands"`
	}{worker, heartbeats, make([]item, len(commands))}
	for i, r := range commands {
		in.Commands[i] = item{r.EventID, r.ExecutionID}
	}
	var a struct {
		Results []Claimed `json:"results"`
	}
	if err := c.post(ctx, "/api/commands/claim", in, &a); err != nil {
		return nil, err
	}
	if len(a.Results) != len(commands) {
		return nil, event.Errorf(event.Internal, "the server answered %d of %d claims", len(a.Results), len(commands))
	}
	return a.Results, nil
}

// Heartbeat renews the leases of claimed commands; answers come in the order
// of beats. An answer without a lease means that the claim was lost: stop, and
// report nothing more about that attempt.
func (c *Client) Heartbeat(ctx context.Context, beats []Heartbeat) ([]HeartbeatAnswer, error) {
	if len(beats) == 0 {
		return nil, nil
	}
	in := struct {
		WorkerID string      `json:"worker_id"`
		Commands []Heartbeat `json:"commands"`
	}{beats[0].WorkerID, beats}
	var a struct {
		Answers []HeartbeatAnswer `json:"answers"`
	}
	if err := c.post(ctx, "/api/commands/heartbeat", in, &a); err != nil {
		return nil, err
	}
	if len(a.Answers) != len(beats) {
		return nil, event.Errorf(event.Internal, "the server answered %d of %d heartbeats", len(a.Answers), len(beats))
	}
	return a.Answers, nil
}

// Release gives a claimed command back, so that another worker may take it at
// once.
func (c *Client) Release(ctx context.Context, h Heartbeat) error {
	return c.post(ctx, commandPath(h.EventID, "release"), h, nil)
}

func commandPath(id ID, verb string) string { return fmt.Sprintf("/api/commands/%d/%s", id, verb) }
