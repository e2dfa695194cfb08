package pipeline

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/tool"
)

// dispatch begins the span of one try of a task, below that of the command;
// nil when nobody traces.
func (s *run) dispatch(ctx context.Context, t *task, attempt int, began time.Time) (context.Context, *obs.Active) {
	if s.opt.Tracer == nil {
		return ctx, nil
	}
	parent := obs.ParseTrace(s.cmd.Meta.Trace)
	if !parent.IsValid() {
		return ctx, nil // the execution is not part of a trace
	}
	meta := &s.cmd.Meta
	about := []obs.Attribute{
		obs.Text("execution_id", s.cmd.ExecutionID.String()), obs.Text("command_id", meta.CommandID), obs.Text("step", s.cmd.NodeName),
		obs.Text("tool_kind", t.Kind), obs.Text("worker", s.opt.WorkerID), obs.Number("attempt", meta.Attempt), obs.Number("try", attempt),
	}
	if t.Label != "" {
		about = append(about, obs.Text("task", t.Label))
	}
	if meta.IterationIndex != nil {
		about = append(about, obs.Number("loop_index", *meta.IterationIndex))
	}
	return s.opt.Tracer.Begin(ctx, "tool.dispatch."+t.Kind, parent, obs.Internal, began, about...)
}

// dispatched ends it. Result and error were relieved of secrets before.
func (s *run) dispatched(span *obs.Active, res *tool.Result, err *tool.Error) {
	if span == nil {
		return
	}
	failure := ""
	switch {
	case err != nil:
		failure = s.vault.hidden.String(err.Message)
		span.Set(obs.Text("status", "error"), obs.Text("error.type", string(err.Kind)), obs.Text("error.code", err.Code))
	case res != nil && res.Park != nil:
		span.Set(obs.Text("status", "parked"))
	default:
		span.Set(obs.Text("status", "ok"))
	}
	span.End(time.Now(), failure)
}

// trace is what an action passes on: its own span, or where nobody traces what
// the command carries.
func (s *run) trace(span *obs.Active) tool.Trace {
	at := span.Context()
	if !at.IsValid() {
		at = obs.ParseTrace(s.cmd.Meta.Trace)
	}
	if !at.IsValid() {
		return tool.Trace{}
	}
	return tool.Trace{Parent: obs.Traceparent(at), State: at.TraceState().String()}
}
