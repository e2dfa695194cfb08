package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const parent = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parent, path: test/parent}
workflow:
  - step: start
    tool: {kind: playbook, path: test/child, return_step: work}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop, message: "{{ start.answer }}"}
`

const child = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: test/child}
workload: {n: 0}
workflow:
  - step: work
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - step: end
    tool: {kind: noop}
`

// asks makes a worker that parks every command of kind playbook with req, and
// answers others with {"answer": 42}.
func asks(req string) func(cmd *event.Command) *event.Incoming {
	return func(cmd *event.Command) *event.Incoming {
		if cmd.Action == "playbook" {
			return &event.Incoming{Type: event.CommandParked, Payload: json.RawMessage(fmt.Sprintf(`{"park":{"child":%s}}`, req))}
		}
		return &event.Incoming{Type: event.CommandCompleted, Payload: json.RawMessage(`{"status":"success","data":{"answer":42}}`)}
	}
}

func (r *rig) family(p *running, says func(*event.Command) *event.Incoming, drop func(*event.Command) bool) event.ID {
	r.t.Helper()
	r.register(p, parent)
	r.register(p, child)
	r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, says: says, drop: drop}, 1)
	return r.start(p, "test/parent")
}

func (r *rig) children(id event.ID) []store.Execution {
	r.t.Helper()
	rows, err := r.store.ListExecutions(context.Background(), store.ExecutionFilter{ParentID: id})
	if err != nil {
		r.t.Fatal(err)
	}
	return rows
}

func (r *rig) data(id event.ID, step string) string {
	r.t.Helper()
	for _, o := range r.fold(id).Outcome() {
		if o.Name == step {
			return string(o.Result)
		}
	}
	return ""
}

func TestAStepWaitsForItsChildWithoutAWorker(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.family(p, asks(`{"path":"test/child","wait":true,"return_step":"work","payload":{"n":5}}`), nil)
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Fatalf("parent %s: %s", row.Status, row.Error)
		}
		kids := r.children(id)
		if len(kids) != 1 || kids[0].Status != event.StatusCompleted {
			t.Fatalf("children %+v", kids)
		}
		want := fmt.Sprintf(`{"status":"COMPLETED","execution_id":"%s","path":"test/child","answer":42}`, kids[0].ExecutionID)
		if got := r.data(id, "start"); got != want {
			t.Errorf("result is %s, want %s", got, want)
		}
		r.verify(id)
		r.verify(kids[0].ExecutionID)
	})
}

func TestAStepThatDoesNotWaitGoesOnOnceItsChildHasStarted(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.family(p, asks(`{"path":"test/child"}`), nil)
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Fatalf("parent %s: %s", row.Status, row.Error)
		}
		kids := r.children(id)
		want := fmt.Sprintf(`{"status":"started","execution_id":"%s","path":"test/child","async":true}`, kids[0].ExecutionID)
		if got := r.data(id, "start"); got != want {
			t.Errorf("result is %s, want %s", got, want)
		}
		r.await(p, kids[0].ExecutionID)
	})
}

func TestAChildThatCannotStartFailsTheStep(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.family(p, asks(`{"path":"test/nowhere","wait":true}`), nil)
		row := r.await(p, id)
		if row.Status != event.StatusFailed || !strings.Contains(row.Error, "test/nowhere") {
			t.Errorf("parent %s: %s", row.Status, row.Error)
		}
		r.verify(id)
	})
}

// The child's start, its end and the cancellation of it may each be lost with
// the process; the logs say what is to be done.
func TestAFamilySurvivesTheProcess(t *testing.T) {
	wait := asks(`{"path":"test/child","wait":true,"return_result":true}`)
	for _, c := range []struct {
		name string
		stop func(cmd *event.Command) bool // the process dies instead of hearing of this command
	}{
		{"before the child starts", func(cmd *event.Command) bool { return cmd.Action == "playbook" }},
		{"while the child runs", func(cmd *event.Command) bool { return cmd.NodeName == "work" }},
		{"before the child ends", func(cmd *event.Command) bool { return cmd.NodeName == "end" && cmd.Action == "noop" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				first := r.plane(nil)
				id := r.family(first, wait, c.stop)
				time.Sleep(2 * time.Second)
				first.stop()
				p := r.plane(nil)
				r.employ(&crew{r: r, id: "w2", planes: []*control.Plane{p.Plane}, says: wait}, 1)
				if row := r.await(p, id); row.Status != event.StatusCompleted {
					t.Fatalf("parent %s: %s", row.Status, row.Error)
				}
				if kids := r.children(id); len(kids) != 1 {
					t.Errorf("%d children", len(kids))
				}
				if got := r.data(id, "start"); got != `{"answer":42}` {
					t.Errorf("result is %s", got)
				}
				r.verify(id)
			})
		})
	}
}

// A message between executions that is lost while the process lives is made
// up for by the recovery sweep.
func TestNewsOfAChildThatIsLostIsFoundInItsLog(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		r.unproven = true
		first := r.plane(nil)
		id := r.family(first, asks(`{"path":"test/child","wait":true,"return_result":true}`), func(cmd *event.Command) bool {
			return cmd.NodeName == "work"
		})
		time.Sleep(2 * time.Second)
		first.stop()
		kid := r.children(id)[0].ExecutionID
		// Another process finishes the child and dies before it tells the parent.
		s := r.fold(kid)
		if err := r.store.Append(t.Context(), finished(r, s)); err != nil {
			t.Fatal(err)
		}
		p := r.plane(nil)
		row := r.await(p, id)
		if row.Status != event.StatusFailed || !strings.Contains(row.Error, "was cancelled") {
			t.Errorf("parent %s: %s", row.Status, row.Error)
		}
	})
}

func TestCancellingAParentCancelsTheChildItWaitsFor(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.family(p, asks(`{"path":"test/child","wait":true}`), func(cmd *event.Command) bool { return cmd.NodeName == "work" })
		time.Sleep(2 * time.Second)
		if _, err := p.Cancel(t.Context(), id, control.CancelRequest{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		kids := r.children(id)
		if len(kids) != 1 || kids[0].Status != event.StatusCancelled {
			t.Errorf("children %+v", kids)
		}
	})
}

func TestAPlaybookThatStartsItselfIsStopped(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, strings.ReplaceAll(parent, "test/parent", "test/self"))
		r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, says: asks(`{"path":"test/self","wait":true}`)}, 1)
		id := r.start(p, "test/self")
		row := r.await(p, id)
		if row.Status != event.StatusFailed || !strings.Contains(row.Error, "does it start itself?") {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
		rows, err := r.store.ListExecutions(t.Context(), store.ExecutionFilter{Limit: 100})
		if err != nil || len(rows) != engine.DefaultLimits.Depth+1 {
			t.Errorf("%d executions, %v", len(rows), err)
		}
	})
}

// finished is the batch by which another process cancels the execution.
func finished(r *rig, s *engine.State) store.Batch {
	env := engine.Env{Now: time.Now(), NewID: r.ids.Next}
	before := s.Seq()
	var rows []store.Command
	events := engine.Cancel(s, "over", "somebody", env)
	for i := range events {
		if eff := s.Apply(&events[i]); eff.Command != nil {
			c := eff.Command
			rows = append(rows, store.Command{
				ExecutionID: s.Summary().ExecutionID, EventID: c.EventID, CommandID: c.ID, Step: c.Step, ToolKind: c.Kind, Pool: s.Pool(),
				Status: c.Status, IterIndex: c.Index, MaxAttempts: c.MaxAttempts, CreatedAt: c.CreatedAt, EndedAt: c.EndedAt,
			})
		}
	}
	sum := s.Summary()
	return store.Batch{Expected: before, Events: events, Commands: rows, Execution: store.Execution{
		ExecutionID: sum.ExecutionID, CatalogID: sum.CatalogID, ParentExecutionID: sum.ParentExecutionID, Path: sum.Path,
		Version: sum.Version, Pool: sum.Pool, Status: sum.Status, LastSeq: sum.LastSeq, LastEventID: sum.LastEventID,
		StartedAt: sum.StartedAt, EndedAt: sum.EndedAt, UpdatedAt: sum.UpdatedAt,
	}}
}

func TestAChildIsNoWayToWhatItsStarterMayNotStart(t *testing.T) {
	for name, tc := range map[string]struct {
		actor   *event.Actor
		request string
		runs    bool
	}{
		"nobody in particular": {nil, `{"path":"test/child","wait":true}`, true},
		"covered":              {&event.Actor{ID: "token:1", Within: []string{"test"}}, `{"path":"/test/child/","wait":true}`, true},
		"beside":               {&event.Actor{ID: "token:1", Within: []string{"test/parent", "tes"}}, `{"path":"test/child","wait":true}`, false},
		"unknown":              {&event.Actor{ID: "token:1", Within: []string{"test/parent"}}, `{"path":"test/nowhere","wait":true}`, false},
		"not waited for":       {&event.Actor{ID: "token:1", Within: []string{"test/parent"}}, `{"path":"test/child"}`, false},
		"by id":                {&event.Actor{ID: "token:1", Within: []string{"test/parent"}}, `{"catalog_id":%d,"wait":true}`, false},
		"left out":             {&event.Actor{ID: "token:1", Without: []string{"test/child"}}, `{"path":"test/child","wait":true}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil)
				r.register(p, parent)
				entry := r.register(p, child)
				request := strings.Replace(tc.request, "%d", entry.CatalogID.String(), 1)
				r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, says: asks(request)}, 1)
				a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/parent", Actor: tc.actor})
				if err != nil {
					t.Fatal(err)
				}
				row, kids := r.await(p, a.ExecutionID), r.children(a.ExecutionID)
				if !tc.runs {
					if row.Status != event.StatusFailed || !strings.Contains(row.Error, "may not start") || strings.Contains(row.Error, "not found") || len(kids) != 0 {
						t.Errorf("%s: %s; %d children", row.Status, row.Error, len(kids))
					}
					return
				}
				if row.Status != event.StatusCompleted || len(kids) != 1 {
					t.Fatalf("%s: %s; %d children", row.Status, row.Error, len(kids))
				}
				if got := r.fold(kids[0].ExecutionID).Actor(); !reflect.DeepEqual(got, tc.actor) {
					t.Errorf("the child is started by %+v", got)
				}
			})
		})
	}
}

func TestTheWorkersOfTheSystemAreKeptToAdmins(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, child)
		r.register(p, strings.Replace(strings.Replace(child, "test/child", "test/pooled", 1), "workload:", "executor: {spec: {pool: system}}\nworkload:", 1))
		operator := &event.Actor{ID: "token:1", Without: []string{"system"}}
		for _, tc := range []struct {
			who        *event.Actor
			path, pool string
			ok         bool
		}{
			{operator, "test/child", "", true},
			{operator, "test/child", "gpu", true},
			{operator, "test/child", "system", false},
			{operator, "test/pooled", "", false},
			{operator, "test/pooled", "shared", true},
			{&event.Actor{ID: "token:2", Within: []string{"test"}}, "test/child", "system", false},
			{&event.Actor{ID: "token:3"}, "test/child", "system", true},
			{nil, "test/pooled", "", true},
		} {
			_, err := p.Execute(t.Context(), control.ExecuteRequest{Path: tc.path, Pool: tc.pool, Actor: tc.who})
			if tc.ok != (err == nil) || err != nil && event.CodeOf(err) != event.Forbidden {
				t.Errorf("%+v %s in %q: %v", tc.who, tc.path, tc.pool, err)
			}
		}
	})
}
