// Package bustest is the conformance suite every bus driver passes. It knows
// the bus contract only, never a driver.
package bustest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

const (
	// patience is how long an expected delivery may take.
	patience = 10 * time.Second
	// quiet is how long a test looks for a delivery that must not come.
	quiet = 150 * time.Millisecond
)

// Run checks a driver. open makes an empty bus that is not connected to any
// other; the suite closes it.
func Run(t *testing.T, open func(t *testing.T) bus.Bus) {
	for _, c := range []struct {
		name string
		test func(*testing.T, bus.Bus)
	}{
		{"a notification arrives as it was published", arrivesUnchanged},
		{"a notification published before anybody subscribed arrives", arrivesLate},
		{"two subscriptions share a pool", groupShares},
		{"pools are separate", poolsAreSeparate},
		{"one subscription serves several pools in turn", poolsTakeTurns},
		{"an acknowledged notification does not come back", ackRemoves},
		{"a refused notification comes back", nakRepeats},
		{"a refused notification comes back no sooner than asked", nakDelays},
		{"a stopped subscription leaves its deliveries to others", stopGivesBack},
		{"no more than the limit is handed out at once", limitHolds},
		{"a delivery is settled once", settlesOnce},
		{"equal publications are one", publishesOnce},
		{"a re-publication is another message", republishes},
		{"many notifications arrive exactly once each", deliversMany},
		{"waiting ends with the context", waitEndsWithContext},
		{"waiting ends when the subscription is stopped", waitEndsWithStop},
		{"every watcher learns of a cancellation", cancelReachesAll},
		{"a stopped watcher is left alone", stoppedWatcher},
		{"a subscription without pools is refused", needsPools},
		{"a closed bus refuses work", closedRefuses},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.test(t, b)
		})
	}
}

func note(n int, pool string) event.Notification {
	id := event.ID(1000 + n)
	return event.Notification{
		ExecutionID: event.ID(7 + n%3), EventID: id, CommandID: "7:step:" + id.String(), Step: "step",
		ServerURL: "http://localhost:8082", Pool: pool, Trace: json.RawMessage(`{"traceparent":"00-1"}`),
	}
}

func publish(t *testing.T, b bus.Bus, notes ...event.Notification) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Publish(ctx, notes...); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

func subscribe(t *testing.T, b bus.Bus, limit int, pools ...string) bus.Subscription {
	t.Helper()
	s, err := b.Subscribe(t.Context(), pools, limit)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}

func next(t *testing.T, s bus.Subscription) bus.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := s.Next(ctx)
	if err != nil {
		t.Fatalf("next delivery: %v", err)
	}
	return d
}

func nothing(t *testing.T, s bus.Subscription) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), quiet)
	defer cancel()
	if d, err := s.Next(ctx); err == nil {
		t.Fatalf("delivery of %d where none was due", d.Notification().EventID)
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v, want the context's", err)
	}
}

func settle(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("settle: %v", err)
	}
}

func arrivesUnchanged(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 4, "shared")
	want := note(1, "shared")
	publish(t, b, want)
	d := next(t, s)
	if diff := cmp.Diff(want, d.Notification()); diff != "" {
		t.Errorf("notification (-published +received):\n%s", diff)
	}
	settle(t, d.Ack())
}

func arrivesLate(t *testing.T, b bus.Bus) {
	publish(t, b, note(1, ""))
	d := next(t, subscribe(t, b, 1, "shared"))
	if got := d.Notification().EventID; got != 1001 {
		t.Errorf("received %d, want 1001", got)
	}
	settle(t, d.Ack())
}

func groupShares(t *testing.T, b bus.Bus) {
	one, two := subscribe(t, b, 1, "shared"), subscribe(t, b, 1, "shared")
	publish(t, b, note(1, "shared"), note(2, "shared"))
	// With a limit of one each must take one of the two.
	a, c := next(t, one), next(t, two)
	if a.Notification().EventID == c.Notification().EventID {
		t.Errorf("both received %d", a.Notification().EventID)
	}
	settle(t, a.Ack())
	settle(t, c.Ack())
	nothing(t, one)
	nothing(t, two)
}

func poolsAreSeparate(t *testing.T, b bus.Bus) {
	shared, system := subscribe(t, b, 4, "shared"), subscribe(t, b, 4, "system")
	publish(t, b, note(1, "system"))
	settle(t, next(t, system).Ack())
	nothing(t, shared)
}

func poolsTakeTurns(t *testing.T, b bus.Bus) {
	const busy = 2000 // far more than can be on the way while the other pool is asked for the first time
	notes := make([]event.Notification, busy)
	for i := range notes {
		notes[i] = note(i, "shared")
	}
	publish(t, b, append(notes, note(busy, "system"))...)
	s := subscribe(t, b, 2, "shared", "system")
	for range busy / 2 {
		d := next(t, s)
		settle(t, d.Ack())
		if d.Notification().Pool == "system" {
			return
		}
	}
	t.Errorf("a busy pool kept another waiting for %d deliveries", busy/2)
}

func ackRemoves(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 4, "shared")
	publish(t, b, note(1, "shared"))
	settle(t, next(t, s).Ack())
	s.Stop()
	nothing(t, subscribe(t, b, 4, "shared"))
}

func nakRepeats(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 1, "shared")
	publish(t, b, note(1, "shared"))
	for range 3 {
		settle(t, next(t, s).Nak(0))
	}
	settle(t, next(t, s).Ack())
	nothing(t, s)
}

func nakDelays(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 1, "shared")
	publish(t, b, note(1, "shared"))
	const delay = 300 * time.Millisecond
	start := time.Now()
	settle(t, next(t, s).Nak(delay))
	d := next(t, s)
	// Brokers keep time in their own grain: a little early is not a fault.
	if took := time.Since(start); took < delay*9/10 {
		t.Errorf("came back after %v, want %v", took, delay)
	}
	settle(t, d.Ack())
}

func stopGivesBack(t *testing.T, b bus.Bus) {
	first := subscribe(t, b, 8, "shared")
	publish(t, b, note(1, "shared"), note(2, "shared"), note(3, "shared"))
	held := next(t, first)
	first.Stop()
	if err := held.Ack(); err == nil {
		t.Error("a delivery was settled after its subscription had ended")
	}
	second := subscribe(t, b, 8, "shared")
	seen := map[event.ID]bool{}
	for len(seen) < 3 {
		d := next(t, second)
		seen[d.Notification().EventID] = true
		settle(t, d.Ack())
	}
}

func limitHolds(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 2, "shared", "system")
	publish(t, b, note(1, "shared"), note(2, "shared"), note(3, "shared"), note(4, "system"), note(5, "system"))
	a, c := next(t, s), next(t, s)
	nothing(t, s)
	settle(t, a.Ack())
	d := next(t, s)
	settle(t, c.Ack())
	settle(t, d.Ack())
	settle(t, next(t, s).Ack())
	settle(t, next(t, s).Ack())
	nothing(t, s)
}

func settlesOnce(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 1, "shared")
	publish(t, b, note(1, "shared"))
	d := next(t, s)
	settle(t, d.InProgress())
	settle(t, d.Ack())
	if err := d.Nak(0); !errors.Is(err, &event.Error{Code: event.Conflict}) {
		t.Errorf("a second settlement gave %v, want a conflict", err)
	}
	nothing(t, s)
}

func publishesOnce(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 4, "shared")
	publish(t, b, note(1, "shared"), note(1, "shared"))
	publish(t, b, note(1, "shared"))
	settle(t, next(t, s).Ack())
	nothing(t, s)
}

func republishes(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 4, "shared")
	for attempt := range 3 {
		n := note(1, "shared")
		n.Attempt = attempt + 1
		publish(t, b, n)
		d := next(t, s)
		if got := d.Notification().Attempt; got != attempt+1 {
			t.Errorf("attempt is %d, want %d", got, attempt+1)
		}
		settle(t, d.Ack())
	}
}

func deliversMany(t *testing.T, b bus.Bus) {
	const count = 2000
	notes := make([]event.Notification, count)
	for i := range notes {
		notes[i] = note(i, "shared")
	}
	s := subscribe(t, b, 16, "shared")
	published := make(chan error, 1)
	go func() { published <- b.Publish(t.Context(), notes...) }()
	seen := map[event.ID]int{}
	for range count {
		d := next(t, s)
		seen[d.Notification().EventID]++
		settle(t, d.Ack())
	}
	if err := <-published; err != nil {
		t.Errorf("publish: %v", err)
	}
	if len(seen) != count {
		t.Errorf("%d different notifications arrived in %d deliveries", len(seen), count)
	}
	nothing(t, s)
}

func waitEndsWithContext(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 1, "shared")
	ctx, cancel := context.WithCancel(t.Context())
	got := make(chan error, 1)
	go func() {
		_, err := s.Next(ctx)
		got <- err
	}()
	cancel()
	select {
	case err := <-got:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v, want the context's", err)
		}
	case <-time.After(patience):
		t.Error("Next outlived its context")
	}
}

func waitEndsWithStop(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 1, "shared")
	got := make(chan error, 1)
	go func() {
		_, err := s.Next(t.Context())
		got <- err
	}()
	s.Stop()
	select {
	case err := <-got:
		if err == nil {
			t.Error("Next of a stopped subscription gave a delivery")
		}
	case <-time.After(patience):
		t.Error("Next outlived its subscription")
	}
}

func cancelReachesAll(t *testing.T, b bus.Bus) {
	got := make(chan event.ID, 8)
	for range 2 {
		stop, err := b.WatchCancel(func(id event.ID) { got <- id })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(stop)
	}
	if err := b.PublishCancel(t.Context(), 42); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case id := <-got:
			if id != 42 {
				t.Errorf("cancelled execution is %d, want 42", id)
			}
		case <-time.After(patience):
			t.Fatal("a watcher was not told")
		}
	}
}

func stoppedWatcher(t *testing.T, b bus.Bus) {
	gone, here := make(chan event.ID, 1), make(chan event.ID, 1)
	stop, err := b.WatchCancel(func(id event.ID) { gone <- id })
	if err != nil {
		t.Fatal(err)
	}
	stop()
	stop, err = b.WatchCancel(func(id event.ID) { here <- id })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := b.PublishCancel(t.Context(), 42); err != nil {
		t.Fatal(err)
	}
	select {
	case <-here:
	case <-time.After(patience):
		t.Fatal("the watcher was not told")
	}
	select {
	case <-gone:
		t.Error("a stopped watcher was told")
	default:
	}
}

func needsPools(t *testing.T, b bus.Bus) {
	if _, err := b.Subscribe(t.Context(), nil, 1); !errors.Is(err, &event.Error{Code: event.Invalid}) {
		t.Errorf("error is %v, want invalid", err)
	}
}

func closedRefuses(t *testing.T, b bus.Bus) {
	s := subscribe(t, b, 1, "shared")
	if !b.Connected() {
		t.Error("an open bus is not connected")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if b.Connected() {
		t.Error("a closed bus is connected")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := b.Publish(ctx, note(1, "shared")); err == nil || ctx.Err() != nil {
		t.Errorf("publish gave %v", err)
	}
	if _, err := s.Next(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("next gave %v", err)
	}
	if _, err := b.Subscribe(ctx, []string{"shared"}, 1); err == nil || ctx.Err() != nil {
		t.Errorf("subscribe gave %v", err)
	}
}
