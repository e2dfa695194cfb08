package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// retention is what is left of executions that were removed, and what keeps
// others.
type retention struct {
	removed map[event.ID]time.Time
	holds   map[event.ID]time.Time
	leases  map[string]lease
}

type lease struct {
	holder string
	until  time.Time
}

func newRetention() retention {
	return retention{removed: map[event.ID]time.Time{}, holds: map[event.ID]time.Time{}, leases: map[string]lease{}}
}

// EndedExecutions implements store.Retention.
func (s *Store) EndedExecutions(ctx context.Context, after event.ID, before time.Time, limit int) (out []store.Execution, err error) {
	err = s.do(ctx, "EndedExecutions", func() error {
		for id, x := range s.executions {
			if id > after && id < store.EndedBelow(before) && event.IsFinal(x.row.Status) && !x.row.EndedAt.IsZero() && x.row.EndedAt.Before(normalTime(before)) {
				out = append(out, x.row)
			}
		}
		slices.SortFunc(out, func(a, b store.Execution) int { return cmp.Compare(a.ExecutionID, b.ExecutionID) })
		out = page(out, 0, limit)
		return nil
	})
	return out, err
}

// NewestEnded implements store.Retention.
func (s *Store) NewestEnded(ctx context.Context, path string, nth int) (out event.ID, err error) {
	err = s.do(ctx, "NewestEnded", func() error {
		var ids []event.ID
		for id, x := range s.executions {
			if x.row.Path == path && event.IsFinal(x.row.Status) {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, func(a, b event.ID) int { return cmp.Compare(b, a) })
		if nth > 0 && len(ids) >= nth {
			out = ids[nth-1]
		}
		return nil
	})
	return out, err
}

// ValuesOf implements store.Retention.
func (s *Store) ValuesOf(ctx context.Context, executions []event.ID) (out []store.Result, err error) {
	err = s.do(ctx, "ValuesOf", func() error {
		out = s.resultsWhere(0, func(r *store.Result) bool {
			return r.Key != "" && r.Tier != store.TierDB && slices.Contains(executions, r.ExecutionID)
		}, byPosition)
		return nil
	})
	return out, err
}

// RemoveExecutions implements store.Retention.
func (s *Store) RemoveExecutions(ctx context.Context, list []store.Removal, o store.RemovalOptions) (store.RemovalReport, error) {
	report := store.RemovalReport{Kept: make([]string, len(list)), Rows: map[string]int{}}
	err := s.do(ctx, "RemoveExecutions", func() error {
		var gone []event.ID
		for i, r := range list {
			if report.Kept[i] = s.keeps(r, o); report.Kept[i] == "" {
				gone = append(gone, r.ExecutionID)
			}
		}
		if o.DryRun {
			return nil
		}
		for _, id := range gone {
			s.remove(id, o.Now, report.Rows)
		}
		maps.DeleteFunc(report.Rows, func(_ string, n int) bool { return n == 0 })
		return nil
	})
	return report, err
}

// keeps tells what speaks against removing an execution; "" when nothing does.
func (s *Store) keeps(r store.Removal, o store.RemovalOptions) string {
	x := s.executions[r.ExecutionID]
	switch {
	case x == nil || !event.IsFinal(x.row.Status) || x.row.LastSeq != r.LastSeq:
		return store.KeptChanged
	case r.Parent != 0 && s.executions[r.Parent] != nil:
		return store.KeptParent
	case s.retention.holds[r.ExecutionID].After(normalTime(o.Now)):
		return store.KeptHeld
	}
	for _, other := range s.executions {
		if other.row.ParentExecutionID == r.ExecutionID && !event.IsFinal(other.row.Status) {
			return store.KeptChild
		}
	}
	if why := s.valueKeeps(r.ExecutionID, o); why != "" {
		return why
	}
	if !o.Unpublished {
		for _, row := range s.outbox.rows {
			if row.execution == r.ExecutionID && row.status != store.OutboxPublished {
				return store.KeptUnpublished
			}
		}
	}
	return ""
}

func (s *Store) valueKeeps(id event.ID, o store.RemovalOptions) string {
	why := ""
	for key, r := range s.results {
		if key.execution != id {
			continue
		}
		why = store.MoreImportant(why, store.ValueKeeps(&r, o, func(holder event.ID) bool { return s.executions[holder] != nil }))
	}
	return why
}

// remove deletes everything of an execution.
func (s *Store) remove(id event.ID, now time.Time, rows map[string]int) {
	x := s.executions[id]
	rows["execution"]++
	rows["event"] += len(x.events)
	rows["command"] += len(x.commands)
	delete(s.executions, id)
	dropKeys(s.results, rows, "result_store", func(k resultKey) bool { return k.execution == id })
	dropKeys(s.parts, rows, "result_chunk", func(k partKey) bool { return k.execution == id })
	dropKeys(s.snapshots, rows, "projection_snapshot", func(k snapshotKey) bool { return k.execution == id })
	rows["transient"] += len(s.variables[id])
	delete(s.variables, id)
	before := len(s.outbox.rows)
	s.outbox.first = 0
	s.outbox.rows = slices.DeleteFunc(s.outbox.rows, func(r *outboxRow) bool { return r.execution == id })
	rows["outbox"] += before - len(s.outbox.rows)
	for key, e := range s.secrets.keychain {
		if e.ExecutionID == id && e.Scope != "global" {
			delete(s.secrets.keychain, key)
			rows["keychain"]++
		}
	}
	delete(s.retention.holds, id)
	s.retention.removed[id] = normalTime(now)
}

func dropKeys[K comparable, V any](m map[K]V, rows map[string]int, table string, of func(K) bool) {
	for k := range m {
		if of(k) {
			delete(m, k)
			rows[table]++
		}
	}
}

// doBeside writes beside the log of an execution, unless it was removed.
func (s *Store) doBeside(ctx context.Context, op string, execution event.ID, write func()) error {
	return s.do(ctx, op, func() error {
		if !s.retention.removed[execution].IsZero() {
			return store.ErrRemoved
		}
		write()
		return nil
	})
}

// HoldExecution implements store.Retention.
func (s *Store) HoldExecution(ctx context.Context, id event.ID, until time.Time) error {
	return s.do(ctx, "HoldExecution", func() error {
		if s.executions[id] == nil {
			if !s.retention.removed[id].IsZero() {
				return store.ErrRemoved
			}
			return store.ErrNotFound
		}
		if until = normalTime(until); until.After(s.retention.holds[id]) {
			s.retention.holds[id] = until
		}
		return nil
	})
}

// RemovedAt implements store.Retention.
func (s *Store) RemovedAt(ctx context.Context, id event.ID) (at time.Time, err error) {
	err = s.do(ctx, "RemovedAt", func() error {
		if at = s.retention.removed[id]; at.IsZero() {
			return store.ErrNotFound
		}
		return nil
	})
	return at, err
}

// PurgeRemoved implements store.Retention.
func (s *Store) PurgeRemoved(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.count(ctx, "PurgeRemoved", func() int {
		var over []event.ID
		for id, at := range s.retention.removed {
			if at.Before(normalTime(before)) {
				over = append(over, id)
			}
		}
		slices.Sort(over)
		over = page(over, 0, limit)
		for _, id := range over {
			delete(s.retention.removed, id)
		}
		for id, until := range s.retention.holds {
			if until.Before(normalTime(before)) {
				delete(s.retention.holds, id)
			}
		}
		return len(over)
	})
}

// LogState implements store.Retention: the log is one piece.
func (s *Store) LogState(ctx context.Context) (store.LogState, error) {
	return store.LogState{}, s.do(ctx, "LogState", func() error { return nil })
}

// RemoveRange implements store.Retention: there are no parts.
func (s *Store) RemoveRange(ctx context.Context, _ store.RangeRemoval) (map[string]int, bool, error) {
	return nil, false, s.do(ctx, "RemoveRange", func() error { return nil })
}

// Compact implements store.Retention: memory is given back by itself.
func (s *Store) Compact(ctx context.Context) (bool, error) {
	return false, s.do(ctx, "Compact", func() error { return nil })
}

// TakeLease implements store.Retention.
func (s *Store) TakeLease(ctx context.Context, name, holder string, now time.Time, ttl time.Duration) (taken bool, err error) {
	err = s.do(ctx, "TakeLease", func() error {
		held := s.retention.leases[name]
		if taken = held.holder == holder || !held.until.After(normalTime(now)); taken {
			s.retention.leases[name] = lease{holder, normalTime(now.Add(ttl))}
		}
		return nil
	})
	return taken, err
}
