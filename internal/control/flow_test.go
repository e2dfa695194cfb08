package control_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func TestALinearPlaybookRunsToItsEnd(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.hire("w1", 2, 0, p)
		r.register(p, linear)
		answer, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/linear", Payload: json.RawMessage(`{"n":2}`)})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status != "started" || answer.CommandsGenerated != 1 {
			t.Errorf("answer is %+v", answer)
		}
		row := r.await(p, answer.ExecutionID)
		if row.Status != event.StatusCompleted || row.StepsCompleted != 4 {
			t.Errorf("row is %+v", row)
		}
		r.verify(answer.ExecutionID)
		workload, err := p.Workload(t.Context(), answer.ExecutionID)
		if err != nil || string(workload) != `{"n":2}` {
			t.Errorf("workload is %s, %v", workload, err)
		}
		outcome, err := p.Outcome(t.Context(), answer.ExecutionID)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, o := range outcome {
			names = append(names, o.Name+" "+o.Status)
		}
		want := []string{"start COMPLETED", "b COMPLETED", "c COMPLETED", "end COMPLETED"}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("outcome (-want +got):\n%s", diff)
		}
	})
}

func TestAParallelLoopRunsEachIterationOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		w := r.hire("w1", 4, 1, p)
		r.register(p, fanout)
		answer, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/fanout"})
		if err != nil {
			t.Fatal(err)
		}
		if answer.CommandsGenerated != 10 {
			t.Errorf("commands generated: %d, want the number of items", answer.CommandsGenerated)
		}
		if row := r.await(p, answer.ExecutionID); row.Status != event.StatusCompleted {
			t.Errorf("row is %+v", row)
		}
		r.verify(answer.ExecutionID)
		commands := 0
		w.runs.Range(func(_, n any) bool { commands++; return true })
		if commands != 11 {
			t.Errorf("worker ran %d commands, want 11", commands)
		}
	})
}

func TestAnEagerChainCostsOneAppendPerStep(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.hire("w1", 1, 1, p)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		r.await(p, id)
		// start, claim of the first command, and one report per step
		if got := p.Stats(); got.Appends != 6 || got.Eager != 3 || got.Published != 1 {
			t.Errorf("stats are %+v, want 6 appends, 3 eager commands, 1 notification", got)
		}
		r.verify(id)
	})
}

func TestTheLocalWorkerNeedsNoClaimAndNoNotification(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		d := newDesk(r, 2)
		p := r.plane(d)
		d.serve(p, 2)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		r.await(p, id)
		if got := p.Stats(); got.Appends != 5 || got.Eager != 4 || got.Published != 0 {
			t.Errorf("stats are %+v, want 5 appends, 4 eager commands, no notification", got)
		}
		r.verify(id)
	})
}

func TestTheLocalWorkerTakesNoMoreThanItHasSlots(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		d := newDesk(r, 3)
		p := r.plane(d, func(o *control.Options) { o.Republish = time.Hour })
		r.register(p, fanout)
		r.start(p, "test/fanout")
		if len(d.got) != 3 || len(d.slots) != 3 {
			t.Errorf("delivered %d with %d slots taken, want 3 and 3", len(d.got), len(d.slots))
		}
		if n := len(r.pending()); n != 7 {
			t.Errorf("%d commands wait, want 7", n)
		}
	})
}

func TestOnlyReportsThatAskReceiveCommands(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, fanout)
		id := r.start(p, "test/fanout")
		waiting := r.pending()
		claim := func(i int) *event.Command {
			cmd, err := p.Claim(t.Context(), event.ClaimRequest{EventID: waiting[i].EventID, WorkerID: "w"})
			if err != nil {
				t.Fatal(err)
			}
			return cmd
		}
		silent, err := p.Report(t.Context(), success(r.ids.Next(), "w", 0, claim(0)))
		if err != nil || len(silent.Commands) != 0 {
			t.Fatalf("got %+v, %v; want no commands", silent, err)
		}
		nameless := success(r.ids.Next(), "w", 2, claim(1))
		nameless.WorkerID = ""
		anonymous, err := p.Report(t.Context(), nameless)
		if err != nil || len(anonymous.Commands) != 0 {
			t.Fatalf("got %+v, %v; want no commands", anonymous, err)
		}
		asked, err := p.Report(t.Context(), success(r.ids.Next(), "w", 2, claim(2)))
		if err != nil || len(asked.Commands) != 2 {
			t.Fatalf("got %+v, %v; want two commands", asked, err)
		}
		for i, c := range asked.Commands {
			if c.EventID != waiting[3+i].EventID || c.ExecutionID != id || c.LeaseUntil.IsZero() || c.Meta.Attempt != 1 {
				t.Errorf("command %d is %+v, want the oldest one waiting", i, c)
			}
		}
	})
}

func TestAPlaybookThatCannotStartLeavesNothingBehind(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: bad, path: test/bad}
workload: {items: 7}
workflow:
  - step: start
    loop: {in: "{{ workload.items }}", iterator: item}
    tool: {kind: noop}
`)
		_, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/bad"})
		wantCode(t, err, event.Invalid, "")
		_, err = p.Execute(t.Context(), control.ExecuteRequest{Path: "test/none"})
		wantCode(t, err, event.NotFound, "")
		if err.Error() != "Playbook not found: test/none" {
			t.Errorf("message is %q", err)
		}
		_, err = p.Execute(t.Context(), control.ExecuteRequest{CatalogID: 12})
		wantCode(t, err, event.NotFound, "")
		_, err = p.Execute(t.Context(), control.ExecuteRequest{})
		wantCode(t, err, event.Invalid, "")
		if s := p.Stats(); s.Appends != 0 {
			t.Errorf("%d appends, want none", s.Appends)
		}
	})
}

func TestTheTraceOfTheParentIsInherited(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, single)
		trace := json.RawMessage(`{"traceparent":"00-1-2-01"}`)
		parent, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		other := r.plane(nil) // has nothing cached
		for _, q := range []*running{p, other} {
			child, err := q.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", ParentExecutionID: parent.ExecutionID})
			if err != nil {
				t.Fatal(err)
			}
			s := r.fold(child.ExecutionID)
			if string(s.Trace()) != string(trace) {
				t.Errorf("trace is %s", s.Trace())
			}
		}
		if _, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", ParentExecutionID: 99}); err != nil {
			t.Errorf("a parent that is not here: %v", err)
		}
	})
}
