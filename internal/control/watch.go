package control

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// watchers are the readers that follow executions as they grow.
type watchers struct {
	count atomic.Int64 // lets appends skip the lock when nobody watches
	mu    sync.Mutex   // guards byID
	byID  map[event.ID][]watcher
}

// watcher is one reader.
type watcher struct {
	wake chan struct{}
	last bool // wants to hear of the end only
}

// Watch returns a channel that receives after each append this plane makes to
// the execution; wakes that nobody has taken yet become one. Other replicas
// append too, so readers look for themselves now and then. stop ends the watch
// and may be called more than once.
func (p *Plane) Watch(id event.ID) (wake <-chan struct{}, stop func()) {
	return p.watchers.add(id, false)
}

// waitPoll is how often Wait looks for an end that another replica wrote.
const waitPoll = time.Second

// Wait returns the execution's row once it has ended. While the execution is
// live here it costs no read.
func (p *Plane) Wait(ctx context.Context, id event.ID) (store.Execution, error) {
	wake, stop := p.watchers.add(id, true)
	defer stop()
	poll := time.NewTicker(waitPoll)
	defer poll.Stop()
	_, live := p.states.Get(id)
	for {
		if !live {
			row, err := p.Execution(ctx, id)
			if err != nil || event.IsFinal(row.Status) {
				return row, err
			}
		}
		live = false
		select {
		case <-wake:
		case <-poll.C:
		case <-ctx.Done():
			return store.Execution{}, ctx.Err()
		}
	}
}

func (w *watchers) add(id event.ID, last bool) (wake <-chan struct{}, stop func()) {
	ch := make(chan struct{}, 1)
	w.count.Add(1)
	w.mu.Lock()
	if w.byID == nil {
		w.byID = make(map[event.ID][]watcher)
	}
	w.byID[id] = append(w.byID[id], watcher{wake: ch, last: last})
	w.mu.Unlock()
	return ch, sync.OnceFunc(func() { w.remove(id, ch) })
}

func (w *watchers) remove(id event.ID, ch chan struct{}) {
	w.count.Add(-1)
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.byID[id], func(c watcher) bool { return c.wake == ch })
	if len(rest) == 0 {
		delete(w.byID, id)
		return
	}
	w.byID[id] = rest
}

// wake tells the watchers of an append; ended, that it was the last that counts.
func (w *watchers) wake(id event.ID, ended bool) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.byID[id] {
		if c.last && !ended {
			continue
		}
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}
