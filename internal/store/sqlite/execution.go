package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// defaultList is the page size when a filter gives none.
const defaultList = 50

const selectExecution = `SELECT execution_id, catalog_id, coalesce(parent_execution_id, 0), path, version,
	coalesce(pool, ''), status, last_seq, last_event_id, coalesce(last_event_type, ''), coalesce(last_node_name, ''),
	coalesce(current_step, ''), steps_total, steps_completed, steps_running, steps_failed, coalesce(error, ''),
	start_time, end_time, updated_at, wake_at FROM execution `

const (
	executionSQL      = selectExecution + `WHERE execution_id = ?`
	openExecutionsSQL = `SELECT execution_id FROM execution WHERE status <> 'COMPLETED' AND status <> 'FAILED'
	AND status <> 'CANCELLED' AND execution_id > ? AND (updated_at IS NULL OR updated_at < ?) ORDER BY execution_id LIMIT ?`
	dueExecutionsSQL = `SELECT execution_id FROM execution WHERE status <> 'COMPLETED' AND status <> 'FAILED'
	AND status <> 'CANCELLED' AND wake_at <= ? ORDER BY wake_at, execution_id LIMIT ?`
)

func scanExecution(row scanner, x *store.Execution) error {
	return row.Scan(&x.ExecutionID, &x.CatalogID, &x.ParentExecutionID, &x.Path, &x.Version,
		&x.Pool, &x.Status, &x.LastSeq, &x.LastEventID, &x.LastEventType, &x.LastNodeName,
		&x.CurrentStep, &x.StepsTotal, &x.StepsCompleted, &x.StepsRunning, &x.StepsFailed, &x.Error,
		micros{&x.StartedAt}, micros{&x.EndedAt}, micros{&x.UpdatedAt}, micros{&x.WakeAt})
}

// Execution implements store.Executions.
func (s *Store) Execution(ctx context.Context, id event.ID) (store.Execution, error) {
	return one("execution "+id.String(), s.reads.execution.QueryRowContext(ctx, id), scanExecution)
}

// ListExecutions implements store.Executions.
func (s *Store) ListExecutions(ctx context.Context, f store.ExecutionFilter) ([]store.Execution, error) {
	text, args := listExecutionsSQL(f)
	rows, err := s.reader.QueryContext(ctx, text, args...)
	return collect("list executions", rows, err, scanExecution)
}

// listExecutionsSQL names only the columns that restrict, so that each
// combination uses its index and yields rows already in order.
func listExecutionsSQL(f store.ExecutionFilter) (text string, args []any) {
	var where []string
	add := func(condition string, arg any) {
		where, args = append(where, condition), append(args, arg)
	}
	if f.Status != "" {
		add("status = ?", f.Status)
	}
	if f.CatalogID != 0 {
		add("catalog_id = ?", f.CatalogID)
	}
	if f.ParentID != 0 {
		add("parent_execution_id = ?", f.ParentID)
	}
	if f.Path != "" {
		add(`path LIKE '%' || ? || '%' ESCAPE '\'`, escapeLike(f.Path))
	}
	limit := f.Limit
	if limit <= 0 {
		limit = defaultList
	}
	text = selectExecution
	if len(where) > 0 {
		text += "WHERE " + strings.Join(where, " AND ")
	}
	return text + " ORDER BY execution_id DESC LIMIT ? OFFSET ?", append(args, limit, max(f.Offset, 0))
}

// escapeLike makes a LIKE pattern match s itself.
func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// OpenExecutions implements store.Executions.
func (s *Store) OpenExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]event.ID, error) {
	rows, err := s.reader.QueryContext(ctx, openExecutionsSQL, after, before.UnixMicro(), rowLimit(limit))
	return collect("find open executions", rows, err, scanID)
}

// DueExecutions implements store.Executions.
func (s *Store) DueExecutions(ctx context.Context, now time.Time, limit int) ([]event.ID, error) {
	rows, err := s.reader.QueryContext(ctx, dueExecutionsSQL, now.UnixMicro(), rowLimit(limit))
	return collect("find due executions", rows, err, scanID)
}
