package storetest

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// waiting stores an execution whose next timer is due at a time.
func waiting(t *testing.T, s store.Store, status string, wake time.Time) event.ID {
	t.Helper()
	b := newBatch(newID(), 0, 1)
	b.Execution.Status, b.Execution.WakeAt = status, wake
	mustAppend(t, s, b)
	return b.Execution.ExecutionID
}

func dueAt(t *testing.T, s store.Store, now time.Time, limit int) []event.ID {
	t.Helper()
	return must[[]event.ID](t)(s.DueExecutions(t.Context(), now, limit))
}

var timerTests = map[string]func(*testing.T, store.Store){
	"the time to wake is set, kept, moved and cleared by batches": func(t *testing.T, s store.Store) {
		x := newID()
		for seq, wake := range []time.Time{{}, epoch, epoch, epoch.Add(time.Microsecond), {}, epoch.In(time.FixedZone("x", 3600)), {}} {
			b := newBatch(x, int64(seq), 1)
			b.Execution.WakeAt = wake
			mustAppend(t, s, b)
			want := b.Execution
			if !wake.IsZero() {
				want.WakeAt = wake.UTC()
			}
			wantSame(t, "row", want, must[store.Execution](t)(s.Execution(t.Context(), x)))
			var due []event.ID
			if !wake.IsZero() {
				due = []event.ID{x}
			}
			wantSame(t, "due", due, dueAt(t, s, epoch.Add(time.Hour), 0))
		}
	},
	"due executions come earliest first": func(t *testing.T, s store.Store) {
		late := waiting(t, s, event.StatusRunning, epoch.Add(-time.Second))
		early := waiting(t, s, event.StatusRunning, epoch.Add(-time.Hour))
		now := waiting(t, s, event.StatusRunning, epoch)
		same := waiting(t, s, event.StatusRunning, epoch)
		soon := waiting(t, s, event.StatusRunning, epoch.Add(time.Microsecond))
		waiting(t, s, event.StatusRunning, time.Time{})
		all := []event.ID{early, late, now, same}
		wantSame(t, "all", all, dueAt(t, s, epoch, 0))
		wantSame(t, "two", all[:2], dueAt(t, s, epoch, 2))
		wantSame(t, "more than there are", all, dueAt(t, s, epoch, 10))
		wantSame(t, "a moment later", append(all, soon), dueAt(t, s, epoch.Add(time.Microsecond), 0))
		wantSame(t, "before the first", []event.ID(nil), dueAt(t, s, epoch.Add(-2*time.Hour), 0))
	},
	"a final execution is not due": func(t *testing.T, s store.Store) {
		for _, status := range []string{event.StatusCompleted, event.StatusFailed, event.StatusCancelled} {
			waiting(t, s, status, epoch)
			x := waiting(t, s, event.StatusRunning, epoch)
			wantSame(t, "before the end", []event.ID{x}, dueAt(t, s, epoch, 0))
			end := newBatch(x, 1, 1)
			end.Execution.Status, end.Execution.WakeAt = status, epoch
			mustAppend(t, s, end)
			wantSame(t, status, []event.ID(nil), dueAt(t, s, epoch, 0))
		}
	},
}
