package postgres

import (
	"cmp"
	"context"
	"fmt"
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
	start_time, end_time, updated_at, wake_at FROM noetl.execution `

const (
	executionSQL      = selectExecution + `WHERE execution_id = $1`
	openExecutionsSQL = `SELECT execution_id FROM noetl.execution WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
	AND execution_id > $1 AND (updated_at IS NULL OR updated_at < $2) ORDER BY execution_id LIMIT $3`
	dueExecutionsSQL = `SELECT wake_at, execution_id FROM noetl.execution WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
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

// ListExecutions implements store.Executions.
func (s *Store) ListExecutions(ctx context.Context, f store.ExecutionFilter) ([]store.Execution, error) {
	if f.Limit <= 0 {
		f.Limit = defaultList
	}
	newest := func(a, b store.Execution) int { return cmp.Compare(b.ExecutionID, a.ExecutionID) }
	return merged(ctx, s, max(f.Offset, 0), f.Limit, newest, func(ctx context.Context, sh *shard, offset, limit int) ([]store.Execution, error) {
		text, args := listExecutionsSQL(f, offset, limit)
		return many(ctx, sh.pool, "list executions", scanExecution, text, args...)
	})
}

// listExecutionsSQL names only the columns that restrict, so that each
// combination uses its index and yields rows already in order.
func listExecutionsSQL(f store.ExecutionFilter, offset, limit int) (text string, args []any) {
	var where []string
	add := func(condition string, arg any) {
		args = append(args, arg)
		where = append(where, fmt.Sprintf(condition, len(args)))
	}
	if f.Status != "" {
		add("status = $%d", f.Status)
	}
	if f.CatalogID != 0 {
		add("catalog_id = $%d", f.CatalogID)
	}
	if f.ParentID != 0 {
		add("parent_execution_id = $%d", f.ParentID)
	}
	if f.Path != "" {
		add("path ILIKE '%%' || $%d || '%%'", escapeLike(cleanText(f.Path)))
	}
	text = selectExecution
	if len(where) > 0 {
		text += "WHERE " + strings.Join(where, " AND ")
	}
	args = append(args, limit, offset)
	return fmt.Sprintf("%s ORDER BY execution_id DESC LIMIT $%d OFFSET $%d", text, len(args)-1, len(args)), args
}

// escapeLike makes a LIKE pattern match s itself.
func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// OpenExecutions implements store.Executions.
func (s *Store) OpenExecutions(ctx context.Context, after event.ID, before time.Time, limit int) ([]event.ID, error) {
	return merged(ctx, s, 0, limit, cmp.Compare[event.ID], func(ctx context.Context, sh *shard, _, limit int) ([]event.ID, error) {
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
	rows, err := merged(ctx, s, 0, limit, earliest, func(ctx context.Context, sh *shard, _, limit int) ([]due, error) {
		return many(ctx, sh.pool, "find due executions", scanDue, dueExecutionsSQL, now, rowLimit(limit))
	})
	var out []event.ID
	for _, d := range rows {
		out = append(out, d.id)
	}
	return out, err
}
