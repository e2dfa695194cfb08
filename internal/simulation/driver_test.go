package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing/synctest"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// drive lets time pass until everything has ended, or should have.
func (w *world) drive() {
	for now := 0; ; now++ {
		if now == w.noisy {
			synctest.Wait() // who wakes up at this moment has had its chance
			w.quieten()
		}
		w.settle(now)
		switch {
		case w.admitted > mostTurns:
			w.problem(ends, "not everything has ended after %d turns; %d requests and runs are under way", w.admitted, w.jobs.Load())
			return
		case now <= w.noisy:
			w.mischief(now)
		case w.over():
			return
		case time.Since(w.began) > time.Duration(w.noisy)*tick+converge:
			w.problem(ends, "not everything has ended %v after the last fault; %d requests and runs are under way", converge, w.jobs.Load())
			return
		}
		for range w.reborn[now] {
			w.startPlane()
		}
		time.Sleep(tick)
	}
}

// quieten ends all faults.
func (w *world) quieten() {
	w.calm.Store(true)
	w.store.Reopen()
	w.inject()
	w.note("no more faults")
}

// over tells whether everything has ended, or waits for what does not come by
// itself.
func (w *world) over() bool {
	if w.jobs.Load() > 0 || !w.turns.quiet() {
		return false
	}
	if w.relays && w.unpublished() > 0 {
		return false
	}
	open, err := w.store.OpenExecutions(context.Background(), 0, time.Now().Add(time.Hour), 0)
	return err == nil && !slices.ContainsFunc(open, func(id event.ID) bool { return !w.resting(id) })
}

// settle lets everybody who waits go, one at a time, until nobody does.
func (w *world) settle(now int) {
	for {
		synctest.Wait()
		if w.handOut() {
			continue
		}
		ready := w.turns.ready(time.Now())
		if len(ready) == 0 || w.admitted > mostTurns {
			return
		}
		w.admitted++
		w.admit(ready[w.r.IntN(len(ready))], now)
	}
}

// handOut gives one delivery to one of the workers.
func (w *world) handOut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mail) == 0 || len(w.staff) == 0 {
		return false
	}
	slices.SortStableFunc(w.mail, func(a, b bus.Delivery) int {
		x, y := a.Notification(), b.Notification()
		return cmp.Or(cmp.Compare(x.EventID, y.EventID), cmp.Compare(x.Attempt, y.Attempt))
	})
	d := w.mail[0]
	w.mail = w.mail[1:]
	x := w.staff[w.r.IntN(len(w.staff))]
	x.employ(fmt.Sprintf("%s, announcement %d", w.names[d.Notification().EventID], d.Notification().Attempt), func(j *job) { j.take(d) })
	return true
}

// admit lets one go, with what goes wrong on the way.
func (w *world) admit(t *turn, now int) {
	if w.calm.Load() {
		w.letGo(t, verdict{})
		return
	}
	dice := w.dice(t.name, w.turn(t.name))
	if !t.stalled && w.strike(dice, w.odds.stall, "%s is stalled", t.name) {
		t.stalled = true
		pause := 1 + dice.IntN(20)
		if t.op == "Append" && dice.IntN(4) == 0 {
			pause += 300 // longer than a pass waits
		}
		t.notBefore = time.Now().Add(time.Duration(pause) * tick)
		w.note("%s is stalled for %v", t.name, time.Duration(pause)*tick)
		return
	}
	v := w.draw(t, dice)
	w.fault.Store(int32(v.fault))
	if v.die != lives && !t.abandoned {
		w.crash(t.plane, t, now)
	}
	w.letGo(t, v)
}

func (w *world) letGo(t *turn, v verdict) {
	if late := w.turns.admit(t, v); late != nil {
		w.note("%s takes effect although nobody waits for it", t.name)
		w.fault.Store(int32(memstore.None))
		late()
	}
}

// turn counts the turns of one name.
func (w *world) turn(name string) int {
	if w.taken == nil {
		w.taken = map[string]int{}
	}
	w.taken[name]++
	return w.taken[name]
}

// draw decides what becomes of an operation of the store.
func (w *world) draw(t *turn, dice *rand.Rand) (v verdict) {
	if t.plane == nil || t.abandoned {
		return v
	}
	switch {
	case w.strike(dice, w.odds.refuse, "%s is refused", t.name):
		v.fault = memstore.Refuse
	case w.strike(dice, w.odds.loseAck, "%s loses its acknowledgement", t.name):
		v.fault = memstore.LoseAck
	}
	switch {
	case w.strike(dice, w.odds.crash/2, "%s: crash before it took effect", t.name):
		v.die = diesBefore
	case w.strike(dice, w.odds.crash/2, "%s: crash after it took effect", t.name):
		v.die = diesAfter
	}
	return v
}

// mischief is what goes wrong by itself, at any tick.
func (w *world) mischief(now int) {
	if w.reopen == now {
		w.store.Reopen()
		w.inject()
	}
	dice := w.dice("tick", now)
	if w.reopen < now && w.strike(dice, w.odds.outage, "the store is gone at tick %d", now) {
		w.reopen = now + 1 + dice.IntN(50)
		_ = w.store.Close()
		w.note("the store is gone for %v", time.Duration(w.reopen-now)*tick)
	}
	if i := dice.IntN(len(w.staff)); w.strike(dice, w.odds.kill, "%s is killed at tick %d", w.staff[i].name, now) {
		w.note("worker %s is killed", w.staff[i].name)
		w.staff[i].quit()
		w.staff = slices.Delete(w.staff, i, i+1)
		w.hire()
	}
	if i := dice.IntN(max(1, len(w.lives))); i < len(w.lives) && w.strike(dice, w.odds.crash, "%s: crash at tick %d", w.lives[i].name, now) {
		w.crash(w.lives[i], nil, now)
	}
}
