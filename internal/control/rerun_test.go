package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

const carried = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: carried, path: test/carried}
workload: {who: nobody, limit: 1, extra: 0}
workflow:
  - step: start
    tool: {kind: noop}
    set: {ctx.seen: "{{ output.n }}"}
    next: {arcs: [{step: work}, {step: never, when: "{{ false }}"}]}
  - step: work
    tool: {kind: noop, with: "{{ start.n }} {{ seen }} {{ workload.who }} {{ workload.limit }}"}
    next: {arcs: [{step: end}]}
  - {step: never, tool: {kind: noop}}
  - {step: end, tool: {kind: noop, with: "{{ work.done }} {{ start.n }}"}}
`

// doing reports data for each step; a step without is reported as failed.
func doing(data map[string]string, runs *[]string) func(cmd *event.Command) *event.Incoming {
	return func(cmd *event.Command) *event.Incoming {
		*runs = append(*runs, cmd.NodeName)
		if d, ok := data[cmd.NodeName]; ok {
			return &event.Incoming{Type: event.CommandCompleted, Payload: json.RawMessage(fmt.Sprintf(
				`{"command_id":%q,"status":"success","result":{"status":"success","context":{"data":%s}}}`, cmd.Meta.CommandID, d))}
		}
		return &event.Incoming{Type: event.CommandFailed, Payload: json.RawMessage(fmt.Sprintf(
			`{"command_id":%q,"error":{"kind":"logic","message":"broken"}}`, cmd.Meta.CommandID))}
	}
}

// failedAtWork runs the playbook until its second step fails; later runs of the
// step succeed.
func failedAtWork(t *testing.T, r *rig, q control.ExecuteRequest) (p *running, id event.ID, runs *[]string) {
	t.Helper()
	p = r.plane(nil, quiet)
	r.register(p, carried)
	runs = new([]string)
	data := map[string]string{"start": `{"n":7}`, "end": `{}`}
	w := &crew{r: r, id: "w", eager: 1, planes: []*control.Plane{p.Plane}, says: doing(data, runs)}
	r.employ(w, 1)
	q.Path = "test/carried"
	a, err := p.Execute(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if row := r.await(p, a.ExecutionID); row.Status != event.StatusFailed {
		t.Fatalf("the original is %+v", row)
	}
	data["work"] = `{"done":true}`
	*runs = nil
	return p, a.ExecutionID, runs
}

func TestARerunFromAStepReusesWhatEndedBefore(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p, id, runs := failedAtWork(t, r, control.ExecuteRequest{Payload: json.RawMessage(`{"who":"me","x":1}`), Trace: json.RawMessage(`{"traceparent":"a"}`)})
		a, err := p.Rerun(t.Context(), id, control.RerunRequest{FromStep: "work", Payload: json.RawMessage(`{"limit":5}`)})
		if err != nil || a.Status != "started" || a.CommandsGenerated != 1 || a.ExecutionID == id {
			t.Fatalf("%+v, %v", a, err)
		}
		row := r.await(p, a.ExecutionID)
		if row.Status != event.StatusCompleted || row.StepsCompleted != 3 || row.StepsTotal != 3 {
			t.Errorf("row is %+v", row)
		}
		if got := strings.Join(*runs, " "); got != "work end" {
			t.Errorf("ran %s", got)
		}
		s := r.verify(a.ExecutionID)
		for _, o := range s.Outcome() {
			if reused := o.Name == "start" || o.Name == "never"; reused != (o.Reused == id) {
				t.Errorf("%s was reused from %v", o.Name, o.Reused)
			}
		}
		events, err := p.Events(t.Context(), a.ExecutionID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		var meta map[string]any
		if err := json.Unmarshal(events[0].Meta, &meta); err != nil || meta["rerun_of"] != id.String() || meta["from_step"] != "work" {
			t.Errorf("meta of the start is %s, %v", events[0].Meta, err)
		}
		if w, err := p.Workload(t.Context(), a.ExecutionID); err != nil || string(w) != `{"who":"me","limit":5,"extra":0,"x":1}` {
			t.Errorf("workload is %s, %v", w, err)
		}
		for i := range events {
			if events[i].Type == event.CommandIssued && events[i].NodeName == "work" {
				want := `"start":{"n":7}`
				if got := string(events[i].Context); !strings.Contains(got, want) || !strings.Contains(got, `"seen":7`) || !strings.Contains(got, `"limit":5`) {
					t.Errorf("work was given %s", got)
				}
			}
		}
		if string(s.Trace()) != `{"traceparent":"a"}` {
			t.Errorf("trace is %s", s.Trace())
		}
		explained, err := p.Explain(t.Context(), a.ExecutionID, "start")
		if err != nil || !strings.Contains(explained[0].Reason, "reused from execution "+id.String()) {
			t.Errorf("%+v, %v", explained, err)
		}
	})
}

func TestARerunOfAllRunsAll(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p, id, runs := failedAtWork(t, r, control.ExecuteRequest{Payload: json.RawMessage(`{"who":"me"}`)})
		a, err := p.Rerun(t.Context(), id, control.RerunRequest{})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, a.ExecutionID)
		r.verify(a.ExecutionID)
		if got := strings.Join(*runs, " "); got != "start work end" {
			t.Errorf("ran %s", got)
		}
		if w, err := p.Workload(t.Context(), a.ExecutionID); err != nil || string(w) != `{"who":"me","limit":1,"extra":0}` {
			t.Errorf("workload is %s, %v", w, err)
		}
		b, err := p.Rerun(t.Context(), a.ExecutionID, control.RerunRequest{FromStep: "end"})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, b.ExecutionID)
		c, err := p.Rerun(t.Context(), b.ExecutionID, control.RerunRequest{FromStep: "end"})
		if err != nil {
			t.Fatal(err)
		}
		r.await(p, c.ExecutionID)
		for _, o := range r.verify(c.ExecutionID).Outcome() {
			if o.Name == "start" && o.Reused != a.ExecutionID {
				t.Errorf("start was reused from %v, it ran in %v", o.Reused, a.ExecutionID)
			}
		}
	})
}

func TestARerunThatCannotBeIsRefused(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p, id, _ := failedAtWork(t, r, control.ExecuteRequest{})
		before := r.executions()
		for _, tc := range []struct {
			id   event.ID
			r    control.RerunRequest
			code event.Code
			text string
		}{
			{id + 1, control.RerunRequest{}, event.NotFound, "Execution not found"},
			{id, control.RerunRequest{FromStep: "nowhere"}, event.Invalid, "start, work, never, end"},
			{id, control.RerunRequest{FromStep: "end"}, event.Invalid, "never reached"},
			{id, control.RerunRequest{FromStep: "never"}, event.Invalid, "never reached"},
			{id, control.RerunRequest{Version: 9}, event.NotFound, "test/carried"},
			{id, control.RerunRequest{Payload: json.RawMessage(`[1]`)}, event.Invalid, "object"},
		} {
			_, err := p.Rerun(t.Context(), tc.id, tc.r)
			wantCode(t, err, tc.code, "")
			if !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%+v: %v", tc.r, err)
			}
		}
		if n := r.executions(); n != before {
			t.Errorf("%d executions were started", n-before)
		}
	})
}

func TestARerunOfAnotherVersionTakesItsDefaults(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p, id, runs := failedAtWork(t, r, control.ExecuteRequest{Payload: json.RawMessage(`{"who":"me"}`)})
		changed := strings.Replace(carried, "limit: 1", "limit: 2", 1)
		changed = strings.Replace(changed, "  - {step: end,", "  - {step: more, tool: {kind: noop}}\n  - {step: end,", 1)
		if v := r.register(p, changed).Version; v != 2 {
			t.Fatalf("version %d", v)
		}
		for _, q := range []control.RerunRequest{{Latest: true, FromStep: "work"}, {Version: 2, FromStep: "work"}, {FromStep: "work"}, {Version: 1, FromStep: "work"}} {
			*runs = nil
			a, err := p.Rerun(t.Context(), id, q)
			if err != nil {
				t.Fatal(err)
			}
			row := r.await(p, a.ExecutionID)
			version, limit := 1, 1
			if q.Latest || q.Version == 2 {
				version, limit = 2, 2
			}
			w, err := p.Workload(t.Context(), a.ExecutionID)
			if err != nil || row.Version != version || !strings.Contains(string(w), fmt.Sprintf(`"limit":%d`, limit)) || !strings.Contains(string(w), `"who":"me"`) {
				t.Errorf("%+v: version %d with %s, %v", q, row.Version, w, err)
			}
			if got := strings.Join(*runs, " "); got != "work end" {
				t.Errorf("ran %s", got)
			}
			r.verify(a.ExecutionID)
		}
	})
}

func TestARunningExecutionCanBeRerun(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/single", Pool: "gpu", ParentExecutionID: 3})
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.Rerun(t.Context(), a.ExecutionID, control.RerunRequest{})
		if err != nil {
			t.Fatal(err)
		}
		row, err := p.Execution(t.Context(), b.ExecutionID)
		if err != nil || row.Pool != "gpu" || row.ParentExecutionID != 3 || row.Status != event.StatusRunning {
			t.Errorf("%+v, %v", row, err)
		}
		if first, err := p.Execution(t.Context(), a.ExecutionID); err != nil || first.Status != event.StatusRunning {
			t.Errorf("the original is %+v, %v", first, err)
		}
	})
}

const heavy = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: heavy, path: test/heavy}
workflow:
  - {step: start, tool: {kind: noop}, next: {arcs: [{step: many}]}}
  - step: many
    loop: {in: "{{ range(40) | list }}", iterator: i, spec: {mode: parallel}}
    tool: {kind: noop}
    next: {arcs: [{step: end}]}
  - {step: end, tool: {kind: noop, with: "{{ start.text | length }} {{ many.count }} {{ many[39].i }}"}}
`

func TestLargeResultsAreReused(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, heavy)
		var fail atomic.Bool
		fail.Store(true)
		fill := strings.Repeat("x", 8<<10)
		w := &crew{r: r, id: "w", eager: 1, planes: []*control.Plane{p.Plane}}
		w.says = func(cmd *event.Command) *event.Incoming {
			in := &event.Incoming{Type: event.CommandCompleted}
			switch {
			case cmd.NodeName == "start":
				kept, err := p.PutResult(t.Context(), cmd.ExecutionID, "start", json.RawMessage(fmt.Sprintf(`{"text":%q}`, fill)))
				if err != nil {
					t.Error(err)
				}
				in.Payload = json.RawMessage(fmt.Sprintf(`{"command_id":%q,"status":"success","result":{"status":"success","reference":{"kind":"result_ref","ref":%q,"store":"db","extracted":{"text":{"_len":8192}}}}}`, cmd.Meta.CommandID, kept.Ref))
			case cmd.NodeName == "many":
				in.Payload = json.RawMessage(fmt.Sprintf(`{"command_id":%q,"status":"success","data":{"i":%d,"fill":%q}}`, cmd.Meta.CommandID, *cmd.Meta.IterationIndex, fill))
			case fail.Load():
				in.Type = event.CommandFailed
				in.Payload = json.RawMessage(fmt.Sprintf(`{"command_id":%q,"error":"broken"}`, cmd.Meta.CommandID))
			default:
				return nil
			}
			return in
		}
		r.employ(w, 4)
		id := r.start(p, "test/heavy")
		if row := r.await(p, id); row.Status != event.StatusFailed {
			t.Fatalf("%+v", row)
		}
		fail.Store(false)
		a, err := p.Rerun(t.Context(), id, control.RerunRequest{FromStep: "end"})
		if err != nil {
			t.Fatal(err)
		}
		if row := r.await(p, a.ExecutionID); row.Status != event.StatusCompleted {
			t.Errorf("%+v", row)
		}
		again := map[string]string{}
		for _, o := range r.verify(a.ExecutionID).Outcome() {
			again[o.Name] = string(o.Result) + o.Ref
		}
		for _, o := range r.verify(id).Outcome() {
			if o.Name != "end" && again[o.Name] != string(o.Result)+o.Ref {
				t.Errorf("%s is %.100s, was %.100s", o.Name, again[o.Name], o.Result)
			}
		}
		checked, err := control.Verify(t.Context(), control.VerifyOptions{Store: r.store, Execution: a.ExecutionID})
		if err != nil || !checked.Clean || checked.Results != 1 {
			t.Errorf("the check of the rerun found %+v, %v", checked, err)
		}
		events, err := p.Events(t.Context(), a.ExecutionID, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if n := len(events[i].Result); n > 100<<10 {
				t.Errorf("event %d (%s) has %d bytes", i, events[i].Type, n)
			}
		}
	})
}
