package control_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
	"github.com/noetl/noetl-go/internal/store/sqlite"
	"github.com/noetl/noetl-go/internal/testkit"
)

// harbour is a store and a real broker that can be taken away and come back.
type harbour struct {
	t      *testing.T
	store  store.Store
	broker *testkit.NATS
	port   int
	dir    string
	ids    *snowflake.Generator
}

func onStores(t *testing.T, f func(h *harbour)) {
	t.Helper()
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) store.Store{
		"memory": func(*testing.T) store.Store { return memstore.New() },
		"sqlite": func(t *testing.T) store.Store {
			s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "noetl.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &harbour{t: t, store: open(t), dir: t.TempDir(), ids: snowflake.New(1, time.Now)}
			t.Cleanup(func() { _ = h.store.Close() })
			h.broker = testkit.StartNATS(t, 0, h.dir)
			u, err := url.Parse(h.broker.URL)
			if err != nil {
				t.Fatal(err)
			}
			if h.port, err = strconv.Atoi(u.Port()); err != nil {
				t.Fatal(err)
			}
			f(h)
		})
	}
}

// plane starts a control plane that publishes to the broker, unless it is to
// leave that to others.
func (h *harbour) plane(publishes bool) *running {
	h.t.Helper()
	notes := membus.New(membus.Options{})
	o := control.Options{Store: h.store, Bus: notes, IDs: h.ids.Next}
	o.Outbox = control.OutboxOptions{On: true, Lease: 2 * time.Second, Batch: 100}
	var b *nats.Bus
	if publishes {
		var err error
		if b, err = nats.Connect(h.t.Context(), nats.Options{URL: h.broker.URL}); err != nil {
			h.t.Fatal(err)
		}
		if err := b.OpenEvents(h.t.Context(), bus.EventOptions{MaxAge: time.Hour, Duplicates: 5 * time.Minute}); err != nil {
			h.t.Fatal(err)
		}
		o.Outbox.Stream = b
	}
	p, err := control.New(o)
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("Run: %v", err)
		}
		if b != nil {
			_ = b.Close()
		}
		_ = notes.Close()
	})
	h.t.Cleanup(stop)
	return &running{Plane: p, stop: stop}
}

// run starts executions of test/single and ends them, eight at a time.
func (h *harbour) run(p *running, n int) []event.ID {
	h.t.Helper()
	if _, err := p.Register(h.t.Context(), control.RegisterRequest{Content: single}); err != nil {
		h.t.Fatal(err)
	}
	ids := make([]event.ID, n)
	hands, ctx := errgroup.WithContext(h.t.Context())
	hands.SetLimit(8)
	for i := range ids {
		hands.Go(func() (err error) {
			ids[i], err = h.single(ctx, p)
			return err
		})
	}
	if err := hands.Wait(); err != nil {
		h.t.Fatal(err)
	}
	return ids
}

func (h *harbour) single(ctx context.Context, p *running) (event.ID, error) {
	a, err := p.Execute(ctx, control.ExecuteRequest{Path: "test/single"})
	if err != nil {
		return 0, err
	}
	events, err := p.Events(ctx, a.ExecutionID, 0, 0)
	if err != nil {
		return 0, err
	}
	for i := range events {
		if events[i].Type != event.CommandIssued {
			continue
		}
		cmd, err := p.Claim(ctx, event.ClaimRequest{EventID: events[i].EventID, ExecutionID: a.ExecutionID, WorkerID: "w", Heartbeats: true})
		if err != nil {
			return 0, err
		}
		_, err = p.Report(ctx, success(h.ids.Next(), "w", 0, cmd))
		return a.ExecutionID, err
	}
	return 0, fmt.Errorf("execution %s has no command", a.ExecutionID)
}

// arrives waits until the broker's stream holds all events of the executions,
// each once and in order.
func (h *harbour) arrives(ids []event.ID) {
	h.t.Helper()
	want := map[event.ID]int64{}
	total := int64(0)
	for _, id := range ids {
		row, err := h.store.Execution(h.t.Context(), id)
		if err != nil {
			h.t.Fatal(err)
		}
		if !event.IsFinal(row.Status) {
			h.t.Fatalf("execution %s is %s", id, row.Status)
		}
		want[id] = row.LastSeq
		total += row.LastSeq
	}
	conn, err := natsgo.Connect(h.broker.URL)
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		h.t.Fatal(err)
	}
	testkit.Eventually(h.t, func() error {
		stream, err := js.Stream(h.t.Context(), nats.EventStreamName)
		if err != nil {
			return err
		}
		if n := stream.CachedInfo().State.Msgs; int64(n) < total {
			return fmt.Errorf("%d of %d events arrived", n, total)
		}
		return nil
	}, 60*time.Second)
	got := gapless(h.t, storedMessages(h.t, js))
	for id, seq := range want {
		if got[id] != seq {
			h.t.Errorf("execution %s: %d of %d events arrived", id, got[id], seq)
		}
	}
	if len(got) != len(want) {
		h.t.Errorf("events of %d executions arrived, want %d", len(got), len(want))
	}
}

func storedMessages(t *testing.T, js jetstream.JetStream) (all []bus.EventMessage) {
	t.Helper()
	stream, err := js.Stream(t.Context(), nats.EventStreamName)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		id, err := event.ParseID(m.Header.Get(jetstream.MsgIDHeader))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bus.EventMessage{EventID: id, Subject: m.Subject, Payload: m.Data})
	}
	return all
}

func TestTwoRelaysFillARealStream(t *testing.T) {
	onStores(t, func(h *harbour) {
		one, two := h.plane(true), h.plane(true)
		h.arrives(append(h.run(one, 100), h.run(two, 100)...))
	})
}

func TestABrokerThatIsKilledInTheMiddleMissesNothing(t *testing.T) {
	onStores(t, func(h *harbour) {
		one, two := h.plane(true), h.plane(true)
		ids := h.run(one, 40)
		killed := make(chan struct{})
		go func() { // while events flow
			defer close(killed)
			h.broker.Kill()
		}()
		ids = append(ids, h.run(two, 60)...)
		<-killed
		ids = append(ids, h.run(one, 60)...)
		h.broker = testkit.StartNATS(h.t, h.port, h.dir)
		ids = append(ids, h.run(two, 40)...)
		h.arrives(ids)
	})
}

func TestARelayTakesOverFromOneThatWasKilled(t *testing.T) {
	onStores(t, func(h *harbour) {
		writer := h.plane(false)
		ids := h.run(writer, 30)
		// It claims, publishes half, marks nothing and is never heard of again.
		batch, err := writer.ClaimOutbox(t.Context(), 60)
		if err != nil || len(batch.Rows) != 60 {
			h.t.Fatalf("claimed %d rows, %v", len(batch.Rows), err)
		}
		dead, err := nats.Connect(h.t.Context(), nats.Options{URL: h.broker.URL})
		if err != nil {
			h.t.Fatal(err)
		}
		defer dead.Close()
		if err := dead.OpenEvents(h.t.Context(), bus.EventOptions{MaxAge: time.Hour, Duplicates: 5 * time.Minute}); err != nil {
			h.t.Fatal(err)
		}
		half := make([]bus.EventMessage, 30)
		for i := range half {
			m := batch.Rows[i]
			half[i] = bus.EventMessage{EventID: m.EventID, ExecutionID: m.ExecutionID, Subject: m.Subject, Payload: m.Payload}
		}
		if errs := dead.PublishEvents(h.t.Context(), half); errs != nil {
			h.t.Fatal(errs)
		}
		heir := h.plane(true)
		h.arrives(append(ids, h.run(heir, 30)...))
	})
}
