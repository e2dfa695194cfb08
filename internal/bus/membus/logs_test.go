package membus_test

import (
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/bus/bustest"
	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/event"
)

func TestLogConformance(t *testing.T) {
	t.Parallel()
	bustest.RunLogs(t, func(t *testing.T) bus.Logs {
		b := membus.New(membus.Options{})
		t.Cleanup(func() { _ = b.Close() })
		return b
	})
}

func TestOutputIsKeptWithinItsBounds(t *testing.T) {
	t.Parallel()
	b := membus.New(membus.Options{MaxExecutionLog: 10_000, MaxLogs: 25_000})
	defer b.Close()
	text := strings.Repeat("x", 800) // with what is beside it, 1000 bytes
	for x := event.ID(1); x <= 4; x++ {
		for range 50 {
			if err := b.PublishLog(t.Context(), event.LogChunk{ExecutionID: x, Text: text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for x, want := range map[event.ID]int{1: 0, 2: 0, 3: 10, 4: 10} {
		got, last := 0, uint64(0)
		if err := b.ReadLogs(t.Context(), x, 0, func(c event.LogChunk) error { got, last = got+1, c.Seq; return nil }); err != nil {
			t.Fatal(err)
		}
		if got != want || want > 0 && last != uint64(x)*50 {
			t.Errorf("execution %d keeps %d chunks up to %d, want the newest %d", x, got, last, want)
		}
	}
}
