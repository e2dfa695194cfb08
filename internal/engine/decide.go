package engine

import (
	"encoding/json"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Env is what the outside lends to a decision.
type Env struct {
	Now   time.Time
	NewID func() event.ID
	Lost  string // why a claim that is taken over was lost; lease_expired when empty
	// Fits tells what is wrong with data that was sent for a form, a JSON Schema;
	// nil = everything fits.
	Fits func(form, data json.RawMessage) error
}

// Plan is a decision: the events to append, in order, and the commands they
// touch. It is already applied to the state it was made from.
type Plan struct {
	Events    []event.Event
	Changed   []*Command // rows to write, each once
	Issued    []*Command // issued by this plan and still pending, oldest first
	Woken     []*Command // parked before, and pending again
	Children  []Child    // executions to start
	Abandoned []event.ID // child executions whose parent has stopped waiting
	Stored    []Stored   // values the events refer to
}

// Stored is a value too large for the log.
type Stored struct {
	Ref  string
	Name string
	Data json.RawMessage
}

// Decide looks at the state alone and returns everything that must happen
// now. It runs to a fixed point: after it, deciding again yields nothing.
func Decide(p *Program, s *State, env Env) Plan {
	d := &decider{p: p, s: s, env: env}
	s.prog = p
	if s.Started() && !s.Final() && !s.preparing {
		d.run()
	}
	return d.plan
}

// decider is one pass.
type decider struct {
	p    *Program
	s    *State
	env  Env
	plan Plan
}

// run does everything that is due and, when nothing is left to do, ends the
// execution. The final step, when there is one, comes before the end.
func (d *decider) run() {
	if len(d.s.order) == 0 && len(d.s.offers) == 0 {
		d.setDeadline()
		d.enter(d.p.nodes[d.p.pb.Entry], offer{})
	}
	for {
		d.arrangeParked()
		d.handSignals()
		d.fireTimers()
		d.settle()
		if n, ok := d.finalStep(); ok {
			d.enter(n, offer{cause: d.s.lastEventID})
			continue
		}
		if len(d.dueTimers()) == 0 {
			break
		}
	}
	if d.quiet() {
		d.terminate()
	}
}

// setDeadline sets the timer that ends an execution which takes too long.
func (d *decider) setDeadline() {
	if dl := d.p.pb.Executor.Deadline; dl > 0 {
		d.setTimer("", timerDetail{Timer: timerDeadline, FiresAt: d.s.startedAt.Add(dl)}, d.s.lastEventID)
	}
}

// settle repeats the rules until none applies. The order matters: failures first,
// because they may stop everything else; then loops, then the arcs of ended
// runs, all of them before any waiting token is tested, because a join must
// know every path that can still reach it.
func (d *decider) settle() {
	for changed := true; changed && !d.s.Final(); {
		changed = d.routeFailures()
		changed = d.advanceLoops() || changed
		if !d.stopping() {
			changed = d.routeEnded() || changed
			changed = d.enterOffered() || changed
		}
	}
}

// stopping tells whether a failure nobody handles has ended all new work.
func (d *decider) stopping() bool { return d.s.unhandled > 0 }

// emit applies an event of ours and adds it to the plan.
func (d *decider) emit(e event.Event) {
	e.ExecutionID, e.CatalogID = d.s.id, d.s.catalogID
	if e.EventID == 0 {
		e.EventID = d.env.NewID()
	}
	e.CreatedAt = d.env.Now
	if e.Type == event.CommandIssued {
		e.CommandID = commandID(d.s.id, e.NodeName, e.EventID, e.Detail.(*issueDetail).index())
	}
	child := d.s.awaited(e.CommandID)
	if eff := d.s.Apply(&e); eff.Command != nil {
		d.plan.Changed = append(d.plan.Changed, eff.Command)
		switch {
		case e.Type == event.CommandIssued:
			d.plan.Issued = append(d.plan.Issued, eff.Command)
		case eff.Command.Status == event.StatusPending:
			d.plan.Woken = append(d.plan.Woken, eff.Command)
		case child != 0:
			d.plan.abandon(child)
		}
	}
	d.plan.Events = append(d.plan.Events, e)
}

var emittedByOrchestrator = json.RawMessage(`{"emitted_by":"orchestrator"}`)

// step emits an event about a step whose payload is detail.
func (d *decider) step(t event.Type, name, status string, detail any, cause event.ID) {
	d.emit(event.Event{
		Type: t, NodeName: name, Status: status, ParentEventID: cause,
		Result: envelope(status, encode(detail)), Meta: emittedByOrchestrator, Detail: detail,
	})
}

// fail emits the failure of a run, or of a step that could not be entered.
func (d *decider) fail(name string, gen int, reason, text string, cause event.ID) {
	detail := &endDetail{Gen: gen, Reason: reason, Error: text}
	d.emit(event.Event{
		Type: event.StepFailed, NodeName: name, Status: event.StatusFailed, ParentEventID: cause, Error: text,
		Result: envelope(event.StatusFailed, encode(detail)), Meta: emittedByOrchestrator, Detail: detail,
	})
}
