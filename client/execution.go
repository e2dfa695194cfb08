package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Execution is the summary of a run.
type Execution struct {
	ExecutionID       ID        `json:"execution_id"`
	CatalogID         ID        `json:"catalog_id"`
	ParentExecutionID ID        `json:"parent_execution_id"`
	Path              string    `json:"path"`
	Version           int       `json:"version"`
	Pool              string    `json:"execution_pool"`
	Status            string    `json:"status"`
	StartedAt         time.Time `json:"started_at"`
	CompletedAt       time.Time `json:"completed_at"` // zero while running
	DurationSeconds   float64   `json:"duration_seconds"`
	Progress          int       `json:"progress"` // percent
	EventCount        int64     `json:"event_count"`
	CurrentStep       string    `json:"current_step"`
	Error             string    `json:"error"`
}

// ExecutionFilter selects executions; zero fields do not restrict.
//
// Before asks for what follows a page: the id of its last row. Unlike Offset it
// does not shift when executions start meanwhile.
type ExecutionFilter struct {
	Status        string
	Path          string // case-insensitive part
	PathPrefix    string
	CatalogID     ID
	ParentID      ID
	Pool          string
	StartedAfter  time.Time // inclusive
	StartedBefore time.Time // exclusive
	Before        ID
	Limit         int // 50 when 0, at most 100
	Offset        int
}

func (f ExecutionFilter) query() string {
	q := url.Values{}
	set := func(name, v string) {
		if v != "" && v != "0" {
			q.Set(name, v)
		}
	}
	set("status", f.Status)
	set("path", f.Path)
	set("path_prefix", f.PathPrefix)
	set("pool", f.Pool)
	for name, t := range map[string]time.Time{"started_after": f.StartedAfter, "started_before": f.StartedBefore} {
		if !t.IsZero() {
			q.Set(name, t.UTC().Format(time.RFC3339Nano))
		}
	}
	set("before", f.Before.String())
	set("catalog_id", f.CatalogID.String())
	set("parent_execution_id", f.ParentID.String())
	set("limit", strconv.Itoa(f.Limit))
	set("offset", strconv.Itoa(f.Offset))
	return q.Encode()
}

// Executions lists executions, newest first.
func (c *Client) Executions(ctx context.Context, f ExecutionFilter) ([]Execution, error) {
	var rows []Execution
	err := c.get(ctx, "/api/executions?"+f.query(), &rows)
	return rows, err
}

// Step is what came out of one step.
type Step struct {
	Status string          `json:"status"`
	Runs   int             `json:"runs"`
	Result json.RawMessage `json:"result"`
	Ref    string          `json:"result_ref,omitempty"` // where the whole is kept when Result is only a summary
	Error  string          `json:"error"`
	Reused ID              `json:"reused_from,omitempty"` // the execution whose outcome this is; 0 for a run of its own
}

// Detail is everything about one execution; Events is the end of its log,
// oldest first.
type Detail struct {
	Execution
	Workload json.RawMessage
	Steps    map[string]Step
	Events   []Event
}

// Execution returns the details of an execution, NotFound when there is none.
func (c *Client) Execution(ctx context.Context, id ID) (Detail, error) {
	var a struct {
		Execution
		Workload json.RawMessage `json:"workload"`
		Steps    map[string]Step `json:"steps"`
		Events   []wireEvent     `json:"events"`
	}
	if err := c.get(ctx, executionPath(id, ""), &a); err != nil {
		return Detail{}, err
	}
	log := slices.DeleteFunc(a.Events, func(e wireEvent) bool { return e.Derived })
	return Detail{Execution: a.Execution, Workload: present(a.Workload), Steps: a.Steps, Events: events(log)}, nil
}

// Progress counts the steps of an execution.
type Progress struct {
	Total     int `json:"total_steps"`
	Completed int `json:"completed_steps"`
	Running   int `json:"running_steps"`
	Failed    int `json:"failed_steps"`
}

// Status is how far an execution is.
type Status struct {
	ExecutionID     ID        `json:"execution_id"`
	Path            string    `json:"path"`
	Status          string    `json:"status"`
	CurrentStep     string    `json:"current_step"`
	Progress        Progress  `json:"progress"`
	CompletedSteps  []string  `json:"completed_steps"`
	StartTime       time.Time `json:"start_time"`
	EndTime         time.Time `json:"end_time"`
	DurationSeconds float64   `json:"duration_seconds"`
	Error           string    `json:"error"`
	LastSeq         int64     `json:"last_seq"`
}

// Final tells whether the execution has ended.
func (s Status) Final() bool { return event.IsFinal(s.Status) }

// Status asks how far an execution is.
func (c *Client) Status(ctx context.Context, id ID) (Status, error) {
	var st Status
	err := c.get(ctx, executionPath(id, "/status"), &st)
	return st, err
}

// Events reads the log of an execution: events with a sequence above after, in
// order, at most limit (the server's maximum of 1000 when 0).
func (c *Client) Events(ctx context.Context, id ID, after int64, limit int) ([]Event, error) {
	path := executionPath(id, "/events") + "?after=" + strconv.FormatInt(after, 10)
	if limit > 0 {
		path += "&limit=" + strconv.Itoa(limit)
	}
	var a struct {
		Events []wireEvent `json:"events"`
	}
	err := c.get(ctx, path, &a)
	return events(a.Events), err
}

// CancelRequest says why an execution is cancelled and by whom. Its children
// are cancelled too unless Alone is set.
type CancelRequest struct {
	Reason string
	By     string
	Alone  bool
}

// CancelAnswer names the executions that were cancelled.
type CancelAnswer struct {
	ExecutionID ID     `json:"execution_id"`
	Status      string `json:"status"`
	Message     string `json:"message"`
	Cancelled   []ID   `json:"cancelled_executions"`
}

// Cancel stops an execution. The error is Invalid when it has already ended.
func (c *Client) Cancel(ctx context.Context, id ID, r CancelRequest) (CancelAnswer, error) {
	in := struct {
		Reason  string `json:"reason,omitempty"`
		By      string `json:"cancelled_by,omitempty"`
		Cascade bool   `json:"cascade"`
	}{r.Reason, r.By, !r.Alone}
	var a CancelAnswer
	err := c.post(ctx, executionPath(id, "/cancel"), in, &a)
	return a, err
}

// FinalizeAnswer tells how an execution that was ended by hand stands.
type FinalizeAnswer struct {
	ExecutionID ID     `json:"execution_id"`
	Status      string `json:"status"`
	Outcome     string `json:"outcome"` // finalized, or already_completed
	Message     string `json:"message"`
}

// Finalize ends an execution by hand, as Completed or Failed; text says why it
// failed. One that has ended stays as it is.
func (c *Client) Finalize(ctx context.Context, id ID, status, text string) (FinalizeAnswer, error) {
	in := map[string]string{"status": status, "error": text}
	var a FinalizeAnswer
	err := c.post(ctx, executionPath(id, "/finalize"), in, &a)
	return a, err
}

// CleanupAnswer lists the executions that were cancelled, or would be.
type CleanupAnswer struct {
	Cancelled  int    `json:"cancelled_count"`
	Executions []ID   `json:"execution_ids"`
	Message    string `json:"message"`
}

// Cleanup cancels open executions in which nothing has happened for the given
// time and nothing accounts for that. A dry run only finds them.
func (c *Client) Cleanup(ctx context.Context, silence time.Duration, dryRun bool) (CleanupAnswer, error) {
	in := map[string]any{"older_than_minutes": silence.Minutes(), "dry_run": dryRun}
	var a CleanupAnswer
	err := c.post(ctx, "/api/executions/cleanup", in, &a)
	return a, err
}

func executionPath(id ID, rest string) string { return fmt.Sprintf("/api/executions/%d%s", id, rest) }

// Explained says how the steps of an execution stand and why.
type Explained struct {
	ExecutionID event.StringID `json:"execution_id"`
	Path        string         `json:"path"`
	Status      string         `json:"status"`
	Error       string         `json:"error,omitempty"`
	Steps       []Explanation  `json:"steps"`
}

// Explain asks how a step stands and why, or all of them when step is "".
func (c *Client) Explain(ctx context.Context, id ID, step string) (Explained, error) {
	path := "/api/executions/" + id.String() + "/explain"
	if step != "" {
		path += "?" + url.Values{"step": {step}}.Encode()
	}
	var out Explained
	return out, c.get(ctx, path, &out)
}
