package control

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/failpoint"
)

// alarmsKept bounds the timers that ring on time; others wait for the sweep.
const alarmsKept = 65536

// alarms ring the timers of executions this plane has seen. They live in
// memory and may be forgotten: the sweep finds due timers in the store.
type alarms struct {
	mu     sync.Mutex // guards what follows
	queue  alarmQueue
	byID   map[event.ID]*alarm
	sooner chan struct{} // the first alarm has changed
}

func newAlarms() *alarms {
	return &alarms{byID: make(map[event.ID]*alarm), sooner: make(chan struct{}, 1)}
}

// set makes the execution's alarm ring at the given time; zero takes it back.
func (a *alarms) set(id event.ID, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.byID[id]
	switch {
	case x == nil && (at.IsZero() || len(a.queue) >= alarmsKept):
		return
	case x == nil:
		x = &alarm{id: id, at: at}
		a.byID[id] = x
		heap.Push(&a.queue, x)
	case at.IsZero():
		heap.Remove(&a.queue, x.index)
		delete(a.byID, id)
		return
	case x.at.Equal(at):
		return
	default:
		x.at = at
		heap.Fix(&a.queue, x.index)
	}
	if x.index == 0 {
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
		if first.at.After(now) {
			return ids, first.at
		}
		heap.Pop(&a.queue)
		delete(a.byID, first.id)
		ids = append(ids, first.id)
	}
	return ids, time.Time{}
}

// ring decides on executions whose timers are due, until ctx ends.
func (p *Plane) ring(ctx context.Context) {
	for {
		ids, next := p.alarms.due(p.now())
		for _, id := range ids {
			_ = failpoint.Hit(failpoint.TimerBefore)
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
	window := rowWindow{limit: sweepRows}
	for sleep(ctx, jitter(p.o.Sweep)) {
		qctx, cancel := context.WithTimeout(ctx, queryTime)
		ids, err := p.store.DueExecutions(qctx, p.now(), window.limit)
		cancel()
		if err != nil {
			p.sweepFailed(ctx, "due timers", err)
		}
		rung := 0
		for _, id := range ids {
			if !p.ringable(id) {
				continue
			}
			rung++
			_ = p.tell(id, &alarmInput{newTicket()}) // a full mailbox decides anyway
		}
		window.next(len(ids), rung)
	}
}

// ringable tells whether a due timer can fire here: the playbook of its
// execution can be run, as far as is known.
func (p *Plane) ringable(id event.ID) bool {
	lv, ok := p.states.Get(id)
	return !ok || lv.program != nil
}

// alarmInput asks for a decision because time has passed.
type alarmInput struct{ ticket }

func (in *alarmInput) apply(_ context.Context, ps *pass) error {
	if at := ps.state.WakeAt(); !ps.fresh && (at.IsZero() || at.After(ps.env.Now)) {
		return errStale // another replica may have set the timer
	}
	ps.decide = true
	return nil
}

type alarm struct {
	id    event.ID
	at    time.Time
	index int
}

type alarmQueue []*alarm

func (q alarmQueue) Len() int           { return len(q) }
func (q alarmQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q alarmQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *alarmQueue) Push(x any) {
	a := x.(*alarm)
	a.index = len(*q)
	*q = append(*q, a)
}

func (q *alarmQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
