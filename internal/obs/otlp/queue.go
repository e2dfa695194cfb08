package otlp

import (
	"context"
	"log/slog"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/noetl/noetl-go/internal/obs"
)

const (
	queueMost = 8192 // spans that may wait for the collector
	batchMost = 512
	// gather is how long a span waits for others to be sent with.
	gather = time.Second
)

// queue sends ended spans in batches from a goroutine of its own. Nobody ever
// waits for it: what finds no room is dropped and counted.
type queue struct {
	wire  sdktrace.SpanExporter
	log   *slog.Logger
	spans chan sdktrace.ReadOnlySpan
	flush chan chan struct{} // asks for everything to be sent now
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
	away  bool // the last batch was not taken; owned by run
	quit  context.Context
	cut   context.CancelFunc

	exported, dropped atomic.Uint64
	mu                sync.Mutex // guards shown
	shown             []counts
}

// counts are the totals in one registry.
type counts struct{ exported, dropped obs.Counter }

func newQueue(wire sdktrace.SpanExporter, log *slog.Logger) *queue {
	q := &queue{
		wire: wire, log: log, spans: make(chan sdktrace.ReadOnlySpan, queueMost),
		flush: make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	q.quit, q.cut = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart is not interesting.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a span that is over.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case <-q.stop:
		q.add(0, 1)
		return
	default:
	}
	select {
	case q.spans <- s:
	default:
		q.add(0, 1)
	}
}

// run sends until it is stopped, and then what still waits.
func (q *queue) run() {
	defer close(q.done)
	batch := make([]sdktrace.ReadOnlySpan, 0, batchMost)
	timer := time.NewTimer(gather)
	defer timer.Stop()
	for {
		select {
		case s := <-q.spans:
			if len(batch) == 0 {
				timer.Reset(gather)
			}
			if batch = append(batch, s); len(batch) == batchMost {
				batch = q.send(batch)
			}
		case <-timer.C:
			batch = q.send(batch)
		case asked := <-q.flush:
			batch = q.drain(batch)
			close(asked)
		case <-q.stop:
			q.drain(batch)
			return
		}
	}
}

// drain sends what waits.
func (q *queue) drain(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	for {
		select {
		case s := <-q.spans:
			if batch = append(batch, s); len(batch) == batchMost {
				batch = q.send(batch)
			}
		default:
			return q.send(batch)
		}
	}
}

// send gives a batch to the collector and returns the empty one. A collector
// that is away costs the batch: newer spans wait behind it.
func (q *queue) send(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(q.quit, sendTime)
	err := q.wire.ExportSpans(ctx, batch)
	cancel()
	lost := lostOf(err, len(batch))
	q.add(len(batch)-lost, lost)
	switch {
	case err != nil && !q.away:
		q.log.Warn("spans were not taken by the collector; work goes on without", "spans", lost, "error", err)
	case err == nil && q.away:
		q.log.Info("the collector takes spans again")
	}
	q.away = err != nil
	clear(batch) // the memory of spans goes with them
	return batch[:0]
}

// rejected is how the library says that a part of a batch was not taken.
var rejected = regexp.MustCompile(`partial success: .*\((\d+) spans rejected\)`)

// lostOf is how many spans of a batch were lost.
func lostOf(err error, size int) int {
	if err == nil {
		return 0
	}
	m := rejected.FindStringSubmatch(err.Error())
	if m == nil {
		return size
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return size
	}
	return min(n, size)
}

// add counts.
func (q *queue) add(exported, dropped int) {
	q.exported.Add(uint64(exported))
	q.dropped.Add(uint64(dropped))
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range q.shown {
		c.exported.Add(float64(exported))
		c.dropped.Add(float64(dropped))
	}
}

// count shows the totals in a registry from now on.
func (q *queue) count(r *obs.Registry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := counts{
		exported: r.Counter("noetl_trace_spans_exported_total", "Spans the collector has taken."),
		dropped:  r.Counter("noetl_trace_spans_dropped_total", "Spans that found no room or that the collector did not take."),
	}
	c.exported.Add(float64(q.exported.Load()))
	c.dropped.Add(float64(q.dropped.Load()))
	q.shown = append(q.shown, c)
}

// ForceFlush sends what waits.
func (q *queue) ForceFlush(ctx context.Context) error {
	asked := make(chan struct{})
	select {
	case q.flush <- asked:
	case <-q.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-asked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown sends what waits until ctx ends, and gives up the rest.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.stop) })
	late := context.AfterFunc(ctx, q.cut)
	defer late()
	<-q.done // ends soon after ctx: a batch that is cut fails at once, and so do those behind it
	q.cut()
	return q.wire.Shutdown(context.WithoutCancel(ctx))
}
