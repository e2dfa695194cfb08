package postgres

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const variableColumns = `execution_id, var_name, var_type, var_value, coalesce(source_step, ''), created_at, accessed_at, access_count`

const (
	setVariablesSQL = standing + `INSERT INTO noetl.transient (execution_id, var_name, var_type, var_value, source_step, created_at, accessed_at, access_count)
	SELECT $1, v.name, v.type, v.value::json, nullif(v.step, ''), v.created, v.accessed, v.accesses
	FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[], $8::int4[])
	AS v(name, type, value, step, created, accessed, accesses) WHERE ` + unlessRemoved + ` ORDER BY v.name
	ON CONFLICT (execution_id, var_name) DO UPDATE SET var_type = excluded.var_type, var_value = excluded.var_value,
	source_step = excluded.source_step`
	variablesSQL    = `SELECT ` + variableColumns + ` FROM noetl.transient WHERE execution_id = $1 ORDER BY var_name`
	readVariableSQL = `UPDATE noetl.transient SET access_count = access_count + 1, accessed_at = $3
	WHERE execution_id = $1 AND var_name = $2 RETURNING ` + variableColumns
	deleteVariableSQL = `DELETE FROM noetl.transient WHERE execution_id = $1 AND ($2 = '' OR var_name = $2)`
)

func scanVariable(row scanner, v *store.Variable) error {
	return row.Scan(&v.ExecutionID, &v.Name, &v.Type, &v.Value, &v.SourceStep, stamp{&v.CreatedAt}, stamp{&v.AccessedAt}, &v.AccessCount)
}

// SetVariables implements store.Variables. Of two with one name the last counts.
func (s *Store) SetVariables(ctx context.Context, execution event.ID, vars []store.Variable) error {
	if len(vars) == 0 {
		return ctx.Err()
	}
	last := make(map[string]*store.Variable, len(vars))
	for i := range vars {
		last[cleanText(vars[i].Name)] = &vars[i]
	}
	var (
		names, types, values, steps []string
		created, accessed           []*time.Time
		accesses                    []int32
	)
	for name, v := range last {
		names, types, values = append(names, name), append(types, cleanText(v.Type)), append(values, string(v.Value))
		steps, created = append(steps, cleanText(v.SourceStep)), append(created, nullTime(v.CreatedAt))
		accessed, accesses = append(accessed, nullTime(v.AccessedAt)), append(accesses, int32(v.AccessCount))
	}
	return repeated(func() error {
		return s.putBeside(ctx, "set variables", setVariablesSQL, execution, names, types, values, steps, created, accessed, accesses)
	})
}

// nullTime is a time as a parameter; the zero time is NULL.
func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Variables implements store.Variables.
func (s *Store) Variables(ctx context.Context, execution event.ID) ([]store.Variable, error) {
	return many(ctx, s.shard(execution).pool, "read variables", scanVariable, variablesSQL, execution)
}

// Variable implements store.Variables.
func (s *Store) Variable(ctx context.Context, execution event.ID, name string, now time.Time) (store.Variable, error) {
	return one(ctx, s.shard(execution).pool, "variable "+name, scanVariable, readVariableSQL, execution, cleanText(name), now)
}

// DeleteVariables implements store.Variables.
func (s *Store) DeleteVariables(ctx context.Context, execution event.ID, name string) (int, error) {
	tag, err := s.shard(execution).pool.Exec(ctx, deleteVariableSQL, execution, cleanText(name))
	return int(tag.RowsAffected()), coded("delete variables", err)
}
