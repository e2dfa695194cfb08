package nats_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/bustest"
	"github.com/noetl/noetl-go/internal/bus/nats"
	"github.com/noetl/noetl-go/internal/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func embedded(t *testing.T, o nats.EmbeddedOptions) *nats.Bus {
	t.Helper()
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	b, err := nats.Embedded(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// listening is an embedded bus and a plain client of the same server.
func listening(t *testing.T) (*nats.Bus, jetstream.JetStream) {
	t.Helper()
	b := embedded(t, nats.EmbeddedOptions{Listen: "127.0.0.1:0"})
	conn, err := natsgo.Connect(b.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return b, js
}

func subscribe(t *testing.T, b bus.Bus, limit int, pools ...string) bus.Subscription {
	t.Helper()
	s, err := b.Subscribe(t.Context(), pools, limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func next(t *testing.T, s bus.Subscription) bus.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := s.Next(ctx)
	if err != nil {
		t.Fatalf("next delivery: %v", err)
	}
	return d
}

func note(id event.ID) event.Notification {
	return event.Notification{ExecutionID: 7, EventID: id, CommandID: "7:a:" + id.String(), Step: "a", Pool: "shared"}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(t *testing.T) bus.Bus { return embedded(t, nats.EmbeddedOptions{}) })
}

func TestTheWireIsWhatOtherWorkersExpect(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	again := note(12)
	again.Attempt = 2
	if err := b.Publish(t.Context(), note(11), again); err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "NOETL_COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	for seq, want := range []struct{ id, data string }{
		{"cmd-11", `{"execution_id":7,"event_id":11,"command_id":"7:a:11","step":"a","execution_pool":"shared"}`},
		{"cmd-12-a2", `{"execution_id":7,"event_id":12,"command_id":"7:a:12","step":"a","execution_pool":"shared","attempt":2}`},
	} {
		m, err := stream.GetMsg(t.Context(), uint64(seq+1))
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != "noetl.commands.shared.7" || m.Header.Get("Nats-Msg-Id") != want.id || string(m.Data) != want.data {
			t.Errorf("message is %s %s %s, want id %s and %s", m.Subject, m.Header.Get("Nats-Msg-Id"), m.Data, want.id, want.data)
		}
	}
}

func TestAForeignNotificationIsUnderstoodAndAnUnreadableOneDropped(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	for _, data := range []string{`not json`, `{"execution_id":"7","event_id":8,"command_id":99,"step":"a","more":1}`} {
		if _, err := js.Publish(t.Context(), "noetl.commands.system.shard.3.7", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	got := next(t, subscribe(t, b, 1, "system")).Notification()
	if got.ExecutionID != 7 || got.EventID != 8 || got.CommandID != "99" {
		t.Errorf("notification is %+v", got)
	}
}

func TestStreamAndConsumerHaveTheAgreedSettings(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	subscribe(t, b, 4, "system")
	stream, err := js.Stream(t.Context(), nats.DefaultStream)
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	if c.Retention != jetstream.LimitsPolicy || c.Storage != jetstream.FileStorage ||
		c.MaxAge != 24*time.Hour || c.Duplicates != 2*time.Minute || c.MaxBytes <= 0 {
		t.Errorf("stream is %+v", c)
	}
	consumer, err := stream.Consumer(t.Context(), "noetl_worker_pool_system")
	if err != nil {
		t.Fatal(err)
	}
	d := consumer.CachedInfo().Config
	if d.FilterSubject != "noetl.commands.system.>" || d.AckPolicy != jetstream.AckExplicitPolicy || d.AckWait != time.Minute ||
		d.DeliverPolicy != jetstream.DeliverAllPolicy || d.MaxDeliver != -1 || d.MaxAckPending < 4096 {
		t.Errorf("consumer is %+v", d)
	}
}

func TestAStreamWithOtherSettingsIsRefusedWithTheDifferences(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "OTHER", Subjects: []string{"other"}, Retention: jetstream.WorkQueuePolicy, MaxAge: time.Hour, Duplicates: 2 * time.Minute,
	}); err != nil {
		t.Fatal(err)
	}
	_, err := nats.Connect(t.Context(), nats.Options{URL: b.URL(), Stream: "OTHER", Subject: "other"})
	if !errors.Is(err, &event.Error{Code: event.Conflict}) {
		t.Fatalf("error is %v, want a conflict", err)
	}
	for _, part := range []string{"OTHER", "retention is WorkQueue, must be Limits", "max_age is 1h0m0s, must be 24h0m0s"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "duplicate_window") {
		t.Errorf("error %q names a setting that is right", err)
	}
}

func TestMissingSubjectsAreAdded(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "OLD", Subjects: []string{"old.kept", "old.commands"}, MaxAge: 24 * time.Hour, Duplicates: 2 * time.Minute,
	}); err != nil {
		t.Fatal(err)
	}
	second, err := nats.Connect(t.Context(), nats.Options{URL: b.URL(), Stream: "OLD", Subject: "old.commands"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	stream, err := js.Stream(t.Context(), "OLD")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(stream.CachedInfo().Config.Subjects, " "); got != "old.kept old.commands old.commands.>" {
		t.Errorf("subjects are %s", got)
	}
}

func TestAConsumerWithOtherSettingsIsRefused(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	if _, err := js.CreateConsumer(t.Context(), nats.DefaultStream, jetstream.ConsumerConfig{
		Durable: "noetl_worker_pool_shared", FilterSubject: "noetl.commands.shared.>", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 64,
	}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Subscribe(t.Context(), []string{"shared"}, 1)
	if !errors.Is(err, &event.Error{Code: event.Conflict}) || !strings.Contains(err.Error(), "max_ack_pending is 64") {
		t.Errorf("error is %v, want a conflict about max_ack_pending", err)
	}
}

func TestADeletedConsumerIsMadeAgain(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	s := subscribe(t, b, 4, "shared")
	if err := js.DeleteConsumer(t.Context(), nats.DefaultStream, "noetl_worker_pool_shared"); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	if got := next(t, s).Notification().EventID; got != 1 {
		t.Errorf("received %d, want 1", got)
	}
}

func TestADeletedStreamIsMadeAgain(t *testing.T) {
	t.Parallel()
	b, js := listening(t)
	s := subscribe(t, b, 4, "shared")
	if err := js.DeleteStream(t.Context(), nats.DefaultStream); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	if got := next(t, s).Notification().EventID; got != 1 {
		t.Errorf("received %d, want 1", got)
	}
}

func TestADeliveryNobodyTakesGoesToAnotherWorker(t *testing.T) {
	t.Parallel()
	b := embedded(t, nats.EmbeddedOptions{})
	busy := subscribe(t, b, 4, "shared")
	if err := b.Publish(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	// The first worker has asked for four and calls Next only once.
	settle := next(t, busy)
	if err := b.Publish(t.Context(), note(2), note(3)); err != nil {
		t.Fatal(err)
	}
	other := subscribe(t, b, 4, "shared")
	seen := map[event.ID]bool{}
	for range 2 {
		d := next(t, other)
		seen[d.Notification().EventID] = true
		if err := d.Ack(); err != nil {
			t.Fatal(err)
		}
	}
	if !seen[2] || !seen[3] {
		t.Errorf("the other worker received %v, want 2 and 3", seen)
	}
	if err := settle.Ack(); err != nil {
		t.Error(err)
	}
}

func TestARestartKeepsNotifications(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := embedded(t, nats.EmbeddedOptions{StoreDir: dir})
	if err := first.Publish(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := embedded(t, nats.EmbeddedOptions{StoreDir: dir})
	if got := next(t, subscribe(t, second, 1, "shared")).Notification().EventID; got != 1 {
		t.Errorf("received %d, want 1", got)
	}
}

func TestAnEmbeddedServerListensOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	if url := embedded(t, nats.EmbeddedOptions{}).URL(); url != "" {
		t.Errorf("it listens at %s", url)
	}
	b := embedded(t, nats.EmbeddedOptions{Listen: "127.0.0.1:0", Token: "sesame"})
	if remote, err := nats.Connect(t.Context(), nats.Options{URL: b.URL()}); err == nil {
		remote.Close()
		t.Error("a worker without the token was let in")
	}
	remote, err := nats.Connect(t.Context(), nats.Options{URL: b.URL(), Token: "sesame"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remote.Close() })
	s := subscribe(t, remote, 1, "shared")
	if err := b.Publish(t.Context(), note(1)); err != nil {
		t.Fatal(err)
	}
	next(t, s)
}

func TestWrongOptionsAreExplained(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"nowhere", "127.0.0.1:http", "127.0.0.1:99999"} {
		_, err := nats.Embedded(t.Context(), nats.EmbeddedOptions{StoreDir: t.TempDir(), Listen: listen})
		if !errors.Is(err, &event.Error{Code: event.Invalid}) {
			t.Errorf("listening at %s gave %v, want invalid", listen, err)
		}
	}
	b := embedded(t, nats.EmbeddedOptions{})
	for _, pool := range []string{"a.b", "*", ">", "with space", "."} {
		if err := b.Publish(t.Context(), event.Notification{Pool: pool}); !errors.Is(err, &event.Error{Code: event.Invalid}) {
			t.Errorf("publishing to pool %q gave %v, want invalid", pool, err)
		}
		if _, err := b.Subscribe(t.Context(), []string{pool}, 1); !errors.Is(err, &event.Error{Code: event.Invalid}) {
			t.Errorf("subscribing to pool %q gave %v, want invalid", pool, err)
		}
	}
}

func BenchmarkPublish100(b *testing.B) {
	bus, err := nats.Embedded(b.Context(), nats.EmbeddedOptions{StoreDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer bus.Close()
	id := event.ID(0)
	notes := make([]event.Notification, 100)
	for b.Loop() {
		for i := range notes {
			id++
			notes[i] = note(id)
		}
		if err := bus.Publish(b.Context(), notes...); err != nil {
			b.Fatal(err)
		}
	}
}

func TestANoteThatCannotBeSentDoesNotKeepOthersBack(t *testing.T) {
	t.Parallel()
	b, err := nats.Embedded(t.Context(), nats.EmbeddedOptions{StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	sub, err := b.Subscribe(t.Context(), []string{"shared"}, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Stop()
	err = b.Publish(t.Context(),
		event.Notification{ExecutionID: 1, EventID: 2, Pool: "a.b>*"},
		event.Notification{ExecutionID: 1, EventID: 3, Pool: "shared"})
	if err == nil {
		t.Error("a pool that is no subject was accepted")
	}
	d, err := sub.Next(t.Context())
	if err != nil || d.Notification().EventID != 3 {
		t.Fatalf("the other note did not arrive: %v", err)
	}
	_ = d.Ack()
}
