package postgres

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// defaultList is the page size when a filter gives none.
const defaultList = 50

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

// statement is a text under construction with its arguments.
type statement struct {
	where []string
	args  []any
}

// arg adds an argument and returns its placeholder.
func (q *statement) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

func (q *statement) and(condition string, v any) {
	q.where = append(q.where, fmt.Sprintf(condition, q.arg(v)))
}

func (q *statement) conditions() string {
	if len(q.where) == 0 {
		return ""
	}
	return "WHERE " + strings.Join(q.where, " AND ")
}

// listExecutionsSQL reads pages from one index, in its order, and takes the
// newest rows of them. Filters by parent, catalog entry, path or pool have an
// index each that is ordered within one status: a page over all statuses is
// the newest of a few pages. Whatever else restricts is checked row by row.
func listExecutionsSQL(f store.ExecutionFilter, offset, limit int) (text string, args []any) {
	q := &statement{}
	source, keys := restrict(q, f)
	if len(keys) == 0 && f.Status == "" {
		q.between(f, nil)
		text = selectExecution + q.conditions()
		return fmt.Sprintf("%s ORDER BY execution_id DESC LIMIT %s OFFSET %s", text, q.arg(limit), q.arg(offset)), q.args
	}
	statuses := []string{event.StatusRunning, event.StatusCompleted, event.StatusFailed, event.StatusCancelled}
	if f.Status != "" {
		statuses = []string{f.Status}
	}
	order := q.between(f, append(keys, key{"status", "s.status"}))
	page := fmt.Sprintf("SELECT execution_id FROM noetl.execution %s ORDER BY %s LIMIT %s", q.conditions(), order, q.arg(offset+limit))
	newest := fmt.Sprintf(`SELECT page.execution_id FROM %sunnest(%s::text[]) AS s(status), LATERAL (%s) page
	ORDER BY page.execution_id DESC LIMIT %s OFFSET %s`, source, q.arg(statuses), page, q.arg(limit), q.arg(offset))
	if source == fromPaths {
		text = withPaths(q, f)
	}
	return text + selectExecution + "WHERE execution_id = ANY (ARRAY(" + newest + ")) ORDER BY execution_id DESC", q.args
}

// key is a column of an index and the value it is held to.
type key struct{ column, value string }

// between adds the range of ids. The columns of an index before the id are held
// to one value by comparing whole rows and not one by one, and the order names
// them all: only that index fits, and the planner cannot be misled by wrong
// guesses into reading all executions from the newest on. It returns the order.
func (q *statement) between(f store.ExecutionFilter, keys []key) (order string) {
	from, to := f.IDRange()
	if len(keys) == 0 {
		if from > 0 {
			q.and("execution_id >= %s", from)
		}
		if to < math.MaxInt64 {
			q.and("execution_id < %s", to)
		}
		return "execution_id DESC"
	}
	var columns, values string
	for _, k := range keys {
		columns, values, order = columns+k.column+", ", values+k.value+", ", order+k.column+" DESC, "
	}
	q.where = append(q.where,
		fmt.Sprintf("(%sexecution_id) >= (%s%s::int8)", columns, values, q.arg(from)),
		fmt.Sprintf("(%sexecution_id) < (%s%s::int8)", columns, values, q.arg(to)))
	return order + "execution_id DESC"
}

// fromPaths stands before the statuses when a page is read for each path.
const fromPaths = "paths, "

// restrict adds the conditions that are checked row by row, and chooses the
// index: its first column, and what stands before the statuses in the list of
// tables.
func restrict(q *statement, f store.ExecutionFilter) (source string, keys []key) {
	use := func(column, value string) {
		keys = []key{{column, value}}
		q.where = append(q.where, column+" IS NOT NULL") // as the index says that has no others
	}
	if f.ParentID != 0 {
		use("parent_execution_id", q.arg(f.ParentID)+"::int8")
	}
	if f.CatalogID != 0 && keys != nil {
		q.and("catalog_id = %s", f.CatalogID)
	} else if f.CatalogID != 0 {
		use("catalog_id", q.arg(f.CatalogID)+"::int8")
	}
	if byPath := f.Path != "" || f.PathPrefix != ""; byPath && keys != nil {
		q.and("path ILIKE '%%' || %s || '%%'", escapeLike(cleanText(f.Path)))
		q.and("starts_with(path, %s)", cleanText(f.PathPrefix))
	} else if byPath {
		use(`path COLLATE "C"`, "paths.path")
		source = fromPaths
	}
	if f.Pool != "" && keys != nil {
		q.and("pool = %s", cleanText(f.Pool))
	} else if f.Pool != "" {
		use("pool", q.arg(cleanText(f.Pool))+"::text")
	}
	if !f.StartedFrom.IsZero() {
		q.and("start_time >= %s", f.StartedFrom)
	}
	if !f.StartedTo.IsZero() {
		q.and("start_time < %s", f.StartedTo)
	}
	return source, keys
}

// withPaths finds the distinct paths that match, each by one look-up in the
// index: there are few of them, however many executions they had.
func withPaths(q *statement, f store.ExecutionFilter) string {
	const next = `(SELECT path COLLATE "C" FROM noetl.execution WHERE path COLLATE "C" %s ORDER BY path COLLATE "C" LIMIT 1)`
	prefix := q.arg(cleanText(f.PathPrefix))
	match := "path IS NOT NULL"
	if f.Path != "" {
		match += ` AND path COLLATE "default" ILIKE '%' || ` + q.arg(escapeLike(cleanText(f.Path))) + " || '%'"
	}
	return fmt.Sprintf(`WITH RECURSIVE every(path) AS (
	SELECT %s UNION ALL SELECT %s FROM every WHERE every.path IS NOT NULL AND starts_with(every.path, %s)
), paths AS MATERIALIZED (SELECT path FROM every WHERE starts_with(path, %s) AND %s) `,
		fmt.Sprintf(next, ">= "+prefix), fmt.Sprintf(next, "> every.path"), prefix, prefix, match)
}

// escapeLike makes a LIKE pattern match s itself.
func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}
