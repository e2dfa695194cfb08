package behaviour

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
)

const executionID event.ID = 71

// world is one execution: the log, its fold, and a worker with scripted tools.
// Time stands still and ids count from one.
type world struct {
	t      testing.TB
	pos    string
	prog   *engine.Program
	state  *engine.State
	log    []event.Event
	ids    event.ID
	now    time.Time
	passes []pass
	worker *worker
	kept   *shelf
	ended  []ended      // commands that ended here, oldest first
	thrown map[int]bool // places in the log of events that changed nothing: claims, repeated ends
}

// pass is one decision: log[from:to] was decided on log[:from], and made the
// steps stand as they then did.
type pass struct {
	from, to int
	now      time.Time
	stand    []string
}

// ended is a command and the event that ended it, as its worker reported it.
type ended struct {
	label string
	cmd   *engine.Command
	in    event.Incoming
}

func newWorld(t testing.TB, prog *engine.Program, tools script) *world {
	kept := &shelf{data: map[string]json.RawMessage{}}
	w := &world{
		t: t, prog: prog, now: time.Unix(1_800_000_000, 0).UTC(),
		worker: newWorker(tools, kept), kept: kept, thrown: map[int]bool{},
	}
	w.state = w.newState()
	return w
}

// newState is the state before the first event, with a way to what is kept
// beside the log.
func (w *world) newState() *engine.State {
	s := engine.NewState(executionID)
	s.Lend(func(ref *scope.Reference) json.RawMessage { return w.kept.data[ref.Ref] })
	return s
}

func (w *world) env() engine.Env {
	return engine.Env{Now: w.now, NewID: func() event.ID { w.ids++; return w.ids }}
}

func (w *world) start(payload string) error {
	e, err := engine.Start(w.prog, engine.StartInput{
		ExecutionID: executionID, CatalogID: 9, Path: w.prog.Playbook().Metadata.Path, Version: 1, Payload: json.RawMessage(payload),
	}, w.env())
	if err != nil {
		return err
	}
	w.input(e)
	return nil
}

// input appends events, decides, and appends the decision.
func (w *world) input(events ...event.Event) {
	for _, e := range events {
		w.state.Apply(&e)
		w.log = append(w.log, e)
	}
	from := len(w.log)
	plan := engine.Decide(w.prog, w.state, w.env())
	w.log = append(w.log, plan.Events...)
	for _, v := range plan.Stored {
		w.kept.data[v.Ref] = v.Data
	}
	w.passes = append(w.passes, pass{from, len(w.log), w.now, stand(w.state)})
}

// work runs open commands, those named first, then the oldest; lets children
// end when no command can run, and time pass when nothing else can happen.
func (w *world) work(first []string) {
	w.t.Helper()
	for rounds := 0; ; rounds++ {
		if rounds > 500 {
			w.fatalf("the execution does not end")
		}
		open := w.runnable()
		if len(open) == 0 {
			if children := w.answerable(); len(children) > 0 {
				w.endChild(children[0])
				continue
			}
			if w.wait() {
				continue
			}
			break
		}
		next := open[0]
		for i, name := range first {
			at := slices.IndexFunc(open, func(c *engine.Command) bool { return w.label(c) == name })
			if at >= 0 {
				next = open[at]
				first = slices.Delete(first, i, i+1)
				break
			}
		}
		w.finish(next)
	}
	if len(first) > 0 {
		w.fatalf("no command of %v was open in its turn", first)
	}
}

// runnable are the open commands that a worker can run to an end, oldest first.
func (w *world) runnable() []*engine.Command {
	return slices.DeleteFunc(w.state.OpenCommands(), func(c *engine.Command) bool {
		return c.Status == event.StatusWaiting || w.worker.script.hangs(w.label(c))
	})
}

// wait lets time pass until the next timer; false when there is none.
func (w *world) wait() bool {
	at := w.state.WakeAt()
	if w.state.Final() || at.IsZero() {
		return false
	}
	w.now = at
	w.input()
	return true
}

// label is where a command stands: its step and, in loops, its iteration.
func (w *world) label(c *engine.Command) string {
	m := iteration.FindStringSubmatch(c.ID)
	if m == nil {
		return c.Step
	}
	return c.Step + "[" + m[1] + "]"
}

// claim gives a command to a worker.
func (w *world) claim(c *engine.Command, name string) error {
	e, err := engine.Claim(w.state, c, name, w.now.Add(time.Minute), w.env())
	if err != nil {
		return err
	}
	w.thrown[len(w.log)] = true
	w.input(e)
	return nil
}

// finish runs commands on the worker; their ends arrive in one batch.
func (w *world) finish(cmds ...*engine.Command) {
	w.t.Helper()
	var ends []event.Event
	for _, c := range cmds {
		if c.Status == event.StatusPending {
			if err := w.claim(c, "w1"); err != nil {
				w.fatalf("claim %s: %v", c.ID, err)
			}
		}
		cmd, err := engine.Dispatch(w.prog, w.state, c)
		if err != nil {
			w.fatalf("dispatch %s: %v", c.ID, err)
		}
		e := ended{w.label(c), c, w.worker.run(w.t.Context(), cmd)}
		if e.in.Type != event.CommandParked { // parks repeated under the same id are the store's to drop
			w.ended = append(w.ended, e)
		}
		ends = append(ends, w.ingest(e.in, c.Worker))
	}
	w.input(ends...)
}

func (w *world) ingest(in event.Incoming, worker string) event.Event {
	w.t.Helper()
	e, err := engine.Ingest(w.state, in, worker, w.env())
	if err != nil {
		w.fatalf("%s: %v", in.Type, err)
	}
	return e
}

// again reports the last end of a step's commands under a new id: a worker
// that lost the answer.
func (w *world) again(name string) {
	w.t.Helper()
	for _, e := range slices.Backward(w.ended) {
		if e.label == name {
			w.repeat(e)
			return
		}
	}
	w.fatalf("no command of %s has ended", name)
}

func (w *world) repeat(e ended) {
	w.thrown[len(w.log)] = true
	w.input(w.ingest(e.in, e.cmd.Worker))
}

// report feeds an event as a worker of another make sends it. It speaks of the
// step's command when there is one.
func (w *world) report(d *datadriven.TestData) string {
	at := len(w.log)
	var kind, worker string
	d.ScanArgs(w.t.(*testing.T), "type", &kind)
	if d.HasArg("worker") {
		d.ScanArgs(w.t.(*testing.T), "worker", &worker)
	}
	in := event.Incoming{Type: event.Type(kind), Step: d.CmdArgs[0].String(), Payload: json.RawMessage(d.Input)}
	if c := w.find(in.Step); c != nil {
		in.Meta = json.RawMessage(fmt.Sprintf(`{"command_id":%q,"pending_callback":%t}`, c.ID, d.HasArg("pending")))
	}
	e, err := engine.Ingest(w.state, in, worker, w.env())
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	w.input(e)
	return lines(w.log[at:])
}

func (w *world) openCommand(name string) *engine.Command {
	w.t.Helper()
	for _, c := range w.state.OpenCommands() {
		if w.label(c) == name {
			return c
		}
	}
	w.fatalf("no command of %s is open", name)
	return nil
}

// anyCommand is the command of that name that was issued last.
func (w *world) anyCommand(name string) *engine.Command {
	w.t.Helper()
	c := w.find(name)
	if c == nil {
		w.fatalf("%s has no command", name)
	}
	return c
}

func (w *world) find(name string) *engine.Command {
	for i := len(w.log) - 1; i >= 0; i-- {
		e := &w.log[i]
		if e.Type == event.CommandIssued && e.NodeName+place(e) == name {
			return w.state.CommandByEvent(e.EventID)
		}
	}
	return nil
}

func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s: %s\n%s", w.pos, fmt.Sprintf(format, args...), lines(w.log))
}
