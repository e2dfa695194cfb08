package snowflake_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func TestAnIDHoldsTimeMachineAndSequence(t *testing.T) {
	t.Parallel()
	g := snowflake.New(984, at(noon))
	ms := noon.UnixMilli() - snowflake.Epoch
	for seq := range int64(3) {
		want := event.ID(ms<<22 | 984<<12 | seq)
		if got := g.Next(); got != want {
			t.Fatalf("id %d is %d, want %d", seq, got, want)
		}
	}
	if got := snowflake.Time(g.Next()); !got.Equal(noon) {
		t.Errorf("Time is %v, want %v", got, noon)
	}
}

func TestAFullSequenceGoesOnInTheNextMillisecond(t *testing.T) {
	t.Parallel()
	g := snowflake.New(3, at(noon))
	for range 4096 {
		g.Next()
	}
	id := g.Next()
	if got := snowflake.Time(id); !got.Equal(noon.Add(time.Millisecond)) {
		t.Errorf("the 4097th id is of %v, want one millisecond after %v", got, noon)
	}
	if machine := int64(id) >> 12 & 1023; machine != 3 {
		t.Errorf("the overflow changed the machine number to %d", machine)
	}
}

func TestIDsGrowWhenTheClockMovesBack(t *testing.T) {
	t.Parallel()
	now := noon
	g := snowflake.New(1, func() time.Time { return now })
	last := g.Next()
	for range 10_000 {
		now = now.Add(-time.Second)
		id := g.Next()
		if id <= last {
			t.Fatalf("id %d follows %d", id, last)
		}
		last = id
	}
}

func TestAClockBeforeTheEpochStillGivesPositiveIDs(t *testing.T) {
	t.Parallel()
	g := snowflake.New(0, at(time.Unix(0, 0)))
	if a, b := g.Next(), g.Next(); a <= 0 || b <= a {
		t.Errorf("ids are %d and %d, want positive and growing", a, b)
	}
}

func TestConcurrentCallersNeverShareAnID(t *testing.T) {
	t.Parallel()
	g := snowflake.New(7, at(noon))
	const callers, each = 8, 5000
	got := make([][]event.ID, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for range each {
				got[c] = append(got[c], g.Next())
			}
		})
	}
	wg.Wait()
	seen := make(map[event.ID]bool, callers*each)
	for _, ids := range got {
		for _, id := range ids {
			if seen[id] {
				t.Fatalf("id %d was given twice", id)
			}
			seen[id] = true
		}
	}
}

func TestMachineID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, explicit, hostname string
		want                     int
		fails                    bool
	}{
		{name: "the host name is hashed", hostname: "noetl-server-pod-0", want: 984},
		{name: "an empty host name is hashed too", want: 805},
		{name: "a short host name", hostname: "a", want: 140},
		{name: "an explicit number wins", explicit: "12", hostname: "a", want: 12},
		{name: "zero is a number", explicit: "0", hostname: "a", want: 0},
		{name: "the largest number", explicit: "1023", want: 1023},
		{name: "a number too large", explicit: "1024", fails: true},
		{name: "a negative number", explicit: "-1", fails: true},
		{name: "a word", explicit: "three", fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := snowflake.MachineID(c.explicit, c.hostname)
			if c.fails != errors.Is(err, &event.Error{Code: event.Invalid}) {
				t.Fatalf("error is %v, want invalid: %v", err, c.fails)
			}
			if got != c.want {
				t.Errorf("machine id is %d, want %d", got, c.want)
			}
		})
	}
}

func BenchmarkNext(b *testing.B) {
	g := snowflake.New(1, nil)
	for b.Loop() {
		g.Next()
	}
}
