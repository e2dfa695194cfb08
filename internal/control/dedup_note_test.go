package control_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// inTurn gives operations of the named kinds these faults, in this order, and
// leaves everything else alone.
func inTurn(steps ...func(op string) (memstore.Fault, bool)) func(string) memstore.Fault {
	var mu sync.Mutex
	return func(op string) memstore.Fault {
		mu.Lock()
		defer mu.Unlock()
		if len(steps) == 0 {
			return memstore.None
		}
		fault, hit := steps[0](op)
		if hit {
			steps = steps[1:]
		}
		return fault
	}
}

func onNext(op string, f memstore.Fault) func(string) (memstore.Fault, bool) {
	return func(called string) (memstore.Fault, bool) {
		if called != op {
			return memstore.None, false
		}
		return f, true
	}
}

// The note is stored, nobody hears of it, and the log does not answer either:
// the errand is run again.
func TestASuppressedStartIsNotedOnceWhenTheAcknowledgementIsLost(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		p := r.plane(nil, quiet)
		r.register(p, single)
		parent := r.start(p, "test/single")
		q := keyed("test/single", "msg-1")
		q.ParentExecutionID = parent
		if _, err := p.Execute(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		r.store.Inject(memstore.Faults{Hook: inTurn(onNext("Append", memstore.LoseAck), onNext("Events", memstore.Refuse))})
		if a, err := p.Execute(t.Context(), q); err != nil || a.Status != "duplicate" {
			t.Fatalf("%+v, %v", a, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		events, err := r.store.Events(t.Context(), parent, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		notes := 0
		for _, e := range events {
			if e.Type == event.MessageDeduplicated {
				notes++
			}
		}
		if notes != 1 {
			t.Errorf("one suppressed start is noted %d times", notes)
		}
	})
}

// Notes are a courtesy; what executions need of each other is not.
func TestAFloodOfDuplicatesLeavesRoomForChildren(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t)
		var log bytes.Buffer
		p := r.plane(nil, quiet, func(o *control.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		r.register(p, single)
		parent := r.start(p, "test/single")
		q := keyed("test/single", "msg-1")
		q.ParentExecutionID = parent
		if _, err := p.Execute(t.Context(), q); err != nil {
			t.Fatal(err)
		}
		r.store.Inject(memstore.Faults{Hook: func(op string) memstore.Fault {
			if op == "Append" {
				return memstore.Refuse
			}
			return memstore.None
		}})
		for range 5000 {
			if a, err := p.Execute(t.Context(), q); err != nil || a.Status != "duplicate" {
				t.Fatalf("%+v, %v", a, err)
			}
		}
		r.store.Inject(memstore.Faults{})
		p.stop()
		if strings.Contains(log.String(), "too much to do between executions") {
			t.Error("the flood left no room for other errands")
		}
	})
}
