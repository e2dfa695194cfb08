package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// relayEvery is longer than any pause a relay draws for itself, so that all
	// look for rows at times that are the same in every run of a seed.
	relayEvery  = 13 * time.Second
	relayLease  = time.Minute
	relayRows   = 100 // of one claim; now and then fewer than wait
	relayLooks  = 5 * time.Second
	relayLosing = 0.03 // of the messages, when the store loses acknowledgements, too
)

// stream is the stream of events as one plane sees it. It loses messages, and
// acknowledgements of messages it has taken, and keeps what comes twice.
type stream struct {
	w *world
	p *plane
}

var _ bus.EventStream = stream{}

func (s stream) OpenEvents(context.Context, bus.EventOptions) error { return nil }
func (s stream) MaxEvent() int                                      { return 1 << 20 }
func (s stream) Connected() bool                                    { return true }

func (s stream) PublishEvents(_ context.Context, messages []bus.EventMessage) []error {
	if s.p.dead.Load() {
		return refused(messages, errDead)
	}
	errs, failed := make([]error, len(messages)), map[event.ID]bool{}
	for i, m := range messages {
		if !failed[m.ExecutionID] && s.take(m) {
			continue
		}
		errs[i], failed[m.ExecutionID] = event.Errorf(event.Unavailable, "event %s was not acknowledged", m.EventID), true
	}
	return errs
}

func refused(messages []bus.EventMessage, err error) []error {
	out := make([]error, len(messages))
	for i := range out {
		out[i] = err
	}
	return out
}

// take keeps a message and tells whether the sender hears of it.
func (s stream) take(m bus.EventMessage) bool {
	name, tries := s.w.sent(m)
	dice := s.w.dice("publish", name, tries)
	if s.w.strike(dice, s.w.losing(), "message %d of %s is lost", tries, name) {
		return false
	}
	s.w.mu.Lock()
	s.w.stream = append(s.w.stream, m)
	s.w.mu.Unlock()
	return !s.w.strike(dice, s.w.losing(), "message %d of %s loses its acknowledgement", tries, name)
}

func (w *world) losing() float64 {
	if w.odds.loseAck == 0 {
		return 0
	}
	return relayLosing
}

// sent counts how often an event was sent.
func (w *world) sent(m bus.EventMessage) (name string, tries int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name = fmt.Sprintf("%s#%d", w.names[m.ExecutionID], w.seqs[m.EventID])
	if w.sendings == nil {
		w.sendings = map[string]int{}
	}
	w.sendings[name]++
	return name, w.sendings[name]
}

// outboxOptions make a plane publish what is appended.
func (w *world) outboxOptions(p *plane) control.OutboxOptions {
	if !w.relays {
		return control.OutboxOptions{}
	}
	return control.OutboxOptions{
		On: true, Stream: stream{w, p}, Lease: relayLease, MaxAttempts: 1000, Batch: relayRows, Poll: relayLooks,
	}
}

// unpublished counts events that are still to be published.
func (w *world) unpublished() int64 {
	c, err := w.store.CountOutbox(context.Background(), time.Now(), relayLease)
	if err != nil {
		return 1
	}
	return c.Ready + c.Waiting + c.InFlight
}

// checkStream proves that everything was published, each execution's events in
// the order of its log.
func (w *world) checkStream(all []store.Execution) {
	if !w.relays {
		return
	}
	if c, err := w.store.CountOutbox(context.Background(), time.Now(), relayLease); err != nil || c.Dead > 0 {
		w.problem(published, "%d rows of the outbox were given up, %v", c.Dead, err)
	}
	order, seen := map[event.ID][]event.ID{}, map[event.ID]bool{}
	for _, m := range w.stream {
		if !seen[m.EventID] {
			seen[m.EventID] = true
			order[m.ExecutionID] = append(order[m.ExecutionID], m.EventID)
		}
	}
	for _, row := range all {
		events, err := w.store.Events(context.Background(), row.ExecutionID, 0, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		got := order[row.ExecutionID]
		for i := range events {
			if i >= len(got) || got[i] != events[i].EventID {
				w.problem(published, "execution %s: event %d was not published in its place; %d of %d were", w.name(row.ExecutionID), i+1, len(got), len(events))
				break
			}
		}
	}
}

func (g *gate) ClaimOutbox(ctx context.Context, c store.OutboxClaim) (out []store.OutboxRow, err error) {
	asked := time.Now()
	claim := func(ctx context.Context) error {
		c := c
		c.Now = c.Now.Add(time.Since(asked))
		out, err = g.w.store.ClaimOutbox(ctx, c)
		return err
	}
	late := func() { _ = claim(context.Background()) }
	err = g.do(ctx, "ClaimOutbox", "", late, func() error { return claim(ctx) })
	return out, err
}

func (g *gate) MarkPublished(ctx context.Context, token string, ids []int64, now time.Time) (n int, err error) {
	late := func() { _, _ = g.w.store.MarkPublished(context.Background(), token, ids, now) }
	err = g.do(ctx, "MarkPublished", fmt.Sprint(ids), late, func() error {
		n, err = g.w.store.MarkPublished(ctx, token, ids, now)
		return err
	})
	return n, err
}

func (g *gate) MarkFailed(ctx context.Context, token string, id int64, reason string, until time.Time) (ok bool, err error) {
	err = g.do(ctx, "MarkFailed", fmt.Sprint(id), nil, func() error {
		ok, err = g.w.store.MarkFailed(ctx, token, id, reason, until)
		return err
	})
	return ok, err
}

func (g *gate) ReleaseOutbox(ctx context.Context, token string, ids []int64) (n int, err error) {
	late := func() { _, _ = g.w.store.ReleaseOutbox(context.Background(), token, ids) }
	err = g.do(ctx, "ReleaseOutbox", fmt.Sprint(ids), late, func() error {
		n, err = g.w.store.ReleaseOutbox(ctx, token, ids)
		return err
	})
	return n, err
}

func (g *gate) ClaimHolder(ctx context.Context, c store.StartClaim) (out event.ID, err error) {
	err = g.do(ctx, "ClaimHolder", c.Key, nil, func() error {
		out, err = g.w.store.ClaimHolder(ctx, c)
		return err
	})
	return out, err
}

// checkKeys counts the executions that stand beside those of clients with a key.
func (w *world) checkKeys(all []store.Execution) {
	keyed, top := map[event.ID]bool{}, 0
	for _, v := range w.clients {
		if !v.keyed {
			return // how often the others started something is not known
		}
	}
	for _, id := range w.granted {
		keyed[id] = true
	}
	for _, row := range all {
		if row.ParentExecutionID == 0 {
			top++
		}
	}
	if len(keyed) == len(w.clients) && top != len(w.clients) {
		w.problem(keys, "%d clients with a key each started %d executions", len(w.clients), top)
	}
}
