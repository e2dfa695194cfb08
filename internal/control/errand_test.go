package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// held is a store whose appends and looks at commands can be delayed.
type held struct {
	store.Store
	append  func(b store.Batch)
	command func(row store.Command)
}

func (h *held) Append(ctx context.Context, b store.Batch) error {
	if h.append != nil {
		h.append(b)
	}
	return h.Store.Append(ctx, b)
}

func (h *held) Command(ctx context.Context, execution, id event.ID) (store.Command, error) {
	row, err := h.Store.Command(ctx, execution, id)
	if h.command != nil && err == nil {
		h.command(row)
	}
	return row, err
}

func TestAPlaneDoesNotEndLateBecauseOfNewsNobodyTakes(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		ending := make(chan struct{})
		st := &held{Store: r.store}
		st.append = func(b store.Batch) {
			if event.IsFinal(b.Execution.Status) && b.Execution.ParentExecutionID != 0 {
				close(ending)
				time.Sleep(500 * time.Millisecond)
				st.append = nil
			}
		}
		p := r.plane(nil, func(o *control.Options) { o.Store = st })
		r.family(p, asks(`{"path":"test/child","wait":true}`), nil)
		<-ending
		began := time.Now()
		p.stop()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v to end", took)
		}
	})
}

func TestAChildNobodyWaitsForIsNotCancelledByASecondStart(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		starts, looks := 0, 0
		st := &held{Store: r.store}
		st.append = func(b store.Batch) {
			if b.Execution.ParentExecutionID != 0 && b.Expected == 0 {
				if starts++; starts == 1 {
					time.Sleep(5 * time.Second) // recovery tries meanwhile
				}
			}
		}
		st.command = func(row store.Command) {
			if row.Status == event.StatusWaiting {
				if looks++; looks == 4 {
					time.Sleep(time.Second)
				}
			}
		}
		p := r.plane(nil, func(o *control.Options) { o.Store, o.Recover = st, time.Second })
		id := r.family(p, asks(`{"path":"test/child"}`), func(cmd *event.Command) bool { return cmd.NodeName == "work" })
		r.await(p, id)
		time.Sleep(10 * time.Second)
		if kids := r.children(id); len(kids) != 1 || kids[0].Status != event.StatusRunning {
			t.Errorf("children %+v", kids)
		}
	})
}

func TestAWorkerOfAnotherMakeMayWatchItsJobItself(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		cmd := claimFor(t, p, r.pending()[0].EventID, "rust-1")
		meta := json.RawMessage(fmt.Sprintf(`{"command_id":%q}`, cmd.Meta.CommandID))
		for i, in := range []event.Incoming{
			{Type: event.CommandStarted},
			{Type: event.CommandCompleted, Status: "success", Payload: json.RawMessage(`{"status":"success","pending_callback":true}`)},
			{Type: event.CommandCompleted, Status: "success", Payload: json.RawMessage(`{"status":"success","pending_callback":true}`)},
			{Type: event.CallDone, Status: "COMPLETED", Payload: json.RawMessage(`{"result":{"status":"success","context":{"terminal_state":"succeeded"}}}`)},
		} {
			if row, _ := p.Execution(t.Context(), id); event.IsFinal(row.Status) {
				t.Fatalf("ended before report %d", i)
			}
			in.Step, in.Meta = "start", meta
			if _, err := p.Report(t.Context(), event.Report{ExecutionID: id, WorkerID: "rust-1", Events: []event.Incoming{in}}); err != nil {
				t.Fatal(err)
			}
		}
		if row := r.await(p, id); row.Status != event.StatusCompleted {
			t.Errorf("%s: %s", row.Status, row.Error)
		}
	})
}

func TestANoteWithoutASenderIsStoredOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		note := event.Incoming{EventID: r.ids.Next(), Step: "start", Type: event.StepExit}
		for range 3 {
			if _, err := p.Report(t.Context(), event.Report{ExecutionID: id, Events: []event.Incoming{note}}); err != nil {
				t.Fatal(err)
			}
		}
		notes := 0
		for _, e := range logOf(r, id) {
			if e.Type == event.StepExit {
				notes++
			}
		}
		if notes != 1 {
			t.Errorf("stored %d times", notes)
		}
	})
}
