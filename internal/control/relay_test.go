package control_test

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// published is a rig whose planes relay events to its bus.
func published(t *testing.T, o membus.Options) *rig {
	t.Helper()
	r := newRig(t)
	r.bus = membus.New(o)
	t.Cleanup(func() { _ = r.bus.Close() })
	if err := r.bus.OpenEvents(t.Context(), bus.EventOptions{MaxAge: time.Hour, Duplicates: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) relays(o *control.Options) {
	o.Outbox = control.OutboxOptions{On: true, Stream: r.bus}
}

// stream reads what consumers would: the sequence numbers of each execution, in
// the order they are stored. It fails when one is missing, doubled or early.
func (r *rig) stream() map[event.ID]int64 {
	r.t.Helper()
	return gapless(r.t, r.bus.Events())
}

func gapless(t *testing.T, messages []bus.EventMessage) map[event.ID]int64 {
	t.Helper()
	last := map[event.ID]int64{}
	for _, m := range messages {
		var e struct {
			ExecutionID event.ID `json:"execution_id"`
			EventID     event.ID `json:"event_id"`
			Seq         int64    `json:"seq"`
		}
		if err := json.Unmarshal(m.Payload, &e); err != nil {
			t.Fatalf("%s: %v", m.Payload, err)
		}
		if e.Seq != last[e.ExecutionID]+1 || e.EventID != m.EventID {
			t.Fatalf("execution %s: event %s with seq %d came after seq %d", e.ExecutionID, m.EventID, e.Seq, last[e.ExecutionID])
		}
		last[e.ExecutionID] = e.Seq
	}
	return last
}

// complete tells whether the stream holds all events of the executions.
func (r *rig) complete(ids []event.ID) error {
	r.t.Helper()
	got := r.stream()
	for _, id := range ids {
		row, err := r.store.Execution(r.t.Context(), id)
		if err != nil {
			return err
		}
		if got[id] != row.LastSeq {
			return fmt.Errorf("execution %s: %d of %d events arrived", id, got[id], row.LastSeq)
		}
	}
	return nil
}

// settles waits until all events of the executions have arrived.
func (r *rig) settles(ids []event.ID, within time.Duration) {
	r.t.Helper()
	var err error
	for deadline := time.Now().Add(within); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if err = r.complete(ids); err == nil {
			return
		}
	}
	r.t.Fatal(err)
}

func (r *rig) runMany(p *running, path string, n int) []event.ID {
	r.t.Helper()
	ids := make([]event.ID, n)
	for i := range ids {
		ids[i] = r.start(p, path)
	}
	for _, id := range ids {
		r.await(p, id)
	}
	return ids
}

func TestEventsArriveOnceAndInOrder(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		one, two := r.plane(nil, r.relays), r.plane(nil, r.relays)
		r.register(one, fanout)
		r.hire("w", 8, 1, one, two)
		ids := r.runMany(one, "test/fanout", 100)
		ids = append(ids, r.runMany(two, "test/fanout", 100)...)
		r.settles(ids, 10*time.Second)
		if a, b := one.Stats().Relayed, two.Stats().Relayed; a == 0 || b == 0 {
			t.Errorf("the relays published %d and %d events, want both to take part", a, b)
		}
		counts, err := one.OutboxState(t.Context())
		if err != nil || counts.Ready+counts.InFlight+counts.Waiting+counts.Dead != 0 || counts.Published == 0 {
			t.Errorf("the outbox holds %+v, %v", counts, err)
		}
	})
}

func TestAnOutageOfTheBrokerLosesAndDoublesNothing(t *testing.T) {
	simulate(t, func(t *testing.T) {
		var down atomic.Bool
		var asked atomic.Int64
		r := published(t, membus.Options{RefuseEvent: func(bus.EventMessage) error {
			asked.Add(1)
			if down.Load() {
				return event.Errorf(event.Unavailable, "gone fishing")
			}
			return nil
		}})
		p := r.plane(nil, r.relays)
		r.register(p, linear)
		r.hire("w", 4, 1, p)
		ids := r.runMany(p, "test/linear", 20)
		down.Store(true)
		ids = append(ids, r.runMany(p, "test/linear", 20)...)
		before := asked.Load()
		time.Sleep(5 * time.Minute)
		if tries := asked.Load() - before; tries > 60*20 { // about thirty rounds, each with the first event of twenty executions
			t.Errorf("%d events were offered during the outage; the relay does not back off", tries)
		}
		counts, _ := p.OutboxState(t.Context())
		if counts.Ready == 0 || counts.Waiting != 0 || counts.Dead != 0 {
			t.Errorf("the outbox holds %+v; an outage is no failure of a row", counts)
		}
		down.Store(false)
		r.settles(ids, 30*time.Second)
	})
}

func TestARowThatIsRefusedHoldsBackItsExecutionOnly(t *testing.T) {
	simulate(t, func(t *testing.T) {
		var bad atomic.Int64
		refused := 3
		r := published(t, membus.Options{RefuseEvent: func(m bus.EventMessage) error {
			if int64(m.ExecutionID) == bad.Load() && m.Subject == "noetl.events.step.enter" && refused > 0 {
				refused--
				return event.Errorf(event.Limit, "too large")
			}
			return nil
		}})
		p := r.plane(nil, r.relays)
		r.register(p, single)
		poor := r.start(p, "test/single")
		r.settles([]event.ID{poor}, time.Second)
		bad.Store(int64(r.ids.Next())) // nobody yet
		_ = bad.Swap(int64(poor))
		r.hire("w", 2, 0, p)
		r.await(p, poor)
		good := r.runMany(p, "test/single", 3)
		r.settles(good, 5*time.Second)
		r.settles([]event.ID{poor}, 20*time.Second)
	})
}

func TestAnotherPublisherTakesOverFromOneThatDied(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		dying := r.plane(nil, func(o *control.Options) { o.Outbox.On = true })
		r.register(dying, linear)
		r.hire("w", 2, 1, dying)
		ids := r.runMany(dying, "test/linear", 5)
		batch, err := dying.ClaimOutbox(t.Context(), 7)
		if err != nil || len(batch.Rows) != 7 {
			t.Fatalf("claimed %d, %v", len(batch.Rows), err)
		}
		// It had published some before it died.
		for _, m := range batch.Rows[:4] {
			r.bus.PublishEvents(t.Context(), []bus.EventMessage{{EventID: m.EventID, ExecutionID: m.ExecutionID, Subject: m.Subject, Payload: m.Payload}})
		}
		heir := r.plane(nil, r.relays)
		began := time.Now()
		r.settles(ids, 2*time.Minute)
		if took := time.Since(began); took < 55*time.Second {
			t.Errorf("the rows were taken over after %v, before their lease was over", took)
		}
		if n, err := heir.MarkPublished(t.Context(), batch.Token, []int64{batch.Rows[0].OutboxID}); n != 0 || err != nil {
			t.Errorf("a mark under the old claim changed %d rows, %v", n, err)
		}
		if counts, _ := heir.OutboxState(t.Context()); counts.Reclaimed == 0 {
			t.Errorf("no row was taken over: %+v", counts)
		}
	})
}

func TestAMarkThatIsLostLeadsToNoSecondMessage(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, r.relays)
		r.register(p, linear)
		r.hire("w", 2, 1, p)
		r.store.Inject(memstore.Faults{Hook: memstore.Next("MarkPublished", memstore.Refuse, memstore.Refuse, memstore.Refuse, memstore.LoseAck)})
		ids := r.runMany(p, "test/linear", 5)
		r.settles(ids, 5*time.Minute)
		time.Sleep(2 * time.Minute)
		r.stream()
		if counts, _ := p.OutboxState(t.Context()); counts.Ready+counts.InFlight+counts.Waiting != 0 {
			t.Errorf("rows are left: %+v", counts)
		}
	})
}

func TestNothingIsLeftToPublishWhenPublicationIsOffOrThePlaybookIsTheSystems(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		off, on := r.plane(nil), r.plane(nil, r.relays)
		r.register(off, single)
		const system = `
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: p, path: system/projector}
workflow:
  - {step: start, tool: {kind: noop}}
`
		r.register(off, system)
		r.start(off, "test/single")
		r.start(on, "system/projector")
		time.Sleep(10 * time.Second)
		counts, err := on.OutboxState(t.Context())
		if err != nil || counts != (store.OutboxCounts{}) || len(r.bus.Events()) != 0 {
			t.Errorf("the outbox holds %+v and the stream %d messages, %v", counts, len(r.bus.Events()), err)
		}
	})
}

func TestAStoppingPlanePublishesWhatItAppended(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, r.relays)
		r.register(p, single)
		id := r.start(p, "test/single")
		p.stop()
		synctest.Wait()
		if err := r.complete([]event.ID{id}); err != nil {
			t.Error(err)
		}
	})
}

func TestPublishedRowsAreRemovedAfterADay(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{})
		p := r.plane(nil, r.relays, func(o *control.Options) { o.Sweep = time.Minute })
		r.register(p, single)
		r.hire("w", 1, 0, p)
		r.settles(r.runMany(p, "test/single", 2), time.Second)
		time.Sleep(23 * time.Hour)
		if counts, _ := p.OutboxState(t.Context()); counts.Published == 0 {
			t.Error("rows were removed too early")
		}
		time.Sleep(70 * time.Minute)
		if counts, _ := p.OutboxState(t.Context()); counts.Published != 0 {
			t.Errorf("%d published rows are left after a day", counts.Published)
		}
	})
}

func TestARowIsGivenUpAfterFiftyAttempts(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := published(t, membus.Options{RefuseEvent: func(m bus.EventMessage) error {
			if m.Subject == "noetl.events.playbook_started" {
				return event.Errorf(event.Limit, "never")
			}
			return nil
		}})
		p := r.plane(nil, r.relays)
		r.register(p, single)
		r.start(p, "test/single")
		time.Sleep(6 * time.Hour)
		counts, _ := p.OutboxState(t.Context())
		if counts.Dead != 1 || counts.Ready+counts.Waiting+counts.InFlight != 0 {
			t.Errorf("the outbox holds %+v, want one dead row and those behind it published", counts)
		}
	})
}
