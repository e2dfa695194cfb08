package membus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/bustest"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(*testing.T) bus.Bus { return membus.New(membus.Options{}) })
}

func receive(t *testing.T, b *membus.Bus, limit int) bus.Subscription {
	t.Helper()
	s, err := b.Subscribe(t.Context(), []string{"shared"}, limit)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASilentReceiverLosesItsDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{AckWait: time.Minute})
		defer b.Close()
		s := receive(t, b, 2)
		if err := b.Publish(t.Context(), event.Notification{EventID: 1}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		d, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(40*time.Second, func() { d.InProgress() })
		if _, err := s.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 100*time.Second {
			t.Errorf("the delivery came back after %v, want one minute after the sign of life at 40 s", took)
		}
	})
}

func TestFaultsAreInjected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{
			Drop:      func(n event.Notification) bool { return n.EventID == 1 },
			Duplicate: func(n event.Notification) bool { return n.EventID == 2 },
		})
		defer b.Close()
		if err := b.Publish(t.Context(), event.Notification{EventID: 1}, event.Notification{EventID: 2}); err != nil {
			t.Fatal(err)
		}
		s := receive(t, b, 8)
		for range 2 {
			d, err := s.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if id := d.Notification().EventID; id != 2 {
				t.Errorf("received %d, want 2 twice", id)
			}
		}
	})
}

func TestOnlyTheNewestNotificationsAreKept(t *testing.T) {
	t.Parallel()
	b := membus.New(membus.Options{MaxQueue: 2})
	defer b.Close()
	for id := range event.ID(5) {
		if err := b.Publish(t.Context(), event.Notification{EventID: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	s := receive(t, b, 8)
	for _, want := range []event.ID{4, 5} {
		d, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Notification().EventID; got != want {
			t.Errorf("received %d, want %d", got, want)
		}
	}
}
