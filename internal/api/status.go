package api

import (
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

type progressView struct {
	Total     int `json:"total_steps"`
	Completed int `json:"completed_steps"`
	Running   int `json:"running_steps"`
	Failed    int `json:"failed_steps"`
}

type statusAnswer struct {
	ExecutionID        wireID       `json:"execution_id"`
	ExecutionIDStr     wireID       `json:"execution_id_str"`
	Path               *string      `json:"path"`
	Status             string       `json:"status"`
	CurrentStep        *string      `json:"current_step"`
	IsCancelled        bool         `json:"is_cancelled"`
	Completed          bool         `json:"completed"`
	Failed             bool         `json:"failed"`
	Progress           progressView `json:"progress"`
	CompletedSteps     []string     `json:"completed_steps"`
	StartedAt          *time.Time   `json:"started_at"`
	CompletedAt        *time.Time   `json:"completed_at"`
	StartTime          *time.Time   `json:"start_time"`
	EndTime            *time.Time   `json:"end_time"`
	DurationSeconds    float64      `json:"duration_seconds"`
	DurationHuman      string       `json:"duration_human"`
	Error              *string      `json:"error"`
	LastSeq            int64        `json:"last_seq"`
	CompletionInferred bool         `json:"completion_inferred"` // never: the row says so
	Source             string       `json:"source"`
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
	v := s.viewExecution(x)
	return respond(w, statusAnswer{
		ExecutionID:     v.ExecutionID,
		ExecutionIDStr:  v.ExecutionIDStr,
		Path:            v.Path,
		Status:          v.Status,
		CurrentStep:     v.CurrentStep,
		IsCancelled:     x.Status == event.StatusCancelled,
		Completed:       x.Status == event.StatusCompleted,
		Failed:          x.Status == event.StatusFailed,
		Progress:        progressView{x.StepsTotal, x.StepsCompleted, x.StepsRunning, x.StepsFailed},
		CompletedSteps:  names,
		StartedAt:       v.StartedAt,
		CompletedAt:     v.CompletedAt,
		StartTime:       v.StartTime,
		EndTime:         v.EndTime,
		DurationSeconds: v.DurationSeconds,
		DurationHuman:   v.DurationHuman,
		Error:           v.Error,
		LastSeq:         x.LastSeq,
		Source:          "execution",
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
	ExecutionID wireID     `json:"execution_id"`
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
		ExecutionID: s.ids.of(id),
		IsCancelled: cancelled,
		Status:      x.Status,
		EventType:   x.LastEventType,
		Cancelled:   cancelled,
		Completed:   x.Status == event.StatusCompleted,
		Failed:      x.Status == event.StatusFailed,
	})
}
