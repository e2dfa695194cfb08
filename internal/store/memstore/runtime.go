package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

type runtimeKey struct{ kind, name string }

// PutRuntime implements store.Runtimes.
func (s *Store) PutRuntime(ctx context.Context, r store.Runtime) (store.Runtime, error) {
	r = cloneRuntime(&r)
	r.Heartbeat, r.CreatedAt, r.UpdatedAt = normalTime(r.Heartbeat), normalTime(r.CreatedAt), normalTime(r.UpdatedAt)
	err := s.do(ctx, "PutRuntime", func() error {
		key := runtimeKey{r.Kind, r.Name}
		if old := s.runtimes[key]; old != nil {
			r.RuntimeID, r.CreatedAt = old.RuntimeID, old.CreatedAt
		} else if s.hasRuntime(r.RuntimeID) {
			return event.Errorf(event.Conflict, "runtime id %d is already stored", r.RuntimeID)
		}
		stored := cloneRuntime(&r)
		s.runtimes[key] = &stored
		return nil
	})
	if err != nil {
		return store.Runtime{}, err
	}
	return r, nil
}

func (s *Store) hasRuntime(id event.ID) bool {
	for _, r := range s.runtimes {
		if r.RuntimeID == id {
			return true
		}
	}
	return false
}

func cloneRuntime(r *store.Runtime) store.Runtime {
	out := *r
	out.Labels, out.Capabilities, out.Runtime = clip(r.Labels), clip(r.Capabilities), clip(r.Runtime)
	return out
}

// BeatRuntime implements store.Runtimes.
func (s *Store) BeatRuntime(ctx context.Context, kind, name string, now time.Time) (store.Runtime, error) {
	return s.runtime(ctx, "BeatRuntime", kind, name, func(r *store.Runtime) { r.Heartbeat = normalTime(now) })
}

// Runtime implements store.Runtimes.
func (s *Store) Runtime(ctx context.Context, kind, name string) (store.Runtime, error) {
	return s.runtime(ctx, "Runtime", kind, name, func(*store.Runtime) {})
}

func (s *Store) runtime(ctx context.Context, op, kind, name string, change func(*store.Runtime)) (store.Runtime, error) {
	var out store.Runtime
	err := s.do(ctx, op, func() error {
		r := s.runtimes[runtimeKey{kind, name}]
		if r == nil {
			return store.ErrNotFound
		}
		change(r)
		out = cloneRuntime(r)
		return nil
	})
	return out, err
}

// DeleteRuntime implements store.Runtimes.
func (s *Store) DeleteRuntime(ctx context.Context, kind, name string) (bool, error) {
	n, err := s.count(ctx, "DeleteRuntime", func() int {
		before := len(s.runtimes)
		delete(s.runtimes, runtimeKey{kind, name})
		return before - len(s.runtimes)
	})
	return n == 1, err
}

// ListRuntimes implements store.Runtimes.
func (s *Store) ListRuntimes(ctx context.Context, f store.RuntimeFilter) ([]store.Runtime, error) {
	var out []store.Runtime
	err := s.do(ctx, "ListRuntimes", func() error {
		for _, r := range s.runtimes {
			if (f.Kind == "" || r.Kind == f.Kind) && (f.Name == "" || store.Like(f.Name, r.Name)) {
				out = append(out, cloneRuntime(r))
			}
		}
		slices.SortFunc(out, func(a, b store.Runtime) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
		return nil
	})
	return out, err
}

// PurgeRuntimes implements store.Runtimes.
func (s *Store) PurgeRuntimes(ctx context.Context, before time.Time) (int, error) {
	return s.count(ctx, "PurgeRuntimes", func() (n int) {
		for key, r := range s.runtimes {
			if r.Heartbeat.Before(normalTime(before)) {
				delete(s.runtimes, key)
				n++
			}
		}
		return n
	})
}
