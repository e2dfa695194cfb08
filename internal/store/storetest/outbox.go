package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// outboxClaim asks for all rows, so many seconds after epoch.
func outboxClaim(token string, seconds int) store.OutboxClaim {
	return store.OutboxClaim{Token: token, Now: after(seconds), Lease: time.Minute, Limit: 1000}
}

func after(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

// published appends n events to an execution that are to be published.
func published(t *testing.T, s store.Store, execution event.ID, expected int64, n int) []event.Event {
	t.Helper()
	b := newBatch(execution, expected, n)
	b.Publish = true
	mustAppend(t, s, b)
	return b.Events
}

// claimRows claims and returns the ids of the events.
func claimRows(t *testing.T, s store.Store, c store.OutboxClaim) ([]store.OutboxRow, []event.ID) {
	t.Helper()
	rows := must[[]store.OutboxRow](t)(s.ClaimOutbox(t.Context(), c))
	var ids []event.ID
	for i, r := range rows {
		ids = append(ids, r.Event.EventID)
		if i > 0 && r.ID <= rows[i-1].ID {
			t.Errorf("row %d comes behind row %d", r.ID, rows[i-1].ID)
		}
	}
	return rows, ids
}

func eventIDs(events ...event.Event) []event.ID {
	var out []event.ID
	for _, e := range events {
		out = append(out, e.EventID)
	}
	return out
}

func rowIDs(rows []store.OutboxRow) []int64 {
	var out []int64
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

var outboxTests = map[string]func(*testing.T, store.Store){
	"the outbox holds the events of publishing batches, complete and in order": func(t *testing.T, s store.Store) {
		x, silent := newID(), newID()
		mustAppend(t, s, newBatch(silent, 0, 2))
		want := published(t, s, x, 0, 3)
		mustAppend(t, s, newBatch(x, 3, 1))
		want = append(want, published(t, s, x, 4, 40)...)
		rows, ids := claimRows(t, s, outboxClaim("t", 0))
		wantSame(t, "events", eventIDs(want...), ids)
		for i, r := range rows {
			wantSame(t, "row", store.OutboxRow{ID: r.ID, Event: want[i], Path: "examples/hello", Attempts: 1}, r)
		}
		if _, again := claimRows(t, s, outboxClaim("other", 30)); len(again) != 0 {
			t.Errorf("%d rows were handed out twice", len(again))
		}
	},
	"a batch that is refused leaves nothing to publish": func(t *testing.T, s store.Store) {
		x := newID()
		first := published(t, s, x, 0, 2)
		for _, b := range []store.Batch{newBatch(x, 1, 1), newBatch(x, 2, 2)} {
			b.Publish = true
			b.Events[len(b.Events)-1].EventID = first[0].EventID
			if err := s.Append(t.Context(), b); err == nil {
				t.Error("the batch was stored")
			}
		}
		if rows, _ := claimRows(t, s, outboxClaim("t", 0)); len(rows) != 2 {
			t.Errorf("%d rows, want 2", len(rows))
		}
	},
	"a claim takes the oldest rows up to its limit": func(t *testing.T, s store.Store) {
		var want []event.ID
		for range 5 {
			want = append(want, eventIDs(published(t, s, newID(), 0, 1)...)...)
		}
		got := map[event.ID]bool{}
		for i := range 3 {
			c := outboxClaim(fmt.Sprint("t", i), 0)
			c.Limit = 2
			_, ids := claimRows(t, s, c)
			wantSame(t, "rows of a claim", min(2, len(want)-2*i), len(ids))
			for _, id := range ids {
				got[id] = true
			}
		}
		wantSame(t, "different rows", len(want), len(got))
	},
	"published rows are not claimed again": func(t *testing.T, s store.Store) {
		published(t, s, newID(), 0, 3)
		rows, _ := claimRows(t, s, outboxClaim("t", 0))
		mark := func(token string, ids ...int64) int {
			return must[int](t)(s.MarkPublished(t.Context(), token, ids, after(1)))
		}
		wantSame(t, "under another token", 0, mark("other", rowIDs(rows)...))
		wantSame(t, "unknown rows", 0, mark("t", 1<<40))
		wantSame(t, "no rows", 0, mark("t"))
		wantSame(t, "two of three", 2, mark("t", rows[0].ID, rows[1].ID, rows[0].ID))
		wantSame(t, "again", 0, mark("t", rows[0].ID))
		wantSame(t, "again without token", 0, mark("", rows[0].ID))
		wantSame(t, "without token", 1, mark("", rowIDs(rows)...))
		if again, _ := claimRows(t, s, outboxClaim("t", 1000)); len(again) != 0 {
			t.Errorf("%d published rows were claimed", len(again))
		}
	},
	"without a token even an unclaimed row can be ended": func(t *testing.T, s store.Store) {
		published(t, s, newID(), 0, 1)
		rows, _ := claimRows(t, s, outboxClaim("t", 0))
		wantSame(t, "released", 1, must[int](t)(s.ReleaseOutbox(t.Context(), "t", rowIDs(rows))))
		wantSame(t, "with a token", 0, must[int](t)(s.MarkPublished(t.Context(), "t", rowIDs(rows), epoch)))
		wantSame(t, "without", 1, must[int](t)(s.MarkPublished(t.Context(), "", rowIDs(rows), epoch)))
	},
	"a failed row waits and holds back its execution only": func(t *testing.T, s store.Store) {
		x, y := newID(), newID()
		a := published(t, s, x, 0, 3)
		rows, _ := claimRows(t, s, outboxClaim("t", 0))
		fail := func(token string, id int64) bool {
			return must[bool](t)(s.MarkFailed(t.Context(), token, id, "no stream\x00 \xff", after(20)))
		}
		wantSame(t, "failed under another token", false, fail("other", rows[0].ID))
		wantSame(t, "failed", true, fail("t", rows[0].ID))
		wantSame(t, "failed again", false, fail("t", rows[0].ID))
		wantSame(t, "an unknown row", false, fail("t", 1<<40))
		wantSame(t, "released", 2, must[int](t)(s.ReleaseOutbox(t.Context(), "t", rowIDs(rows))))
		b := published(t, s, y, 0, 2)
		rows, ids := claimRows(t, s, outboxClaim("u", 10))
		wantSame(t, "before it is due", eventIDs(b...), ids)
		must[int](t)(s.MarkPublished(t.Context(), "u", rowIDs(rows), after(10)))
		rows, ids = claimRows(t, s, outboxClaim("u", 20))
		wantSame(t, "when it is due", eventIDs(a...), ids)
		for i, want := range []int{2, 1, 1} {
			wantSame(t, "attempts", want, rows[i].Attempts)
		}
		wantSame(t, "failed without a token", true, fail("", rows[0].ID))
		wantSame(t, "failed while waiting", false, fail("", rows[0].ID))
	},
	"a row in flight holds back its execution for others and not for its own claim": func(t *testing.T, s store.Store) {
		x := newID()
		first := published(t, s, x, 0, 2)
		c := outboxClaim("t", 0)
		c.Limit = 1
		_, ids := claimRows(t, s, c)
		wantSame(t, "first claim", eventIDs(first[0]), ids)
		if _, ids := claimRows(t, s, outboxClaim("other", 1)); len(ids) != 0 {
			t.Errorf("%d rows were handed out out of order", len(ids))
		}
		_, ids = claimRows(t, s, outboxClaim("t", 1))
		wantSame(t, "same token", eventIDs(first[1]), ids)
	},
	"rows of a publisher that does not report are claimed again after the lease": func(t *testing.T, s store.Store) {
		want := eventIDs(published(t, s, newID(), 0, 2)...)
		old, _ := claimRows(t, s, outboxClaim("t", 0))
		if _, ids := claimRows(t, s, outboxClaim("u", 59)); len(ids) != 0 {
			t.Errorf("%d rows were taken from a publisher within its lease", len(ids))
		}
		rows, ids := claimRows(t, s, outboxClaim("u", 60))
		wantSame(t, "claimed again", want, ids)
		wantSame(t, "attempts", 2, rows[0].Attempts)
		wantSame(t, "the late report", 0, must[int](t)(s.MarkPublished(t.Context(), "t", rowIDs(old), after(61))))
		wantSame(t, "the late release", 0, must[int](t)(s.ReleaseOutbox(t.Context(), "t", rowIDs(old))))
		wantSame(t, "the late failure", false, must[bool](t)(s.MarkFailed(t.Context(), "t", old[0].ID, "x", after(90))))
		counts := must[store.OutboxCounts](t)(s.CountOutbox(t.Context(), after(61), time.Minute))
		wantSame(t, "counts", store.OutboxCounts{InFlight: 2, Oldest: epoch, Reclaimed: 2}, counts)
	},
	"a released row is as if it had not been claimed": func(t *testing.T, s store.Store) {
		want := eventIDs(published(t, s, newID(), 0, 1)...)
		for range 3 {
			c := outboxClaim("t", 0)
			c.MaxAttempts = 1
			rows, ids := claimRows(t, s, c)
			wantSame(t, "claimed", want, ids)
			wantSame(t, "attempts", 1, rows[0].Attempts)
			wantSame(t, "under another token", 0, must[int](t)(s.ReleaseOutbox(t.Context(), "u", rowIDs(rows))))
			wantSame(t, "released", 1, must[int](t)(s.ReleaseOutbox(t.Context(), "t", rowIDs(rows))))
		}
	},
	"a row tried too often is dead and holds nobody back": func(t *testing.T, s store.Store) {
		events := published(t, s, newID(), 0, 2)
		c := outboxClaim("t", 0)
		c.MaxAttempts, c.Limit = 2, 1
		for i := range 2 {
			rows, ids := claimRows(t, s, c)
			wantSame(t, "claimed", eventIDs(events[0]), ids)
			wantSame(t, "attempts", i+1, rows[0].Attempts)
			wantSame(t, "failed", true, must[bool](t)(s.MarkFailed(t.Context(), "t", rows[0].ID, "no", epoch)))
		}
		_, ids := claimRows(t, s, c)
		wantSame(t, "behind the dead one", eventIDs(events[1]), ids)
		counts := must[store.OutboxCounts](t)(s.CountOutbox(t.Context(), epoch, time.Minute))
		wantSame(t, "counts", store.OutboxCounts{InFlight: 1, Dead: 1, Oldest: epoch}, counts)
		wantSame(t, "purged", 0, must[int](t)(s.PurgeOutbox(t.Context(), after(1000), 10)))
	},
	"rows are counted by what can be done with them": func(t *testing.T, s store.Store) {
		wantSame(t, "empty", store.OutboxCounts{}, must[store.OutboxCounts](t)(s.CountOutbox(t.Context(), epoch, time.Minute)))
		for range 4 {
			published(t, s, newID(), 0, 1)
		}
		rows, _ := claimRows(t, s, outboxClaim("t", 0))
		must[int](t)(s.MarkPublished(t.Context(), "t", rowIDs(rows[:1]), epoch))
		must[bool](t)(s.MarkFailed(t.Context(), "t", rows[1].ID, "x", after(20)))
		must[int](t)(s.ReleaseOutbox(t.Context(), "t", rowIDs(rows[2:3])))
		count := func(seconds int) store.OutboxCounts {
			return must[store.OutboxCounts](t)(s.CountOutbox(t.Context(), after(seconds), time.Minute))
		}
		wantSame(t, "now", store.OutboxCounts{Ready: 1, Waiting: 1, InFlight: 1, Published: 1, Oldest: epoch}, count(0))
		wantSame(t, "when the failed is due", store.OutboxCounts{Ready: 2, InFlight: 1, Published: 1, Oldest: epoch}, count(20))
		wantSame(t, "when the lease is over", store.OutboxCounts{Ready: 3, Published: 1, Oldest: epoch}, count(60))
	},
	"published rows are purged by age": func(t *testing.T, s store.Store) {
		published(t, s, newID(), 0, 6)
		rows, _ := claimRows(t, s, outboxClaim("t", 0))
		for i, r := range rows[:5] {
			must[int](t)(s.MarkPublished(t.Context(), "t", []int64{r.ID}, after(i)))
		}
		purge := func(seconds, limit int) int { return must[int](t)(s.PurgeOutbox(t.Context(), after(seconds), limit)) }
		wantSame(t, "none older", 0, purge(0, 10))
		wantSame(t, "limited", 2, purge(4, 2))
		wantSame(t, "the rest of that age", 2, purge(4, 10))
		counts := must[store.OutboxCounts](t)(s.CountOutbox(t.Context(), epoch, time.Minute))
		wantSame(t, "left", store.OutboxCounts{InFlight: 1, Published: 1, Oldest: epoch}, counts)
	},
	"several claimers never hold a row together and keep the order of an execution": outboxRace,
}
