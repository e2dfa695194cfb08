package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
)

// retryDelays are the pauses before a notification is looked at again when the
// plane could not be asked about it.
var retryDelays = [...]time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 60 * time.Second}

// settledReasons of a refused claim say that the command needs no worker, or
// has one. A server of another make may give none.
var settledReasons = []string{
	"", "active_claim", "already_terminal", "execution_cancelled", "execution_ended", "waiting", "attempts_exhausted",
}

const (
	// maxPause bounds how long a slot rests after a claim failed, so that an
	// absent plane costs a few calls and not the whole queue.
	maxPause = 5 * time.Second
	// A claim is tried so often, with pauses that double between these.
	claimTries    = 5
	minClaimPause = 250 * time.Millisecond
	maxClaimPause = 2 * time.Second
	// turn is how long the loop waits for a delivery before it comes round again
	// and shows that it is alive.
	turn = 30 * time.Second
	// busPause is the rest after the bus failed.
	busPause = time.Second
)

// pull serves the bus until ctx ends. The returned function leaves the bus; it
// is for the time when nothing runs any more, because it gives back unsettled
// deliveries.
func (w *Worker) pull(ctx context.Context) (leave func(), err error) {
	if w.options.Bus == nil {
		<-ctx.Done()
		return func() {}, nil
	}
	select { // so that the registry knows us before the first claim, if it can
	case <-w.introduced:
	case <-ctx.Done():
		return func() {}, nil
	}
	sub, leave, err := w.join(ctx)
	if err != nil || sub == nil {
		return leave, err
	}
	w.condition.join(sub)
	for w.acquire(ctx) {
		d, err := w.next(ctx, sub)
		switch {
		case d != nil:
			go w.serve(ctx, d)
			continue
		case err != nil && ctx.Err() == nil:
			w.log.Warn("no delivery from the bus", "error", err)
			rest(ctx, busPause)
		}
		w.Unreserve()
	}
	return leave, nil
}

// next waits for a delivery, for a while: it is nil when none came.
func (w *Worker) next(ctx context.Context, sub bus.Subscription) (bus.Delivery, error) {
	m, began := w.options.Metrics, w.options.Clock()
	w.condition.turned(began)
	wait, cancel := context.WithTimeout(ctx, turn)
	defer cancel()
	d, err := sub.Next(wait)
	now := w.options.Clock()
	if d == nil && wait.Err() != nil {
		if ctx.Err() == nil {
			m.Pulls.Inc(obs.PullEmpty)
			w.condition.pulled(now, nil)
		}
		return nil, nil
	}
	w.condition.pulled(now, err)
	if err != nil {
		m.Pulls.Inc(obs.PullError)
		return nil, err
	}
	m.Pulls.Inc(obs.PullDelivered)
	m.PullDuration.Observe(now.Sub(began).Seconds())
	m.PickupPhase.Observe(now.Sub(began).Seconds(), obs.PickupPull)
	return d, nil
}

// join subscribes to notifications and cancellations. It waits for a bus that
// is not there yet, and returns an error when the bus refuses us. The
// subscription is nil when ctx ended first.
func (w *Worker) join(ctx context.Context) (bus.Subscription, func(), error) {
	for ctx.Err() == nil {
		w.condition.turned(w.options.Clock())
		sub, leave, err := w.subscribe(ctx)
		if err == nil {
			return sub, leave, nil
		}
		if !transient(err) {
			return nil, func() {}, err
		}
		if ctx.Err() == nil {
			w.log.Warn("the bus is not available yet", "error", err)
			rest(ctx, busPause)
		}
	}
	return nil, func() {}, nil
}

func (w *Worker) subscribe(ctx context.Context) (bus.Subscription, func(), error) {
	unwatch, err := w.options.Bus.WatchCancel(w.cancelExecution)
	if err != nil {
		return nil, nil, err
	}
	sub, err := w.options.Bus.Subscribe(ctx, w.options.Pools, w.options.Slots)
	if err != nil {
		unwatch()
		return nil, nil, err
	}
	return sub, func() { sub.Stop(); unwatch() }, nil
}

// serve handles one delivery on a slot that was taken before it was pulled.
func (w *Worker) serve(ctx context.Context, d bus.Delivery) {
	defer w.Unreserve()
	if ctx.Err() != nil {
		w.settle(d.Nak(0))
		return
	}
	n := d.Notification()
	if s := w.options.Spool; s != nil && s.holds(n.EventID) && !w.replay(w.calls) {
		// It has run; only the word of it is missing.
		w.settle(d.Nak(retryDelays[0]))
		rest(ctx, retryDelays[0])
		return
	}
	c := classOf(n.ToolKind)
	if !w.enter(c) {
		w.settle(d.Nak(w.crowd()))
		return
	}
	began := w.options.Clock()
	cmd, err := w.claim(ctx, n)
	w.options.Metrics.PickupPhase.Observe(w.options.Clock().Sub(began).Seconds(), obs.PickupClaim)
	if err == nil {
		w.claimFailures.Store(0)
		w.options.Metrics.ClaimSucceeded.Inc()
		w.work(cmd, d, c)
		return
	}
	w.leaveClass(c)
	w.options.Metrics.ClaimFailed.Inc()
	w.claimFailed(ctx, d, err)
}

// claim asks for the right to run a command, a few times when the plane is
// away or overloaded.
func (w *Worker) claim(ctx context.Context, n event.Notification) (*event.Command, error) {
	for pause, tries := minClaimPause, 1; ; pause, tries = min(2*pause, maxClaimPause), tries+1 {
		cmd, err := w.options.Plane.Claim(w.calls, event.ClaimRequest{
			EventID: n.EventID, ExecutionID: n.ExecutionID, WorkerID: w.options.ID, Heartbeats: true,
		})
		if err == nil && cmd == nil {
			err = event.Errorf(event.Internal, "the claim was granted without a command")
		}
		// One slot after the other finds out that the plane is away for longer.
		if err == nil || event.CodeOf(err) != event.Unavailable || tries == claimTries || w.claimFailures.Load() > 0 {
			return cmd, err
		}
		if !rest(ctx, max(jitter(pause), min(retryAfter(err), maxPause))) {
			return nil, err
		}
	}
}

// retryAfter is how long the plane asked to be left alone; 0 when it did not.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*event.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// claimFailed settles a delivery whose command we may not run.
func (w *Worker) claimFailed(ctx context.Context, d bus.Delivery, err error) {
	n := d.Notification()
	log := w.log.With("execution_id", n.ExecutionID, "step", n.Step, "command_id", n.CommandID, "error", err)
	switch event.CodeOf(err) {
	case event.Conflict:
		w.claimFailures.Store(0)
		if e, ok := errors.AsType[*event.Error](err); ok && !slices.Contains(settledReasons, e.Reason) {
			log.Warn("claim refused for an unknown reason", "reason", e.Reason)
			w.settle(d.Nak(retryDelays[0]))
			return
		}
		// The common case: somebody else was faster, or nobody needs it.
		w.settle(d.Ack())
		return
	case event.NotFound:
		w.claimFailures.Store(0)
		log.Warn("notification of a command nobody knows")
		w.options.Metrics.ClaimDeadLettered.Inc()
		w.settle(d.Ack())
		return
	}
	failures := w.claimFailures.Add(1)
	delay := retryDelays[min(int(failures), len(retryDelays))-1]
	log.Warn("claim failed", "retry_in", delay)
	w.settle(d.Nak(delay))
	rest(ctx, jitter(min(delay, maxPause)))
}

// settle notes a delivery that could not be settled. That does no harm: the
// bus delivers it again and the claim is refused.
func (w *Worker) settle(err error) {
	if err != nil {
		w.log.Debug("delivery not settled", "error", err)
	}
}

// transient tells whether a call may succeed when it is made again unchanged.
// An internal error counts: giving up on a report would run a command twice.
func transient(err error) bool {
	coded, ok := errors.AsType[*event.Error](err)
	return !ok || coded.Code == event.Unavailable || coded.Code == event.Internal
}

// rest waits for d or the end of ctx, and tells which: false for the latter.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// jitter spreads d over its upper half, so that workers do not march in step.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
