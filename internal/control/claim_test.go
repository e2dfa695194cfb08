package control_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// quiet keeps the sweeps from interfering with a scripted sequence.
func quiet(o *control.Options) {
	o.Sweep, o.Republish, o.Recover = 24*time.Hour, 24*time.Hour, 24*time.Hour
}

func claimFor(t *testing.T, p *running, eventID event.ID, worker string) *event.Command {
	t.Helper()
	cmd, err := p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: worker, Heartbeats: true})
	if err != nil {
		t.Fatalf("claim for %s: %v", worker, err)
	}
	return cmd
}

func TestAClaimIsExclusiveAndRepeatable(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		eventID := r.pending()[0].EventID

		first := claimFor(t, p, eventID, "w1")
		before := p.Stats().Appends
		again := claimFor(t, p, eventID, "w1")
		if again.Meta.Attempt != first.Meta.Attempt || !again.LeaseUntil.Equal(first.LeaseUntil) || p.Stats().Appends != before {
			t.Errorf("the repeated claim differs: %+v, then %+v", first, again)
		}
		_, err := p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.Conflict, "active_claim")
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: 5, ExecutionID: id, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.NotFound, "")
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: 5, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.NotFound, "")
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: 5, ExecutionID: 6, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.NotFound, "")

		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w1", 0, first)); err != nil {
			t.Fatal(err)
		}
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.Conflict, "")
		r.verify(id)
	})
}

func TestAnExpiredLeaseIsTakenOverAndTheFormerHolderIsFenced(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		lost := claimFor(t, p, eventID, "w1")
		time.Sleep(61 * time.Second)
		taken := claimFor(t, p, eventID, "w2")
		if taken.Meta.Attempt != 2 {
			t.Errorf("attempt is %d, want 2", taken.Meta.Attempt)
		}
		beats, err := p.Heartbeat(t.Context(), []event.Heartbeat{
			{EventID: eventID, ExecutionID: id, WorkerID: "w1", Attempt: 1},
			{EventID: eventID, WorkerID: "w2"},
		})
		if err != nil || !beats[0].Cancel || beats[1].Cancel {
			t.Errorf("heartbeats are %+v, %v; want the former holder told to stop", beats, err)
		}
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w1", 0, lost)); err != nil {
			t.Fatalf("late report: %v", err)
		}
		if row, _ := p.Execution(t.Context(), id); row.Status != event.StatusRunning {
			t.Fatalf("a fenced report ended the execution: %+v", row)
		}
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "w2", 0, taken)); err != nil {
			t.Fatal(err)
		}
		if row, _ := p.Execution(t.Context(), id); row.Status != event.StatusCompleted {
			t.Errorf("row is %+v", row)
		}
		r.verify(id)
	})
}

func TestHeartbeatsKeepALeaseThatTheLogBelievesExpired(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		cmd := claimFor(t, p, eventID, "w1")
		for range 6 {
			time.Sleep(30 * time.Second)
			beats, err := p.Heartbeat(t.Context(), []event.Heartbeat{
				{EventID: eventID, ExecutionID: cmd.ExecutionID, WorkerID: "w1", Attempt: 1},
			})
			if err != nil || beats[0].Cancel {
				t.Fatalf("heartbeat: %+v, %v", beats, err)
			}
		}
		_, err := p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.Conflict, "active_claim")
		if again := claimFor(t, p, eventID, "w1"); again.Meta.Attempt != 1 {
			t.Errorf("attempt is %d, want the same claim", again.Meta.Attempt)
		}
		// A note from the holder must not bring the old lease back.
		note := success(r.ids.Next(), "w1", 0, cmd)
		note.Events[0].Type, note.Events[0].Payload = event.CommandStarted, nil
		if _, err := p.Report(t.Context(), note); err != nil {
			t.Fatal(err)
		}
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.Conflict, "active_claim")
	})
}

func TestAWorkerWithoutHeartbeatsIsGivenTime(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		cmd, err := p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "old"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.Conflict, "active_claim")
		time.Sleep(19 * time.Minute)
		// Heartbeats may also come as events; they leave nothing in the log.
		for range 4 { // beyond the lease of the claim
			if _, err := p.Report(t.Context(), heartbeatEvent(cmd)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
		}
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w2", Heartbeats: true})
		wantCode(t, err, event.Conflict, "active_claim")
		if _, err := p.Report(t.Context(), success(r.ids.Next(), "old", 0, cmd)); err != nil {
			t.Fatal(err)
		}
		events, err := r.store.Events(t.Context(), id, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.Type == event.CommandHeartbeat {
				t.Error("a heartbeat was stored as an event")
			}
		}
		r.verify(id)
	})
}

func heartbeatEvent(cmd *event.Command) event.Report {
	payload, _ := json.Marshal(map[string]string{"command_id": cmd.Meta.CommandID})
	return event.Report{
		ExecutionID: cmd.ExecutionID, WorkerID: "old",
		Events: []event.Incoming{{Type: event.CommandHeartbeat, Step: cmd.NodeName, Payload: payload}},
	}
}

func TestLeasesEndedByTheStoreCanBeTakenOverAtOnce(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		r.start(p, "test/single")
		eventID := r.pending()[0].EventID
		claimFor(t, p, eventID, "dead-1")
		if n, err := r.store.ExpireLeases(t.Context(), "dead-", time.Now()); n != 1 || err != nil {
			t.Fatalf("expired %d leases, %v", n, err)
		}
		if cmd := claimFor(t, p, eventID, "w2"); cmd.Meta.Attempt != 2 {
			t.Errorf("attempt is %d, want 2", cmd.Meta.Attempt)
		}
	})
}

func TestAReleasedCommandIsAnnouncedAndCanBeClaimedByAnother(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		sub, err := r.bus.Subscribe(t.Context(), []string{"shared"}, 8)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Stop()
		r.register(p, single)
		r.start(p, "test/single")
		first, err := sub.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		eventID := first.Notification().EventID
		_ = first.Ack()
		claimFor(t, p, eventID, "w1")
		for range 2 { // the second finds nothing to give back
			if err := p.Release(t.Context(), event.Heartbeat{EventID: eventID, WorkerID: "w1", Attempt: 1}); err != nil {
				t.Fatal(err)
			}
		}
		next, err := sub.Next(t.Context())
		if err != nil || next.Notification().EventID != eventID || next.Notification().Attempt < 2 {
			t.Fatalf("announced %+v, %v", next, err)
		}
		_ = next.Ack()
		if cmd := claimFor(t, p, eventID, "w2"); cmd.Meta.Attempt != 2 {
			t.Errorf("attempt is %d, want 2", cmd.Meta.Attempt)
		}
		if err := p.Release(t.Context(), event.Heartbeat{EventID: eventID, WorkerID: "w1", Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		_, err = p.Claim(t.Context(), event.ClaimRequest{EventID: eventID, WorkerID: "w3", Heartbeats: true})
		wantCode(t, err, event.Conflict, "active_claim")
	})
}

func TestACommandCanBeReadWithoutAClaim(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		id := r.start(p, "test/single")
		row := r.pending()[0]
		for _, execution := range []event.ID{0, id} {
			cmd, err := p.Command(t.Context(), execution, row.EventID)
			if err != nil || cmd.Action != "noop" || cmd.Meta.CommandID != row.CommandID {
				t.Errorf("command is %+v, %v", cmd, err)
			}
		}
		_, err := p.Command(t.Context(), id, 3)
		wantCode(t, err, event.NotFound, "")
	})
}

func TestAReplicaWithAnOldStateDoesNotRefuseWhatTheLogAllows(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		a, b := r.plane(nil, quiet), r.plane(nil, quiet)
		r.register(a, linear)
		id := r.start(a, "test/linear")
		// b caches the state as of the first claim, then a moves on.
		first := claimFor(t, b, r.pending()[0].EventID, "w")
		if _, err := a.Report(t.Context(), success(r.ids.Next(), "w", 0, first)); err != nil {
			t.Fatal(err)
		}
		second := claimFor(t, b, r.pending()[0].EventID, "w")
		if second.NodeName != "b" {
			t.Errorf("claimed %s", second.NodeName)
		}
		if _, err := b.Report(t.Context(), success(r.ids.Next(), "w", 0, second)); err != nil {
			t.Fatal(err)
		}
		// a is behind now: a claim by the worker it believes to be the holder
		// must not be answered from memory.
		_, err := a.Claim(context.Background(), event.ClaimRequest{EventID: second.EventID, ExecutionID: id, WorkerID: "w", Heartbeats: true})
		wantCode(t, err, event.Conflict, "already_terminal")
	})
}
