package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

func (s *Server) executionRoutes() []route {
	stream := entry(http.MethodGet, "/api/executions/{id}/stream", Viewer, s.stream, "streams the log of an execution as server-sent events", "?after, or Last-Event-ID", `text/event-stream`)
	stream.stream = true
	return []route{
		entry(http.MethodGet, "/api/executions", Viewer, s.executions, "lists executions, newest first", "?status&path&catalog_id&parent_execution_id&limit&offset | page&page_size", `[execution]`),
		entry(http.MethodGet, "/api/executions/{id}", Viewer, s.execution, "shows one execution with the end of its log", "?include_events&page&page_size&since_event_id&event_type", `{…, workload, steps, events}`),
		entry(http.MethodGet, "/api/executions/{id}/events", Viewer, s.executionEvents, "reads the log of an execution", "?after&limit | page&page_size&since_event_id&event_type", `{events, …}`),
		entry(http.MethodGet, "/api/executions/{id}/status", Viewer, s.status, "tells how far an execution is", "", `{execution_id, status, current_step, is_cancelled, progress, …}`),
		entry(http.MethodGet, "/api/executions/{id}/explain", Viewer, s.explain, "says how each step stands and why", "?step", `{execution_id, path, status, error?, steps}`),
		entry(http.MethodGet, "/api/executions/{id}/cancellation-check", Worker, s.cancellation, "tells whether an execution was cancelled", "", `{execution_id, is_cancelled, …}`),
		entry(http.MethodPost, "/api/executions/{id}/cancel", Operator, s.cancel, "cancels an execution", `{reason?, cascade?}`, `{execution_id, status, message, cancelled_executions}`),
		entry(http.MethodPost, "/api/executions/{id}/stop", Operator, s.cancel, "cancels an execution", `{reason?, cascade?}`, `{execution_id, status, message, cancelled_executions}`),
		stream,
	}
}

const (
	defaultRows = 50
	maxRows     = 100
)

// executionView is an execution on the wire. Two generations of clients read
// it, hence two names for the times, and the ids once as numbers and once as
// strings for browsers, which cannot hold the numbers.
type executionView struct {
	ExecutionID       event.ID        `json:"execution_id"`
	ExecutionIDStr    event.StringID  `json:"execution_id_str"`
	CatalogID         event.ID        `json:"catalog_id"`
	CatalogIDStr      event.StringID  `json:"catalog_id_str"`
	ParentExecutionID *event.ID       `json:"parent_execution_id"`
	ParentIDStr       *event.StringID `json:"parent_execution_id_str"`
	Path              *string         `json:"path"`
	Version           int             `json:"version"`
	Pool              string          `json:"execution_pool,omitempty"`
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
		ExecutionID:    x.ExecutionID,
		ExecutionIDStr: event.StringID(x.ExecutionID),
		CatalogID:      x.CatalogID,
		CatalogIDStr:   event.StringID(x.CatalogID),
		Path:           textOrNull(x.Path),
		Version:        x.Version,
		Pool:           x.Pool,
		Status:         x.Status,
		StartedAt:      timeOrNull(x.StartedAt),
		CompletedAt:    timeOrNull(x.EndedAt),
		Progress:       percent(x),
		EventCount:     x.LastSeq,
		CurrentStep:    textOrNull(x.CurrentStep),
		Error:          textOrNull(x.Error),
	}
	v.StartTime, v.EndTime = v.StartedAt, v.CompletedAt
	d := s.duration(x)
	v.DurationSeconds, v.DurationHuman = d.Seconds(), d.String()
	if p := x.ParentExecutionID; p != 0 {
		str := event.StringID(p)
		v.ParentExecutionID, v.ParentIDStr = &p, &str
	}
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

func (s *Server) executions(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	f := store.ExecutionFilter{
		Status:    strings.ToUpper(q.Get("status")),
		Path:      q.Get("path"),
		CatalogID: q.id("catalog_id"),
		ParentID:  q.id("parent_execution_id"),
		Limit:     int(q.number("limit", defaultRows, 1, maxRows)),
		Offset:    int(q.number("offset", 0, 0, 1<<31)),
	}
	if q.Has("page") || q.Has("page_size") {
		f.Limit = int(q.number("page_size", defaultRows, 1, maxRows))
		f.Offset = int(q.number("page", 1, 1, 1<<24)-1) * f.Limit
	}
	if q.err != nil {
		return q.err
	}
	rows, err := s.opt.Plane.Executions(r.Context(), f)
	if err != nil {
		return err
	}
	views := make([]executionView, len(rows))
	for i, x := range rows {
		views[i] = s.viewExecution(x)
	}
	return respond(w, views)
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

type progressView struct {
	Total     int `json:"total_steps"`
	Completed int `json:"completed_steps"`
	Running   int `json:"running_steps"`
	Failed    int `json:"failed_steps"`
}

type statusAnswer struct {
	ExecutionID     event.ID       `json:"execution_id"`
	ExecutionIDStr  event.StringID `json:"execution_id_str"`
	Path            *string        `json:"path"`
	Status          string         `json:"status"`
	CurrentStep     *string        `json:"current_step"`
	IsCancelled     bool           `json:"is_cancelled"`
	Completed       bool           `json:"completed"`
	Failed          bool           `json:"failed"`
	Progress        progressView   `json:"progress"`
	CompletedSteps  []string       `json:"completed_steps"`
	StartTime       *time.Time     `json:"start_time"`
	EndTime         *time.Time     `json:"end_time"`
	DurationSeconds float64        `json:"duration_seconds"`
	DurationHuman   string         `json:"duration_human"`
	Error           *string        `json:"error"`
	LastSeq         int64          `json:"last_seq"`
}

func (s *Server) status(w http.ResponseWriter, r *http.Request) error {
	x, err := s.row(r)
	if err != nil {
		return err
	}
	names, err := s.completedSteps(r, x)
	if err != nil {
		return err
	}
	d := s.duration(x)
	return respond(w, statusAnswer{
		ExecutionID:     x.ExecutionID,
		ExecutionIDStr:  event.StringID(x.ExecutionID),
		Path:            textOrNull(x.Path),
		Status:          x.Status,
		CurrentStep:     textOrNull(x.CurrentStep),
		IsCancelled:     x.Status == event.StatusCancelled,
		Completed:       x.Status == event.StatusCompleted,
		Failed:          x.Status == event.StatusFailed,
		Progress:        progressView{x.StepsTotal, x.StepsCompleted, x.StepsRunning, x.StepsFailed},
		CompletedSteps:  names,
		StartTime:       timeOrNull(x.StartedAt),
		EndTime:         timeOrNull(x.EndedAt),
		DurationSeconds: d.Seconds(),
		DurationHuman:   d.String(),
		Error:           textOrNull(x.Error),
		LastSeq:         x.LastSeq,
	})
}

// completedSteps names the finished steps. Status is polled, so a long log is
// not folded for it: such an answer has the counts only.
func (s *Server) completedSteps(r *http.Request, x store.Execution) ([]string, error) {
	names := []string{}
	if x.StepsCompleted == 0 || x.LastSeq > tailEvents {
		return names, nil
	}
	steps, err := s.opt.Plane.Outcome(r.Context(), x.ExecutionID)
	if err != nil {
		return nil, noExecution(err, x.ExecutionID)
	}
	for _, st := range steps {
		if st.Status == event.StatusCompleted {
			names = append(names, st.Name)
		}
	}
	return names, nil
}

type cancellationAnswer struct {
	ExecutionID event.ID   `json:"execution_id"`
	IsCancelled bool       `json:"is_cancelled"`
	Status      string     `json:"status"`
	EventType   event.Type `json:"event_type"`
	Cancelled   bool       `json:"cancelled"`
	Completed   bool       `json:"completed"`
	Failed      bool       `json:"failed"`
}

// cancellation is asked between the phases of a tool. An unknown execution
// counts as not cancelled, so that a lagging read never stops a run.
func (s *Server) cancellation(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	x, err := s.opt.Plane.Execution(r.Context(), id)
	if err != nil && event.CodeOf(err) != event.NotFound {
		return err
	}
	cancelled := x.Status == event.StatusCancelled
	return respond(w, cancellationAnswer{
		ExecutionID: id,
		IsCancelled: cancelled,
		Status:      x.Status,
		EventType:   x.LastEventType,
		Cancelled:   cancelled,
		Completed:   x.Status == event.StatusCompleted,
		Failed:      x.Status == event.StatusFailed,
	})
}

type cancelBody struct {
	Reason  string `json:"reason"`
	Cascade *bool  `json:"cascade"`
	By      string `json:"cancelled_by"`
}

type cancelAnswer struct {
	ExecutionID    event.ID       `json:"execution_id"`
	ExecutionIDStr event.StringID `json:"execution_id_str"`
	Status         string         `json:"status"`
	Message        string         `json:"message"`
	Cancelled      []event.ID     `json:"cancelled_executions"`
}

func (s *Server) cancel(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	body := cancelBody{By: "api"}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	a, err := s.opt.Plane.Cancel(r.Context(), id, control.CancelRequest{
		Reason: body.Reason, By: body.By, Cascade: body.Cascade == nil || *body.Cascade,
	})
	if err != nil {
		return noExecution(err, id)
	}
	if a.Cancelled == nil {
		a.Cancelled = []event.ID{}
	}
	return respond(w, cancelAnswer{a.ExecutionID, event.StringID(a.ExecutionID), a.Status, a.Message, a.Cancelled})
}
