package wire

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/snowflake"
	"github.com/noetl/noetl-go/internal/store"
)

// watched is a store that counts what is read from it, and refuses to append
// while it is told to.
type watched struct {
	store.Store
	events  atomic.Int64 // read
	entries atomic.Int64 // looked up in the catalog
	results atomic.Int64 // looked up
	broken  atomic.Bool
}

func (s *watched) Events(ctx context.Context, id event.ID, after int64, limit int) ([]event.Event, error) {
	list, err := s.Store.Events(ctx, id, after, limit)
	s.events.Add(int64(len(list)))
	return list, err
}

func (s *watched) Entry(ctx context.Context, id event.ID) (store.Entry, error) {
	s.entries.Add(1)
	return s.Store.Entry(ctx, id)
}

func (s *watched) Result(ctx context.Context, execution event.ID, ref string) (store.Result, error) {
	s.results.Add(1)
	return s.Store.Result(ctx, execution, ref)
}

func (s *watched) Append(ctx context.Context, b store.Batch) error {
	if s.broken.Load() {
		return event.Errorf(event.Unavailable, "the database is away")
	}
	return s.Store.Append(ctx, b)
}

// watching makes the store of a world a watched one.
func watching(s *watched) setting {
	return setting{store: func(t *testing.T) store.Store {
		s.Store = openSQLite(t)
		return s
	}}
}

// borrowed is the store of another world, which closes it.
type borrowed struct{ store.Store }

func (borrowed) Close() error { return nil }

// replica is a second server on the same database and bus.
func (w *world) replica(machine int) *world {
	w.t.Helper()
	r := newWorld(w.t, setting{
		store: func(*testing.T) store.Store { return borrowed{w.store} },
		plane: func(o *control.Options) { o.IDs, o.Bus = snowflake.New(machine, time.Now).Next, w.bus },
	})
	return r
}

// flaky is a bus whose broker can be away.
type flaky struct {
	bus.Bus
	down atomic.Bool
}

func (b *flaky) Publish(ctx context.Context, notes ...event.Notification) error {
	if b.down.Load() {
		return event.Errorf(event.Unavailable, "the broker is away")
	}
	return b.Bus.Publish(ctx, notes...)
}

func (b *flaky) Connected() bool { return !b.down.Load() && b.Bus.Connected() }

// through puts a flaky bus in front of a world's own.
func through(b *flaky) setting {
	return setting{plane: func(o *control.Options) {
		b.Bus = o.Bus
		o.Bus = b
		quick(o)
	}}
}

// heard waits for the next notification of a pool that f likes, and returns it.
func (w *world) heard(pool string, f func(event.Notification) bool) event.Notification {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), soon)
	defer cancel()
	sub, err := w.bus.Subscribe(ctx, []string{pool}, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	defer sub.Stop()
	for {
		d, err := sub.Next(ctx)
		if err != nil {
			w.t.Fatalf("nothing is announced to %s: %v", pool, err)
		}
		_ = d.Ack()
		if n := d.Notification(); f(n) {
			return n
		}
	}
}

func always(event.Notification) bool { return true }

// row of a command in the database.
func (w *world) commandRow(id, command event.ID) store.Command {
	w.t.Helper()
	c, err := w.store.Command(w.t.Context(), id, command)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}
