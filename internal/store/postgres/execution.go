package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const selectExecution = `SELECT execution_id, catalog_id, coalesce(parent_execution_id, 0), path, version,
	coalesce(pool, ''), status, last_seq, last_event_id, coalesce(last_event_type, ''), coalesce(last_node_name, ''),
	coalesce(current_step, ''), steps_total, steps_completed, steps_running, steps_failed, coalesce(error, ''),
	start_time, end_time, updated_at, wake_at FROM noetl.execution `

const (
	executionSQL      = selectExecution + `WHERE execution_id = $1`
	openExecutionsSQL = `SELECT execution_id FROM noetl.execution WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
	AND execution_id > $1 AND (updated_at IS NULL OR updated_at < $2) ORDER BY execution_id LIMIT $3`
	countExecutionsSQL = `SELECT status, count(*) FROM noetl.execution GROUP BY status`
	dueExecutionsSQL   = `SELECT wake_at, execution_id FROM noetl.execution WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
	AND wake_at <= $1 ORDER BY wake_at, execution_id LIMIT $2`
)

func scanExecution(row scanner, x *store.Execution) error {
	return row.Scan(&x.ExecutionID, &x.CatalogID, &x.ParentExecutionID, &x.Path, &x.Version,
		&x.Pool, &x.Status, &x.LastSeq, &x.LastEventID, (*string)(&x.LastEventType), &x.LastNodeName,
		&x.CurrentStep, &x.StepsTotal, &x.StepsCompleted, &x.StepsRunning, &x.StepsFailed, &x.Error,
		stamp{&x.StartedAt}, stamp{&x.EndedAt}, stamp{&x.UpdatedAt}, stamp{&x.WakeAt})
}

// Execution implements store.Executions.
func (s *Store) Execution(ctx context.Context, id event.ID) (store.Execution, error) {
	return one(ctx, s.shard(id).pool, "execution "+id.String(), scanExecution, executionSQL, id)
}

// CountExecutions implements store.Executions.
func (s *Store) CountExecutions(ctx context.Context) (map[string]int64, error) {
	parts, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]statusCount, error) {
		return many(ctx, sh.pool, "count executions", scanStatusCount, countExecutionsSQL)
	})
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, p := range parts {
		counts[p.status] += p.n
	}
	return counts, nil
}

type statusCount struct {
	status string
	n      int64
}

func scanStatusCount(row scanner, c *statusCount) error { return row.Scan(&c.status, &c.n) }

// OpenExecutions implements store.Executions.
func (s *Store) OpenExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]event.ID, error) {
	return present(ctx, s, limit, cmp.Compare[event.ID], func(ctx context.Context, sh *shard, limit int) ([]event.ID, error) {
		return many(ctx, sh.pool, "find open executions", scanID, openExecutionsSQL, after, before, rowLimit(limit))
	})
}

// due is an execution with the time that orders it among those of other shards.
type due struct {
	at time.Time
	id event.ID
}

func scanDue(row scanner, d *due) error { return row.Scan(&d.at, &d.id) }

// DueExecutions implements store.Executions.
func (s *Store) DueExecutions(ctx context.Context, now time.Time, limit int) ([]event.ID, error) {
	earliest := func(a, b due) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) }
	rows, err := present(ctx, s, limit, earliest, func(ctx context.Context, sh *shard, limit int) ([]due, error) {
		return many(ctx, sh.pool, "find due executions", scanDue, dueExecutionsSQL, now, rowLimit(limit))
	})
	var out []event.ID
	for _, d := range rows {
		out = append(out, d.id)
	}
	return out, err
}
