package worker_test

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/worker"
)

// plane is a control plane that does what a test says and remembers the calls.
// A nil function agrees to everything.
type plane struct {
	claim  func(event.ClaimRequest) (*event.Command, error)
	report func(event.Report) (event.ReportAnswer, error)
	beat   func(event.Heartbeat) event.HeartbeatAnswer

	mu       sync.Mutex
	claims   []event.ID
	reports  []event.Report
	beats    [][]event.Heartbeat
	released []event.ID
}

func (p *plane) Claim(_ context.Context, r event.ClaimRequest) (*event.Command, error) {
	p.mu.Lock()
	p.claims = append(p.claims, r.EventID)
	p.mu.Unlock()
	if p.claim != nil {
		return p.claim(r)
	}
	return command(r.EventID), nil
}

func (p *plane) Report(_ context.Context, r event.Report) (event.ReportAnswer, error) {
	p.mu.Lock()
	p.reports = append(p.reports, r)
	p.mu.Unlock()
	if p.report != nil {
		return p.report(r)
	}
	return event.ReportAnswer{Status: "ok"}, nil
}

func (p *plane) Heartbeat(_ context.Context, beats []event.Heartbeat) ([]event.HeartbeatAnswer, error) {
	p.mu.Lock()
	p.beats = append(p.beats, beats)
	p.mu.Unlock()
	answers := make([]event.HeartbeatAnswer, len(beats))
	for i, b := range beats {
		if p.beat != nil {
			answers[i] = p.beat(b)
		} else {
			answers[i].LeaseUntil = time.Now().Add(time.Minute)
		}
	}
	return answers, nil
}

func (p *plane) Release(_ context.Context, b event.Heartbeat) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released = append(p.released, b.EventID)
	return nil
}

// outcome is what a report says about a command.
type outcome struct {
	Command string
	Type    event.Type
	Status  string
}

func (p *plane) outcomes() []outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []outcome
	for _, r := range p.reports {
		for _, e := range r.Events {
			var payload struct {
				CommandID string `json:"command_id"`
			}
			json.Unmarshal(e.Payload, &payload)
			all = append(all, outcome{payload.CommandID, e.Type, e.Status})
		}
	}
	return all
}

func (p *plane) claimed() []event.ID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]event.ID(nil), p.claims...)
}

// command is command number id, of execution id/10.
func command(id event.ID) *event.Command {
	return &event.Command{
		EventID: id, ExecutionID: id / 10, NodeName: "step", Action: "noop",
		Meta: event.CommandMeta{CommandID: commandID(id), Step: "step", Attempt: 2},
	}
}

func commandID(id event.ID) string { return (id / 10).String() + ":step:" + id.String() }

func done(id event.ID) outcome {
	return outcome{commandID(id), event.CommandCompleted, event.ToolSuccess}
}

// runner makes a function a runner.
type runner func(ctx context.Context, cmd *event.Command) event.Incoming

func (f runner) Run(ctx context.Context, cmd *event.Command, _ io.Writer) event.Incoming {
	return f(ctx, cmd)
}

func succeed(_ context.Context, cmd *event.Command) event.Incoming {
	return event.Incoming{
		Step: cmd.NodeName, Type: event.CommandCompleted, Status: event.ToolSuccess,
		Payload: json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `"}`),
	}
}

// last runs for d, or fails when it is interrupted.
func last(d time.Duration) runner {
	return func(ctx context.Context, cmd *event.Command) event.Incoming {
		select {
		case <-time.After(d):
			return succeed(ctx, cmd)
		case <-ctx.Done():
			return event.Incoming{
				Type: event.CommandFailed, Status: event.StatusFailed,
				Payload: json.RawMessage(`{"command_id":"` + cmd.Meta.CommandID + `"}`),
			}
		}
	}
}

// fixture is a worker that runs in a synctest bubble.
type fixture struct {
	*worker.Worker
	bus  *membus.Bus
	stop func() // tells the worker to end and waits for it
	done chan struct{}
}

// start runs a worker with the given plane and runner; more changes options.
func start(t *testing.T, p *plane, r runner, more func(*worker.Options)) *fixture {
	t.Helper()
	b := membus.New(membus.Options{})
	var mu sync.Mutex
	var ids event.ID = 9000
	o := worker.Options{
		ID: "w1", Pools: []string{"shared"}, Slots: 2, Plane: p, Runner: r, Bus: b,
		IDs: func() event.ID {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return ids
		},
	}
	if more != nil {
		more(&o)
	}
	w, err := worker.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &fixture{Worker: w, bus: b, done: make(chan struct{})}
	go func() {
		defer close(f.done)
		if err := w.Run(ctx); err != nil {
			t.Errorf("run: %v", err)
		}
	}()
	f.stop = func() {
		cancel()
		<-f.done
	}
	t.Cleanup(func() {
		f.stop()
		b.Close()
	})
	return f
}

func (f *fixture) publish(t *testing.T, ids ...event.ID) {
	t.Helper()
	for _, id := range ids {
		n := event.Notification{ExecutionID: id / 10, EventID: id, CommandID: commandID(id)}
		if err := f.bus.Publish(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// waiting is the ids of the notifications another worker would get now.
func (f *fixture) waiting(t *testing.T) (ids []event.ID) {
	t.Helper()
	s, err := f.bus.Subscribe(t.Context(), []string{"shared"}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		var d bus.Delivery
		d, err = s.Next(ctx)
		cancel()
		if err != nil {
			return ids
		}
		ids = append(ids, d.Notification().EventID)
	}
}

// elapse lets the bubble's time go on until everything due has happened.
func elapse(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
