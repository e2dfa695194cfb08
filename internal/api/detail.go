package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/noetl/noetl-go/internal/engine"
)

type detailView struct {
	executionView
	Workload       json.RawMessage `json:"workload"`
	EventsIncluded bool            `json:"events_included"`
	EventsEndpoint string          `json:"events_endpoint"`
	Pagination     *pagination     `json:"pagination,omitempty"`
}

// execution answers with everything about one run: the row, the workload, what
// came out of each step, and the end of the log or the page asked for.
func (s *Server) execution(w http.ResponseWriter, r *http.Request) error {
	x, err := s.row(r)
	if err != nil {
		return err
	}
	q := queryOf(r)
	include := q.flag("include_events", true)
	sel := selectionOf(q)
	if q.err != nil {
		return q.err
	}
	view := detailView{
		executionView:  s.viewExecution(x),
		EventsIncluded: include,
		EventsEndpoint: fmt.Sprintf("/api/executions/%d/events", x.ExecutionID),
	}
	if view.Workload, err = s.opt.Plane.Workload(r.Context(), x.ExecutionID); err != nil {
		return noExecution(err, x.ExecutionID)
	}
	view.Workload = orNull(view.Workload)
	steps, err := s.opt.Plane.Outcome(r.Context(), x.ExecutionID)
	if err != nil {
		return noExecution(err, x.ExecutionID)
	}
	var rows []shownEvent
	if include {
		sel.calls = true
		events, pages, err := s.selectEvents(r.Context(), x, sel)
		if err != nil {
			return err
		}
		if rows, err = s.showEvents(r.Context(), events, sel.eventType); err != nil {
			return err
		}
		view.Pagination = pages
	}
	return s.writeDetail(w, view, steps, rows)
}

// writeDetail encodes the head with reflection and appends steps and events,
// which are the bulk, to it.
func (s *Server) writeDetail(w http.ResponseWriter, view detailView, steps []engine.StepOutcome, events []shownEvent) error {
	buf := scratch()
	defer done(buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(view); err != nil {
		return fmt.Errorf("encode execution: %w", err)
	}
	b := bytes.TrimSuffix(bytes.TrimSpace(buf.Bytes()), []byte("}"))
	b = append(b, `,"steps":`...)
	b = appendSteps(b, steps)
	b = append(b, `,"events":`...)
	b = s.ids.appendShown(b, events)
	writeBody(w, http.StatusOK, append(b, '}'))
	return nil
}

func appendSteps(b []byte, steps []engine.StepOutcome) []byte {
	b = append(b, '{')
	for i, st := range steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, st.Name)
		b = append(b, `:{"status":`...)
		b = appendString(b, st.Status)
		b = append(b, `,"runs":`...)
		b = strconv.AppendInt(b, int64(st.Runs), 10)
		if len(st.Result) > 0 {
			b = append(b, `,"result":`...)
			b = append(b, st.Result...)
		}
		if st.Ref != "" {
			b = append(b, `,"result_ref":`...)
			b = appendString(b, st.Ref)
		}
		if st.Error != "" {
			b = append(b, `,"error":`...)
			b = appendString(b, st.Error)
		}
		if st.Reused != 0 {
			b = append(b, `,"reused_from":`...)
			b = appendString(b, st.Reused.String())
		}
		b = append(b, '}')
	}
	return append(b, '}')
}
