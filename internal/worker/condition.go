package worker

import (
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
)

// stuckAfter is how long the claim loop may not come round, or its place on the
// bus be lost, before the worker counts as dead.
const stuckAfter = 2 * time.Minute

// condition is how the worker stands, for those who watch it.
type condition struct {
	mu       sync.Mutex // guards what follows
	known    bool       // to the registry
	sub      bus.Subscription
	lastTurn time.Time // of the claim loop
	failing  time.Time // since when the bus answers with errors; zero when it does not
}

func (c *condition) registered(known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = known
}

func (c *condition) join(sub bus.Subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sub = sub
}

func (c *condition) turned(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastTurn = now
}

func (c *condition) pulled(now time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.failing = time.Time{}
	case c.failing.IsZero():
		c.failing = now
	}
}

// health is that of the place on the bus.
func (c *condition) health() (h bus.Health, joined bool) {
	c.mu.Lock()
	sub, failing := c.sub, c.failing
	c.mu.Unlock()
	if sub == nil {
		return bus.Health{}, false
	}
	h = bus.Health{Ready: true}
	if checked, ok := sub.(bus.Checked); ok {
		h = checked.Health()
	}
	if !failing.IsZero() {
		h.Ready = false
		if h.Since.IsZero() || failing.Before(h.Since) {
			h.Since = failing
		}
	}
	return h, true
}

// Unready says why the worker takes no commands; it is empty when it does.
func (w *Worker) Unready() string {
	w.condition.mu.Lock()
	known := w.condition.known
	w.condition.mu.Unlock()
	switch h, joined := w.condition.health(); {
	case w.isDraining():
		return "the worker is draining"
	case !known:
		return "the worker is not registered with the server"
	case w.options.Bus == nil:
		return ""
	case !joined:
		return "the worker has not joined its command queue yet"
	case !w.options.Bus.Connected():
		return "the message broker is away"
	case !h.Ready:
		return "the command queue is being mended"
	}
	return ""
}

// Dead says why nothing but a restart will help the worker; it is empty while
// there is hope. A broker that is away comes back to this process as well as to
// another, so that is no reason.
func (w *Worker) Dead() string {
	if w.options.Bus == nil || w.isDraining() {
		return ""
	}
	now := w.options.Clock()
	w.condition.mu.Lock()
	last := w.condition.lastTurn
	w.condition.mu.Unlock()
	if !last.IsZero() && now.Sub(last) > stuckAfter {
		return "the claim loop has made no progress for " + now.Sub(last).Round(time.Second).String()
	}
	h, joined := w.condition.health()
	if joined && !h.Ready && !h.Since.IsZero() && now.Sub(h.Since) > stuckAfter && w.options.Bus.Connected() {
		return "the command queue has been unusable for " + now.Sub(h.Since).Round(time.Second).String()
	}
	return ""
}

// Observe brings the metrics up to date that nothing else changes.
func (w *Worker) Observe() {
	m := w.options.Metrics
	ready := 0.0
	if w.Unready() == "" {
		ready = 1
	}
	m.Ready.Set(ready)
	if w.options.Spool != nil {
		m.SpoolWaiting.Set(float64(w.options.Spool.Waiting()))
	}
	h, _ := w.condition.health()
	for reason, n := range h.Rejoined {
		m.Reconnects.Reach(float64(n), reason)
	}
}
