package engine

import (
	"encoding/json"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/scope"
)

// Effect says what an event changed.
type Effect struct {
	Command *Command // the command whose row changed, nil when none
	Ended   bool     // the event ended that command
	Ignored string   // why the event changed nothing; "" when it did
}

// Reasons for which an event is kept but has no effect.
const (
	IgnoredTerminal  = "terminal"        // the execution has ended
	IgnoredDuplicate = "duplicate"       // the command ended the same way before
	IgnoredLate      = "late"            // the command has ended
	IgnoredFenced    = "fenced"          // another attempt holds the command
	IgnoredUnknown   = "unknown_command" // no such command
	IgnoredForeign   = "informative"     // the event is a note, nothing more
)

// Apply folds one event. It is total: what it does not understand, what comes
// late and what comes twice changes nothing but the sequence. An event without
// a Seq gets the next one.
func (s *State) Apply(e *event.Event) Effect {
	if e.Seq == 0 {
		e.Seq = s.seq + 1
	}
	s.seq = e.Seq
	s.lastEventID, s.lastType, s.updatedAt = e.EventID, e.Type, e.CreatedAt
	if e.NodeName != "" {
		s.lastNode = e.NodeName
	}
	if s.Final() {
		return Effect{Ignored: IgnoredTerminal}
	}
	switch e.Type.Canonical() {
	case event.PlaybookStarted:
		s.applyStart(e)
	case event.PlaybookCompleted, event.PlaybookFailed, event.PlaybookCancelled:
		s.applyTerminal(e)
	case event.StepEnter:
		return s.applyEnter(e)
	case event.StepExit, event.LoopDone:
		return s.applyExit(e)
	case event.StepFailed:
		return s.applyStepFailed(e)
	case event.StepSkipped:
		if e.WorkerID != "" {
			return Effect{Ignored: IgnoredForeign}
		}
		s.applySkipped(e)
	case event.NextEvaluated:
		s.applyRoute(e)
	case event.CtxUpdated:
		s.applyVars(resultOf[ctxDetail](e))
	case event.SignalReceived:
		return s.applySignal(e)
	case event.SignalRefused:
		return s.applyRefused(e)
	case event.TimerSet:
		return s.applyTimerSet(e)
	case event.TimerFired:
		return s.applyTimerFired(e)
	case event.FrameCommitted:
		return s.closeFrame(e)
	case event.StepReused:
		return s.applyReused(e)
	case event.RerunPrepared:
		return s.applyPrepared(e)
	case event.ChildIssued:
		return s.applyChild(e)
	case event.CommandIssued:
		return s.applyIssued(e)
	default:
		return s.applyCommand(e)
	}
	return Effect{}
}

func (s *State) applyVars(d *ctxDetail) {
	for k, v := range d.Values {
		put(s, s.vars, k, &value{raw: v})
	}
	for k, ref := range d.Refs {
		put(s, s.vars, k, &value{ref: ref, raw: d.large[k]})
	}
	if r := s.currentRun(d.Step, d.Gen); r != nil && d.Index != nil {
		s.touch(r).applied = *d.Index + 1
	}
}

func (s *State) applyStart(e *event.Event) {
	if s.Started() {
		return
	}
	d := &startDetail{}
	if got, ok := e.Detail.(*startDetail); ok {
		d = got
	} else if len(e.Context) > 0 {
		_ = json.Unmarshal(e.Context, d)
	}
	var m startMeta
	if len(e.Meta) > 0 {
		_ = json.Unmarshal(e.Meta, &m)
	}
	s.catalogID, s.parentID = e.CatalogID, e.ParentExecutionID
	s.path, s.version = d.Path, d.Version
	s.pool, s.trace, s.parentIter = Pool(m.Pool, d.Path), m.Trace, m.ParentIter
	s.parent.Command, s.depth, s.actor = m.ParentCommand, m.Depth, m.Actor
	if m.Returns != nil {
		s.parent.Request = *m.Returns
	}
	s.status, s.startedAt = event.StatusRunning, e.CreatedAt
	s.preparing = m.FromStep != ""
	if w, err := jinja.FromJSON(d.Workload); err == nil {
		if dict, ok := w.(*jinja.Dict); ok {
			old := s.workload
			if s.journaling {
				s.undo = append(s.undo, func() { s.workload = old })
			}
			s.workload = dict
		}
	}
}

func (s *State) applyTerminal(e *event.Event) {
	s.endedAt = e.CreatedAt
	switch e.Type.Canonical() {
	case event.PlaybookCompleted:
		s.status = event.StatusCompleted
	case event.PlaybookFailed:
		s.status = event.StatusFailed
	default:
		s.status = event.StatusCancelled
	}
	s.errorText = e.Error
	if s.errorText == "" {
		s.errorText = metaOf[terminalMeta](e).Error
	}
	s.offers, s.unrouted, s.loops, s.parked = nil, nil, nil, nil
	s.signals, s.signalled = nil, nil
	for id := range s.timers {
		drop(s, s.timers, id)
	}
}

// stepOf finds or makes the record of a step.
func (s *State) stepOf(name string) *step {
	if st, ok := s.steps[name]; ok {
		return st
	}
	st := &step{name: name}
	put(s, s.steps, name, st)
	s.order = with(s.order, name)
	return st
}

// runsOf is how often a step was entered.
func (s *State) runsOf(name string) int {
	if st, ok := s.steps[name]; ok {
		return st.runs
	}
	return 0
}

// applyEnter starts a run. Only the control plane's own step.enter counts:
// workers of other makes send one as a note.
func (s *State) applyEnter(e *event.Event) Effect {
	d := resultOf[enterDetail](e)
	if e.WorkerID != "" || d.Gen != s.runsOf(e.NodeName)+1 {
		return Effect{Ignored: IgnoredForeign}
	}
	st := s.stepOf(e.NodeName)
	r := &run{step: st.name, gen: d.Gen, entered: e.EventID, enteredAt: e.CreatedAt, epoch: s.epoch}
	switch {
	case d.Cursor != nil:
		r.cursor = newCursorRun(d)
		s.loops = with(s.loops, r)
	case d.Expected != nil:
		r.loop = newLoopRun(d)
		s.loops = with(s.loops, r)
	}
	s.begin(st, r)
	s.currentStep = st.name
	return Effect{}
}

// begin makes r the current run of its step and consumes the step's tokens.
func (s *State) begin(st *step, r *run) {
	s.touchStep(st)
	st.runs, st.cur = r.gen, r
	if r.loop != nil || r.cursor != nil {
		st.loop = true
	}
	kept := make([]offer, 0, len(s.offers))
	for _, o := range s.offers {
		if o.target != r.step {
			kept = append(kept, o)
			continue
		}
		r.from = append(r.from, o.from)
	}
	s.offers = kept
}

// currentRun is the step's present run if it is generation gen.
func (s *State) currentRun(name string, gen int) *run {
	st := s.steps[name]
	if st == nil || st.cur == nil || (gen != 0 && st.cur.gen != gen) {
		return nil
	}
	return st.cur
}

// applyExit completes a run without a command, or closes a loop.
func (s *State) applyExit(e *event.Event) Effect {
	d := resultOf[endDetail](e)
	r := s.currentRun(e.NodeName, d.Gen)
	if e.WorkerID != "" || r == nil || r.phase != running {
		return Effect{Ignored: IgnoredForeign}
	}
	s.touch(r)
	r.aggregate()
	s.finish(r, completed, e)
	return Effect{}
}

func (s *State) applyStepFailed(e *event.Event) Effect {
	d := resultOf[endDetail](e)
	r := s.currentRun(e.NodeName, d.Gen)
	switch {
	case e.WorkerID != "":
		return Effect{Ignored: IgnoredForeign}
	case r == nil && d.Gen == s.runsOf(e.NodeName)+1: // it failed before it could be entered
		st := s.stepOf(e.NodeName)
		r = &run{step: st.name, gen: d.Gen, entered: e.EventID, enteredAt: e.CreatedAt, epoch: s.epoch}
		s.begin(st, r)
	case r == nil || r.phase == skipped:
		return Effect{Ignored: IgnoredLate}
	}
	s.touch(r)
	r.errText, r.reason = d.Error, d.Reason
	r.errRaw = encode(d.Error)
	r.aggregate()
	s.finish(r, failed, e)
	return Effect{}
}

// applySkipped records that a step is passed over. A guard that said no makes
// a run of its own, whose arcs are followed; a step no path leads to does not.
func (s *State) applySkipped(e *event.Event) {
	d := resultOf[endDetail](e)
	st := s.stepOf(e.NodeName)
	if d.Gen == 0 {
		if st.runs == 0 {
			s.touchStep(st).cur = &run{step: st.name, phase: skipped, routed: true, reason: d.Reason, endedAt: e.CreatedAt, skip: d, epoch: s.epoch}
		}
		return
	}
	if d.Gen != st.runs+1 {
		return
	}
	r := &run{step: st.name, gen: d.Gen, entered: e.EventID, enteredAt: e.CreatedAt, reason: d.Reason, skip: d, epoch: s.epoch}
	s.begin(st, r)
	s.finish(r, skipped, e)
}

// finish ends a run and queues it for routing.
func (s *State) finish(r *run, p phase, e *event.Event) {
	wasOver := r.phase != running
	r.phase, r.ended, r.endedAt, r.routed = p, e.EventID, e.CreatedAt, false
	if r.timer != 0 {
		drop(s, s.timers, r.timer)
		r.timer = 0
	}
	if r.loop != nil || r.cursor != nil {
		s.loops = without(s.loops, r)
	}
	if !wasOver {
		s.unrouted = with(s.unrouted, r)
	} else if r.routed = true; p == failed { // it failed while its arcs were evaluated
		s.unrouted = without(s.unrouted, r)
		s.unhandled++
	}
	st := s.touchStep(s.steps[r.step])
	switch p {
	case completed:
		if r.value == nil {
			r.value = scope.Step(nil, scope.Info{})
		}
		st.result = r.value
	case failed:
		st.result = r.failureValue()
	}
}

// failureValue is what the step's name shows after a failure.
func (r *run) failureValue() *scope.Value {
	info := scope.Info{Failed: true, Error: r.errRaw}
	if r.value != nil {
		info.Loop = r.value.Info().Loop
		return scope.Step(r.value.JSON(), info)
	}
	d := jinja.NewDict(2)
	d.Set("status", "error")
	d.Set("error", r.errText)
	return scope.Step(d, info)
}

func (s *State) applyRoute(e *event.Event) {
	d := resultOf[routeDetail](e)
	r := s.currentRun(d.Step, d.Gen)
	if r == nil || r.routed {
		return
	}
	s.touch(r)
	r.routed, r.handled = true, d.Handled
	s.touchStep(s.steps[d.Step]).routed = d
	s.unrouted = without(s.unrouted, r)
	if r.phase == failed && !d.Handled {
		s.unhandled++
	}
	for _, t := range d.Matched {
		if st := s.steps[t]; st != nil && st.cur != nil && st.cur.phase == running {
			continue // the token merges into the run that is under way
		}
		s.offers = with(s.offers, offer{target: t, from: d.Step, cause: r.ended})
	}
}
