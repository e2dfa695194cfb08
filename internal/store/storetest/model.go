package storetest

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
	"github.com/noetl/noetl-go/internal/store/memstore"
)

// runModel drives the store and the one in memory with the same random calls
// and compares every answer. Ids are fresh per sequence, so that one database
// serves them all.
func runModel(t *testing.T, open func(t *testing.T) store.Store) {
	s := open(t)
	if raced {
		// The sequence of calls is what it checks, and they come one at a time.
		if err := flag.Set("rapid.checks", "20"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		m := &model{
			t: r, real: s, mem: memstore.New(), seq: map[event.ID]int64{},
			now: epoch, rows: map[outboxKey]map[store.Store]int64{},
		}
		for range 4 {
			m.executions = append(m.executions, newID())
		}
		m.drain()
		r.Repeat(map[string]func(*rapid.T){
			"append":  m.append,
			"renew":   m.renew,
			"expire":  m.expire,
			"put":     m.put,
			"look up": m.lookUp,

			"tick":          m.tick,
			"claim outbox":  m.claimOutbox,
			"settle outbox": m.settleOutbox,
			"claim holder":  m.claimHolder,
			"reproject":     m.reproject,
			"renew worker":  m.renewWorker,
			"":              func(*rapid.T) {},
		})
		m.compareAll()
		m.compareBeside()
	})
}

type model struct {
	t          *rapid.T
	real, mem  store.Store
	executions []event.ID
	seq        map[event.ID]int64 // as far as the model knows
	events     []event.ID         // all event ids ever used
	refs       []string           // all references ever used

	now  time.Time                           // for claims and the outbox
	rows map[outboxKey]map[store.Store]int64 // outbox rows handed out so far
	keys []outboxKey                         // the same in order
}

// append tries batches that are mostly right, sometimes stale, sometimes with
// a known event id.
func (m *model) append(t *rapid.T) {
	x := rapid.SampledFrom(m.executions).Draw(t, "execution")
	expected := max(0, m.seq[x]+int64(rapid.SampledFrom([]int{0, 0, 0, 0, -1, 1}).Draw(t, "skew")))
	b := newBatch(x, expected, rapid.IntRange(1, 3).Draw(t, "events"))
	b.Publish = rapid.Bool().Draw(t, "publish")
	if expected == 0 {
		b.Claim = m.startClaim(t, x)
	}
	if len(m.events) > 0 && b.Claim == nil && rapid.IntRange(0, 5).Draw(t, "repeat") == 0 {
		b.Events[len(b.Events)-1].EventID = rapid.SampledFrom(m.events).Draw(t, "known event")
	}
	b.Execution.Status = rapid.SampledFrom([]string{event.StatusRunning, event.StatusRunning, event.StatusCompleted}).Draw(t, "status")
	b.Execution.UpdatedAt = epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "updated")) * time.Second)
	if wake := rapid.IntRange(0, 5).Draw(t, "wake"); wake > 0 {
		b.Execution.WakeAt = epoch.Add(time.Duration(wake) * time.Second)
	}
	for range rapid.IntRange(0, 2).Draw(t, "results") {
		b.Results = append(b.Results, m.result(t, x))
	}
	for i := range b.Events {
		if rapid.Bool().Draw(t, "command") {
			c := m.command(t, &b, b.Events[i].EventID)
			b.Commands = append(b.Commands, c)
		}
		m.events = append(m.events, b.Events[i].EventID)
	}
	err := same(m, "Append", func(s store.Store) (struct{}, error) { return struct{}{}, s.Append(m.t.Context(), b) })
	if err == nil {
		m.seq[x] = b.Execution.LastSeq
	}
}

func (m *model) command(t *rapid.T, b *store.Batch, id event.ID) store.Command {
	c := newCommand(b, rapid.SampledFrom([]string{event.StatusPending, event.StatusClaimed, event.StatusRunning, event.StatusFailed}).Draw(t, "command status"))
	c.EventID = id
	c.WorkerID = rapid.SampledFrom([]string{"", "w1", "w12", "v%"}).Draw(t, "worker")
	c.Attempt = rapid.IntRange(0, 2).Draw(t, "attempt")
	c.CreatedAt = epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "created")) * time.Second)
	c.LeaseUntil = epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "lease")) * time.Second)
	c.ClaimedAt = after(rapid.IntRange(0, 3).Draw(t, "claimed"))
	return c
}

// result is a new value, sometimes under a known reference.
func (m *model) result(t *rapid.T, x event.ID) store.Result {
	r := newResult(x, fmt.Sprintf(`{"n":%d}`, len(m.refs)))
	if len(m.refs) > 0 && rapid.IntRange(0, 3).Draw(t, "known reference") == 0 {
		r.Ref = rapid.SampledFrom(m.refs).Draw(t, "reference")
	}
	m.refs = append(m.refs, r.Ref)
	return r
}

func (m *model) put(t *rapid.T) {
	r := m.result(t, rapid.SampledFrom(m.executions).Draw(t, "execution"))
	_ = same(m, "PutResult", func(s store.Store) (struct{}, error) { return struct{}{}, s.PutResult(m.t.Context(), r) })
}

func (m *model) renew(t *rapid.T) {
	if len(m.events) == 0 {
		t.Skip("no events yet")
	}
	var beats []event.Heartbeat
	for range rapid.IntRange(1, 4).Draw(t, "beats") {
		beats = append(beats, event.Heartbeat{
			ExecutionID: rapid.SampledFrom(m.executions).Draw(t, "execution"), EventID: rapid.SampledFrom(m.events).Draw(t, "event"),
			WorkerID: rapid.SampledFrom([]string{"", "w1", "w12"}).Draw(t, "worker"), Attempt: rapid.IntRange(0, 2).Draw(t, "attempt"),
		})
	}
	_ = same(m, "RenewLeases", func(s store.Store) ([]bool, error) {
		return s.RenewLeases(m.t.Context(), beats, epoch.Add(5*time.Second))
	})
}

// expire compares only what becomes of the model's commands: the count would
// include those of earlier sequences.
func (m *model) expire(t *rapid.T) {
	prefix := rapid.SampledFrom([]string{"w1", "w", "v%", "%"}).Draw(t, "prefix")
	_ = same(m, "ExpireLeases", func(s store.Store) (struct{}, error) {
		_, err := s.ExpireLeases(m.t.Context(), prefix, epoch.Add(time.Second))
		return struct{}{}, err
	})
}

func (m *model) lookUp(t *rapid.T) {
	x := rapid.SampledFrom(m.executions).Draw(t, "execution")
	after, limit := int64(rapid.IntRange(0, 6).Draw(t, "after")), rapid.IntRange(0, 3).Draw(t, "limit")
	_ = same(m, "Events", func(s store.Store) ([]event.Event, error) { return s.Events(m.t.Context(), x, after, limit) })
	if len(m.events) > 0 {
		ids := rapid.SliceOfN(rapid.SampledFrom(m.events), 1, 5).Draw(t, "ids")
		_ = same(m, "EventIDs", func(s store.Store) ([]event.ID, error) { return s.EventIDs(m.t.Context(), x, ids) })
		_ = same(m, "Event", func(s store.Store) (event.Event, error) { return s.Event(m.t.Context(), x, ids[0]) })
	}
}

// compareAll looks at everything the sequence can have changed.
func (m *model) compareAll() {
	for _, x := range m.executions {
		_ = same(m, "Execution", func(s store.Store) (store.Execution, error) { return s.Execution(m.t.Context(), x) })
		_ = same(m, "Events", func(s store.Store) ([]event.Event, error) { return s.Events(m.t.Context(), x, 0, 0) })
		for _, id := range m.events {
			_ = same(m, "Command", func(s store.Store) (store.Command, error) { return s.Command(m.t.Context(), x, id) })
		}
		for _, ref := range m.refs {
			_ = same(m, "Result", func(s store.Store) (store.Result, error) { return s.Result(m.t.Context(), x, ref) })
		}
	}
	_ = same(m, "DueExecutions", func(s store.Store) ([]event.ID, error) {
		return m.own(s.DueExecutions(m.t.Context(), epoch.Add(3*time.Second), 0))
	})
	_ = same(m, "PendingCommands", func(s store.Store) ([]store.Command, error) {
		return m.mine(s.PendingCommands(m.t.Context(), epoch.Add(2*time.Second), 0))
	})
	_ = same(m, "ExpiredCommands", func(s store.Store) ([]store.Command, error) {
		return m.mine(s.ExpiredCommands(m.t.Context(), epoch.Add(2*time.Second), 0))
	})
	_ = same(m, "OpenExecutions", func(s store.Store) ([]event.ID, error) {
		return s.OpenExecutions(m.t.Context(), m.executions[0]-1, epoch.Add(2*time.Second), 0)
	})
}

// own leaves out the executions of earlier sequences.
func (m *model) own(in []event.ID, err error) ([]event.ID, error) {
	var out []event.ID
	for _, id := range in {
		if id >= m.executions[0] {
			out = append(out, id)
		}
	}
	return out, err
}

// mine leaves out the commands of earlier sequences, and orders those that are
// of one age and share an event id, where the contract is silent.
func (m *model) mine(in []store.Command, err error) ([]store.Command, error) {
	var out []store.Command
	for _, c := range in {
		if c.ExecutionID >= m.executions[0] {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b store.Command) int {
		return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.ExecutionID, b.ExecutionID))
	})
	return out, err
}

// same makes the call on both stores and fails when the answers differ. It
// returns the error both agree on.
func same[T any](m *model, what string, call func(store.Store) (T, error)) error {
	m.t.Helper()
	want, wantErr := call(m.mem)
	got, gotErr := call(m.real)
	if w, g := verdict(wantErr), verdict(gotErr); w != g {
		m.t.Fatalf("%s = %s, the model says %s", what, g, w)
	}
	if diff := gocmp.Diff(want, got); wantErr == nil && diff != "" {
		m.t.Fatalf("%s (-model +store):\n%s", what, diff)
	}
	return wantErr
}

func verdict(err error) string {
	if claimed, ok := errors.AsType[*store.ClaimedError](err); ok {
		return claimed.Error()
	}
	for _, known := range []error{store.ErrConflict, store.ErrDuplicate, store.ErrNotFound} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return fmt.Sprint(err)
}
