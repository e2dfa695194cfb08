package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/store"
)

// check names a rule that every run keeps.
type check string

const (
	ends      check = "every execution reaches exactly one terminal event or is parked for a stated reason"
	once      check = "no command is issued twice for one run and index"
	live      check = "the fold of the log is the live state"
	undone    check = "whoever folds the log at any append has nothing left to decide"
	finished  check = "an execution ends when nothing else is left to do, and as the log says"
	fences    check = "each command has one accepted end, and only its holder's counts"
	leases    check = "a command changes hands when its lease is over, attempt by attempt"
	parked    check = "what is parked goes on once, when what it waits for has come"
	timers    check = "a timer fires once, and not before its time"
	families  check = "a child is started once, and ends when nobody waits for it any more"
	windows   check = "a loop has no more commands open than its window allows"
	durable   check = "what was acknowledged is in the log"
	rows      check = "the projections are what the log says"
	orderFree check = "decisions do not depend on the order in which independent events arrive"
	answers   check = "every answer has a reason"
	keys      check = "a key starts one execution, however often it is asked for"
	published check = "every event is published, and each execution's in the order of its log"
	slots     check = "local workers get their slots back"
)

// problem is a rule that was broken, and where.
type problem struct {
	check check
	text  string
}

func (p problem) String() string { return fmt.Sprintf("broken: %s\n\t%s", p.check, p.text) }

func (w *world) problem(c check, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, problem{c, fmt.Sprintf(format, args...)})
}

// verify proves the log of every execution and what is derived from it.
func (w *world) verify() {
	program, err := compile(w.book)
	if err != nil {
		w.t.Fatal(err)
	}
	child, err := compile(childBook)
	if err != nil {
		w.t.Fatal(err)
	}
	all := w.executions()
	if len(all) == 0 {
		w.problem(ends, "nothing was started")
	}
	for _, row := range all {
		events, err := w.store.Events(context.Background(), row.ExecutionID, 0, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		p := &proof{w: w, row: row, program: program, state: engine.NewState(row.ExecutionID), tasks: map[string]*task{}, places: map[string]string{}, windows: map[string]int{}, open: map[string]int{}, timers: map[event.ID]timer{}, children: map[event.ID]*task{}}
		if row.Path != playbookPath {
			p.program = child
		}
		p.check(events)
		if w.book.tame {
			w.reorder(p.program, row, events)
		}
	}
	w.checkStream(all)
	w.checkKeys(all)
	report, err := control.Verify(context.Background(), control.VerifyOptions{Store: w.store})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range report.Differences {
		w.problem(rows, "%s", d)
	}
}

func compile(b book) (*engine.Program, error) {
	pb, problems := playbook.Parse(playbookPath, []byte(b.String()))
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return engine.Compile(pb)
}

// proof goes through the log of one execution with a model of commands of its
// own, beside the fold of the engine.
type proof struct {
	w         *world
	row       store.Execution
	program   *engine.Program
	state     *engine.State
	terminals int
	tasks     map[string]*task  // by command id
	places    map[string]string // step, generation and index -> command id
	windows   map[string]int    // of loops, by step
	open      map[string]int    // commands without an end, by step
	timers    map[event.ID]timer
	children  map[event.ID]*task // who waits for an execution
}

// task is a command as the log alone tells it.
type task struct {
	id      event.ID
	holder  string
	attempt int
	lease   time.Time
	ends    int
	waits   *event.Park // set while it is parked
	request event.ChildRequest
	child   event.ID // the execution it asked for
	fold    *engine.Command
}

// commandMeta is what the metas of command events say.
type commandMeta struct {
	Gen        int                `json:"gen"`
	Cursor     *event.CursorPlace `json:"cursor"`
	Index      *int               `json:"iteration_index"`
	Attempt    int                `json:"attempt"`
	LeaseUntil time.Time          `json:"lease_until"`
}

// place says where in a workflow a command stands.
func (m commandMeta) place(step string) string {
	out := fmt.Sprintf("%s run %d", step, m.Gen)
	if m.Index != nil {
		out += fmt.Sprintf(" index %d", *m.Index)
	}
	if c := m.Cursor; c != nil {
		out += fmt.Sprintf(" frame %d %s", c.Frame, c.Phase)
		if c.Row != nil {
			out += fmt.Sprintf(" row %d", *c.Row)
		}
	}
	return out
}

func (p *proof) problem(c check, format string, args ...any) {
	p.w.problem(c, "execution %s: %s", p.w.name(p.row.ExecutionID), fmt.Sprintf(format, args...))
}

func (p *proof) check(events []event.Event) {
	for i := range events {
		e := &events[i]
		if e.Seq != int64(i)+1 {
			p.problem(rows, "event %d has seq %d", i+1, e.Seq)
		}
		if e.Type.IsTerminal() {
			p.terminals++
			p.checkTerminal(e)
		}
		p.checkHead(e)
		p.time(e)
		eff := p.state.Apply(e)
		p.command(e, eff)
	}
	if p.terminals > 1 || p.terminals == 0 && !p.w.atRest(p.state) {
		p.problem(ends, "%d terminal events", p.terminals)
	}
	p.checkFamily()
	p.checkNothingLeft()
	p.checkLive()
	p.checkExecutionRow()
	for id, c := range p.tasks {
		p.checkCommandRow(id, c)
	}
}

func (p *proof) env() engine.Env {
	return engine.Env{Now: p.state.Summary().UpdatedAt, NewID: p.w.ids.Next}
}

// checkHead decides again where a batch began.
func (p *proof) checkHead(e *event.Event) {
	if e.Seq > 1 && slices.Contains(p.w.heads[p.row.ExecutionID], e.Seq-1) {
		p.checkNothingLeft()
	}
}

// checkNothingLeft decides on the log as far as it was folded: whoever made
// the last append has decided everything it led to. Time stands still, because
// not every append looks at the clock.
func (p *proof) checkNothingLeft() {
	p.state.Begin()
	plan := engine.Decide(p.program, p.state, engine.Env{NewID: p.w.ids.Next})
	p.state.Rollback()
	if len(plan.Events) > 0 {
		p.problem(undone, "deciding again after seq %d yields %s %s", p.state.Seq(), plan.Events[0].Type, plan.Events[0].NodeName)
	}
}

// checkLive compares the fold with what a plane said from the state it held.
func (p *proof) checkLive() {
	said, asked := p.w.seen[p.row.ExecutionID]
	if !asked {
		return
	}
	if diff := cmp.Diff(p.state.Outcome(), said); diff != "" {
		p.problem(live, "the outcome a plane told is not what the log says (-log +plane):\n%s", diff)
	}
	for _, s := range said {
		if s.Status == event.StatusRunning {
			p.problem(live, "it has ended and step %s runs", s.Name)
		}
	}
}

// checkTerminal decides on what came before the end: the only thing left to do
// must be to end the same way. A cancellation, a deadline and an end by hand come at any time.
func (p *proof) checkTerminal(e *event.Event) {
	why := reasonOf(e)
	if p.terminals > 1 || e.Type == event.PlaybookCancelled || why == "deadline" || why == byHand {
		return
	}
	p.state.Begin()
	plan := engine.Decide(p.program, p.state, p.env())
	p.state.Rollback()
	if len(plan.Events) != 1 || plan.Events[0].Type != e.Type {
		var types []string
		for i := range plan.Events {
			types = append(types, string(plan.Events[i].Type)+" "+plan.Events[i].NodeName)
		}
		p.problem(finished, "before its end by %s there was still to do: %s", e.Type, strings.Join(types, ", "))
	}
}

// command follows one command through its events.
func (p *proof) command(e *event.Event, eff engine.Effect) {
	var m commandMeta
	if len(e.Meta) > 0 {
		_ = json.Unmarshal(e.Meta, &m)
	}
	t := e.Type.Canonical()
	switch t {
	case event.StepEnter:
		p.entered(e)
	case event.CommandIssued:
		p.issued(e, m, eff)
		return
	}
	c := p.tasks[e.CommandID]
	if c == nil {
		return
	}
	switch {
	case t == event.CommandClaimed:
		p.claimed(c, e, m)
	case t == event.CommandReleased:
		c.holder = ""
	case t == event.CommandParked:
		p.parked(c, e, m, eff)
	case t == event.CallDone && c.waits != nil && e.WorkerID == "" && m.Attempt == 0:
		p.called(c, e, eff)
	case t.IsCommandEnd():
		p.ended(c, e, m, eff)
	}
}

// entered notes how many commands of a loop may be open at once.
func (p *proof) entered(e *event.Event) {
	var d struct {
		Context struct {
			Window int `json:"max_in_flight"`
		} `json:"context"`
	}
	_ = json.Unmarshal(e.Result, &d)
	p.windows[e.NodeName] = d.Context.Window
}

func (p *proof) issued(e *event.Event, m commandMeta, eff engine.Effect) {
	place := m.place(e.NodeName)
	if other, twice := p.places[place]; twice {
		p.problem(once, "%s was issued twice: %s and %s", place, other, e.CommandID)
	}
	p.places[place] = e.CommandID
	if eff.Command == nil {
		p.problem(once, "%s: issued and ignored: %s", e.CommandID, eff.Ignored)
		return
	}
	p.open[e.NodeName]++
	if most := p.windows[e.NodeName]; m.Index != nil && p.open[e.NodeName] > most {
		p.problem(windows, "%s: %d commands of the loop are open, seq %d", e.CommandID, p.open[e.NodeName], e.Seq)
	}
	p.tasks[e.CommandID] = &task{id: e.EventID, holder: e.WorkerID, attempt: m.Attempt, lease: m.LeaseUntil, fold: eff.Command}
}

func (p *proof) claimed(c *task, e *event.Event, m commandMeta) {
	switch {
	case c.waits != nil:
		p.problem(parked, "%s: claimed while it waits, seq %d", e.CommandID, e.Seq)
	case c.ends > 0:
		p.problem(leases, "%s: claimed after its end, seq %d", e.CommandID, e.Seq)
	case m.Attempt != c.attempt+1:
		p.problem(leases, "%s: attempt %d follows attempt %d, seq %d", e.CommandID, m.Attempt, c.attempt, e.Seq)
	case c.holder != "" && e.CreatedAt.Before(c.lease) && !(p.w.alone && strings.HasPrefix(c.holder, localPrefix)):
		p.problem(leases, "%s: %s took it from %s before the lease was over, seq %d", e.CommandID, e.WorkerID, c.holder, e.Seq)
	}
	c.holder, c.attempt, c.lease = e.WorkerID, m.Attempt, m.LeaseUntil
}

// ended compares whether the fold accepts an end with whether it should: the
// first from whoever holds the command, or from the control plane, counts.
func (p *proof) ended(c *task, e *event.Event, m commandMeta, eff engine.Effect) {
	fenced := e.WorkerID != "" && (c.holder != e.WorkerID || m.Attempt != c.attempt)
	want := !fenced && c.ends == 0
	if got := eff.Ignored == ""; got != want {
		p.problem(fences, "%s: end of attempt %d by %q at seq %d: accepted %t, want %t (held by %q, attempt %d)",
			e.CommandID, m.Attempt, e.WorkerID, e.Seq, got, want, c.holder, c.attempt)
	}
	if eff.Ignored == "" {
		c.ends++
		c.waits = nil
		p.open[e.NodeName]--
	}
}

func (p *proof) checkExecutionRow() {
	s := p.state.Summary()
	want := store.Execution{
		ExecutionID: s.ExecutionID, CatalogID: s.CatalogID, ParentExecutionID: s.ParentExecutionID,
		Path: s.Path, Version: s.Version, Pool: s.Pool, Status: s.Status,
		LastSeq: s.LastSeq, LastEventID: s.LastEventID, LastEventType: s.LastEventType, LastNodeName: s.LastNodeName,
		CurrentStep: s.CurrentStep, StepsTotal: s.StepsTotal, StepsCompleted: s.StepsCompleted,
		StepsRunning: s.StepsRunning, StepsFailed: s.StepsFailed, Error: s.Error,
		StartedAt: s.StartedAt, EndedAt: s.EndedAt, UpdatedAt: s.UpdatedAt, WakeAt: s.WakeAt,
	}
	if diff := cmp.Diff(want, p.row); diff != "" {
		p.problem(rows, "the row is not what the log says (-log +row):\n%s", diff)
	}
}

func (p *proof) checkCommandRow(id string, c *task) {
	if c.ends > 1 || c.ends == 0 && p.terminals > 0 {
		p.problem(fences, "%s: %d accepted ends", id, c.ends)
	}
	row, err := p.w.store.Command(context.Background(), p.row.ExecutionID, c.id)
	if err != nil {
		p.problem(rows, "%s: %v", id, err)
		return
	}
	f := c.fold
	want := store.Command{
		ExecutionID: p.row.ExecutionID, EventID: f.EventID, CommandID: f.ID, CatalogID: p.row.CatalogID,
		Step: f.Step, ToolKind: f.Kind, Pool: p.row.Pool, Status: f.Status, WorkerID: f.Worker, Attempt: f.Attempt,
		MaxAttempts: f.MaxAttempts, IterIndex: f.Index, CreatedAt: f.CreatedAt, ClaimedAt: f.ClaimedAt,
		EndedAt: f.EndedAt, Error: f.Error,
	}
	if diff := cmp.Diff(want, row); diff != "" {
		p.problem(rows, "%s: the row is not what the log says (-log +row):\n%s", id, diff)
	}
}
