package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	tailEvents  = 2000 // events of a detail answer
	maxEvents   = 1000 // events of a log answer
	defaultPage = 100
	maxPage     = 500
	scanChunk   = 1000
)

// selection is which part of a log was asked for. Pages count from the oldest
// event, so that a page once full never changes.
type selection struct {
	paged     bool
	page      int64
	size      int64
	after     int64 // position the client is at
	since     event.ID
	eventType event.Type
	calls     bool // derived calls count as calls
}

func selectionOf(q *query) selection {
	sel := selection{
		paged:     q.Has("page") || q.Has("page_size"),
		page:      q.number("page", 1, 1, 1<<32),
		size:      q.number("page_size", defaultPage, 1, maxPage),
		since:     q.id("since_event_id"),
		eventType: event.Type(q.Get("event_type")).Canonical(),
	}
	if !sel.paged && sel.narrowed() {
		sel.size = tailEvents
	}
	return sel
}

// narrowed tells whether only some kinds of events or only new ones are wanted.
func (sel selection) narrowed() bool { return sel.since != 0 || sel.eventType != "" }

type pagination struct {
	Page        int64 `json:"page"`
	PageSize    int64 `json:"page_size"`
	TotalEvents int64 `json:"total_events"`
	TotalPages  int64 `json:"total_pages"`
	HasNext     bool  `json:"has_next"`
	HasPrev     bool  `json:"has_prev"`
}

func (sel selection) pagination(total int64) *pagination {
	pages := (total + sel.size - 1) / sel.size
	return &pagination{sel.page, sel.size, total, pages, sel.page < pages, sel.page > 1}
}

// tailPagination describes the end of a log as the last of its pages.
func tailPagination(total int64) *pagination {
	pages := (total + tailEvents - 1) / tailEvents
	return &pagination{max(1, pages), tailEvents, total, pages, false, total > tailEvents}
}

// selectEvents reads the events sel asks for, oldest first: the tail of the log
// when it asks for nothing in particular, and a page with its numbers otherwise.
func (s *Server) selectEvents(ctx context.Context, x store.Execution, sel selection) ([]event.Event, *pagination, error) {
	id := x.ExecutionID
	if !sel.paged && !sel.narrowed() {
		events, err := s.opt.Plane.Events(ctx, id, max(0, x.LastSeq-tailEvents), tailEvents)
		return events, tailPagination(x.LastSeq), err
	}
	base, err := s.seqOf(ctx, x, sel.since)
	if err != nil {
		return nil, nil, err
	}
	base = max(base, sel.after)
	skip := (sel.page - 1) * sel.size
	if sel.eventType != "" {
		events, total, err := s.filter(ctx, id, base, sel.wants(), skip, sel.size)
		return events, sel.pagination(total), err
	}
	events, err := s.opt.Plane.Events(ctx, id, base+skip, int(sel.size))
	return events, sel.pagination(max(0, x.LastSeq-base)), err
}

// seqOf finds where the event a client saw last stands in the log. Ids of
// workers and of the server interleave loosely, so position counts and not the
// number; an id the log does not hold stands behind all smaller ones.
func (s *Server) seqOf(ctx context.Context, x store.Execution, id event.ID) (int64, error) {
	if id == 0 {
		return 0, nil
	}
	var below int64
	for end := x.LastSeq; end > 0; end -= scanChunk {
		start := max(0, end-scanChunk)
		events, err := s.opt.Plane.Events(ctx, x.ExecutionID, start, int(end-start))
		if err != nil {
			return 0, err
		}
		for i := len(events) - 1; i >= 0; i-- {
			if events[i].EventID == id {
				return events[i].Seq, nil
			}
			if events[i].EventID < id {
				below = max(below, events[i].Seq)
			}
		}
	}
	return below, nil
}

// wants tells of the events of a log, in order, which are of the type asked for.
func (sel selection) wants() func(*event.Event) bool {
	reported := calls{}
	return func(e *event.Event) bool {
		if !sel.calls || sel.eventType != event.CallDone {
			return e.Type.Canonical() == sel.eventType
		}
		_, derived := reported.derived(e)
		return derived || e.Type.Canonical() == event.CallDone
	}
}

// filter walks the log behind base, counts the events that are wanted and
// returns a window of them.
func (s *Server) filter(ctx context.Context, id event.ID, base int64, wanted func(*event.Event) bool, skip, size int64) ([]event.Event, int64, error) {
	var found []event.Event
	var total int64
	for {
		chunk, err := s.opt.Plane.Events(ctx, id, base, scanChunk)
		if err != nil {
			return nil, 0, err
		}
		for i := range chunk {
			if !wanted(&chunk[i]) {
				continue
			}
			if total >= skip && int64(len(found)) < size {
				found = append(found, chunk[i])
			}
			total++
		}
		if len(chunk) < scanChunk {
			return found, total, nil
		}
		base = chunk[len(chunk)-1].Seq
	}
}

// executionEvents serves the log by position (after, limit) for programs and
// by pages for people.
func (s *Server) executionEvents(w http.ResponseWriter, r *http.Request) error {
	x, err := s.row(r)
	if err != nil {
		return err
	}
	q := queryOf(r)
	after := q.number("after", 0, 0, 1<<62)
	limit := q.number("limit", maxEvents, 1, maxEvents)
	sel := selectionOf(q)
	if q.err != nil {
		return q.err
	}
	var events []event.Event
	var pages *pagination
	if sel.paged || sel.narrowed() {
		if sel.after = after; !sel.paged {
			sel.size = limit
		}
		events, pages, err = s.selectEvents(r.Context(), x, sel)
	} else {
		events, err = s.opt.Plane.Events(r.Context(), x.ExecutionID, after, int(limit))
		if after == 0 {
			pages = selection{page: 1, size: limit}.pagination(x.LastSeq)
		}
	}
	if err != nil {
		return err
	}
	if n := len(events); n > 0 {
		after = events[n-1].Seq
	}
	if !sel.paged && sel.narrowed() && !pages.HasNext {
		after = max(after, x.LastSeq) // what follows was looked at and not wanted
	}
	return s.writeLog(w, x, events, after, pages)
}

// writeLog answers with events and where to go on: next_after is the position
// to ask for next, has_more whether anything is known to stand behind it.
func (s *Server) writeLog(w http.ResponseWriter, x store.Execution, events []event.Event, after int64, pages *pagination) error {
	b := append(make([]byte, 0, 512*(len(events)+1)), `{"execution_id":`...)
	b = s.ids.append(b, x.ExecutionID)
	b = append(b, `,"events":`...)
	b = s.ids.appendEvents(b, events)
	b = append(b, `,"last_seq":`...)
	b = strconv.AppendInt(b, max(x.LastSeq, after), 10)
	b = append(b, `,"next_after":`...)
	b = strconv.AppendInt(b, after, 10)
	b = append(b, `,"has_more":`...)
	b = strconv.AppendBool(b, after < x.LastSeq)
	if pages != nil {
		p, err := json.Marshal(pages)
		if err != nil {
			return fmt.Errorf("encode pagination: %w", err)
		}
		b = append(b, `,"pagination":`...)
		b = append(b, p...)
	}
	writeBody(w, http.StatusOK, append(b, '}'))
	return nil
}
