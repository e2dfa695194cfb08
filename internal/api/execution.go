package api

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func (s *Server) executionRoutes() []route {
	stream := entry(http.MethodGet, "/api/executions/{id}/stream", Viewer, s.stream, "streams the log of an execution as server-sent events", "?after, or Last-Event-ID", `text/event-stream`).within(ByExecution)
	stream.stream = true
	return []route{
		entry(http.MethodGet, "/api/executions", Viewer, s.executions, "lists executions, newest first", "?status&path&path_prefix&catalog_id&parent_execution_id&pool&started_after&started_before&limit&before | offset | page&page_size", `[execution]`).within(Filtered),
		entry(http.MethodGet, "/api/executions/{id}", Viewer, s.execution, "shows one execution with the end of its log", "?include_events&page&page_size&since_event_id&event_type", `{…, workload, steps, events}`).within(ByExecution),
		entry(http.MethodGet, "/api/executions/{id}/events", Viewer, s.executionEvents, "reads the log of an execution", "?after&limit | page&page_size&since_event_id&event_type", `{events, …}`).within(ByExecution),
		entry(http.MethodGet, "/api/executions/{id}/status", Viewer, s.status, "tells how far an execution is", "", `{execution_id, status, current_step, is_cancelled, progress, …}`).within(ByExecution),
		entry(http.MethodGet, "/api/executions/{id}/explain", Viewer, s.explain, "says how each step stands and why", "?step", `{execution_id, path, status, error?, steps}`).within(ByExecution),
		entry(http.MethodGet, "/api/executions/{id}/cancellation-check", Viewer, s.cancellation, "tells whether an execution was cancelled", "", `{execution_id, is_cancelled, …}`).within(ByExecution),
		entry(http.MethodPost, "/api/executions/{id}/cancel", Operator, s.cancel, "cancels an execution", `{reason?, cascade?}`, `{execution_id, status, message, cancelled_executions}`).within(ByExecution).noted(inLog),
		entry(http.MethodPost, "/api/executions/{id}/stop", Operator, s.cancel, "cancels an execution", `{reason?, cascade?}`, `{execution_id, status, message, cancelled_executions}`).within(ByExecution).noted(inLog),
		entry(http.MethodPost, "/api/executions/{id}/finalize", Operator, s.finalize, "ends an execution by hand", `{status?, error?, reason?}`, `{execution_id, status, outcome, message}`).within(ByExecution).noted(inLog),
		entry(http.MethodPost, "/api/executions/cleanup", Operator, s.cleanup, "cancels open executions in which nothing happens", `{older_than_minutes?, dry_run?}`, `{cancelled_count, execution_ids, message}`).within(Everywhere).noted("executions.cleaned"),
		stream,
	}
}

// executionView is an execution on the wire. Two generations of clients read
// it, hence two names for the times, and the ids once as numbers and once as
// strings for browsers, which cannot hold the numbers.
type executionView struct {
	ExecutionID       wireID          `json:"execution_id"`
	ExecutionIDStr    wireID          `json:"execution_id_str"`
	CatalogID         wireID          `json:"catalog_id"`
	CatalogIDStr      wireID          `json:"catalog_id_str"`
	ParentExecutionID *wireID         `json:"parent_execution_id"`
	ParentIDStr       *wireID         `json:"parent_execution_id_str"`
	Path              *string         `json:"path"`
	Version           int             `json:"version"`
	Pool              *string         `json:"pool"`
	ExecutionPool     *string         `json:"execution_pool"`
	Status            string          `json:"status"`
	StartedAt         *time.Time      `json:"started_at"`
	CompletedAt       *time.Time      `json:"completed_at"`
	StartTime         *time.Time      `json:"start_time"`
	EndTime           *time.Time      `json:"end_time"`
	DurationSeconds   float64         `json:"duration_seconds"`
	DurationHuman     string          `json:"duration_human"`
	Progress          int             `json:"progress"` // percent of the steps entered so far
	EventCount        int64           `json:"event_count"`
	CurrentStep       *string         `json:"current_step"`
	Result            json.RawMessage `json:"result"`
	Error             *string         `json:"error"`
}

func (s *Server) viewExecution(x store.Execution) executionView {
	v := executionView{
		ExecutionID:       s.ids.of(x.ExecutionID),
		ExecutionIDStr:    stringIDs.of(x.ExecutionID),
		CatalogID:         s.ids.of(x.CatalogID),
		CatalogIDStr:      stringIDs.of(x.CatalogID),
		ParentExecutionID: s.ids.orNull(x.ParentExecutionID),
		ParentIDStr:       stringIDs.orNull(x.ParentExecutionID),
		Path:              textOrNull(x.Path),
		Version:           x.Version,
		Pool:              textOrNull(x.Pool),
		Status:            x.Status,
		StartedAt:         timeOrNull(x.StartedAt),
		CompletedAt:       timeOrNull(x.EndedAt),
		Progress:          percent(x),
		EventCount:        x.LastSeq,
		CurrentStep:       textOrNull(x.CurrentStep),
		Error:             textOrNull(x.Error),
	}
	v.ExecutionPool, v.StartTime, v.EndTime = v.Pool, v.StartedAt, v.CompletedAt
	d := s.duration(x)
	v.DurationSeconds, v.DurationHuman = seconds(d), d.String()
	return v
}

// duration is how long x took, or has been taking until now.
func (s *Server) duration(x store.Execution) time.Duration {
	if x.StartedAt.IsZero() {
		return 0
	}
	end := x.EndedAt
	if end.IsZero() {
		end = s.opt.Clock()
	}
	return max(0, end.Sub(x.StartedAt)).Round(time.Millisecond)
}

func percent(x store.Execution) int {
	switch {
	case x.Status == event.StatusCompleted:
		return 100
	case x.StepsTotal <= 0:
		return 0
	default:
		return min(100, 100*x.StepsCompleted/x.StepsTotal)
	}
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// row reads the execution the path names.
func (s *Server) row(r *http.Request) (store.Execution, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return store.Execution{}, err
	}
	x, err := s.opt.Plane.Execution(r.Context(), id)
	return x, noExecution(err, id)
}

func noExecution(err error, id event.ID) error {
	return renamed(err, "Execution not found: %d", id)
}
