package api

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	defaultRows = 50
	maxRows     = 100
)

// executions lists executions, newest first, as a bare list. Where the next
// page begins stands in the header: the list itself has no room for it.
func (s *Server) executions(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	f := listFilter(q)
	if q.err != nil {
		return q.err
	}
	rows, err := s.visible(r.Context(), f)
	if err != nil {
		return err
	}
	views := make([]executionView, len(rows))
	for i, x := range rows {
		views[i] = s.viewExecution(x)
	}
	if len(rows) >= f.Limit {
		linkNext(w.Header(), q, f.Limit, rows[len(rows)-1].ExecutionID)
	}
	return respond(w, views)
}

func listFilter(q *query) store.ExecutionFilter {
	f := store.ExecutionFilter{
		Status:      q.status("status"),
		Path:        q.Get("path"),
		PathPrefix:  q.Get("path_prefix"),
		CatalogID:   q.id("catalog_id"),
		ParentID:    q.id("parent_execution_id"),
		Pool:        q.either("pool", "execution_pool"),
		StartedFrom: q.instant("started_after"),
		StartedTo:   q.instant("started_before"),
		Before:      q.id("before"),
		Limit:       int(q.clamped("limit", defaultRows, 1, maxRows)),
		Offset:      int(q.number("offset", 0, 0, 1<<31-1)),
	}
	if q.Has("page") || q.Has("page_size") {
		f.Limit = int(q.clamped("page_size", defaultRows, 1, maxRows))
		f.Offset = int(q.number("page", 1, 1, 1<<24)-1) * f.Limit
	}
	return f
}

// linkNext says where the rows behind last are. The link is the query alone,
// so that it holds behind gateways that serve the API under another path.
func linkNext(h http.Header, q *query, limit int, last event.ID) {
	next := q.Values
	for _, name := range []string{"offset", "page", "page_size"} {
		next.Del(name)
	}
	next.Set("limit", strconv.Itoa(limit))
	next.Set("before", last.String())
	h.Set("X-Next-Before", last.String())
	h.Set("Link", fmt.Sprintf(`<?%s>; rel="next"`, next.Encode()))
}

// executionStatuses are the statuses an execution can have.
var executionStatuses = []string{event.StatusRunning, event.StatusCompleted, event.StatusFailed, event.StatusCancelled}

// status reads the status of an execution in any case. An unknown one is
// refused: an empty list would look as if there were no such executions.
func (q *query) status(name string) string {
	s := strings.ToUpper(strings.TrimSpace(q.Get(name)))
	if s != "" && !slices.Contains(executionStatuses, s) {
		q.fail(name, "one of "+strings.Join(executionStatuses, ", "))
	}
	return s
}
