package control

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

// ExecuteRequest asks for a new execution of a playbook, named by CatalogID or
// by Path with an optional Version.
type ExecuteRequest struct {
	Path              string
	CatalogID         event.ID
	Version           int
	Payload           json.RawMessage // object merged over the playbook's workload, or empty
	ParentExecutionID event.ID
	Pool              string
	Trace             json.RawMessage // inherited from the parent when empty
}

// ExecuteAnswer tells of an execution that has become durable.
type ExecuteAnswer struct {
	ExecutionID       event.ID
	Status            string // "started"
	CommandsGenerated int    // for a looped first step, the number of its items
	Warnings          []string
}

// Execute starts an execution: its start and its first commands are one
// append. Nothing is written when it fails with Invalid or NotFound.
func (p *Plane) Execute(ctx context.Context, r ExecuteRequest) (ExecuteAnswer, error) {
	if r.Pool != "" {
		if err := event.CheckPool(r.Pool); err != nil {
			return ExecuteAnswer{}, err
		}
	}
	what, err := p.runnable(ctx, EntryRef{CatalogID: r.CatalogID, Path: r.Path, Version: r.Version})
	if err != nil {
		return ExecuteAnswer{}, err
	}
	trace := r.Trace
	if len(trace) == 0 && r.ParentExecutionID != 0 {
		if trace, err = p.traceOf(ctx, r.ParentExecutionID); err != nil {
			return ExecuteAnswer{}, err
		}
	}
	in := engine.StartInput{
		CatalogID: what.catalogID, ParentExecutionID: r.ParentExecutionID,
		Path: what.path, Version: what.version, Pool: r.Pool, Payload: r.Payload, Trace: trace,
	}
	for try := 1; ; try++ {
		answer, err := p.start(ctx, what.program, in)
		answer.Warnings = what.program.Undeclared(r.Payload)
		if !errors.Is(err, errTaken) || try == startTries {
			return answer, err
		}
	}
}

// errTaken refuses a start whose execution id another process made too.
var errTaken = &event.Error{Code: event.Unavailable, Message: "execution id is taken", Remedy: "give each server a NOETL_SERVER_MACHINE_ID of its own", Reason: "id_taken"}

// startTries bounds how often a start is tried under a new id.
const startTries = 5

// start makes an execution, under a fresh id unless it has one.
func (p *Plane) start(ctx context.Context, program *engine.Program, in engine.StartInput) (ExecuteAnswer, error) {
	if in.ExecutionID == 0 {
		in.ExecutionID = p.o.IDs()
	}
	in.Environ = p.o.TemplateEnv
	e, err := engine.Start(program, in, engine.Env{Now: p.now(), NewID: p.o.IDs})
	if err != nil {
		return ExecuteAnswer{}, err
	}
	input := &startInput{
		ticket: newTicket(), start: e,
		live: &live{state: engine.NewState(in.ExecutionID), program: program, trace: in.Trace},
	}
	if err := p.ask(ctx, in.ExecutionID, input); err != nil {
		return ExecuteAnswer{}, err
	}
	return ExecuteAnswer{ExecutionID: in.ExecutionID, Status: "started", CommandsGenerated: input.commands}, nil
}

type startInput struct {
	ticket
	start    event.Event
	live     *live
	commands int
}

func (in *startInput) apply(_ context.Context, ps *pass) error {
	if ps.state.Started() {
		return errTaken
	}
	ps.add(in.start)
	ps.decide = true
	return nil
}

func (in *startInput) settle(ps *pass) {
	in.commands = ps.issued
	if len(ps.plan.Changed) == 0 || ps.plan.Changed[0].Index < 0 {
		return
	}
	if w, err := ps.wire(ps.plan.Changed[0]); err == nil && w.Meta.IterationTotal != nil {
		in.commands = *w.Meta.IterationTotal
	}
}

// runnable is a catalog entry ready to be executed. Entries never change, so
// one that was compiled stays good.
type runnable struct {
	catalogID event.ID
	path      string
	version   int
	program   *engine.Program
}

// runnable finds and compiles a catalog entry. Unavailable when the store does
// not answer; any other error is for good.
func (p *Plane) runnable(ctx context.Context, ref EntryRef) (*runnable, error) {
	if r, ok := p.runnables.get(ref.CatalogID); ok && ref.CatalogID != 0 {
		return r, nil
	}
	entry, err := p.Entry(ctx, ref)
	if err != nil {
		return nil, err
	}
	if r, ok := p.runnables.get(entry.CatalogID); ok {
		return r, nil
	}
	if entry.Kind != "playbook" && entry.Kind != "agent" {
		return nil, event.Errorf(event.Invalid, "%s is a resource of kind %s and cannot be executed", entry.Path, entry.Kind)
	}
	pb, problems := playbook.Parse(entry.Path, []byte(entry.Content))
	if err := problems.Err(); err != nil {
		return nil, invalidPlaybook(entry.Path, err)
	}
	if pool := pb.Executor.Pool; pool != "" {
		if err := event.CheckPool(pool); err != nil {
			return nil, invalidPlaybook(entry.Path, err)
		}
	}
	prog, err := engine.CompileWith(pb, engine.Limits{MaxAttempts: p.o.MaxAttempts})
	if err != nil {
		return nil, invalidPlaybook(entry.Path, err)
	}
	r := &runnable{catalogID: entry.CatalogID, path: entry.Path, version: entry.Version, program: prog}
	p.runnables.put(entry.CatalogID, r)
	return r, nil
}

func invalidPlaybook(path string, err error) error {
	return &event.Error{
		Code: event.Invalid, Reason: "invalid_playbook", Err: err,
		Message: "playbook " + path + " is not valid:\n" + err.Error(),
	}
}

// traceOf is the trace context of another execution; none when it is unknown,
// because a parent may live elsewhere.
func (p *Plane) traceOf(ctx context.Context, id event.ID) (json.RawMessage, error) {
	if lv, ok := p.states.get(id); ok {
		return lv.trace, nil
	}
	start, err := p.startOf(ctx, id)
	if errors.Is(err, &event.Error{Code: event.NotFound}) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var meta struct {
		Trace json.RawMessage `json:"trace"`
	}
	_ = json.Unmarshal(start.Meta, &meta) // a trace nobody can read is no trace
	return meta.Trace, nil
}
