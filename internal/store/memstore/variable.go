package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// SetVariables implements store.Variables.
func (s *Store) SetVariables(ctx context.Context, execution event.ID, vars []store.Variable) error {
	return s.doBeside(ctx, "SetVariables", execution, func() {
		if s.variables[execution] == nil {
			s.variables[execution] = map[string]*store.Variable{}
		}
		for _, v := range vars {
			v.ExecutionID, v.Value = execution, clip(v.Value)
			v.CreatedAt, v.AccessedAt = normalTime(v.CreatedAt), normalTime(v.AccessedAt)
			if old := s.variables[execution][v.Name]; old != nil {
				v.CreatedAt, v.AccessedAt, v.AccessCount = old.CreatedAt, old.AccessedAt, old.AccessCount
			}
			s.variables[execution][v.Name] = &v
		}
	})
}

// Variables implements store.Variables.
func (s *Store) Variables(ctx context.Context, execution event.ID) ([]store.Variable, error) {
	var out []store.Variable
	err := s.do(ctx, "Variables", func() error {
		for _, v := range s.variables[execution] {
			out = append(out, cloneVariable(v))
		}
		slices.SortFunc(out, func(a, b store.Variable) int { return cmp.Compare(a.Name, b.Name) })
		return nil
	})
	return out, err
}

func cloneVariable(v *store.Variable) store.Variable {
	out := *v
	out.Value = clip(v.Value)
	return out
}

// Variable implements store.Variables.
func (s *Store) Variable(ctx context.Context, execution event.ID, name string, now time.Time) (store.Variable, error) {
	var out store.Variable
	err := s.do(ctx, "Variable", func() error {
		v := s.variables[execution][name]
		if v == nil {
			return store.ErrNotFound
		}
		v.AccessedAt = normalTime(now)
		v.AccessCount++
		out = cloneVariable(v)
		return nil
	})
	return out, err
}

// DeleteVariables implements store.Variables.
func (s *Store) DeleteVariables(ctx context.Context, execution event.ID, name string) (int, error) {
	return s.count(ctx, "DeleteVariables", func() int {
		vars := s.variables[execution]
		n := len(vars)
		if name == "" {
			delete(s.variables, execution)
			return n
		}
		delete(vars, name)
		return n - len(vars)
	})
}
