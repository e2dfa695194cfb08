package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/redact"
)

// The spans of an execution are made from its log by whoever appends the event
// that ends the thing they stand for, so that they need no memory in any
// process. Their ids follow from those of the execution and its commands.

// executionTrace is the trace context of what hangs below an execution.
func (p *Plane) executionTrace(trace json.RawMessage, id event.ID) json.RawMessage {
	if p.o.Tracer == nil || len(trace) == 0 {
		return trace
	}
	return obs.Retrace(trace, obs.Derived(obs.ParseTrace(trace), uint64(id)))
}

// commandTrace is the trace context of what hangs below a command.
func (p *Plane) commandTrace(trace json.RawMessage, issued event.ID) json.RawMessage {
	return p.executionTrace(trace, issued)
}

// requested makes the span of a request for an execution; what start begins
// hangs below it.
func (p *Plane) requested(ctx context.Context, began time.Time, trace json.RawMessage, start func(trace json.RawMessage) (ExecuteAnswer, error)) (ExecuteAnswer, error) {
	if p.o.Tracer == nil {
		return start(trace)
	}
	_, span := p.o.Tracer.Begin(ctx, "playbook.execute", obs.ParseTrace(trace), obs.Serving, began)
	answer, err := start(obs.Retrace(trace, span.Context()))
	span.Set(obs.Text("status", answer.Status), obs.Number("commands", answer.CommandsGenerated))
	if answer.ExecutionID != 0 {
		span.Set(obs.Text("execution_id", answer.ExecutionID.String()))
	}
	span.End(p.o.Clock(), spanError(err))
	return answer, err
}

// tracing is the time when tracing is on; nothing else needs it.
func (p *Plane) tracing() (now time.Time) {
	if p.o.Tracer != nil {
		now = p.o.Clock()
	}
	return now
}

// shapes takes out of messages what looks like a secret.
var shapes redact.Secrets

// spanError is what a span says of a failure.
func spanError(err error) string {
	if err == nil {
		return ""
	}
	return shapes.String(err.Error())
}

// attempt is one worker's hold of a command that came to nothing.
type attempt struct {
	command       *engine.Command
	worker, cause string
	number        int
	from          time.Time
}

// forfeit notes that the holder of a command loses it.
func (ps *pass) forfeit(c *engine.Command, cause string) {
	if ps.p.o.Tracer != nil && held(c.Status) {
		ps.forfeited = append(ps.forfeited, attempt{command: c, worker: c.Worker, cause: cause, number: c.Attempt, from: c.ClaimedAt})
	}
}

// record makes the spans of what ended with this pass.
func (ps *pass) record() {
	t := ps.p.o.Tracer
	if t == nil {
		return
	}
	root := obs.ParseTrace(ps.state.Trace())
	if !root.IsValid() {
		return
	}
	for _, a := range ps.forfeited {
		t.Record(obs.Span{
			Name: "command.attempt", Parent: obs.Derived(root, uint64(a.command.EventID)), Kind: obs.Internal, Start: a.from, End: ps.env.Now,
			Attributes: append(ps.about(a.command), obs.Number("attempt", a.number), obs.Text("worker", a.worker), obs.Text("status", "lost")),
			Error:      "the worker did not finish: " + a.cause,
		})
	}
	appended, over := make(map[event.ID]struct{}, len(ps.events)), false
	for i := range ps.events {
		appended[ps.events[i].EventID] = struct{}{}
		over = over || ps.events[i].Type.IsTerminal()
	}
	execution := obs.Derived(root, uint64(ps.id))
	recorded := map[event.ID]bool{} // changed may name a command twice
	for _, c := range ps.changed {
		if _, ended := appended[c.EndedBy]; ended && event.IsFinal(c.Status) && !recorded[c.EventID] {
			recorded[c.EventID] = true
			t.Record(ps.commandSpan(c, execution))
		}
	}
	if over {
		t.Record(ps.executionSpan(root))
	}
}

// about is what all spans of a command say.
func (ps *pass) about(c *engine.Command) []obs.Attribute {
	a := []obs.Attribute{
		obs.Text("execution_id", ps.id.String()), obs.Text("command_id", c.ID), obs.Text("step", c.Step),
		obs.Text("tool_kind", c.Kind), obs.Text("pool", poolOf(ps.state.Pool())),
	}
	if c.Index >= 0 {
		a = append(a, obs.Number("loop_index", c.Index))
	}
	return a
}

func (ps *pass) commandSpan(c *engine.Command, execution obs.SpanContext) obs.Span {
	s := obs.Span{
		Name: "command " + c.Step, Parent: execution, ID: uint64(c.EventID), Kind: obs.Internal, Start: c.CreatedAt, End: c.EndedAt,
		Attributes: append(ps.about(c), obs.Text("status", c.Status), obs.Number("attempt", c.Attempt), obs.Text("worker", c.Worker)),
		Error:      shapes.String(c.Error),
	}
	if s.Error == "" && c.Status == event.StatusFailed {
		s.Error = "the command failed"
	}
	if !c.ClaimedAt.IsZero() {
		s.Marks = []obs.Mark{{Name: "claimed", At: c.ClaimedAt, Attributes: []obs.Attribute{obs.Text("worker", c.Worker), obs.Number("attempt", c.Attempt)}}}
	}
	return s
}

func (ps *pass) executionSpan(root obs.SpanContext) obs.Span {
	sum := ps.state.Summary()
	s := obs.Span{
		Name: "execution " + sum.Path, Parent: root, ID: uint64(ps.id), Kind: obs.Internal, Start: sum.StartedAt, End: sum.EndedAt,
		Attributes: []obs.Attribute{
			obs.Text("execution_id", ps.id.String()), obs.Text("path", sum.Path), obs.Number("version", sum.Version),
			obs.Text("pool", poolOf(sum.Pool)), obs.Text("status", sum.Status),
		},
		Error: shapes.String(sum.Error),
	}
	if sum.ParentExecutionID != 0 {
		s.Attributes = append(s.Attributes, obs.Text("parent_execution_id", sum.ParentExecutionID.String()))
	}
	if s.Error == "" && sum.Status == event.StatusFailed {
		s.Error = "the execution failed"
	}
	return s
}

// served is a request about a command or an execution, for its span.
type served struct {
	execution event.ID
	command   event.ID // 0 when it is about none or several
	trace     json.RawMessage
}

// note remembers whose trace a request belongs to.
func (s *served) note(ps *pass, command event.ID) {
	if ps.p.o.Tracer != nil {
		s.execution, s.command, s.trace = ps.id, command, ps.state.Trace()
	}
}

// answered makes the span of a request; it is for planes that trace. Being
// refused is an answer.
func (p *Plane) answered(ctx context.Context, name string, s *served, began time.Time, err error, more ...obs.Attribute) {
	if err != nil && ctx.Err() != nil {
		return // nobody waits any more, and the pass may still write to s
	}
	place := obs.ParseTrace(s.trace)
	if !place.IsValid() {
		return
	}
	below := s.command
	if below == 0 {
		below = s.execution
	}
	how := outcome(err)
	span := obs.Span{
		Name: name, Parent: obs.Derived(place, uint64(below)), Kind: obs.Serving, Start: began, End: p.o.Clock(),
		Attributes: append(more, obs.Text("execution_id", s.execution.String()), obs.Text("status", how)),
	}
	if how == obs.Error {
		span.Error = spanError(err)
	}
	p.o.Tracer.Record(span)
}

// commandOf is the command that all events are about; 0 when there is none.
func commandOf(events []event.Event) (id event.ID) {
	for i := range events {
		of := issuedBy(events[i].CommandID)
		if of == 0 || id != 0 && of != id {
			return 0
		}
		id = of
	}
	return id
}
