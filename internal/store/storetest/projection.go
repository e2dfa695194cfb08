package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func newSnapshot(execution event.ID, seq int64) store.Snapshot {
	return store.Snapshot{
		ExecutionID: execution, Type: "replay_state", ID: "1", Version: event.ID(seq) + 100, Seq: seq,
		State: []byte(`{"steps":{"a":[1,2]}}`), Checksum: "sum", Meta: []byte(`{"n":1}`), UpdatedAt: epoch,
	}
}

func wantSnapshot(t *testing.T, what string, want, got store.Snapshot) {
	t.Helper()
	wantSame(t, what+" state", meaning(want.State), meaning(got.State))
	wantSame(t, what+" meta", meaning(want.Meta), meaning(got.Meta))
	want.State, got.State, want.Meta, got.Meta = nil, nil, nil, nil
	wantSame(t, what, want, got)
}

var snapshotTests = map[string]func(*testing.T, store.Store){
	"the newest snapshot of an execution, type and id is kept": func(t *testing.T, s store.Store) {
		x := newID()
		put := func(snap store.Snapshot) {
			t.Helper()
			if err := s.PutSnapshot(t.Context(), snap); err != nil {
				t.Fatal(err)
			}
		}
		find := func(typ, id string) store.Snapshot {
			t.Helper()
			return must[store.Snapshot](t)(s.Snapshot(t.Context(), x, typ, id))
		}
		five := newSnapshot(x, 5)
		put(five)
		wantSnapshot(t, "first", five, find("replay_state", "1"))
		put(newSnapshot(x, 4))
		wantSnapshot(t, "after an older one", five, find("replay_state", "1"))
		same := newSnapshot(x, 5)
		same.State, same.Meta, same.UpdatedAt = []byte(`{"better":true}`), nil, after(1)
		put(same)
		wantSnapshot(t, "after one of the same age", same, find("replay_state", "1"))
		other := newSnapshot(x, 1)
		other.ID = "2"
		put(other)
		nine := newSnapshot(x, 9)
		put(nine)
		wantSnapshot(t, "after a newer one", nine, find("replay_state", "1"))
		wantSnapshot(t, "of another id", other, find("replay_state", "2"))
		for _, key := range [][2]string{{"replay_state", "3"}, {"other", "1"}} {
			_, err := s.Snapshot(t.Context(), x, key[0], key[1])
			wantErr(t, "unknown snapshot", err, store.ErrNotFound)
		}
		_, err := s.Snapshot(t.Context(), newID(), "replay_state", "1")
		wantErr(t, "of another execution", err, store.ErrNotFound)
	},
	"of snapshots put at once the newest stays": func(t *testing.T, s store.Store) {
		x := newID()
		var wg sync.WaitGroup
		for seq := range int64(20) {
			wg.Go(func() {
				if err := s.PutSnapshot(t.Context(), newSnapshot(x, (seq*7)%20)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		wantSame(t, "sequence", int64(19), must[store.Snapshot](t)(s.Snapshot(t.Context(), x, "replay_state", "1")).Seq)
	},
}

var projectionTests = map[string]func(*testing.T, store.Store){
	"executions are walked in order, by log and by row": func(t *testing.T, s store.Store) {
		var ids []event.ID
		rows := map[event.ID]store.Execution{}
		for i := range 7 {
			b := newBatch(newID(), 0, 1+i%3)
			mustAppend(t, s, b)
			ids = append(ids, b.Execution.ExecutionID)
			rows[ids[i]] = b.Execution
		}
		logged := func(after event.ID, limit int) []event.ID {
			return must[[]event.ID](t)(s.LoggedExecutions(t.Context(), after, limit))
		}
		projected := func(after event.ID, limit int) (out []event.ID) {
			for _, x := range must[[]store.Execution](t)(s.ProjectedExecutions(t.Context(), after, limit)) {
				wantSame(t, "row", rows[x.ExecutionID], x)
				out = append(out, x.ExecutionID)
			}
			return out
		}
		for name, walk := range map[string]func(event.ID, int) []event.ID{"logged": logged, "projected": projected} {
			wantSame(t, name+": all", ids, walk(0, 100))
			wantSame(t, name+": first page", ids[:3], walk(0, 3))
			wantSame(t, name+": next page", ids[3:6], walk(ids[2], 3))
			wantSame(t, name+": last page", ids[6:], walk(ids[5], 3))
			wantSame(t, name+": behind the end", []event.ID(nil), walk(ids[6], 3))
		}
	},
	"the commands of an execution come by event id": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 3)
		for i := range b.Events {
			c := newCommand(&b, event.StatusPending)
			c.EventID = b.Events[len(b.Events)-1-i].EventID
			b.Commands = append(b.Commands, c)
		}
		mustAppend(t, s, b)
		heldCommand(t, s, "w", 1, epoch)
		want := []store.Command{b.Commands[2], b.Commands[1], b.Commands[0]}
		wantSame(t, "commands", want, must[[]store.Command](t)(s.CommandsOf(t.Context(), b.Execution.ExecutionID)))
		wantSame(t, "of nobody", []store.Command(nil), must[[]store.Command](t)(s.CommandsOf(t.Context(), newID())))
	},
	"rows are replaced as a whole when the log has not grown": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 3)
		for i := range b.Events {
			c := newCommand(&b, event.StatusPending)
			c.EventID = b.Events[i].EventID
			b.Commands = append(b.Commands, c)
		}
		mustAppend(t, s, b)
		x := b.Execution
		x.Status, x.EndedAt, x.StepsCompleted, x.Path, x.Pool, x.CatalogID = event.StatusCompleted, after(9), 2, "other", "gpu", 5
		x.ParentExecutionID, x.WakeAt = 4, after(30)
		kept := b.Commands[1]
		kept.Status, kept.WorkerID, kept.Attempt, kept.LeaseUntil, kept.ClaimedAt = event.StatusRunning, "w", 2, after(60), after(1)
		for _, skew := range []int64{-1, 1} {
			stale := x
			stale.LastSeq += skew
			wantErr(t, "Reproject at another sequence", s.Reproject(t.Context(), stale, nil), store.ErrConflict)
		}
		wantSame(t, "row after conflicts", b.Execution, must[store.Execution](t)(s.Execution(t.Context(), x.ExecutionID)))
		if err := s.Reproject(t.Context(), x, []store.Command{kept}); err != nil {
			t.Fatalf("Reproject = %v", err)
		}
		wantSame(t, "row", x, must[store.Execution](t)(s.Execution(t.Context(), x.ExecutionID)))
		wantSame(t, "commands", []store.Command{kept}, must[[]store.Command](t)(s.CommandsOf(t.Context(), x.ExecutionID)))
		wantSame(t, "events", 3, len(must[[]event.Event](t)(s.Events(t.Context(), x.ExecutionID, 0, 0))))
		wantSame(t, "listed by its new path", 1, len(must[[]store.Execution](t)(s.ListExecutions(t.Context(), store.ExecutionFilter{Path: "other", Status: x.Status}))))
		wantSame(t, "listed by its old path", 0, len(must[[]store.Execution](t)(s.ListExecutions(t.Context(), store.ExecutionFilter{Path: "hello"}))))
		next := newBatch(x.ExecutionID, 3, 1)
		mustAppend(t, s, next)
	},
	"an execution without events has no rows to write": func(t *testing.T, s store.Store) {
		wantErr(t, "Reproject", s.Reproject(t.Context(), newBatch(newID(), 0, 1).Execution, nil), store.ErrConflict)
	},
	"rows of another execution are refused": func(t *testing.T, s store.Store) {
		b := newBatch(newID(), 0, 1)
		b.Commands = []store.Command{newCommand(&b, event.StatusPending)}
		mustAppend(t, s, b)
		foreign := b.Commands[0]
		foreign.ExecutionID = newID()
		for _, commands := range [][]store.Command{{foreign}, {b.Commands[0], b.Commands[0]}} {
			if err := s.Reproject(t.Context(), b.Execution, commands); err == nil {
				t.Error("Reproject took it")
			}
		}
		wantSame(t, "commands", b.Commands, must[[]store.Command](t)(s.CommandsOf(t.Context(), b.Execution.ExecutionID)))
	},
	"old commands of finished executions are purged": func(t *testing.T, s store.Store) {
		var left []event.ID
		for i, c := range []struct {
			status string
			ended  time.Time
		}{
			{event.StatusCompleted, epoch},
			{event.StatusFailed, after(1)},
			{event.StatusCancelled, after(2)},
			{event.StatusCompleted, after(10)},
			{event.StatusCompleted, time.Time{}},
			{event.StatusRunning, epoch},
		} {
			b := newBatch(newID(), 0, 1)
			b.Execution.Status = c.status
			command := newCommand(&b, event.StatusCompleted)
			command.EndedAt = c.ended
			b.Commands = []store.Command{command}
			mustAppend(t, s, b)
			if i > 2 {
				left = append(left, command.EventID)
			}
		}
		purge := func(seconds, limit int) int { return must[int](t)(s.PurgeCommands(t.Context(), after(seconds), limit)) }
		wantSame(t, "none older", 0, purge(0, 10))
		wantSame(t, "limited", 2, purge(10, 2))
		wantSame(t, "the rest", 1, purge(10, 10))
		wantSame(t, "again", 0, purge(10, 10))
		for _, id := range left {
			must[store.Command](t)(s.Command(t.Context(), 0, id))
		}
	},
}

var schemaTests = map[string]func(*testing.T, store.Store){
	"an open store has its whole schema": func(t *testing.T, s store.Store) {
		for range 2 {
			state := must[store.SchemaState](t)(s.SchemaState(t.Context()))
			if state.Version != state.Want || len(state.Missing) > 0 || state.Want > 0 && len(state.Tables) == 0 {
				t.Errorf("SchemaState = %+v", state)
			}
			if err := s.Migrate(t.Context()); err != nil {
				t.Errorf("Migrate = %v", err)
			}
		}
		mustAppend(t, s, newBatch(newID(), 0, 1))
	},
	"a store tells of its connections": func(t *testing.T, s store.Store) {
		if err := s.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := s.PoolState()
		if p.Max < 1 || p.Open < 1 || p.Open > p.Max || p.Idle > p.Open || p.Min > p.Max || p.Waiting < 0 || s.Shards() < 1 {
			t.Errorf("PoolState = %+v, Shards = %d", p, s.Shards())
		}
	},
}
