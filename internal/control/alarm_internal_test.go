package control

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

func TestAlarmsThatWereTakenBackLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	a, now := newAlarms(), time.Now()
	a.set(1, now.Add(time.Minute))
	for id := event.ID(2); id < alarmsKept+10; id++ {
		a.set(id, now.Add(time.Hour))
		a.set(id, time.Time{})
	}
	a.set(3, now.Add(2*time.Second))
	a.set(3, now.Add(time.Second))
	if ids, next := a.due(now.Add(time.Second)); len(ids) != 1 || ids[0] != 3 || !next.Equal(now.Add(time.Minute)) {
		t.Errorf("due %v, next %v", ids, next)
	}
	if len(a.queue) != 1 || len(a.byID) != 1 {
		t.Errorf("%d alarms are queued, %d known", len(a.queue), len(a.byID))
	}
}
