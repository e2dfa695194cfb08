package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// Values that are kept beside the log may be unreadable for a moment. Nothing
// may be decided, handed out or lost because of it.

const overItems = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: items, path: test/items}
workflow:
  - step: start
    loop: {in: "{{ workload.items }}", iterator: item}
    tool: {kind: noop, message: "{{ item }}"}
`

const overRows = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: rows, path: test/rows}
workflow:
  - step: start
    loop:
      cursor: {kind: postgres, auth: pg, claim: "SELECT 1"}
      iterator: row
      spec: {mode: cursor, frame: {max_rows: 5}}
    tool: {kind: noop, message: "{{ row }}"}
`

// refuse makes the next reads of values fail.
func (r *rig) refuse(op string, times int) {
	faults := make([]memstore.Fault, times)
	for i := range faults {
		faults[i] = memstore.Refuse
	}
	r.store.Inject(memstore.Faults{Hook: memstore.Next(op, faults...)})
}

// ends reports a command's end with a payload of its own.
func (r *rig) ends(p *running, cmd *event.Command, worker, payload string) {
	r.t.Helper()
	rep := success(r.ids.Next(), worker, 0, cmd)
	rep.Events[0].Payload = json.RawMessage(payload)
	if _, err := p.Report(r.t.Context(), rep); err != nil {
		r.t.Fatal(err)
	}
}

// refers is the payload of a result that is kept elsewhere.
func refers(ref, summary string) string {
	return fmt.Sprintf(`{"status":"success","result":{"status":"success","reference":{"ref":%q,"store":"db","extracted":%s}}}`, ref, summary)
}

func (r *rig) put(p *running, id event.ID, data string) string {
	r.t.Helper()
	stored, err := p.PutResult(r.t.Context(), id, "start", json.RawMessage(data))
	if err != nil {
		r.t.Fatal(err)
	}
	return stored.Ref
}

func TestNoCommandIsHandedOutWithoutItsItem(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil, quiet)
		r.register(first, overItems)
		item := strings.Repeat("x", 70_000)
		_, err := first.Execute(t.Context(), control.ExecuteRequest{Path: "test/items", Payload: json.RawMessage(fmt.Sprintf(`{"items":[%q,2]}`, item))})
		if err != nil {
			t.Fatal(err)
		}
		first.stop()
		p := r.plane(nil, quiet)
		r.refuse("Result", 1)
		ask := event.ClaimRequest{EventID: r.pending()[0].EventID, WorkerID: "w", Heartbeats: true}
		_, err = p.Claim(t.Context(), ask)
		wantCode(t, err, event.Unavailable, "")
		cmd, err := p.Claim(t.Context(), ask)
		if err != nil || !strings.Contains(string(cmd.Context.RenderContext), item) {
			t.Errorf("claimed again: %v", err)
		}
	})
}

func TestRowsThatCannotBeReadAreNotMissed(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first, second := r.plane(nil, quiet), r.plane(nil, quiet)
		r.register(first, overRows)
		id := r.start(first, "test/rows")
		claim := claimFor(t, first, r.pending()[0].EventID, "w")
		ref := r.put(first, id, `{"rows":[{"n":1},{"n":2}]}`)
		r.ends(first, claim, "w", refers(ref, `{"rows":[{"n":1}]}`))
		for i := range 2 {
			ask := event.ClaimRequest{EventID: r.pending()[0].EventID, WorkerID: "w", Heartbeats: true}
			if i == 0 {
				r.refuse("Result", 1)
				_, err := second.Claim(t.Context(), ask)
				wantCode(t, err, event.Unavailable, "")
			}
			row, err := second.Claim(t.Context(), ask)
			if err != nil || !strings.Contains(string(row.Context.RenderContext), fmt.Sprintf(`"row":{"n":%d}`, i+1)) {
				t.Fatalf("row %d: %v", i, err)
			}
			r.ends(second, row, "w", `{"status":"success","data":1}`)
		}
		if rows := r.pending(); len(rows) != 1 || rows[0].ToolKind != "postgres" {
			t.Errorf("pending %+v", rows)
		}
	})
}

func TestRowsThatAreGoneFailTheStep(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		r.excused = []string{control.DifferentReference}
		p := r.plane(nil, quiet)
		r.register(p, overRows)
		id := r.start(p, "test/rows")
		claim := claimFor(t, p, r.pending()[0].EventID, "w")
		ref := strings.Replace(r.put(p, id, `{}`), "start", "gone", 1)
		r.ends(p, claim, "w", refers(ref, `{"rows":[{"n":1}]}`))
		if row := r.await(p, id); row.Status != event.StatusFailed || !strings.Contains(row.Error, "not available any more") {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
	})
}

func TestALargeResultOfAChildIsReadAtOnce(t *testing.T) {
	const asksRows = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parent, path: test/parent}
workflow:
  - step: start
    tool: {kind: playbook, path: test/child, return_step: work}
    next: {arcs: [{step: seen, when: "{{ start.rows | length == 3 }}"}]}
  - {step: seen, tool: {kind: noop}}
`
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, asksRows)
		r.register(p, child)
		large := strings.Repeat("x", 60_000)
		park := asks(`{"path":"test/child","wait":true,"return_step":"work"}`)
		says := func(cmd *event.Command) *event.Incoming {
			if cmd.Action == "playbook" {
				return park(cmd)
			}
			return &event.Incoming{Type: event.CommandCompleted, Payload: json.RawMessage(fmt.Sprintf(`{"data":{"rows":[%q,%q,%q]}}`, large, large, large))}
		}
		r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, says: says}, 1)
		id := r.start(p, "test/parent")
		if row := r.await(p, id); row.Status != event.StatusCompleted || r.data(id, "seen") == "" {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
	})
}

func TestAnOutageDoesNotSpoilTheResultOfAChild(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, parent)
		r.register(p, child)
		park := asks(`{"path":"test/child","wait":true,"return_step":"work"}`)
		says := func(cmd *event.Command) *event.Incoming {
			switch cmd.NodeName {
			case "work":
				return &event.Incoming{Type: event.CommandCompleted, Payload: json.RawMessage(refers(r.put(p, cmd.ExecutionID, `{"answer":42}`), `{"_truncated":true}`))}
			case "end":
				r.refuse("Result", 3)
				return nil
			}
			return park(cmd)
		}
		r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, says: says}, 1)
		id := r.start(p, "test/parent")
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
	})
}

// slow is a catalog that takes its time to find the child.
type slow struct{ store.Store }

func (b slow) EntryByPath(ctx context.Context, path string, version int) (store.Entry, error) {
	if path == "test/child" {
		time.Sleep(5 * time.Second)
	}
	return b.Store.EntryByPath(ctx, path, version)
}

func TestAChildDoesNotOutliveTheCancellationThatOvertookItsStart(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, func(o *control.Options) { o.Store = slow{r.store} })
		id := r.family(p, asks(`{"path":"test/child","wait":true}`), nil)
		time.Sleep(time.Second)
		if _, err := p.Cancel(t.Context(), id, control.CancelRequest{Cascade: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		for _, kid := range r.children(id) {
			if kid.Status != event.StatusCancelled {
				t.Errorf("the child is %s", kid.Status)
			}
		}
	})
}

// Whoever held a command before it was parked, and whoever else knows its id,
// has no say in what it waits for.
func TestOnlyTheChildEndsTheWaitForIt(t *testing.T) {
	for _, worker := range []string{"", "w1", "w2"} {
		t.Run("worker "+worker, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRig(t)
				p := r.plane(nil, quiet)
				r.register(p, parent)
				r.register(p, child)
				id := r.start(p, "test/parent")
				pending := r.pending()[0].EventID
				former := claimFor(t, p, pending, "w1")
				time.Sleep(2 * time.Minute)
				holder := claimFor(t, p, pending, "w2")
				park := success(r.ids.Next(), "w2", 0, holder)
				park.Events[0].Type, park.Events[0].Payload = event.CommandParked, json.RawMessage(`{"park":{"child":{"path":"test/child","wait":true}}}`)
				if _, err := p.Report(t.Context(), park); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				cmd := holder
				if worker == "w1" {
					cmd = former
				}
				for _, what := range []event.Type{event.CallDone, event.CommandCompleted, event.CommandFailed, event.CommandParked} {
					rep := success(r.ids.Next(), worker, 0, cmd)
					rep.Events[0].Type = what
					if what == event.CommandParked {
						rep.Events[0].Payload = park.Events[0].Payload
					}
					if _, err := p.Report(t.Context(), rep); err != nil {
						t.Fatal(err)
					}
				}
				if got := r.data(id, "start"); got != "" || len(r.children(id)) != 1 {
					t.Errorf("ended with %s, %d children", got, len(r.children(id)))
				}
			})
		})
	}
}

// undone is a catalog whose playbooks cannot be read any more.
type undone struct{ store.Store }

func (b undone) Entry(ctx context.Context, id event.ID) (store.Entry, error) {
	e, err := b.Store.Entry(ctx, id)
	e.Content = "kind: Playbook\nworkflow: 7\n"
	return e, err
}

func TestADueTimerOfAPlaybookThatCannotRunKeepsNobodyBusy(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil, quiet)
		r.register(first, bounded)
		r.start(first, "test/bounded")
		first.stop()
		var looks atomic.Int64
		r.plane(nil, func(o *control.Options) {
			o.Store = undone{r.store}
			o.Clock = func() time.Time { looks.Add(1); return time.Now() }
		})
		time.Sleep(10 * time.Minute)
		looks.Store(0)
		time.Sleep(10 * time.Minute)
		if perSecond := looks.Load() / 600; perSecond > 20 {
			t.Errorf("the clock was read %d times a second", perSecond)
		}
	})
}

func TestACommandWhoseValuesAreGoneFails(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		first := r.plane(nil, quiet)
		r.register(first, overItems)
		a, err := first.Execute(t.Context(), control.ExecuteRequest{
			Path: "test/items", Payload: json.RawMessage(fmt.Sprintf(`{"items":[%q]}`, strings.Repeat("x", 70_000))),
		})
		if err != nil {
			t.Fatal(err)
		}
		first.stop()
		p := r.plane(nil, func(o *control.Options) { o.Store = amnesic{r.store} })
		r.hire("w", 1, 0, p)
		if row := r.await(p, a.ExecutionID); row.Status != event.StatusFailed || !strings.Contains(row.Error, "not available any more") {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
		r.verify(a.ExecutionID)
	})
}

// amnesic is a store that has lost its large values.
type amnesic struct{ store.Store }

func (amnesic) Result(context.Context, event.ID, string) (store.Result, error) {
	return store.Result{}, store.ErrNotFound
}

func TestAReplicaFiresTimersItDidNotSet(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		late := func(o *control.Options) { o.Recover = time.Hour }
		first, second := r.plane(nil, late, longLease), r.plane(nil, late, longLease)
		r.register(first, bounded)
		id := r.start(first, "test/bounded")
		if _, err := second.Explain(t.Context(), id, ""); err != nil { // it knows the execution as it is now
			t.Fatal(err)
		}
		cmd := claimFor(t, first, r.pending()[0].EventID, "w")
		park := success(r.ids.Next(), "w", 0, cmd)
		park.Events[0].Type, park.Events[0].Payload = event.CommandParked, json.RawMessage(`{"park":{"delay_seconds":5,"resume":{}}}`)
		if _, err := first.Report(t.Context(), park); err != nil {
			t.Fatal(err)
		}
		first.stop()
		time.Sleep(8 * time.Second)
		if rows := r.pending(); len(rows) != 1 {
			t.Errorf("pending %+v", rows)
		}
	})
}

func TestAChildKeepsTheVersionItStartedWith(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		id := r.family(p, asks(`{"path":"test/child"}`), func(cmd *event.Command) bool { return cmd.NodeName == "work" })
		time.Sleep(2 * time.Second)
		kid := r.children(id)[0].ExecutionID
		r.register(p, strings.ReplaceAll(child, "step: end", "step: other"))
		// A second start under the same id changes nothing.
		if _, err := p.Explain(t.Context(), kid, "end"); err != nil {
			t.Fatal(err)
		}
		p.stop()
		q := r.plane(nil)
		r.hire("w2", 1, 0, q)
		r.await(q, kid)
		if r.data(kid, "end") == "" {
			t.Errorf("the child did not end with its own step: %+v", r.fold(kid).Outcome())
		}
	})
}

func TestWhoAsksForAChildTooEarlyDoesNotKeepItFromStarting(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, func(o *control.Options) { o.Store = slow{r.store} })
		id := r.family(p, asks(`{"path":"test/child","wait":true,"return_step":"work"}`), nil)
		for range 70 {
			time.Sleep(100 * time.Millisecond)
			for _, e := range logOf(r, id) {
				if e.Type == event.ChildIssued {
					_, _ = p.Explain(t.Context(), e.EventID, "")
				}
			}
		}
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
	})
}

func logOf(r *rig, id event.ID) []event.Event {
	r.t.Helper()
	events, err := r.store.Events(context.Background(), id, 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	return events
}

// A command that goes on after the wait gets all of its child's result.
func TestALargeResultOfAChildWakesACommandWhole(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, parent)
		r.register(p, child)
		large := strings.Repeat("x", 150_000)
		var woken int
		says := func(cmd *event.Command) *event.Incoming {
			switch {
			case cmd.Action != "playbook":
				return &event.Incoming{Type: event.CommandCompleted, Payload: json.RawMessage(fmt.Sprintf(`{"data":{"text":%q}}`, large))}
			case cmd.Meta.Resume == nil:
				return &event.Incoming{Type: event.CommandParked, Payload: json.RawMessage(`{"park":{"child":{"path":"test/child","wait":true,"return_step":"work"},"resume":{}}}`)}
			}
			woken = len(cmd.Meta.Resume.Wake.Data)
			return nil
		}
		r.employ(&crew{r: r, id: "w", planes: []*control.Plane{p.Plane}, says: says}, 1)
		id := r.start(p, "test/parent")
		if row := r.await(p, id); row.Status != event.StatusCompleted || woken < len(large) {
			t.Errorf("%s: %s; woken with %d bytes", row.Status, row.Error, woken)
		}
	})
}
