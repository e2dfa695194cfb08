package control

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	alarmsKept = 65536 // timers rung on time; others wait for the sweep
	sweepDue   = 256   // due executions one sweep looks at
)

// alarms ring the timers of executions this plane has seen. They live in
// memory and may be forgotten: the sweep finds due timers in the store.
type alarms struct {
	mu     sync.Mutex // guards what follows
	queue  alarmQueue
	at     map[event.ID]time.Time
	sooner chan struct{} // the first alarm has changed
}

func newAlarms() *alarms {
	return &alarms{at: make(map[event.ID]time.Time), sooner: make(chan struct{}, 1)}
}

// set makes the execution's alarm ring at the given time; zero takes it back.
func (a *alarms) set(id event.ID, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at.IsZero() {
		delete(a.at, id) // its place in the queue is passed over
		return
	}
	if old, ok := a.at[id]; ok && old.Equal(at) || len(a.queue) >= alarmsKept {
		return
	}
	a.at[id] = at
	heap.Push(&a.queue, alarm{id, at})
	if a.queue[0].id == id {
		select {
		case a.sooner <- struct{}{}:
		default:
		}
	}
}

// due takes out the alarms that ring now, and says when the next one does.
func (a *alarms) due(now time.Time) (ids []event.ID, next time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.queue) > 0 {
		first := a.queue[0]
		if at, ok := a.at[first.id]; !ok || !at.Equal(first.at) {
			heap.Pop(&a.queue)
			continue
		}
		if first.at.After(now) {
			return ids, first.at
		}
		heap.Pop(&a.queue)
		delete(a.at, first.id)
		ids = append(ids, first.id)
	}
	return ids, time.Time{}
}

// ring decides on executions whose timers are due, until ctx ends.
func (p *Plane) ring(ctx context.Context) {
	for {
		ids, next := p.alarms.due(p.now())
		for _, id := range ids {
			_ = p.tell(id, &alarmInput{newTicket()}) // a full mailbox decides anyway
		}
		pause := p.o.Sweep
		if !next.IsZero() {
			pause = min(max(next.Sub(p.now()), time.Millisecond), p.o.Sweep)
		}
		t := time.NewTimer(pause)
		select {
		case <-p.alarms.sooner:
		case <-t.C:
		case <-ctx.Done():
		}
		t.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// sweepTimers looks in the store for due timers that no alarm rang for: those
// of a process that is gone.
func (p *Plane) sweepTimers(ctx context.Context) {
	for sleep(ctx, jitter(p.o.Sweep)) {
		qctx, cancel := context.WithTimeout(ctx, queryTime)
		ids, err := p.store.DueExecutions(qctx, p.now(), sweepDue)
		cancel()
		if err != nil {
			p.sweepFailed(ctx, "due timers", err)
			continue
		}
		for _, id := range ids {
			if _, ok := p.repeatDue(id, p.now()); ok {
				_ = p.tell(id, &alarmInput{newTicket()}) // a full mailbox decides anyway
			}
		}
	}
}

// alarmInput asks for a decision because time has passed.
type alarmInput struct{ ticket }

func (in *alarmInput) apply(_ context.Context, ps *pass) error {
	ps.decide = true
	return nil
}

type alarm struct {
	id event.ID
	at time.Time
}

type alarmQueue []alarm

func (q alarmQueue) Len() int           { return len(q) }
func (q alarmQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q alarmQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *alarmQueue) Push(x any)        { *q = append(*q, x.(alarm)) }
func (q *alarmQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
