package sqlite

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const variableColumns = `execution_id, var_name, var_type, var_value, coalesce(source_step, ''), created_at, accessed_at, access_count`

const (
	setVariableSQL = `INSERT INTO transient (execution_id, var_name, var_type, var_value, source_step, created_at, accessed_at, access_count)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (execution_id, var_name) DO UPDATE
	SET var_type = excluded.var_type, var_value = excluded.var_value, source_step = excluded.source_step`
	variablesSQL      = `SELECT ` + variableColumns + ` FROM transient WHERE execution_id = ? ORDER BY var_name`
	accessVariableSQL = `UPDATE transient SET accessed_at = ?, access_count = access_count + 1
	WHERE execution_id = ? AND var_name = ? RETURNING ` + variableColumns
	deleteVariablesSQL = `DELETE FROM transient WHERE execution_id = ?1 AND (?2 = '' OR var_name = ?2)`
)

func scanVariable(row scanner, v *store.Variable) error {
	return row.Scan(&v.ExecutionID, &v.Name, &v.Type, &v.Value, &v.SourceStep, micros{&v.CreatedAt}, micros{&v.AccessedAt}, &v.AccessCount)
}

// SetVariables implements store.Variables.
func (s *Store) SetVariables(ctx context.Context, execution event.ID, vars []store.Variable) error {
	bytes := 0
	for i := range vars {
		bytes += 64 + len(vars[i].Value)
	}
	return s.write(ctx, bytes, func(w *writer) error {
		if err := w.notRemoved(execution); err != nil {
			return err
		}
		for _, v := range vars {
			_, err := w.change(setVariableSQL, func(st *statement) {
				st.id(execution).str(v.Name).str(v.Type).json(v.Value).text(v.SourceStep)
				st.time(v.CreatedAt).time(v.AccessedAt).int(int64(v.AccessCount))
			})
			if err != nil {
				return coded("store variable", err)
			}
		}
		return nil
	})
}

// Variables implements store.Variables.
func (s *Store) Variables(ctx context.Context, execution event.ID) ([]store.Variable, error) {
	rows, err := s.reader.QueryContext(ctx, variablesSQL, execution)
	return collect("list variables", rows, err, scanVariable)
}

// Variable implements store.Variables.
func (s *Store) Variable(ctx context.Context, execution event.ID, name string, now time.Time) (store.Variable, error) {
	found, err := writeReturning(ctx, s, "read variable", accessVariableSQL, func(st *statement) {
		st.time(now).id(execution).str(name)
	}, scanVariable)
	return first(found, err)
}

// first is the row a write was to find; none is store.ErrNotFound.
func first[T any](found []T, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	if len(found) == 0 {
		return none, store.ErrNotFound
	}
	return found[0], nil
}

// DeleteVariables implements store.Variables.
func (s *Store) DeleteVariables(ctx context.Context, execution event.ID, name string) (int, error) {
	return s.change(ctx, "delete variables", deleteVariablesSQL, func(st *statement) { st.id(execution).str(name) })
}
