package control

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	relayGather   = 5 * time.Millisecond // after being woken, for the appends that come at the same time
	relayFirst    = 500 * time.Millisecond
	relayLongest  = 10 * time.Second
	relayFarewell = 5 * time.Second // for what the last passes appended
	markTries     = 3
	// A round of more bytes than the first is followed by one of fewer rows, one
	// of less than the second by one of more.
	relayHeavy  = 32 << 20
	relayLight  = 8 << 20
	relayFewest = 16
)

// relay publishes outbox rows to the stream of events. Every replica has one:
// claims are fenced, so they share the work without knowing of each other.
type relay struct {
	p      *Plane
	stream bus.EventStream
	poke   chan struct{} // something was appended here
	down   bool          // the last round failed; owned by run
	pause  time.Duration // before the next round while down
	batch  int           // rows of the next round
}

func newRelay(p *Plane, stream bus.EventStream) *relay {
	return &relay{p: p, stream: stream, poke: make(chan struct{}, 1), batch: p.o.Outbox.Batch}
}

// wake tells the relay that rows wait. A plane without one has nil.
func (r *relay) wake() {
	if r == nil {
		return
	}
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// run publishes until ctx ends, and then what is left as far as time allows.
func (r *relay) run(ctx context.Context) {
	for ctx.Err() == nil {
		r.step(ctx)
	}
	if !r.down {
		r.farewell()
	}
}

func (r *relay) farewell() {
	ctx, cancel := context.WithTimeout(context.Background(), relayFarewell)
	defer cancel()
	for {
		if more, err := r.round(ctx); err != nil || !more {
			return
		}
	}
}

// step makes one round and waits for the next.
func (r *relay) step(ctx context.Context) {
	more, err := r.round(ctx)
	if ctx.Err() != nil {
		return
	}
	r.note(err)
	switch {
	case err != nil:
		r.pause = min(max(2*r.pause, relayFirst), relayLongest)
		sleep(ctx, jitter(r.pause))
	case !more:
		r.idle(ctx)
	}
}

// note logs the beginning and the end of an outage.
func (r *relay) note(err error) {
	switch {
	case err != nil && !r.down:
		r.p.log.Warn("events are not published; they wait in the outbox", "error", err)
	case err == nil && r.down:
		r.p.log.Info("events are published again")
	}
	if r.down = err != nil; !r.down {
		r.pause = 0
	}
}

func (r *relay) idle(ctx context.Context) {
	poll := time.NewTimer(jitter(r.p.o.Outbox.Poll))
	defer poll.Stop()
	select {
	case <-r.poke:
		sleep(ctx, relayGather)
	case <-poll.C:
	case <-ctx.Done():
	}
}

// round claims, publishes and marks once. It tells whether more rows wait for
// certain. An error is about the store or the broker, not about single rows.
func (r *relay) round(ctx context.Context) (more bool, err error) {
	if !r.stream.Connected() {
		return false, event.Errorf(event.Unavailable, "the broker of the stream of events is not connected")
	}
	limit, token := r.batch, rand.Text()
	// Whoever has not published after most of the lease gives up, before others may take over.
	ctx, cancel := context.WithTimeout(ctx, r.p.o.Outbox.Lease*3/4)
	defer cancel()
	rows, err := r.p.claimOutbox(ctx, token, limit)
	if err != nil || len(rows) == 0 {
		return false, err
	}
	f := &freight{r: r, token: token, rows: rows}
	_ = failpoint.Hit(failpoint.RelayClaimed)
	r.weigh(f.load())
	f.send(ctx)
	_ = failpoint.Hit(failpoint.RelayPublished)
	return len(rows) == limit, f.settle(ctx)
}

// weigh fits the rows of the next round to the bytes of this one.
func (r *relay) weigh(bytes int) {
	switch {
	case bytes > relayHeavy:
		r.batch = max(r.batch/2, relayFewest)
	case bytes < relayLight:
		r.batch = min(2*r.batch, r.p.o.Outbox.Batch)
	}
}

// freight is what one round has claimed. Invariant: errs[i] says why rows[i]
// is not published; nil means it is.
type freight struct {
	r        *relay
	token    string
	rows     []store.OutboxRow
	errs     []error
	messages []bus.EventMessage
	index    []int // of the row of each message
}

// load encodes the rows and returns their bytes as stored. One that cannot be
// encoded holds back its execution.
func (f *freight) load() (size int) {
	f.errs = make([]error, len(f.rows))
	limit := min(maxEnvelope, f.r.stream.MaxEvent())
	held := map[event.ID]bool{}
	for i := range f.rows {
		row := &f.rows[i]
		size += len(row.Event.Context) + len(row.Event.Result) + len(row.Event.Meta)
		if held[row.Event.ExecutionID] {
			f.errs[i] = errHeldBack
			continue
		}
		m, err := encodeRow(row, limit)
		if err != nil {
			f.errs[i], held[row.Event.ExecutionID] = event.Errorf(event.Limit, "%w", err), true
			continue
		}
		f.messages = append(f.messages, bus.EventMessage{
			EventID: m.EventID, ExecutionID: m.ExecutionID, Subject: m.Subject, Payload: m.Payload,
		})
		f.index = append(f.index, i)
	}
	return size
}

var errHeldBack = event.Errorf(event.Unavailable, "an earlier event of the execution was not published")

func (f *freight) send(ctx context.Context) {
	if len(f.messages) == 0 {
		return
	}
	for i, err := range f.r.stream.PublishEvents(ctx, f.messages) {
		f.errs[f.index[i]] = err
	}
}

// settle marks all rows: published ones in one call, those that cannot be sent
// one by one, and the rest is given back. The marks are made even when the relay
// is being stopped, since otherwise everybody would have to wait for the lease.
func (f *freight) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(f.r.p.o.Outbox.Lease/4, time.Second))
	defer cancel()
	var published, rest []int64
	var refused []int
	var outage error
	stuck := map[event.ID]bool{} // executions that wait for a row of their own
	for i, err := range f.errs {
		row := &f.rows[i]
		switch {
		case err == nil:
			published = append(published, row.ID)
		case event.CodeOf(err) == event.Limit:
			refused = append(refused, i)
			stuck[row.Event.ExecutionID] = true
		default:
			rest = append(rest, row.ID)
			if !stuck[row.Event.ExecutionID] {
				outage = cmp.Or(outage, err)
			}
		}
	}
	f.r.p.metrics.OutboxFailed.Add(float64(len(rest)), obs.OutboxBroker)
	f.r.p.metrics.OutboxFailed.Add(float64(len(refused)), obs.OutboxTooLarge)
	err := f.mark(ctx, published)
	for _, i := range refused {
		err = cmp.Or(err, f.refuse(ctx, i))
	}
	if len(rest) > 0 {
		if _, failed := f.r.p.store.ReleaseOutbox(ctx, f.token, rest); failed != nil {
			err = cmp.Or(err, storeError("release outbox rows", failed))
		}
	}
	return cmp.Or(err, outage)
}

// mark notes what the broker has. Should that fail, the rows are published
// again when the lease is over, and the broker drops what it knows.
func (f *freight) mark(ctx context.Context, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	var err error
	for range markTries {
		if _, err = f.r.p.store.MarkPublished(ctx, f.token, ids, f.r.p.now()); err == nil {
			f.r.p.counters.relayed.Add(int64(len(ids)))
			return nil
		}
		if !sleep(ctx, jitter(relayFirst/4)) {
			break
		}
	}
	f.r.p.metrics.OutboxFailed.Add(float64(len(ids)), obs.OutboxStore)
	return storeError("mark outbox rows published", err)
}

func (f *freight) refuse(ctx context.Context, i int) error {
	row := &f.rows[i]
	wait, _, err := f.r.p.markFailed(ctx, OutboxFailure{
		OutboxID: row.ID, Token: f.token, Error: f.errs[i].Error(), Attempts: row.Attempts, MaxDelay: failureMost,
	})
	f.r.p.log.Warn("event not published", "execution_id", row.Event.ExecutionID, "step", row.Event.NodeName, "event_id", row.Event.EventID,
		"attempt", row.Attempts, "again_in", wait, "error", f.errs[i])
	return err
}
