package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/store"
)

// verify proves the log of every execution and what is derived from it.
func (w *world) verify() {
	program, err := compile(w.playbook)
	if err != nil {
		w.t.Fatal(err)
	}
	rows := w.executions()
	if len(rows) == 0 {
		w.problem("nothing was started")
	}
	for _, row := range rows {
		events, err := w.store.Events(context.Background(), row.ExecutionID, 0, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		p := &proof{w: w, row: row, program: program, state: engine.NewState(row.ExecutionID), tasks: map[string]*task{}, places: map[string]string{}}
		p.check(events)
	}
}

func compile(src string) (*engine.Program, error) {
	pb, problems := playbook.Parse(playbookPath, []byte(src))
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
}

// task is a command as the log alone tells it.
type task struct {
	id      event.ID
	holder  string
	attempt int
	lease   time.Time
	ends    int
	fold    *engine.Command
}

// commandMeta is what the metas of command events say.
type commandMeta struct {
	Gen        int       `json:"gen"`
	Index      *int      `json:"iteration_index"`
	Attempt    int       `json:"attempt"`
	LeaseUntil time.Time `json:"lease_until"`
}

func (p *proof) problem(format string, args ...any) {
	p.w.problem("execution %s: %s", p.row.ExecutionID, fmt.Sprintf(format, args...))
}

func (p *proof) check(events []event.Event) {
	for i := range events {
		e := &events[i]
		if e.Seq != int64(i)+1 {
			p.problem("event %d has seq %d", i+1, e.Seq)
		}
		if e.Type.IsTerminal() {
			p.terminals++
			p.checkTerminal(e)
		}
		eff := p.state.Apply(e)
		p.command(e, eff)
	}
	if p.terminals != 1 {
		p.problem("%d terminal events", p.terminals)
	}
	if plan := engine.Decide(p.program, p.state, p.env()); len(plan.Events) > 0 {
		p.problem("deciding on the whole log yields %s", plan.Events[0].Type)
	}
	p.checkExecutionRow()
	for id, c := range p.tasks {
		p.checkCommandRow(id, c)
	}
}

func (p *proof) env() engine.Env {
	return engine.Env{Now: p.row.UpdatedAt, NewID: p.w.ids.Next}
}

// checkTerminal decides on what came before the end: the only thing left to do
// must be to end the same way. Nobody decides a cancellation.
func (p *proof) checkTerminal(e *event.Event) {
	if p.terminals > 1 || e.Type == event.PlaybookCancelled {
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
		p.problem("before its end by %s there was still to do: %s", e.Type, strings.Join(types, ", "))
	}
}

// command follows one command through its events.
func (p *proof) command(e *event.Event, eff engine.Effect) {
	var m commandMeta
	if len(e.Meta) > 0 {
		_ = json.Unmarshal(e.Meta, &m)
	}
	t := e.Type.Canonical()
	if t == event.CommandIssued {
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
	case t.IsCommandEnd():
		p.ended(c, e, m, eff)
	}
}

func (p *proof) issued(e *event.Event, m commandMeta, eff engine.Effect) {
	index := -1
	if m.Index != nil {
		index = *m.Index
	}
	place := fmt.Sprintf("%s run %d index %d", e.NodeName, m.Gen, index)
	if other, twice := p.places[place]; twice {
		p.problem("%s was issued twice: %s and %s", place, other, e.CommandID)
	}
	p.places[place] = e.CommandID
	if eff.Command == nil {
		p.problem("%s: issued and ignored: %s", e.CommandID, eff.Ignored)
		return
	}
	p.tasks[e.CommandID] = &task{id: e.EventID, holder: e.WorkerID, attempt: m.Attempt, lease: m.LeaseUntil, fold: eff.Command}
}

func (p *proof) claimed(c *task, e *event.Event, m commandMeta) {
	switch {
	case c.ends > 0:
		p.problem("%s: claimed after its end, seq %d", e.CommandID, e.Seq)
	case m.Attempt != c.attempt+1:
		p.problem("%s: attempt %d follows attempt %d, seq %d", e.CommandID, m.Attempt, c.attempt, e.Seq)
	case c.holder != "" && e.CreatedAt.Before(c.lease) && !(p.w.alone && strings.HasPrefix(c.holder, localPrefix)):
		p.problem("%s: %s took it from %s before the lease was over, seq %d", e.CommandID, e.WorkerID, c.holder, e.Seq)
	}
	c.holder, c.attempt, c.lease = e.WorkerID, m.Attempt, m.LeaseUntil
}

// ended compares whether the fold accepts an end with whether it should: the
// first from whoever holds the command, or from the control plane, counts.
func (p *proof) ended(c *task, e *event.Event, m commandMeta, eff engine.Effect) {
	fenced := e.WorkerID != "" && (c.holder != "" && c.holder != e.WorkerID || m.Attempt != c.attempt)
	want := !fenced && c.ends == 0
	if got := eff.Ignored == ""; got != want {
		p.problem("%s: end of attempt %d by %q at seq %d: accepted %t, want %t (held by %q, attempt %d)",
			e.CommandID, m.Attempt, e.WorkerID, e.Seq, got, want, c.holder, c.attempt)
	}
	if eff.Ignored == "" {
		c.ends++
	}
}

func (p *proof) checkExecutionRow() {
	s := p.state.Summary()
	if !event.IsFinal(s.Status) {
		p.problem("status is %s", s.Status)
	}
	want := store.Execution{
		ExecutionID: s.ExecutionID, CatalogID: s.CatalogID, ParentExecutionID: s.ParentExecutionID,
		Path: s.Path, Version: s.Version, Pool: s.Pool, Status: s.Status,
		LastSeq: s.LastSeq, LastEventID: s.LastEventID, LastEventType: s.LastEventType, LastNodeName: s.LastNodeName,
		CurrentStep: s.CurrentStep, StepsTotal: s.StepsTotal, StepsCompleted: s.StepsCompleted,
		StepsRunning: s.StepsRunning, StepsFailed: s.StepsFailed, Error: s.Error,
		StartedAt: s.StartedAt, EndedAt: s.EndedAt, UpdatedAt: s.UpdatedAt,
	}
	if diff := cmp.Diff(want, p.row); diff != "" {
		p.problem("the row is not what the log says (-log +row):\n%s", diff)
	}
}

func (p *proof) checkCommandRow(id string, c *task) {
	if c.ends != 1 {
		p.problem("%s: %d accepted ends", id, c.ends)
	}
	row, err := p.w.store.Command(context.Background(), p.row.ExecutionID, c.id)
	if err != nil {
		p.problem("%s: %v", id, err)
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
		p.problem("%s: the row is not what the log says (-log +row):\n%s", id, diff)
	}
}

// story is everything a person needs to understand a run.
func (w *world) story() string {
	var b strings.Builder
	fmt.Fprintf(&b, "odds %+v, local workers %t, alone %t\n%s\nWhat happened:\n%s\n", w.odds, w.local, w.alone, w.playbook, strings.Join(w.history, "\n"))
	for _, row := range w.executions() {
		fmt.Fprintf(&b, "\nExecution %s is %s\n", row.ExecutionID, row.Status)
		events, err := w.store.Events(context.Background(), row.ExecutionID, 0, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range events {
			b.WriteString(w.line(&events[i]))
		}
	}
	return b.String()
}

func (w *world) line(e *event.Event) string {
	var m commandMeta
	_ = json.Unmarshal(e.Meta, &m)
	var b strings.Builder
	fmt.Fprintf(&b, "%4d %8.1fs %-18s %s", e.Seq, e.CreatedAt.Sub(w.began).Seconds(), e.Type, e.NodeName)
	if m.Index != nil {
		fmt.Fprintf(&b, "[%d]", *m.Index)
	}
	if _, rest, ok := strings.Cut(e.CommandID, ":"); ok {
		fmt.Fprintf(&b, " (%s)", rest)
	}
	if e.WorkerID != "" {
		fmt.Fprintf(&b, " by %s, attempt %d", e.WorkerID, m.Attempt)
	}
	fmt.Fprintf(&b, " #%s", e.EventID)
	if e.Error != "" {
		fmt.Fprintf(&b, ": %s", e.Error)
	}
	if e.Type == event.NextEvaluated {
		fmt.Fprintf(&b, " %s", e.Result)
	}
	return b.String() + "\n"
}
