package sqlite

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const executionColumns = `SELECT execution_id, catalog_id, coalesce(parent_execution_id, 0), path, version,
	coalesce(pool, ''), status, last_seq, last_event_id, coalesce(last_event_type, ''), coalesce(last_node_name, ''),
	coalesce(current_step, ''), steps_total, steps_completed, steps_running, steps_failed, coalesce(error, ''),
	start_time, end_time, updated_at, wake_at `

const selectExecution = executionColumns + `FROM execution `

const (
	executionSQL      = selectExecution + `WHERE execution_id = ?`
	openExecutionsSQL = `SELECT execution_id FROM execution INDEXED BY execution_open WHERE status <> 'COMPLETED' AND status <> 'FAILED'
	AND status <> 'CANCELLED' AND execution_id > ? AND (updated_at IS NULL OR updated_at < ?) ORDER BY execution_id LIMIT ?`
	dueExecutionsSQL = `SELECT execution_id FROM execution INDEXED BY execution_due WHERE status <> 'COMPLETED' AND status <> 'FAILED'
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

const countExecutionsSQL = `SELECT status, count(*) FROM execution INDEXED BY execution_by_status GROUP BY status`

// CountExecutions implements store.Executions.
func (s *Store) CountExecutions(ctx context.Context) (map[string]int64, error) {
	type count struct {
		status string
		n      int64
	}
	rows, err := s.reader.QueryContext(ctx, countExecutionsSQL)
	counts, err := collect("count executions", rows, err, func(row scanner, c *count) error { return row.Scan(&c.status, &c.n) })
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(counts))
	for _, c := range counts {
		out[c.status] = c.n
	}
	return out, nil
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
