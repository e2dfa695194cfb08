package control_test

import (
	"context"
	"sync"
	"testing"

	"github.com/noetl/noetl-go/internal/bus/membus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// bench is a local worker that ends every command at once.
type bench struct {
	ids   *snowflake.Generator
	plane *control.Plane
	slots chan struct{}
	got   chan *event.Command
}

func (w *bench) ID() string               { return "bench" }
func (w *bench) Serves(string) bool       { return true }
func (w *bench) Unreserve()               { <-w.slots }
func (w *bench) Deliver(c *event.Command) { w.got <- c }

func (w *bench) Reserve() bool {
	select {
	case w.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *bench) work(b *testing.B) {
	for c := range w.got {
		for todo := []*event.Command{c}; len(todo) > 0; todo = todo[1:] {
			a, err := w.plane.Report(context.Background(), success(w.ids.Next(), "bench", 1, todo[0]))
			if err != nil {
				b.Error(err)
			}
			todo = append(todo, a.Commands...)
		}
		w.Unreserve()
	}
}

// BenchmarkSteps measures steps per second of linear playbooks through the
// in-memory store with an eager local worker.
func BenchmarkSteps(b *testing.B) {
	const slots = 64
	ids := snowflake.New(1, nil)
	w := &bench{ids: ids, slots: make(chan struct{}, slots), got: make(chan *event.Command, slots)}
	bus := membus.New(membus.Options{})
	p, err := control.New(control.Options{Store: memstore.New(), Bus: bus, IDs: ids.Next})
	if err != nil {
		b.Fatal(err)
	}
	w.plane = p
	p.SetLocal(w)
	ctx, cancel := context.WithCancel(context.Background())
	var run, hands sync.WaitGroup
	run.Go(func() { _ = p.Run(ctx) })
	for range slots {
		hands.Go(func() { w.work(b) })
	}
	if _, err := p.Register(ctx, control.RegisterRequest{Content: linear}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := p.Execute(ctx, control.ExecuteRequest{Path: "test/linear"}); err != nil {
			b.Fatal(err)
		}
	}
	for range slots { // everything that was taken has ended
		w.slots <- struct{}{}
	}
	b.StopTimer()
	b.ReportMetric(float64(4*b.N)/b.Elapsed().Seconds(), "steps/s")
	cancel()
	run.Wait()
	close(w.got)
	hands.Wait()
	_ = bus.Close()
}
