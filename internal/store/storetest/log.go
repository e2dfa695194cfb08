package storetest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

var logTests = map[string]func(*testing.T, store.Store){
	"every field of an event comes back": func(t *testing.T, s store.Store) {
		x := newID()
		b := newBatch(x, 0, 3)
		b.Events[0] = event.Event{
			ExecutionID: x, Seq: 1, EventID: b.Events[0].EventID, CatalogID: 5, ParentEventID: 6, ParentExecutionID: 7,
			Type: event.CommandIssued, NodeName: "fetch ünïcode", NodeType: "http", Status: event.StatusPending,
			Context: json.RawMessage(`{"a": 1,"big":9007199254740993,"esc":"\u0000\"\\","nested":{"x":[1,2.50,null,true]}}`),
			Result:  json.RawMessage(`{"status":"ok","context":{"rows":[]}}`), Meta: json.RawMessage(`{"k":"v"}`),
			Error: "line one\nline 'two' \\ \"three\"", WorkerID: "w-1", CommandID: "1:fetch:2:i3",
			Duration: 1234567891 * time.Nanosecond, CreatedAt: epoch.In(time.FixedZone("x", 3600)), Detail: "never stored",
		}
		b.Events[1] = event.Event{ExecutionID: x, Seq: 2, EventID: b.Events[1].EventID, Type: event.StepExit}
		mustAppend(t, s, b)
		got := must[[]event.Event](t)(s.Events(t.Context(), x, 0, 0))
		want := slices.Clone(b.Events)
		want[0].CreatedAt, want[0].Detail = epoch, nil
		wantSame(t, "events", want, got)
		if zone := got[0].CreatedAt.Location(); zone != time.UTC {
			t.Errorf("created_at is in %v, want UTC", zone)
		}
		if !got[1].CreatedAt.IsZero() || got[1].Context != nil {
			t.Errorf("an empty event came back as %+v", got[1])
		}
		if !strings.Contains(string(got[0].Context), "9007199254740993") || !strings.Contains(string(got[0].Context), "2.50") {
			t.Errorf("numbers changed in %s", got[0].Context)
		}
		wantSame(t, "event by id", want[0], must[event.Event](t)(s.Event(t.Context(), x, want[0].EventID)))
	},
	"large payloads come back whole": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 2)
		b.Events[1].Result = json.RawMessage(`{"blob":"` + strings.Repeat("äx", 1<<19) + `"}`)
		mustAppend(t, s, b)
		got := must[[]event.Event](t)(s.Events(t.Context(), b.Execution.ExecutionID, 1, 0))
		if len(got) != 1 || string(got[0].Result) != string(b.Events[1].Result) {
			t.Error("a payload of a megabyte changed")
		}
	},
	"events are read in order and in pages": func(t *testing.T, s store.Store) {
		x, other := newID(), newID()
		mustAppend(t, s, newBatch(x, 0, 4), newBatch(other, 0, 2), newBatch(x, 4, 1), newBatch(x, 5, 5))
		for _, c := range []struct {
			after       int64
			limit       int
			first, last int64
		}{{0, 0, 1, 10}, {0, 3, 1, 3}, {3, 3, 4, 6}, {9, 3, 10, 10}, {4, 0, 5, 10}, {10, 5, 0, 0}, {99, 0, 0, 0}} {
			var want []int64
			for n := c.first; n > 0 && n <= c.last; n++ {
				want = append(want, n)
			}
			wantSame(t, "sequence", want, seqs(must[[]event.Event](t)(s.Events(t.Context(), x, c.after, c.limit))))
		}
	},
	"an unknown execution has no events": func(t *testing.T, s store.Store) {
		if got := must[[]event.Event](t)(s.Events(t.Context(), newID(), 0, 0)); len(got) != 0 {
			t.Errorf("Events = %v", got)
		}
		_, err := s.Event(t.Context(), newID(), newID())
		wantErr(t, "Event", err, store.ErrNotFound)
	},
	"event ids are looked up per execution, in the order asked": func(t *testing.T, s store.Store) {
		a, b := newBatch(newID(), 0, 3), newBatch(newID(), 0, 1)
		mustAppend(t, s, a, b)
		got := must[[]event.ID](t)(s.EventIDs(t.Context(), a.Execution.ExecutionID,
			[]event.ID{a.Events[2].EventID, newID(), b.Events[0].EventID, a.Events[0].EventID}))
		wantSame(t, "stored ids", []event.ID{a.Events[2].EventID, a.Events[0].EventID}, got)
		if got := must[[]event.ID](t)(s.EventIDs(t.Context(), a.Execution.ExecutionID, nil)); len(got) != 0 {
			t.Errorf("EventIDs of nothing = %v", got)
		}
		_, err := s.Event(t.Context(), a.Execution.ExecutionID, b.Events[0].EventID)
		wantErr(t, "Event of another execution", err, store.ErrNotFound)
	},
	"a wrong expected sequence is a conflict and changes nothing": func(t *testing.T, s store.Store) {
		x := newID()
		wantErr(t, "append to nothing", s.Append(t.Context(), newBatch(x, 3, 1)), store.ErrConflict)
		_, err := s.Execution(t.Context(), x)
		wantErr(t, "Execution", err, store.ErrNotFound)
		mustAppend(t, s, newBatch(x, 0, 2))
		before := must[store.Execution](t)(s.Execution(t.Context(), x))
		for _, expected := range []int64{0, 1, 3} {
			b := newBatch(x, expected, 1)
			b.Execution.Status = event.StatusFailed
			b.Commands = []store.Command{newCommand(&b, event.StatusPending)}
			wantErr(t, "Append", s.Append(t.Context(), b), store.ErrConflict)
			_, err := s.Command(t.Context(), x, b.Events[0].EventID)
			wantErr(t, "Command of a refused batch", err, store.ErrNotFound)
		}
		wantSame(t, "execution", before, must[store.Execution](t)(s.Execution(t.Context(), x)))
		wantSame(t, "sequence", []int64{1, 2}, seqs(must[[]event.Event](t)(s.Events(t.Context(), x, 0, 0))))
	},
	"a known event id is a duplicate and nothing of its batch is stored": func(t *testing.T, s store.Store) {
		x := newID()
		first := newBatch(x, 0, 2)
		first.Commands = []store.Command{newCommand(&first, event.StatusPending)}
		mustAppend(t, s, first)
		before := must[store.Execution](t)(s.Execution(t.Context(), x))
		again := newBatch(x, 2, 3)
		again.Execution.Status = event.StatusCompleted
		again.Commands = []store.Command{newCommand(&again, event.StatusPending), newCommand(&first, event.StatusFailed)}
		again.Events[2].EventID = first.Events[0].EventID
		wantErr(t, "Append", s.Append(t.Context(), again), store.ErrDuplicate)
		wantSame(t, "execution", before, must[store.Execution](t)(s.Execution(t.Context(), x)))
		wantSame(t, "sequence", []int64{1, 2}, seqs(must[[]event.Event](t)(s.Events(t.Context(), x, 0, 0))))
		wantSame(t, "old command", first.Commands[0], must[store.Command](t)(s.Command(t.Context(), x, first.Events[0].EventID)))
		_, err := s.Command(t.Context(), x, again.Events[0].EventID)
		wantErr(t, "new command", err, store.ErrNotFound)
	},
	"an event id twice in one batch is a duplicate": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 2)
		b.Events[1].EventID = b.Events[0].EventID
		wantErr(t, "Append", s.Append(t.Context(), b), store.ErrDuplicate)
		_, err := s.Execution(t.Context(), b.Execution.ExecutionID)
		wantErr(t, "Execution", err, store.ErrNotFound)
	},
	"a stale batch with a known event id is a conflict first": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		mustAppend(t, s, b)
		wantErr(t, "the same append again", s.Append(t.Context(), b), store.ErrConflict)
	},
	"two executions may use the same event id": func(t *testing.T, s store.Store) {
		a, b := newBatch(newID(), 0, 1), newBatch(newID(), 0, 1)
		b.Events[0].EventID = a.Events[0].EventID
		a.Commands, b.Commands = []store.Command{newCommand(&a, event.StatusPending)}, []store.Command{newCommand(&b, event.StatusRunning)}
		mustAppend(t, s, a, b)
		for _, want := range []store.Command{a.Commands[0], b.Commands[0]} {
			wantSame(t, "command", want, must[store.Command](t)(s.Command(t.Context(), want.ExecutionID, want.EventID)))
		}
	},
	"a malformed batch is refused before it is stored": func(t *testing.T, s store.Store) {
		for name, spoil := range map[string]func(*store.Batch){
			"gap":               func(b *store.Batch) { b.Events[1].Seq++ },
			"wrong last_seq":    func(b *store.Batch) { b.Execution.LastSeq++ },
			"foreign event":     func(b *store.Batch) { b.Events[0].ExecutionID++ },
			"foreign command":   func(b *store.Batch) { b.Commands[0].ExecutionID++ },
			"repeated command":  func(b *store.Batch) { b.Commands = append(b.Commands, b.Commands[0]) },
			"start of nothing":  func(b *store.Batch) { b.Events, b.Execution.LastSeq = nil, 0 },
			"negative expected": func(b *store.Batch) { b.Expected = -1 },
		} {
			b := newBatch(newID(), 0, 2)
			b.Commands = []store.Command{newCommand(&b, event.StatusPending)}
			spoil(&b)
			if err := s.Append(t.Context(), b); event.CodeOf(err) != event.Internal || err == nil {
				t.Errorf("%s: Append = %v, want an internal error", name, err)
			}
			_, err := s.Execution(t.Context(), b.Execution.ExecutionID)
			wantErr(t, name+": Execution", err, store.ErrNotFound)
		}
	},
	"a batch without events updates the projections": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		b.Commands = []store.Command{newCommand(&b, event.StatusPending)}
		mustAppend(t, s, b)
		next := newBatch(b.Execution.ExecutionID, 1, 0)
		next.Commands = []store.Command{newCommand(&b, event.StatusCancelled)}
		mustAppend(t, s, next)
		got := must[store.Command](t)(s.Command(t.Context(), 0, b.Events[0].EventID))
		wantSame(t, "status", event.StatusCancelled, got.Status)
		wantErr(t, "stale batch without events", s.Append(t.Context(), newBatch(b.Execution.ExecutionID, 2, 0)), store.ErrConflict)
	},
	"batches of any size are stored whole": func(t *testing.T, s store.Store) {
		x, expected := newID(), int64(0)
		for _, n := range []int{1, 2, 3, 5, 17, 63, 1200} {
			mustAppend(t, s, newBatch(x, expected, n))
			expected += int64(n)
		}
		got := seqs(must[[]event.Event](t)(s.Events(t.Context(), x, 0, 0)))
		if int64(len(got)) != expected || !slices.IsSorted(got) {
			t.Errorf("read %d events, want %d in order", len(got), expected)
		}
	},
}

func seqs(events []event.Event) []int64 {
	var out []int64
	for i := range events {
		out = append(out, events[i].Seq)
	}
	return out
}
