package sqlite

import (
	"cmp"
	"container/heap"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// defaultList is the page size when a filter gives none.
const defaultList = 50

// ListExecutions implements store.Executions. Whatever the filter, the page is
// put together from streams: the executions of one status that share the value
// of one column, which an index yields newest first.
func (s *Store) ListExecutions(ctx context.Context, f store.ExecutionFilter) ([]store.Execution, error) {
	if f.Limit <= 0 {
		f.Limit = defaultList
	}
	f.Offset = max(f.Offset, 0)
	var out []store.Execution
	err := s.reading(ctx, "list executions", func(q querier) error {
		l := newListing(&f)
		if err := l.resolve(ctx, q); err != nil || l.empty() {
			return err
		}
		if single, ok := l.single(); ok {
			text, args := l.pageSQL(single)
			rows, err := q.QueryContext(ctx, text, args...)
			out, err = collect("list executions", rows, err, scanExecution)
			return err
		}
		ids, err := l.merge(ctx, q)
		if err != nil || len(ids) == 0 {
			return err
		}
		list, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		rows, err := q.QueryContext(ctx, executionsByIDSQL, string(list))
		out, err = collect("list executions", rows, err, scanExecution)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

const (
	executionsByIDSQL = selectExecution + `WHERE execution_id IN (SELECT value FROM json_each(?)) ORDER BY execution_id DESC`
	// One look-up per different value, however many executions have it.
	statusesSQL = `WITH RECURSIVE known(v) AS (
		SELECT min(status) FROM execution INDEXED BY execution_by_status
		UNION ALL SELECT (SELECT min(status) FROM execution INDEXED BY execution_by_status WHERE status > known.v) FROM known WHERE known.v IS NOT NULL)
	SELECT v FROM known WHERE v IS NOT NULL`
	pathsSQL = `WITH RECURSIVE known(v) AS (
		SELECT min(path) FROM execution INDEXED BY execution_by_path WHERE path >= ?1
		UNION ALL SELECT (SELECT min(path) FROM execution INDEXED BY execution_by_path WHERE path > known.v)
		FROM known WHERE known.v IS NOT NULL AND substr(known.v, 1, length(?1)) = ?1)
	SELECT v FROM known WHERE v IS NOT NULL`
)

// listing is a filter on its way to a page.
type listing struct {
	f        *store.ExecutionFilter
	from, to event.ID

	column   string // that the index begins with; empty for the primary key
	index    string // by name, so that no plan depends on statistics
	values   []any  // of column
	statuses []string
	paths    []string // that the filter allows, when it restricts them

	where string // what is left to compare, with its arguments
	args  []any
}

// newListing picks the index of the most telling column the filter has.
func newListing(f *store.ExecutionFilter) *listing {
	l := &listing{f: f}
	l.from, l.to = f.IDRange()
	switch {
	case f.ParentID != 0:
		l.column, l.index, l.values = "parent_execution_id", "execution_by_parent", []any{f.ParentID}
	case f.CatalogID != 0:
		l.column, l.index, l.values = "catalog_id", "execution_by_catalog", []any{f.CatalogID}
	case l.byPath():
		l.column, l.index = "path", "execution_by_path"
	case f.Pool != "":
		l.column, l.index, l.values = "pool", "execution_by_pool", []any{f.Pool}
	}
	if f.Status != "" {
		l.statuses = []string{f.Status}
	}
	return l
}

func (l *listing) byPath() bool { return l.f.Path != "" || l.f.PathPrefix != "" }

// resolve looks up the values the streams need and says what is left to compare.
func (l *listing) resolve(ctx context.Context, q querier) error {
	if l.byPath() {
		if err := l.resolvePaths(ctx, q); err != nil {
			return err
		}
	}
	if l.column != "" && l.f.Status == "" {
		var err error
		rows, err := q.QueryContext(ctx, statusesSQL)
		if l.statuses, err = collect("look up statuses", rows, err, scanText); err != nil {
			return err
		}
	}
	return l.compareRest()
}

func (l *listing) resolvePaths(ctx context.Context, q querier) error {
	rows, err := q.QueryContext(ctx, pathsSQL, l.f.PathPrefix)
	paths, err := collect("look up paths", rows, err, scanText)
	part := strings.ToLower(l.f.Path)
	l.paths = slices.DeleteFunc(paths, func(path string) bool {
		return !strings.HasPrefix(path, l.f.PathPrefix) || !strings.Contains(strings.ToLower(path), part)
	})
	if l.column == "path" {
		for _, path := range l.paths {
			l.values = append(l.values, path)
		}
	}
	return err
}

func scanText(row scanner, s *string) error { return row.Scan(s) }

func (l *listing) compareRest() error {
	add := func(condition string, arg any) {
		l.where, l.args = l.where+" AND "+condition, append(l.args, arg)
	}
	if l.f.CatalogID != 0 && l.column != "catalog_id" {
		add("+catalog_id = ?", l.f.CatalogID)
	}
	if l.f.Pool != "" && l.column != "pool" {
		add("+pool = ?", l.f.Pool)
	}
	if l.byPath() && l.column != "path" {
		list, err := json.Marshal(l.paths)
		if err != nil {
			return err
		}
		add("+path IN (SELECT value FROM json_each(?))", string(list))
	}
	if !l.f.StartedFrom.IsZero() {
		add("start_time >= ?", l.f.StartedFrom.UnixMicro())
	}
	if !l.f.StartedTo.IsZero() {
		add("start_time < ?", l.f.StartedTo.UnixMicro())
	}
	return nil
}

// empty tells that no row can match.
func (l *listing) empty() bool {
	return l.from >= l.to || l.column != "" && len(l.values)*len(l.statuses) == 0 || l.byPath() && len(l.paths) == 0
}

// stream is the executions with one value of the column and one status, newest
// first. next holds the ids read and not yet taken.
type stream struct {
	value  any
	status string
	next   []event.ID
	read   int // how many to read at a time
}

// single is the stream of the whole page, when there is only one.
func (l *listing) single() (stream, bool) {
	switch {
	case l.column == "":
		return stream{status: l.f.Status}, true
	case len(l.values) == 1 && len(l.statuses) == 1:
		return stream{value: l.values[0], status: l.statuses[0]}, true
	}
	return stream{}, false
}

// source is the FROM and WHERE of a stream; value and status are expressions.
func (l *listing) source(value, status string) string {
	switch {
	case l.column != "":
		return "FROM execution INDEXED BY " + l.index + " WHERE " + l.column + " = " + value + " AND status = " + status +
			" AND execution_id < ? AND execution_id >= ?" + l.where
	case l.f.Status != "":
		return "FROM execution INDEXED BY execution_by_status WHERE status = " + status + " AND execution_id < ? AND execution_id >= ?" + l.where
	}
	return "FROM execution NOT INDEXED WHERE execution_id < ? AND execution_id >= ?" + l.where
}

func (l *listing) sourceArgs(s *stream, below event.ID) []any {
	var args []any
	if l.column != "" {
		args = append(args, s.value, s.status)
	} else if l.f.Status != "" {
		args = append(args, s.status)
	}
	return append(append(args, below, l.from), l.args...)
}

func (l *listing) pageSQL(s stream) (string, []any) {
	return executionColumns + l.source("?", "?") + " ORDER BY execution_id DESC LIMIT ? OFFSET ?",
		append(l.sourceArgs(&s, l.to), l.f.Limit, l.f.Offset)
}

// headsSQL asks for the newest execution of every stream at once.
func (l *listing) headsSQL() (string, []any, error) {
	values, err := json.Marshal(l.values)
	if err != nil {
		return "", nil, err
	}
	statuses, err := json.Marshal(l.statuses)
	if err != nil {
		return "", nil, err
	}
	text := "SELECT v.value, s.value, coalesce((SELECT execution_id " + l.source("v.value", "s.value") +
		" ORDER BY execution_id DESC LIMIT 1), 0) FROM json_each(?) v, json_each(?) s"
	args := append(append([]any{l.to, l.from}, l.args...), string(values), string(statuses))
	return text, args, nil
}

func (l *listing) nextSQL() string {
	return "SELECT execution_id " + l.source("?", "?") + " ORDER BY execution_id DESC LIMIT ?"
}

// merge takes the newest ids of all streams, as many as the page has.
func (l *listing) merge(ctx context.Context, q querier) ([]event.ID, error) {
	h, err := l.heads(ctx, q)
	if err != nil || len(h) == 0 {
		return nil, err
	}
	next, err := q.PrepareContext(ctx, l.nextSQL())
	if err != nil {
		return nil, err
	}
	defer next.Close()
	var out []event.ID
	for skip := l.f.Offset; len(h) > 0 && len(out) < l.f.Limit; skip-- {
		s := h[0]
		id := s.next[0]
		if skip <= 0 {
			out = append(out, id)
		}
		if s.next = s.next[1:]; len(s.next) == 0 {
			if err := l.refill(ctx, next, s, id); err != nil {
				return nil, err
			}
		}
		if len(s.next) == 0 {
			heap.Pop(&h)
		} else {
			heap.Fix(&h, 0)
		}
	}
	return out, nil
}

// heads starts the streams that can contribute: a page of n executions is made
// of at most n streams, those with the newest heads.
func (l *listing) heads(ctx context.Context, q querier) (streams, error) {
	text, args, err := l.headsSQL()
	if err != nil {
		return nil, err
	}
	rows, err := q.QueryContext(ctx, text, args...)
	all, err := collect("look up newest executions", rows, err, func(row scanner, s *stream) error {
		s.next, s.read = make([]event.ID, 1), 4
		return row.Scan(&s.value, &s.status, &s.next[0])
	})
	if err != nil {
		return nil, err
	}
	var out streams
	for i := range all {
		if all[i].next[0] != 0 {
			out = append(out, &all[i])
		}
	}
	heap.Init(&out)
	if n := l.f.Limit + l.f.Offset; len(out) > n {
		slices.SortFunc(out, func(a, b *stream) int { return cmp.Compare(b.next[0], a.next[0]) })
		out = out[:n]
	}
	return out, nil
}

// refill reads on in a stream, more each time.
func (l *listing) refill(ctx context.Context, next *sql.Stmt, s *stream, below event.ID) error {
	s.read = min(2*s.read, 1024)
	rows, err := next.QueryContext(ctx, append(l.sourceArgs(s, below), s.read)...)
	s.next, err = collect("look up executions", rows, err, scanID)
	return err
}

// streams is a heap with the newest execution on top.
type streams []*stream

func (h streams) Len() int           { return len(h) }
func (h streams) Less(i, j int) bool { return h[i].next[0] > h[j].next[0] }
func (h streams) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *streams) Push(s any)        { *h = append(*h, s.(*stream)) }

func (h *streams) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}
