package memstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// defaultList is the page size when a filter gives none.
const defaultList = 50

// Execution implements store.Executions.
func (s *Store) Execution(ctx context.Context, id event.ID) (store.Execution, error) {
	var out store.Execution
	err := s.do(ctx, "Execution", func() error {
		x := s.executions[id]
		if x == nil {
			return store.ErrNotFound
		}
		out = x.row
		return nil
	})
	return out, err
}

// ListExecutions implements store.Executions.
func (s *Store) ListExecutions(ctx context.Context, f store.ExecutionFilter) ([]store.Execution, error) {
	var out []store.Execution
	err := s.do(ctx, "ListExecutions", func() error {
		from, to := f.IDRange()
		for id, x := range s.executions {
			if from <= id && id < to && matches(&x.row, f) {
				out = append(out, x.row)
			}
		}
		slices.SortFunc(out, func(a, b store.Execution) int { return cmp.Compare(b.ExecutionID, a.ExecutionID) })
		limit := f.Limit
		if limit <= 0 {
			limit = defaultList
		}
		out = page(out, f.Offset, limit)
		return nil
	})
	return out, err
}

func matches(x *store.Execution, f store.ExecutionFilter) bool {
	return (f.Status == "" || x.Status == f.Status) &&
		(f.Path == "" || strings.Contains(strings.ToLower(x.Path), strings.ToLower(f.Path))) &&
		(f.PathPrefix == "" || strings.HasPrefix(x.Path, f.PathPrefix)) &&
		(f.CatalogID == 0 || x.CatalogID == f.CatalogID) &&
		(f.ParentID == 0 || x.ParentExecutionID == f.ParentID) &&
		(f.Pool == "" || x.Pool == f.Pool) &&
		(f.StartedFrom.IsZero() || !x.StartedAt.Before(normalTime(f.StartedFrom))) &&
		(f.StartedTo.IsZero() || !x.StartedAt.IsZero() && x.StartedAt.Before(normalTime(f.StartedTo)))
}

// CountExecutions implements store.Executions.
func (s *Store) CountExecutions(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	err := s.do(ctx, "CountExecutions", func() error {
		for _, x := range s.executions {
			out[x.row.Status]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// page cuts rows; a limit of 0 means all.
func page[T any](rows []T, offset, limit int) []T {
	rows = rows[min(max(offset, 0), len(rows)):]
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	if len(rows) == 0 {
		return nil
	}
	return slices.Clip(rows)
}

// OpenExecutions implements store.Executions.
func (s *Store) OpenExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]event.ID, error) {
	var out []event.ID
	err := s.do(ctx, "OpenExecutions", func() error {
		for id, x := range s.executions {
			if id > after && !event.IsFinal(x.row.Status) && x.row.UpdatedAt.Before(before) {
				out = append(out, id)
			}
		}
		slices.Sort(out)
		out = page(out, 0, limit)
		return nil
	})
	return out, err
}

// DueExecutions implements store.Executions.
func (s *Store) DueExecutions(ctx context.Context, now time.Time, limit int) ([]event.ID, error) {
	var out []event.ID
	err := s.do(ctx, "DueExecutions", func() error {
		var due []*execution
		for _, x := range s.executions {
			if at := x.row.WakeAt; !at.IsZero() && !at.After(now) && !event.IsFinal(x.row.Status) {
				due = append(due, x)
			}
		}
		slices.SortFunc(due, func(a, b *execution) int {
			return cmp.Or(a.row.WakeAt.Compare(b.row.WakeAt), cmp.Compare(a.row.ExecutionID, b.row.ExecutionID))
		})
		for _, x := range page(due, 0, limit) {
			out = append(out, x.row.ExecutionID)
		}
		return nil
	})
	return out, err
}
