package node_test

import (
	"context"
	"encoding/json"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/worker"
)

// desk is a control plane that answers as it is told.
type desk struct {
	claim  func(event.ClaimRequest) (*event.Command, error)
	report func(event.Report) (event.ReportAnswer, error)
}

func (d *desk) Claim(_ context.Context, r event.ClaimRequest) (*event.Command, error) {
	return d.claim(r)
}

func (d *desk) Report(_ context.Context, r event.Report) (event.ReportAnswer, error) {
	return d.report(r)
}

func (*desk) Heartbeat(_ context.Context, beats []event.Heartbeat) ([]event.HeartbeatAnswer, error) {
	return make([]event.HeartbeatAnswer, len(beats)), nil
}

func (*desk) Release(context.Context, event.Heartbeat) error { return nil }

// runs is a runner whose commands succeed after a while.
type runs struct{ pause time.Duration }

func (r runs) Run(_ context.Context, cmd *event.Command, _ io.Writer) event.Incoming {
	time.Sleep(r.pause)
	return event.Incoming{
		Step: cmd.NodeName, Type: event.CommandCompleted, Status: event.ToolSuccess, Payload: json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `"}`),
	}
}

// shaky is a bus whose deliveries fail now and then, and that tells how often it
// had to join again.
type shaky struct {
	*membus.Bus
	fail atomic.Bool
}

func (s *shaky) Subscribe(ctx context.Context, pools []string, most int) (bus.Subscription, error) {
	sub, err := s.Bus.Subscribe(ctx, pools, most)
	return &shakySubscription{sub, s}, err
}

type shakySubscription struct {
	bus.Subscription
	bus *shaky
}

func (s *shakySubscription) Next(ctx context.Context) (bus.Delivery, error) {
	if s.bus.fail.Swap(false) {
		return nil, event.Errorf(event.Unavailable, "the consumer is gone")
	}
	return s.Subscription.Next(ctx)
}

func (s *shakySubscription) Health() bus.Health {
	return bus.Health{Ready: true, Rejoined: map[string]int{obs.ReasonConnection: 1, obs.ReasonConsumer: 2, obs.ReasonSilence: 3}}
}

func commandOf(id event.ID) *event.Command {
	return &event.Command{
		EventID: id, ExecutionID: id, NodeName: "start", Action: "noop", Meta: event.CommandMeta{CommandID: id.String(), Step: "start", Attempt: 1},
	}
}

// aWorkerInTrouble meets a server and a bus that fail.
func aWorkerInTrouble(t *testing.T, m *meters) {
	var r obs.Registry
	var away, refuse atomic.Bool
	b := &shaky{Bus: membus.New(membus.Options{})}
	d := &desk{
		claim: func(r event.ClaimRequest) (*event.Command, error) {
			switch r.EventID {
			case 404:
				return nil, event.Errorf(event.NotFound, "nobody knows it")
			case 409:
				return nil, event.Errorf(event.Conflict, "somebody has it")
			}
			return commandOf(r.EventID), nil
		},
		report: func(event.Report) (event.ReportAnswer, error) {
			switch {
			case away.Load():
				return event.ReportAnswer{}, event.Errorf(event.Unavailable, "away")
			case refuse.Load():
				return event.ReportAnswer{}, event.Errorf(event.Conflict, "it is over")
			}
			return event.ReportAnswer{}, nil
		},
	}
	spool, err := worker.OpenSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var ids atomic.Int64
	w, err := worker.New(worker.Options{
		ID: "w", Pools: []string{"shared"}, Slots: 2, Plane: d, Runner: runs{10 * time.Second}, Bus: b, Spool: spool, Heartbeat: time.Hour,
		Metrics: obs.NewWorker(&r, obs.WorkerVocabulary{ToolKinds: []string{"noop"}, EventTypes: []string{string(event.CommandCompleted)}, Version: "test"}),
		IDs:     func() event.ID { return event.ID(ids.Add(1)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.OnScrape(w.Observe)
	m.registry(&r)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
		_ = b.Close()
	}()
	send := func(id event.ID, wait time.Duration) {
		if err := b.Publish(t.Context(), event.Notification{ExecutionID: id, EventID: id, CommandID: id.String()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(wait)
	}
	b.fail.Store(true)
	send(404, 2*time.Minute) // and nothing comes for a while
	send(409, time.Second)
	send(11, 5*time.Second)
	m.look() // it runs
	time.Sleep(time.Minute)
	for id, end := range map[event.ID]*atomic.Bool{21: nil, 31: &refuse} {
		away.Store(true)
		send(id, 3*time.Minute)
		m.look() // its report is kept
		if end != nil {
			end.Store(true)
		}
		away.Store(false)
		time.Sleep(2 * time.Minute)
		refuse.Store(false)
	}
}

func init() {
	scenarios["a worker in trouble"] = scenario{[]string{
		"noetl_worker_claim_failed_total", "noetl_worker_claim_dead_lettered_total", "noetl_worker_claim_succeeded_total", "noetl_worker_event_emit_failed_total",
		"noetl_worker_event_emit_retries_total", "noetl_worker_concurrent_dispatches", `noetl_worker_pulls_total{outcome="empty"}`, `noetl_worker_pulls_total{outcome="error"}`,
		"noetl_worker_spool_reports", `noetl_worker_spool_replayed_total{status="ok"}`, `noetl_worker_spool_replayed_total{status="refused"}`,
	}, virtual(aWorkerInTrouble)}
}
