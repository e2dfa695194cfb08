// Package memstore is the store in memory: the reference model of the contract
// and the backend of simulations, which can make it fail at will. It must not
// know anything durable; what it holds ends with the process.
package memstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

var errClosed = &event.Error{Code: event.Unavailable, Message: "store is closed", Reason: "closed"}

// Store implements store.Store. Make one with New.
type Store struct {
	mu         sync.Mutex // guards everything below
	closed     bool
	faults     Faults
	executions map[event.ID]*execution
	entries    map[event.ID]*store.Entry
	results    map[resultKey]store.Result
	parts      map[partKey][]byte // of results
	claims     map[claimKey]claim
	outbox     outbox
	variables  map[event.ID]map[string]*store.Variable
	runtimes   map[runtimeKey]*store.Runtime
	snapshots  map[snapshotKey]store.Snapshot
	secrets    secrets
	schedules  schedules
	access     access
	retention  retention
}

var _ store.Store = (*Store)(nil)

// execution is everything kept about one execution.
type execution struct {
	row      store.Execution
	events   []event.Event // events[i].Seq = i+1
	seqs     map[event.ID]int64
	commands map[event.ID]*store.Command
}

// New returns an empty store.
func New() *Store {
	return &Store{
		executions: map[event.ID]*execution{},
		entries:    map[event.ID]*store.Entry{},
		results:    map[resultKey]store.Result{},
		parts:      map[partKey][]byte{},
		claims:     map[claimKey]claim{},
		variables:  map[event.ID]map[string]*store.Variable{},
		runtimes:   map[runtimeKey]*store.Runtime{},
		snapshots:  map[snapshotKey]store.Snapshot{},
		secrets:    newSecrets(),
		schedules:  newSchedules(),
		access:     newAccess(),
		retention:  newRetention(),
	}
}

// Ping fails only after Close, or when told to.
func (s *Store) Ping(ctx context.Context) error {
	return s.do(ctx, "Ping", func() error { return nil })
}

// Close makes every later call fail. The content stays for Reopen.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// Reopen makes a closed store usable again with what it held, and without
// faults: a simulated restart of the process above it.
func (s *Store) Reopen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.faults = false, Faults{}
}

// Append implements store.Log.
func (s *Store) Append(ctx context.Context, b store.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	return s.do(ctx, "Append", func() error { return s.append(&b) })
}

func (s *Store) append(b *store.Batch) error {
	x := s.executions[b.Execution.ExecutionID]
	switch {
	case x == nil && b.Expected != 0, x != nil && x.row.LastSeq != b.Expected:
		return store.ErrConflict
	case x == nil && !s.retention.removed[b.Execution.ExecutionID].IsZero():
		return store.ErrRemoved
	case x == nil:
		x = newExecution()
	}
	if b.Claim != nil {
		if holder, held := s.holder(*b.Claim); held && holder != b.Execution.ExecutionID {
			return &store.ClaimedError{ExecutionID: holder}
		}
	}
	fresh := make(map[event.ID]bool, len(b.Events))
	for i := range b.Events {
		id := b.Events[i].EventID
		if _, stored := x.seqs[id]; stored || fresh[id] {
			return store.ErrDuplicate
		}
		fresh[id] = true
	}
	s.executions[b.Execution.ExecutionID] = x
	x.row = normalExecution(b.Execution)
	for i := range b.Events {
		e := cloneEvent(b.Events[i])
		x.events = append(x.events, e)
		x.seqs[e.EventID] = e.Seq
	}
	x.putCommands(b.Commands)
	for _, r := range b.Results {
		s.putResult(r)
	}
	if b.Claim != nil {
		s.takeClaim(*b.Claim, b.Execution.ExecutionID)
	}
	if b.Publish {
		s.outbox.add(b.Events)
	}
	return nil
}

func newExecution() *execution {
	return &execution{seqs: map[event.ID]int64{}, commands: map[event.ID]*store.Command{}}
}

func (x *execution) putCommands(commands []store.Command) {
	for i := range commands {
		c := normalCommand(commands[i])
		x.commands[c.EventID] = &c
	}
}

// Events implements store.Log.
func (s *Store) Events(ctx context.Context, execution event.ID, after int64, limit int) ([]event.Event, error) {
	var out []event.Event
	err := s.do(ctx, "Events", func() error {
		x := s.executions[execution]
		if x == nil {
			return nil
		}
		from := x.events[min(max(after, 0), int64(len(x.events))):]
		if limit > 0 && len(from) > limit {
			from = from[:limit]
		}
		for i := range from {
			out = append(out, cloneEvent(from[i]))
		}
		return nil
	})
	return out, err
}

// EventIDs implements store.Log.
func (s *Store) EventIDs(ctx context.Context, execution event.ID, ids []event.ID) ([]event.ID, error) {
	var out []event.ID
	err := s.do(ctx, "EventIDs", func() error {
		x := s.executions[execution]
		if x == nil {
			return nil
		}
		for _, id := range ids {
			if _, ok := x.seqs[id]; ok {
				out = append(out, id)
			}
		}
		return nil
	})
	return out, err
}

// Event implements store.Log.
func (s *Store) Event(ctx context.Context, execution, id event.ID) (event.Event, error) {
	var out event.Event
	err := s.do(ctx, "Event", func() error {
		x := s.executions[execution]
		if x == nil {
			return store.ErrNotFound
		}
		seq, ok := x.seqs[id]
		if !ok {
			return store.ErrNotFound
		}
		out = cloneEvent(x.events[seq-1])
		return nil
	})
	return out, err
}

// do runs one operation under the lock, with the faults asked for.
func (s *Store) do(ctx context.Context, op string, effect func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	switch s.faults.next(op) {
	case Refuse:
		return s.faults.err(op)
	case LoseAck:
		if err := effect(); err != nil {
			return err
		}
		return s.faults.err(op)
	default:
		return effect()
	}
}

// count runs an operation that tells how many rows it changed.
func (s *Store) count(ctx context.Context, op string, effect func() int) (int, error) {
	n := 0
	if err := s.do(ctx, op, func() error { n = effect(); return nil }); err != nil {
		return 0, err
	}
	return n, nil
}

// cloneEvent copies what callers might still write to, and drops what is never stored.
func cloneEvent(e event.Event) event.Event {
	e.Context, e.Result, e.Meta = clip(e.Context), clip(e.Result), clip(e.Meta)
	e.CreatedAt = normalTime(e.CreatedAt)
	e.Detail = nil
	return e
}

// clip copies b; empty becomes nil, as in a database.
func clip[B ~[]byte](b B) B {
	if len(b) == 0 {
		return nil
	}
	return slices.Clone(b)
}

// normalTime is t as the databases keep it: UTC, in microseconds.
func normalTime(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

func normalExecution(x store.Execution) store.Execution {
	x.StartedAt, x.EndedAt, x.UpdatedAt = normalTime(x.StartedAt), normalTime(x.EndedAt), normalTime(x.UpdatedAt)
	x.WakeAt = normalTime(x.WakeAt)
	return x
}

func normalCommand(c store.Command) store.Command {
	c.LeaseUntil, c.CreatedAt = normalTime(c.LeaseUntil), normalTime(c.CreatedAt)
	c.ClaimedAt, c.EndedAt = normalTime(c.ClaimedAt), normalTime(c.EndedAt)
	return c
}
