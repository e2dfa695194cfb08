package replay_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/replay"
)

// TestMemoryIsThatOfTheState must run alone: it weighs the heap.
func TestMemoryIsThatOfTheState(t *testing.T) {
	const events, commands = 100_000, 50
	data := strings.Repeat("x", 2000)
	types := []event.Type{event.CommandIssued, event.CommandClaimed, event.CommandStarted, event.CallDone, event.CommandCompleted}
	f := replay.NewFold(harness)
	before := heap()
	for i := range events {
		f.ApplyEvent(&event.Event{
			Seq: int64(i) + 1, EventID: event.ID(i + 1), Type: types[i%len(types)], NodeName: "work",
			CommandID: fmt.Sprintf("999:work:%d", i/len(types)%commands), WorkerID: fmt.Sprint("worker-", i%7),
			Meta:   json.RawMessage(fmt.Sprintf(`{"attempt":1,"note":%d}`, i)),
			Result: json.RawMessage(`{"status":"success","context":{"data":"` + data + `"}}`),
		})
	}
	retained := heap() - before
	s := f.State()
	if s.EventCount != events || len(s.Commands) != commands || s.LastEventID != events {
		t.Fatalf("folded %d events into %d commands up to %d", s.EventCount, len(s.Commands), s.LastEventID)
	}
	if retained > 1<<20 {
		t.Errorf("a state of %d commands keeps %d bytes of a log of %d", commands, retained, events)
	}
	runtime.KeepAlive(f)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
