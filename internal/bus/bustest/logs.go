package bustest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

// RunLogs checks how a driver carries live output. open makes an empty one.
func RunLogs(t *testing.T, open func(t *testing.T) bus.Logs) {
	for _, c := range []struct {
		name string
		test func(*testing.T, bus.Logs)
	}{
		{"chunks that are kept are read in order and as they were sent", logsAreKept},
		{"a reading goes on behind the position it is given", logsResume},
		{"a tail brings what is kept and then what comes", logsFollow},
		{"executions are separate", logsAreSeparate},
		{"the error of the reader ends a reading", logsStop},
		{"a tail ends with its context", logsEnd},
		{"a position of another time means the beginning", logsStart},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
}

func chunk(execution event.ID, n int) event.LogChunk {
	return event.LogChunk{
		ExecutionID: execution, EventID: event.ID(100 + n%2), CommandID: "c", Step: "s", Attempt: 1,
		Time: time.Unix(1_700_000_000, 0).UTC(), Text: fmt.Sprintf("line %d ü\n", n), Dropped: int64(n % 3), End: n%5 == 4,
	}
}

func publishLogs(t *testing.T, l bus.Logs, execution event.ID, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		if err := l.PublishLog(t.Context(), chunk(execution, n)); err != nil {
			t.Fatal(err)
		}
	}
}

func readLogs(t *testing.T, l bus.Logs, execution event.ID, after uint64) []event.LogChunk {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var got []event.LogChunk
	if err := l.ReadLogs(ctx, execution, after, func(c event.LogChunk) error { got = append(got, c); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

// arrived waits until the broker has the first n chunks of an execution: nobody
// who sends them does.
func arrived(t *testing.T, l bus.Logs, execution event.ID, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all, seen := errors.New("all came"), 0
	err := l.TailLogs(ctx, execution, 0, func(event.LogChunk) error {
		if seen++; seen == n {
			return all
		}
		return nil
	})
	if !errors.Is(err, all) {
		t.Fatalf("%d of %d chunks came: %v", seen, n, err)
	}
}

func wantLogs(t *testing.T, got []event.LogChunk, execution event.ID, from, to int) {
	t.Helper()
	if len(got) != to-from {
		t.Fatalf("%d chunks, want %d", len(got), to-from)
	}
	last := uint64(0)
	for i, c := range got {
		want := chunk(execution, from+i)
		if c.Seq <= last {
			t.Errorf("chunk %d has position %d after %d", i, c.Seq, last)
		}
		last, c.Seq = c.Seq, 0
		if c != want {
			t.Errorf("chunk %d: got %+v, want %+v", i, c, want)
		}
	}
}

func logsAreKept(t *testing.T, l bus.Logs) {
	if got := readLogs(t, l, 7, 0); len(got) != 0 {
		t.Errorf("nothing was sent, and %v is kept", got)
	}
	publishLogs(t, l, 7, 0, 200)
	arrived(t, l, 7, 200)
	wantLogs(t, readLogs(t, l, 7, 0), 7, 0, 200)
}

func logsResume(t *testing.T, l bus.Logs) {
	publishLogs(t, l, 7, 0, 10)
	arrived(t, l, 7, 10)
	first := readLogs(t, l, 7, 0)
	wantLogs(t, readLogs(t, l, 7, first[3].Seq), 7, 4, 10)
	wantLogs(t, readLogs(t, l, 7, first[9].Seq), 7, 0, 0)
}

func logsFollow(t *testing.T, l bus.Logs) {
	publishLogs(t, l, 7, 0, 5)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	all := errors.New("all came")
	var got []event.LogChunk
	err := l.TailLogs(ctx, 7, 0, func(c event.LogChunk) error {
		got = append(got, c)
		if len(got) == 5 { // the tail is under way
			publishLogs(t, l, 7, 5, 20)
		}
		if len(got) == 20 {
			return all
		}
		return nil
	})
	if !errors.Is(err, all) {
		t.Fatalf("the tail ended with %v after %d chunks", err, len(got))
	}
	wantLogs(t, got, 7, 0, 20)
}

func logsAreSeparate(t *testing.T, l bus.Logs) {
	for n := range 10 {
		publishLogs(t, l, event.ID(7+n%2), n, n+1)
	}
	for _, c := range readLogs(t, l, 7, 0) {
		if c.ExecutionID != 7 {
			t.Errorf("execution 7 gets %+v", c)
		}
	}
	if got := readLogs(t, l, 70, 0); len(got) != 0 {
		t.Errorf("execution 70 gets %v", got)
	}
}

func logsStop(t *testing.T, l bus.Logs) {
	publishLogs(t, l, 7, 0, 3)
	arrived(t, l, 7, 3)
	enough := errors.New("enough")
	for name, read := range map[string]func(context.Context, event.ID, uint64, func(event.LogChunk) error) error{"read": l.ReadLogs, "tail": l.TailLogs} {
		calls := 0
		err := read(t.Context(), 7, 0, func(event.LogChunk) error { calls++; return enough })
		if !errors.Is(err, enough) || calls != 1 {
			t.Errorf("%s: %v after %d chunks", name, err, calls)
		}
	}
}

func logsEnd(t *testing.T, l bus.Logs) {
	publishLogs(t, l, 7, 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	err := l.TailLogs(ctx, 7, 0, func(event.LogChunk) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the tail ended with %v", err)
	}
}

func logsStart(t *testing.T, l bus.Logs) {
	publishLogs(t, l, 7, 0, 3)
	arrived(t, l, 7, 3)
	wantLogs(t, readLogs(t, l, 7, 1<<40), 7, 0, 3)
}
