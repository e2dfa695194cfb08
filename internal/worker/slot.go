package worker

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Reserve takes a free slot. It is false when there is none or the worker is
// about to end. Every reserved slot goes back by Unreserve or by the end of a
// delivered command. A worker with a bus keeps one slot for the next pull.
func (w *Worker) Reserve() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining || w.free == 0 {
		return false
	}
	w.free--
	return true
}

// Unreserve gives back a reserved slot that was not used.
func (w *Worker) Unreserve() {
	w.mu.Lock()
	w.free++
	if w.free > w.options.Slots {
		panic("worker: more slots given back than taken")
	}
	w.checkIdleLocked()
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
	if w.options.OnFree != nil {
		w.options.OnFree()
	}
}

// ReserveFor is Reserve for a kind of tool: it takes a place in its class too.
func (w *Worker) ReserveFor(kind string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.draining || w.free == 0 || !w.enterLocked(classOf(kind)) {
		return false
	}
	w.free--
	return true
}

// UnreserveFor gives back what ReserveFor took.
func (w *Worker) UnreserveFor(kind string) {
	w.leaveClass(classOf(kind))
	w.Unreserve()
}

// Deliver runs a command, already claimed for this worker, on a slot reserved
// for its kind. It does not wait for the command.
func (w *Worker) Deliver(cmd *event.Command) {
	go func() {
		defer w.Unreserve()
		w.work(cmd, nil, classOf(cmd.Action))
	}()
}

// acquire waits for a slot. It is false when ctx has ended, even if one is free.
func (w *Worker) acquire(ctx context.Context) bool {
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for ctx.Err() == nil {
		w.condition.turned(w.options.Clock())
		if w.Reserve() {
			return true
		}
		select {
		case <-w.freed:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	return false
}

func (w *Worker) checkIdleLocked() {
	if !w.draining || w.free < w.options.Slots {
		return
	}
	select {
	case <-w.idle:
	default:
		close(w.idle)
	}
}

func (w *Worker) isDraining() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.draining
}
