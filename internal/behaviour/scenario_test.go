package behaviour

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/playbook"
)

// TestScenarios runs the stories in testdata. A heading says which numbers the
// story is about, `# 39, A-20 what is promised`; the lines after it are what
// happens, and below each stands what follows. Run with -rewrite to accept what
// comes out now.
//
//	playbook            the YAML that follows (header lines may be left out); prints its problems
//	tools               what calls of tools return, one script per line; see script
//	run [ordered] [brief] [finish=(STEP,…)]    the payload that follows; works until nothing is open
//	start               starts only; the payload follows
//	finish STEP…        these open commands run, one after another
//	batch STEP…         these open commands run and their ends arrive together
//	again STEP          the end of the step's last command arrives once more
//	claim STEP worker=W a worker claims
//	report STEP type=T [worker=W] [pending]   an event word for word, with the payload that
//	                    follows; pending: its meta says that a callback will come
//	cancel              the execution is cancelled
//	calls [STEP]        the calls of tools with what templates made of them
//	outcome             the end, the steps and their results, the variables
//	stored STEP         the command as stored, before a worker renders it
//	wait                time passes until the next timer
//	child STEP          the child that the step asked for ends with the answer that follows
//	children            what parked commands asked for
//	kept                what is kept beside the log, and what workers fetched of it
//	open                the open commands
//
// `run` alone may be repeated with other payloads and tools: it starts afresh
// when the execution has ended. A story told with `run` is run again in random
// orders, unless it is `ordered`: then its outcome depends on the order of ends.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		st := &story{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			st.t = t
			return st.tell(d)
		})
		st.close()
	})
}

type story struct {
	t     *testing.T
	prog  *engine.Program
	tools script
	w     *world
}

// close proves the execution told so far.
func (s *story) close() {
	if s.w != nil {
		s.w.t = s.t
		s.w.verify()
		s.w = nil
	}
}

func (s *story) tell(d *datadriven.TestData) string {
	switch d.Cmd {
	case "playbook":
		s.close()
		s.prog, s.tools = nil, script{}
		return s.read(d)
	case "tools":
		s.close()
		s.tools = readScript(d)
		return ""
	}
	if s.prog == nil {
		d.Fatalf(s.t, "the playbook has errors or is missing")
	}
	switch d.Cmd {
	case "start", "run":
		if s.w == nil || s.w.state.Final() {
			return s.begin(d)
		}
	}
	if s.w == nil {
		d.Fatalf(s.t, "nothing was started")
	}
	s.w.t, s.w.pos = s.t, d.Pos
	return s.w.tell(d)
}

// header completes a playbook that says only what its story needs. It comes
// last, so that lines count as written.
func header(src string) string {
	for _, line := range []string{"apiVersion: noetl.io/v2", "kind: Playbook", "metadata: {name: story}"} {
		key, _, _ := strings.Cut(line, ":")
		if !regexp.MustCompile(`(?m)^` + key + `:`).MatchString(src) {
			src += "\n" + line
		}
	}
	return src + "\n"
}

func (s *story) read(d *datadriven.TestData) string {
	src := d.Input
	if !d.HasArg("whole") {
		src = header(src)
	}
	pb, problems := playbook.Parse("", []byte(src))
	var b strings.Builder
	for _, p := range problems {
		fmt.Fprintf(&b, "%d:%d %s %s", p.Line, p.Col, p.Severity, p.Code)
		if p.Step != "" {
			fmt.Fprintf(&b, " step=%s", p.Step)
		}
		fmt.Fprintf(&b, ": %s", p.Message)
		if p.Remedy != "" {
			fmt.Fprintf(&b, " (%s)", p.Remedy)
		}
		b.WriteByte('\n')
	}
	if problems.Err() != nil {
		return b.String()
	}
	prog, err := engine.CompileWith(pb, engine.Limits{StepRuns: 6, LoopWindow: 4})
	if err != nil {
		d.Fatalf(s.t, "%v", err)
	}
	s.prog = prog
	return b.String()
}

// begin starts an execution and, when told to, runs it to its end and then in
// other orders.
func (s *story) begin(d *datadriven.TestData) string {
	s.close()
	s.w = newWorld(s.t, s.prog, s.tools)
	s.w.pos = d.Pos
	if err := s.w.start(d.Input); err != nil {
		s.w = nil
		return "refused: " + err.Error() + "\n"
	}
	if d.Cmd == "start" {
		return s.w.show(0)
	}
	s.w.work(arguments(d, "finish"))
	if !d.HasArg("ordered") && !d.HasArg("finish") {
		s.shuffle(d.Input)
	}
	if d.HasArg("brief") {
		return s.w.show(len(s.w.log) - 1)
	}
	return s.w.show(0)
}

func (w *world) tell(d *datadriven.TestData) string {
	at := len(w.log)
	switch d.Cmd {
	case "run":
		w.work(arguments(d, "finish"))
	case "finish":
		for _, a := range d.CmdArgs {
			w.finish(w.openCommand(a.String()))
		}
	case "batch":
		var ends []*engine.Command
		for _, a := range d.CmdArgs {
			ends = append(ends, w.openCommand(a.String()))
		}
		w.finish(ends...)
	case "again":
		w.again(d.CmdArgs[0].String())
	case "claim":
		var worker string
		d.ScanArgs(w.t.(*testing.T), "worker", &worker)
		switch err := w.claim(w.anyCommand(d.CmdArgs[0].String()), worker); {
		case errors.Is(err, engine.ErrHeld):
			return "held already, answered as before\n"
		case err != nil:
			return "refused: " + err.Error() + "\n"
		}
		return lines(w.log[at:])
	case "report":
		return w.report(d)
	case "cancel":
		w.input(engine.Cancel(w.state, d.Input, "tester", w.env())...)
	case "calls":
		return w.shownCalls(d)
	case "outcome":
		return w.outcome()
	case "children":
		return w.children()
	case "kept":
		return w.kept.shown()
	case "wait":
		if !w.wait() {
			return "nothing to wait for\n"
		}
	case "child":
		name := d.CmdArgs[0].String()
		w.worker.script["child "+name] = []answer{readAnswer(d.Pos, d.Input)}
		for _, c := range w.answerable() {
			if w.parent(c) == name {
				w.endChild(c)
			}
		}
	case "stored":
		return w.stored(d.CmdArgs[0].String())
	case "open":
		var b strings.Builder
		for _, c := range w.state.OpenCommands() {
			fmt.Fprintf(&b, "%s %s\n", w.label(c), c.Status)
		}
		return b.String()
	default:
		d.Fatalf(w.t.(*testing.T), "unknown line %q", d.Cmd)
	}
	return w.show(at)
}

// arguments are the values of an argument, or none.
func arguments(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return slices.Clone(a.Vals)
		}
	}
	return nil
}
