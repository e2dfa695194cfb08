package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// appendUndecided stores a reported event without the decision it calls for.
func appendUndecided(r *rig, s *engine.State, in event.Incoming) error {
	before := s.Seq()
	e, err := engine.Ingest(s, in, "w", engine.Env{Now: time.Now(), NewID: r.ids.Next})
	if err != nil {
		return err
	}
	eff := s.Apply(&e)
	sum, c := s.Summary(), eff.Command
	return r.store.Append(context.Background(), store.Batch{
		Expected: before, Events: []event.Event{e},
		Execution: store.Execution{
			ExecutionID: sum.ExecutionID, CatalogID: sum.CatalogID, Path: sum.Path, Version: sum.Version,
			Pool: sum.Pool, Status: sum.Status, LastSeq: sum.LastSeq, UpdatedAt: sum.UpdatedAt,
		},
		Commands: []store.Command{{
			ExecutionID: sum.ExecutionID, EventID: c.EventID, CommandID: c.ID, CatalogID: sum.CatalogID, Status: c.Status,
			Step: c.Step, ToolKind: c.Kind, Pool: sum.Pool, WorkerID: c.Worker, Attempt: c.Attempt, MaxAttempts: c.MaxAttempts,
			CreatedAt: c.CreatedAt, ClaimedAt: c.ClaimedAt, EndedAt: c.EndedAt, IterIndex: -1,
		}},
	})
}

func TestCancellingEndsCommandsAndTellsWorkers(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		told := make(chan event.ID, 8)
		stop, err := r.bus.WatchCancel(func(id event.ID) { told <- id })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		r.register(p, fanout)
		id := r.start(p, "test/fanout")
		waiting := r.pending()
		cmd := claimFor(t, p, waiting[0].EventID, "w")

		answer, err := p.Cancel(t.Context(), id, control.CancelRequest{Reason: "enough", By: "me", Cascade: true})
		if err != nil || answer.Status != "cancelled" || len(answer.Cancelled) != 1 {
			t.Fatalf("cancel: %+v, %v", answer, err)
		}
		if got := <-told; got != id {
			t.Errorf("told of %s", got)
		}
		if n := len(r.pending()); n != 0 {
			t.Errorf("%d commands still wait", n)
		}
		beats, err := p.Heartbeat(t.Context(), []event.Heartbeat{{EventID: cmd.EventID, ExecutionID: id, WorkerID: "w", Attempt: 1}})
		if err != nil || !beats[0].Cancel {
			t.Errorf("heartbeat: %+v, %v", beats, err)
		}
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: waiting[1].EventID, WorkerID: "w", Heartbeats: true})
		wantCode(t, err, event.Conflict, "execution_cancelled")
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w", 1, cmd)); err != nil {
			t.Errorf("a late report is refused: %v", err)
		}
		_, err = p.Cancel(t.Context(), id, control.CancelRequest{})
		wantCode(t, err, event.Invalid, "")
		if err.Error() != "Cannot cancel execution in CANCELLED state" {
			t.Errorf("message is %q", err)
		}
		_, err = p.Cancel(t.Context(), 4, control.CancelRequest{})
		wantCode(t, err, event.NotFound, "")
		r.verify(id)
	})
}

func TestCancellingReachesChildrenOfChildren(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		family := []event.ID{r.start(p, "test/single")}
		for range 3 {
			a, err := p.Execute(t.Context(), control.ExecuteRequest{
				Path: "test/single", ParentExecutionID: family[len(family)-1],
			})
			if err != nil {
				t.Fatal(err)
			}
			family = append(family, a.ExecutionID)
		}
		// The second ends on its own; what it started still belongs to the first.
		for _, row := range r.pending() {
			if row.ExecutionID == family[1] {
				cmd := claimFor(t, p, row.EventID, "w")
				if _, err := p.Report(t.Context(), success(r.ids.Next(), "w", 0, cmd)); err != nil {
					t.Fatal(err)
				}
			}
		}
		alone, err := p.Cancel(t.Context(), family[3], control.CancelRequest{})
		if err != nil || len(alone.Cancelled) != 1 {
			t.Fatalf("cancel: %+v, %v", alone, err)
		}
		answer, err := p.Cancel(t.Context(), family[0], control.CancelRequest{Cascade: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]event.ID{family[0], family[2]}, answer.Cancelled); diff != "" {
			t.Errorf("cancelled (-want +got):\n%s", diff)
		}
	})
}

func TestAPlaneThatShutsDownFinishesWhatWaitsAndRefusesTheRest(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		// The report is under way in the store when the plane is told to end.
		entered, leave := make(chan struct{}), make(chan struct{})
		slow := &slowStore{Store: r.store, entered: entered, leave: leave}
		q := r.plane(nil, quiet, func(o *control.Options) { o.Store = slow })
		answered := make(chan error, 1)
		go func() {
			_, err := q.Report(context.Background(), success(r.ids.Next(), "w", 0, cmd))
			answered <- err
		}()
		<-entered
		ended := make(chan struct{})
		go func() { q.stop(); close(ended) }()
		for {
			_, err := q.Execute(t.Context(), control.ExecuteRequest{Path: "test/linear"})
			if errors.Is(err, &event.Error{Code: event.Unavailable}) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		select {
		case <-ended:
			t.Fatal("Run returned although a report was under way")
		default:
		}
		close(leave)
		if err := <-answered; err != nil {
			t.Errorf("the waiting report: %v", err)
		}
		<-ended
		if row, _ := p.Execution(t.Context(), id); row.CurrentStep != "b" {
			t.Errorf("row is %+v", row)
		}
	})
}

// slowStore announces appends to running executions on entered and holds them
// back until leave is closed.
type slowStore struct {
	*memstore.Store
	entered, leave chan struct{}
}

func (s *slowStore) Append(ctx context.Context, b store.Batch) error {
	if b.Expected > 0 {
		select {
		case s.entered <- struct{}{}:
			<-s.leave
		case <-s.leave:
		}
	}
	return s.Store.Append(ctx, b)
}

func TestTheEndOfTheCallerEndsTheWaitAndNotTheWork(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		r.start(p, "test/linear")
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		slow := &slowStore{Store: r.store, entered: make(chan struct{}), leave: make(chan struct{})}
		q := r.plane(nil, quiet, func(o *control.Options) { o.Store = slow })
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() {
			_, err := q.Report(ctx, success(r.ids.Next(), "w", 0, cmd))
			answered <- err
		}()
		<-slow.entered
		wake, stop := q.Watch(cmd.ExecutionID)
		defer stop()
		cancel()
		if err := <-answered; !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		close(slow.leave)
		<-wake
		if row, _ := p.Execution(t.Context(), cmd.ExecutionID); row.CurrentStep != "b" {
			t.Errorf("row is %+v", row)
		}
	})
}

func TestAFullMailboxRefuses(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		slow := &slowStore{Store: r.store, entered: make(chan struct{}), leave: make(chan struct{})}
		p := r.plane(nil, quiet, func(o *control.Options) { o.Store, o.MailboxLimit = slow, 3 })
		r.register(p, linear)
		id := r.start(p, "test/linear")
		note := func() event.Report {
			return event.Report{ExecutionID: id, Events: []event.Incoming{{Type: "custom.note", Step: "start"}}}
		}
		results := make(chan error, 5)
		send := func() {
			go func() {
				_, err := p.Report(context.Background(), note())
				results <- err
			}()
		}
		send()
		<-slow.entered // the first is being stored, three more may wait
		for range 4 {
			send()
		}
		wantCode(t, <-results, event.Unavailable, "mailbox_full")
		before := p.Stats().Appends
		close(slow.leave)
		for range 4 {
			if err := <-results; err != nil {
				t.Errorf("report: %v", err)
			}
		}
		if got := p.Stats().Appends - before; got != 2 {
			t.Errorf("%d appends, want the three that waited to share one", got)
		}
	})
}

func TestWatchersAreWokenAndForgotten(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, linear)
		id := r.start(p, "test/linear")
		wake, stop := p.Watch(id)
		other, stopOther := p.Watch(id + 1)
		defer stopOther()
		cmd := claimFor(t, p, r.pending()[0].EventID, "w")
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w", 0, cmd)); err != nil {
			t.Fatal(err)
		}
		if len(wake) != 1 || len(other) != 0 {
			t.Errorf("%d and %d wakes wait, want 1 and 0", len(wake), len(other))
		}
		<-wake
		stop()
		stop()
		claimFor(t, p, r.pending()[0].EventID, "w")
		if len(wake) != 0 {
			t.Error("woken after stop")
		}
	})
}

func TestHealthFollowsStoreAndBus(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		time.Sleep(time.Minute)
		if diff := cmp.Diff(control.Health{Database: true, NATS: true, Uptime: time.Minute}, p.Health(t.Context())); diff != "" {
			t.Errorf("health (-want +got):\n%s", diff)
		}
		_, _ = r.store.Close(), r.bus.Close()
		if h := p.Health(t.Context()); h.Database || h.NATS {
			t.Errorf("health is %+v", h)
		}
	})
}

func TestAStrictPlaybookWarnsOfInputsItDoesNotKnow(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil)
		r.register(p, strings.Replace(linear, "labels: {team: a}", "strict_workload: true", 1))
		a, err := p.Execute(t.Context(), control.ExecuteRequest{Path: "test/linear", Payload: json.RawMessage(`{"n": 2, "m": 3}`)})
		if want := []string{"payload.m is not among the playbook's inputs"}; err != nil || !slices.Equal(a.Warnings, want) {
			t.Errorf("warnings %q, %v", a.Warnings, err)
		}
	})
}
