package control

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
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
	Dedup             *Dedup          // start only once; nil starts always
	Actor             *event.Actor    // who asks, for the log; nil where nobody is known
	Caller            string          // who asks, where that is known; keys of different callers do not mix
}

// How a request for an execution ended.
const (
	statusStarted   = "started"
	statusDuplicate = "duplicate"
)

// ExecuteAnswer tells of an execution that has become durable.
type ExecuteAnswer struct {
	ExecutionID       event.ID
	Status            string // "started", or "duplicate" of the execution that holds the same key
	CommandsGenerated int    // for a looped first step, the number of its items
	Warnings          []string
}

// Execute starts an execution: its start and its first commands are one
// append. Nothing is written when it fails with Invalid or NotFound.
func (p *Plane) Execute(ctx context.Context, r ExecuteRequest) (ExecuteAnswer, error) {
	answer, err := p.execute(ctx, r, p)
	p.asked("single", answer, err)
	return answer, err
}

// sources is where a start finds its playbook and its parent's trace: the plane
// itself, or the memory of a batch.
type sources interface {
	runnable(ctx context.Context, ref EntryRef) (*runnable, error)
	traceOf(ctx context.Context, id event.ID) (json.RawMessage, error)
}

func (p *Plane) execute(ctx context.Context, r ExecuteRequest, from sources) (ExecuteAnswer, error) {
	w := p.consider(ctx, r)
	if w.answered() {
		return w.answer, w.err
	}
	return p.follow(ctx, w, from)
}

// wish is a request that was looked at: either it has its answer, or it is to
// be started.
type wish struct {
	ExecuteRequest
	once   *once
	began  time.Time // for its span; zero when there are no traces
	answer ExecuteAnswer
	err    error
}

func (w *wish) answered() bool { return w.err != nil || w.answer.Status != "" }

// consider checks a request and whether it was granted before.
func (p *Plane) consider(ctx context.Context, r ExecuteRequest) *wish {
	w := &wish{ExecuteRequest: r, began: p.tracing()}
	if r.Pool != "" {
		if w.err = event.CheckPool(r.Pool); w.err != nil {
			return w
		}
	}
	if w.err = checkTrace(r.Trace); w.err != nil {
		return w
	}
	if w.once, w.err = p.once(r); w.err == nil && w.once != nil {
		w.answer, w.err = p.startedBefore(ctx, w.once)
	}
	return w
}

// traceMost bounds a trace context, because every command of the execution
// carries it.
const traceMost = 16 << 10

func checkTrace(trace json.RawMessage) error {
	if len(trace) > traceMost {
		return event.Errorf(event.Invalid, "trace: %d bytes are more than the %d that are carried along", len(trace), traceMost)
	}
	return nil
}

// follow starts what a wish asks for.
func (p *Plane) follow(ctx context.Context, w *wish, from sources) (ExecuteAnswer, error) {
	what, err := from.runnable(ctx, EntryRef{CatalogID: w.CatalogID, Path: w.Path, Version: w.Version})
	if err != nil {
		return ExecuteAnswer{}, err
	}
	trace := w.Trace
	if len(trace) == 0 && w.ParentExecutionID != 0 {
		if trace, err = from.traceOf(ctx, w.ParentExecutionID); err != nil {
			return ExecuteAnswer{}, err
		}
		trace = p.executionTrace(trace, w.ParentExecutionID)
	}
	answer, err := p.requested(ctx, w.began, trace, func(trace json.RawMessage) (ExecuteAnswer, error) {
		return p.begins(ctx, what.program, &startInput{once: w.once, actor: w.Actor}, engine.StartInput{
			CatalogID: what.catalogID, ParentExecutionID: w.ParentExecutionID,
			Path: what.path, Version: what.version, Pool: w.Pool, Payload: w.Payload, Trace: trace,
		})
	})
	if answer.Status == statusStarted {
		answer.Warnings = what.program.Undeclared(w.Payload)
	}
	return answer, err
}

// begins makes an execution under a fresh id, another one when the first turns
// out to be taken.
func (p *Plane) begins(ctx context.Context, program *engine.Program, input *startInput, in engine.StartInput) (ExecuteAnswer, error) {
	for try := 1; ; try++ {
		if in.ExecutionID = 0; input.once != nil {
			in.ExecutionID = input.once.id
		}
		fresh := *input
		answer, err := p.start(ctx, program, &fresh, in)
		if holder := claimedBy(err); holder != 0 {
			return p.duplicate(input.once, holder), nil
		}
		if !errors.Is(err, errTaken) || try == startTries {
			return answer, err
		}
		if input.once != nil {
			if err := p.mint(input.once); err != nil {
				return ExecuteAnswer{}, err
			}
		}
	}
}

// errTaken refuses a start whose execution id another process made too.
var errTaken = &event.Error{Code: event.Unavailable, Message: "execution id is taken", Remedy: "give each server a NOETL_SERVER_MACHINE_ID of its own", Reason: "id_taken"}

// startTries bounds how often a start is tried under a new id.
const startTries = 5

// start makes an execution, under a fresh id unless it has one.
func (p *Plane) start(ctx context.Context, program *engine.Program, input *startInput, in engine.StartInput) (ExecuteAnswer, error) {
	if in.ExecutionID == 0 {
		in.ExecutionID = p.o.IDs()
	}
	if err := permitPool(input.actor, program, &in); err != nil {
		return ExecuteAnswer{}, err
	}
	in.Environ = p.o.TemplateEnv
	e, err := engine.Start(program, in, engine.Env{Now: p.now(), NewID: p.o.IDs})
	if err != nil {
		return ExecuteAnswer{}, err
	}
	input.ticket, input.start = newTicket(), actedBy(e, input.actor)
	input.live = &live{state: engine.NewState(in.ExecutionID), program: program, trace: in.Trace}
	if err := p.ask(ctx, in.ExecutionID, input); err != nil {
		return ExecuteAnswer{}, err
	}
	return ExecuteAnswer{ExecutionID: in.ExecutionID, Status: statusStarted, CommandsGenerated: input.commands}, nil
}

// systemPool is where what runs the system runs, by workers that may do more than
// others.
const systemPool = "system"

// permitPool keeps the workers of the system to those who may start what is
// below system/, whoever names the pool: the request or the playbook.
func permitPool(who *event.Actor, program *engine.Program, in *engine.StartInput) error {
	pool := engine.Pool(cmp.Or(in.Pool, program.Playbook().Executor.Pool), in.Path)
	if pool != systemPool || who.MayStart(systemPool) {
		return nil
	}
	return &event.Error{
		Code: event.Forbidden, Reason: "role", Message: "the worker pool system needs the role admin",
		Remedy: "leave the pool out, or name another one",
	}
}

type startInput struct {
	ticket
	start    event.Event
	live     *live
	actor    *event.Actor     // who asked for it; nil where nobody is known
	once     *once            // the key it starts under; nil without one
	reuse    *engine.Harvest  // what it takes over from another execution; nil when nothing
	lost     func(ref string) // told of results to be taken over that are gone
	commands int
	stored   bool // an earlier attempt was stored although the store did not say so
}

func (in *startInput) apply(ctx context.Context, ps *pass) error {
	if ps.state.Started() {
		first, err := ps.p.startOf(ctx, ps.id)
		if err != nil {
			return err
		}
		if in.stored = first.EventID == in.start.EventID; in.stored {
			return nil
		}
		return errTaken
	}
	ps.add(in.start)
	if in.reuse != nil {
		if err := ps.takeOver(ctx, in.reuse, in.lost); err != nil {
			return err
		}
	}
	ps.decide = true
	return nil
}

func (in *startInput) settle(ps *pass) {
	_ = failpoint.Hit(failpoint.StartDurable)
	if in.stored {
		in.commands = len(ps.state.OpenCommands())
		return
	}
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
	if r, ok := p.runnables.Get(ref.CatalogID); ok && ref.CatalogID != 0 {
		return r, nil
	}
	entry, err := p.Entry(ctx, ref)
	if err != nil {
		return nil, err
	}
	if r, ok := p.runnables.Get(entry.CatalogID); ok {
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
	p.runnables.Put(entry.CatalogID, r)
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
	if lv, ok := p.states.Get(id); ok {
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
