package membus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/bustest"
	"github.com/noetl/noetl-go/internal/bus/membus"
)

func TestEventConformance(t *testing.T) {
	t.Parallel()
	bustest.RunEvents(t, func(t *testing.T) (bus.EventStream, bustest.EventReader) {
		b := membus.New(membus.Options{})
		t.Cleanup(func() { _ = b.Close() })
		return b, func(*testing.T, int) []bus.EventMessage { return b.Events() }
	})
}

func TestADuplicateIsForgottenAfterItsWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := membus.New(membus.Options{})
		defer b.Close()
		if err := b.OpenEvents(t.Context(), bus.EventOptions{Duplicates: time.Minute}); err != nil {
			t.Fatal(err)
		}
		m := []bus.EventMessage{{EventID: 1, Subject: "noetl.events.x"}}
		for _, pause := range []time.Duration{0, 59 * time.Second, time.Second} {
			time.Sleep(pause)
			if errs := b.PublishEvents(t.Context(), m); errs != nil {
				t.Fatal(errs)
			}
		}
		if got := len(b.Events()); got != 2 {
			t.Errorf("%d messages kept, want the first and the one a minute later", got)
		}
	})
}
