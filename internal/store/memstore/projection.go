package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

type snapshotKey struct {
	execution event.ID
	typ, id   string
}

// PutSnapshot implements store.Snapshots.
func (s *Store) PutSnapshot(ctx context.Context, snap store.Snapshot) error {
	return s.doBeside(ctx, "PutSnapshot", snap.ExecutionID, func() {
		key := snapshotKey{snap.ExecutionID, snap.Type, snap.ID}
		if old, there := s.snapshots[key]; there && old.Seq > snap.Seq {
			return
		}
		snap = cloneSnapshot(snap)
		snap.UpdatedAt = normalTime(snap.UpdatedAt)
		s.snapshots[key] = snap
	})
}

// Snapshot implements store.Snapshots.
func (s *Store) Snapshot(ctx context.Context, execution event.ID, typ, id string) (store.Snapshot, error) {
	var out store.Snapshot
	err := s.do(ctx, "Snapshot", func() error {
		snap, there := s.snapshots[snapshotKey{execution, typ, id}]
		if !there {
			return store.ErrNotFound
		}
		out = cloneSnapshot(snap)
		return nil
	})
	return out, err
}

func cloneSnapshot(snap store.Snapshot) store.Snapshot {
	snap.State, snap.Meta = clip(snap.State), clip(snap.Meta)
	return snap
}

// LoggedExecutions implements store.Projections. An execution without events
// is never kept, so the ones that are have a log.
func (s *Store) LoggedExecutions(ctx context.Context, after event.ID, limit int) ([]event.ID, error) {
	var out []event.ID
	err := s.do(ctx, "LoggedExecutions", func() error {
		out = s.idsAfter(after, limit)
		return nil
	})
	return out, err
}

func (s *Store) idsAfter(after event.ID, limit int) []event.ID {
	var out []event.ID
	for id := range s.executions {
		if id > after {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return page(out, 0, limit)
}

// ProjectedExecutions implements store.Projections.
func (s *Store) ProjectedExecutions(ctx context.Context, after event.ID, limit int) ([]store.Execution, error) {
	var out []store.Execution
	err := s.do(ctx, "ProjectedExecutions", func() error {
		for _, id := range s.idsAfter(after, limit) {
			out = append(out, s.executions[id].row)
		}
		return nil
	})
	return out, err
}

// CommandsOf implements store.Projections.
func (s *Store) CommandsOf(ctx context.Context, execution event.ID) ([]store.Command, error) {
	var out []store.Command
	err := s.do(ctx, "CommandsOf", func() error {
		x := s.executions[execution]
		if x == nil {
			return nil
		}
		for _, c := range x.commands {
			out = append(out, *c)
		}
		slices.SortFunc(out, func(a, b store.Command) int { return cmp.Compare(a.EventID, b.EventID) })
		return nil
	})
	return out, err
}

// Reproject implements store.Projections.
func (s *Store) Reproject(ctx context.Context, row store.Execution, commands []store.Command) error {
	if err := store.CheckProjection(&row, commands); err != nil {
		return err
	}
	return s.do(ctx, "Reproject", func() error {
		x := s.executions[row.ExecutionID]
		if x == nil || int64(len(x.events)) != row.LastSeq {
			return store.ErrConflict
		}
		x.row = normalExecution(row)
		clear(x.commands)
		x.putCommands(commands)
		return nil
	})
}

// PurgeCommands implements store.Projections.
func (s *Store) PurgeCommands(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.count(ctx, "PurgeCommands", func() int {
		var over []*store.Command
		for _, x := range s.executions {
			for _, c := range x.commands {
				if event.IsFinal(x.row.Status) && !c.EndedAt.IsZero() && c.EndedAt.Before(normalTime(before)) {
					over = append(over, c)
				}
			}
		}
		slices.SortFunc(over, func(a, b *store.Command) int {
			return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.ExecutionID, b.ExecutionID))
		})
		over = page(over, 0, limit)
		for _, c := range over {
			delete(s.executions[c.ExecutionID].commands, c.EventID)
		}
		return len(over)
	})
}

// Migrate implements store.Schema: there is nothing to bring up to date.
func (s *Store) Migrate(ctx context.Context) error {
	return s.do(ctx, "Migrate", func() error { return nil })
}

// SchemaState implements store.Schema: there are no tables to miss.
func (s *Store) SchemaState(ctx context.Context) (store.SchemaState, error) {
	return store.SchemaState{}, s.do(ctx, "SchemaState", func() error { return nil })
}

// PoolState implements store.Schema.
func (s *Store) PoolState() store.PoolState { return store.PoolState{Min: 1, Max: 1, Open: 1, Idle: 1} }

// Shards implements store.Schema.
func (s *Store) Shards() int { return 1 }
