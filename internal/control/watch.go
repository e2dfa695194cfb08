package control

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/noetl/noetl-go/internal/event"
)

// watchers are the readers that follow executions as they grow.
type watchers struct {
	count atomic.Int64 // lets appends skip the lock when nobody watches
	mu    sync.Mutex   // guards byID
	byID  map[event.ID][]chan struct{}
}

// Watch returns a channel that receives after each append this plane makes to
// the execution; wakes that nobody has taken yet become one. Other replicas
// append too, so readers look for themselves now and then. stop ends the watch
// and may be called more than once.
func (p *Plane) Watch(id event.ID) (wake <-chan struct{}, stop func()) {
	w := &p.watchers
	ch := make(chan struct{}, 1)
	w.count.Add(1)
	w.mu.Lock()
	if w.byID == nil {
		w.byID = make(map[event.ID][]chan struct{})
	}
	w.byID[id] = append(w.byID[id], ch)
	w.mu.Unlock()
	return ch, sync.OnceFunc(func() { w.remove(id, ch) })
}

func (w *watchers) remove(id event.ID, ch chan struct{}) {
	w.count.Add(-1)
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.byID[id], func(c chan struct{}) bool { return c == ch })
	if len(rest) == 0 {
		delete(w.byID, id)
		return
	}
	w.byID[id] = rest
}

func (w *watchers) wake(id event.ID) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.byID[id] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}
