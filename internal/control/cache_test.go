package control_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

func TestExecutionsCompleteWhenHardlyAnyStateIsKept(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, func(o *control.Options) { o.CacheExecutions, o.CachePrograms = 2, 1 })
		r.register(p, linear)
		r.register(p, wide)
		r.hire("w1", 4, 1, p)
		ids := append(r.startMany(20, "test/linear", p), r.startMany(20, "test/wide", p)...)
		r.allComplete(p, ids)
	})
}

func TestHeartbeatsWorkForExecutionsThatAreNotCached(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		other := r.plane(nil, quiet)
		beats, err := other.Heartbeat(t.Context(), []event.Heartbeat{
			{EventID: cmd.EventID, ExecutionID: id, WorkerID: "w", Attempt: 1},
			{EventID: cmd.EventID, ExecutionID: id, WorkerID: "w", Attempt: 2},
			{EventID: 77, WorkerID: "w"},
		})
		if err != nil || beats[0].Cancel || beats[0].LeaseUntil.IsZero() || !beats[1].Cancel || !beats[2].Cancel {
			t.Errorf("heartbeats are %+v, %v", beats, err)
		}
	})
}

func TestCommandsThatEndedLongAgoAreStillKnown(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		items := strings.TrimSuffix(strings.Repeat("1, ", 600), ", ")
		r.register(p, strings.Replace(fanout, "1, 2, 3, 4, 5, 6, 7, 8, 9, 10", items, 1))
		id := r.start(p, "test/fanout")
		first := claimFor(t, p, r.pending()[0].EventID, "w")
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w", 0, first)); err != nil {
			t.Fatal(err)
		}
		// Everything but the last step, whose worker takes its time.
		w := &crew{r: r, id: "w1", eager: 1, planes: []*control.Plane{p.Plane}}
		last := make(chan *event.Command, 1)
		w.drop = func(c *event.Command) bool {
			if c.NodeName == "end" {
				last <- c
				return true
			}
			return false
		}
		r.employ(w, 1)
		end := <-last
		before, _ := p.Execution(t.Context(), id)
		_, err := p.Claim(t.Context(), event.ClaimRequest{EventID: first.EventID, ExecutionID: id, WorkerID: "w2"})
		wantCode(t, err, event.Conflict, "already_terminal")
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w", 0, first)); err != nil {
			t.Errorf("late report: %v", err)
		}
		if after, _ := p.Execution(t.Context(), id); after.LastSeq != before.LastSeq {
			t.Errorf("the second end of a command was stored")
		}
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w1", 0, end)); err != nil {
			t.Fatal(err)
		}
		r.verify(id)
	})
}

// forgetful returns catalog entries nobody can read any more.
type forgetful struct{ *memstore.Store }

func (s forgetful) Entry(ctx context.Context, id event.ID) (store.Entry, error) {
	e, err := s.Store.Entry(ctx, id)
	e.Content = "kind: Playbook"
	return e, err
}

func TestAnExecutionWhosePlaybookIsUnreadableCanBeCancelled(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		q := r.plane(nil, quiet, func(o *control.Options) { o.Store = forgetful{r.store} })
		_, err := q.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w"})
		wantCode(t, err, event.Invalid, "invalid_playbook")
		if _, err := q.Cancel(t.Context(), id, control.CancelRequest{}); err != nil {
			t.Errorf("cancel: %v", err)
		}
		r.verify(id)
	})
}

func TestAPanicFailsItsPassAndNothingElse(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		var armed atomic.Bool
		p := r.plane(nil, quiet, func(o *control.Options) {
			o.IDs = func() event.ID {
				if armed.Load() {
					panic("out of ids")
				}
				return r.ids.Next()
			}
		})
		r.register(p, linear)
		id := r.start(p, "test/linear")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		rep := success(r.ids.Next(), "w", 0, cmd)
		armed.Store(true)
		_, err := p.Report(t.Context(), rep)
		wantCode(t, err, event.Internal, "")
		armed.Store(false)
		if _, err := p.Report(t.Context(), rep); err != nil {
			t.Fatal(err)
		}
		if row, _ := p.Execution(t.Context(), id); row.CurrentStep != "b" {
			t.Errorf("row is %+v", row)
		}
	})
}
