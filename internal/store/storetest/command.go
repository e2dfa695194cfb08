package storetest

import (
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

var commandTests = map[string]func(*testing.T, store.Store){
	"every field of a command comes back and is replaced by the next batch": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		c := store.Command{
			ExecutionID: b.Execution.ExecutionID, EventID: b.Events[0].EventID, CommandID: "1:s:2:i3", CatalogID: 5, Step: "s",
			ToolKind: "python", Pool: "gpu", Status: event.StatusRunning, WorkerID: "w", Attempt: 2, MaxAttempts: 4, IterIndex: 3,
			LeaseUntil: epoch.Add(time.Minute).In(time.FixedZone("x", 60)), CreatedAt: epoch, ClaimedAt: epoch.Add(time.Second),
			EndedAt: epoch.Add(time.Hour), Error: "no",
		}
		b.Commands = []store.Command{c}
		mustAppend(t, s, b)
		c.LeaseUntil = epoch.Add(time.Minute)
		wantSame(t, "with execution", c, must[store.Command](t)(s.Command(t.Context(), c.ExecutionID, c.EventID)))
		wantSame(t, "without execution", c, must[store.Command](t)(s.Command(t.Context(), 0, c.EventID)))

		c = store.Command{ExecutionID: c.ExecutionID, EventID: c.EventID, Status: event.StatusPending, IterIndex: -1}
		next := newBatch(c.ExecutionID, 1, 1)
		next.Commands = []store.Command{c}
		mustAppend(t, s, next)
		wantSame(t, "replaced", c, must[store.Command](t)(s.Command(t.Context(), 0, c.EventID)))
	},
	"a worker renews all it holds that was claimed after a time": func(t *testing.T, s store.Store) {
		hold := func(worker, status string, claimed time.Time) store.Command {
			b := newBatch(newID(), 0, 1)
			c := newCommand(&b, status)
			c.WorkerID, c.Attempt, c.LeaseUntil, c.ClaimedAt = worker, 1, epoch, claimed
			b.Commands = []store.Command{c}
			mustAppend(t, s, b)
			return c
		}
		commands := []store.Command{
			hold("w", event.StatusClaimed, after(2)),
			hold("w", event.StatusRunning, after(3)),
			hold("w", event.StatusRunning, after(1)),    // claimed too early
			hold("w", event.StatusRunning, time.Time{}), // claimed nobody knows when
			hold("w", event.StatusCompleted, after(2)),
			hold("w2", event.StatusRunning, after(2)),
			hold("W", event.StatusRunning, after(2)),
		}
		wantSame(t, "renewed", 2, must[int](t)(s.RenewWorker(t.Context(), "w", after(1), after(90))))
		for i, c := range commands {
			if i < 2 {
				c.LeaseUntil = after(90)
			}
			wantSame(t, "command", c, must[store.Command](t)(s.Command(t.Context(), c.ExecutionID, c.EventID)))
		}
		wantSame(t, "unknown worker", 0, must[int](t)(s.RenewWorker(t.Context(), "nobody", after(1), after(90))))
		wantSame(t, "expired", 4, len(must[[]store.Command](t)(s.ExpiredCommands(t.Context(), after(1), 0))))
	},
	"an unknown command is not found": func(t *testing.T, s store.Store) {
		c := heldCommand(t, s, "w", 1, epoch)
		for _, key := range [][2]event.ID{{0, newID()}, {c.ExecutionID, newID()}, {newID(), c.EventID}} {
			_, err := s.Command(t.Context(), key[0], key[1])
			wantErr(t, "Command", err, store.ErrNotFound)
		}
	},
	"pending commands are found oldest first": func(t *testing.T, s store.Store) {
		var want []event.ID
		for i, age := range []int{3, 1, 2, 0, -5} {
			b := newBatch(newID(), 0, 1)
			c := newCommand(&b, event.StatusPending)
			c.CreatedAt = epoch.Add(-time.Duration(age) * time.Second)
			b.Commands = []store.Command{c}
			mustAppend(t, s, b)
			if i < 3 {
				want = append(want, c.EventID)
			}
		}
		want[1], want[2] = want[2], want[1]
		heldCommand(t, s, "w", 1, epoch)
		find := func(limit int) []event.ID {
			return commandIDs(must[[]store.Command](t)(s.PendingCommands(t.Context(), epoch, limit)))
		}
		wantSame(t, "all", want, find(10))
		wantSame(t, "two", want[:2], find(2))
		wantSame(t, "no limit", want, find(0))
		var all, few int64
		for _, n := range must[map[string]int64](t)(s.CountPending(t.Context(), 0)) {
			all += n
		}
		for _, n := range must[map[string]int64](t)(s.CountPending(t.Context(), 2)) {
			few += n
		}
		wantSame(t, "counted", int64(5), all)
		if few < 2 || few > 2*int64(s.Shards()) {
			t.Errorf("%d commands counted, want 2 of each database at most", few)
		}
	},
	"commands of the same age come in the order of their ids": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 5)
		for i := range b.Events {
			c := newCommand(&b, event.StatusPending)
			c.EventID = b.Events[len(b.Events)-1-i].EventID
			b.Commands = append(b.Commands, c)
		}
		mustAppend(t, s, b)
		var want []event.ID
		for _, e := range b.Events {
			want = append(want, e.EventID)
		}
		wantSame(t, "pending", want, commandIDs(must[[]store.Command](t)(s.PendingCommands(t.Context(), epoch.Add(1e9), 0))))
	},
	"a claimed command is no longer pending and comes back when released": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		b.Commands = []store.Command{newCommand(&b, event.StatusPending)}
		mustAppend(t, s, b)
		pending := func() int {
			return len(must[[]store.Command](t)(s.PendingCommands(t.Context(), epoch.Add(time.Hour), 0)))
		}
		for seq, status := range []string{event.StatusClaimed, event.StatusRunning, event.StatusPending, event.StatusCompleted} {
			next := newBatch(b.Execution.ExecutionID, int64(seq)+1, 1)
			next.Commands = []store.Command{newCommand(&b, status)}
			mustAppend(t, s, next)
			if want := map[bool]int{true: 1}[status == event.StatusPending]; pending() != want {
				t.Errorf("as %s: %d pending, want %d", status, pending(), want)
			}
		}
	},
	"expired commands are found oldest lease first": func(t *testing.T, s store.Store) {
		late := heldCommand(t, s, "w", 1, epoch.Add(-time.Second))
		older := heldCommand(t, s, "w", 1, epoch.Add(-time.Minute))
		heldCommand(t, s, "w", 1, epoch)
		heldCommand(t, s, "w", 1, epoch.Add(time.Minute))
		heldCommand(t, s, "w", 1, time.Time{})
		b := newBatch(newID(), 0, 1)
		done := newCommand(&b, event.StatusCompleted)
		done.LeaseUntil = epoch.Add(-time.Hour)
		b.Commands = []store.Command{done}
		mustAppend(t, s, b)
		find := func(limit int) []event.ID {
			return commandIDs(must[[]store.Command](t)(s.ExpiredCommands(t.Context(), epoch, limit)))
		}
		wantSame(t, "all", []event.ID{older.EventID, late.EventID}, find(10))
		wantSame(t, "one", []event.ID{older.EventID}, find(1))
		wantSame(t, "no limit", []event.ID{older.EventID, late.EventID}, find(0))
	},
	"a lease is renewed only for the worker and attempt that hold it": func(t *testing.T, s store.Store) {
		until, later := epoch.Add(time.Minute), epoch.Add(time.Hour).In(time.FixedZone("x", 60))
		mine, fenced, other := heldCommand(t, s, "w", 2, until), heldCommand(t, s, "w", 3, until), heldCommand(t, s, "v", 1, until)
		b := newBatch(newID(), 0, 1)
		done := newCommand(&b, event.StatusCompleted)
		done.WorkerID, done.Attempt = "w", 1
		b.Commands = []store.Command{done}
		mustAppend(t, s, b)
		unasked := heldCommand(t, s, "w", 2, until)
		beats := []event.Heartbeat{
			{ExecutionID: mine.ExecutionID, EventID: mine.EventID, WorkerID: "w", Attempt: 2},
			{ExecutionID: fenced.ExecutionID, EventID: fenced.EventID, WorkerID: "w", Attempt: 2},
			{ExecutionID: other.ExecutionID, EventID: other.EventID, WorkerID: "w", Attempt: 1},
			{ExecutionID: done.ExecutionID, EventID: done.EventID, WorkerID: "w", Attempt: 1},
			{ExecutionID: newID(), EventID: unasked.EventID, WorkerID: "w", Attempt: 2},
			{EventID: newID(), WorkerID: "w", Attempt: 1},
			{EventID: mine.EventID, WorkerID: "w", Attempt: 2},
		}
		got := must[[]bool](t)(s.RenewLeases(t.Context(), beats, later))
		wantSame(t, "held", []bool{true, false, false, false, false, false, true}, got)
		mine.LeaseUntil = epoch.Add(time.Hour)
		for _, want := range []store.Command{mine, fenced, other, done, unasked} {
			wantSame(t, "command", want, must[store.Command](t)(s.Command(t.Context(), want.ExecutionID, want.EventID)))
		}
		if got := must[[]bool](t)(s.RenewLeases(t.Context(), nil, later)); len(got) != 0 {
			t.Errorf("RenewLeases of nothing = %v", got)
		}
	},
	"many leases are renewed in one call": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 300)
		var beats []event.Heartbeat
		for i := range b.Events {
			c := newCommand(&b, event.StatusRunning)
			c.EventID, c.WorkerID, c.Attempt, c.LeaseUntil = b.Events[i].EventID, "w", 1, epoch
			b.Commands = append(b.Commands, c)
			beats = append(beats, event.Heartbeat{EventID: c.EventID, ExecutionID: c.ExecutionID, WorkerID: "w", Attempt: 1 + i%2})
		}
		mustAppend(t, s, b)
		for i, held := range must[[]bool](t)(s.RenewLeases(t.Context(), beats, epoch.Add(time.Hour))) {
			if held != (i%2 == 0) {
				t.Fatalf("beat %d renewed: %v", i, held)
			}
		}
		if got := must[[]store.Command](t)(s.ExpiredCommands(t.Context(), epoch.Add(time.Second), 0)); len(got) != 150 {
			t.Errorf("%d leases ran out, want 150", len(got))
		}
	},
	"the leases of a dead process end at once": func(t *testing.T, s store.Store) {
		until := epoch.Add(time.Minute)
		a, b := heldCommand(t, s, "host_1-a", 1, until), heldCommand(t, s, "host_1-b", 1, until)
		noLease := heldCommand(t, s, "host_1-c", 1, time.Time{})
		gone := heldCommand(t, s, "host_1-d", 1, epoch.Add(-time.Minute))
		for _, worker := range []string{"hostX1-a", "host", "%", "", "HOST_1-a"} {
			heldCommand(t, s, worker, 1, until)
		}
		n := must[int](t)(s.ExpireLeases(t.Context(), "host_1", epoch))
		if n != 3 {
			t.Errorf("ExpireLeases = %d, want 3", n)
		}
		got := commandIDs(must[[]store.Command](t)(s.ExpiredCommands(t.Context(), epoch, 0)))
		wantSame(t, "expired", []event.ID{gone.EventID, a.EventID, b.EventID, noLease.EventID}, got)
		if again := must[int](t)(s.ExpireLeases(t.Context(), "host_1", epoch)); again != 0 {
			t.Errorf("ExpireLeases again = %d, want 0", again)
		}
		if n := must[int](t)(s.ExpireLeases(t.Context(), "%", epoch)); n != 1 {
			t.Errorf("ExpireLeases(%%) = %d, want 1", n)
		}
		if n := must[int](t)(s.ExpireLeases(t.Context(), `\`, epoch)); n != 0 {
			t.Errorf("ExpireLeases(\\) = %d, want 0", n)
		}
	},
}

func commandIDs(commands []store.Command) []event.ID {
	var out []event.ID
	for i := range commands {
		out = append(out, commands[i].EventID)
	}
	return out
}
