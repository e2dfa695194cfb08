package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

type cancelBody struct {
	Reason  string `json:"reason"`
	Cascade *bool  `json:"cascade"`
	By      string `json:"cancelled_by"`
}

type cancelAnswer struct {
	ExecutionID    wireID   `json:"execution_id"`
	ExecutionIDStr wireID   `json:"execution_id_str"`
	Status         string   `json:"status"`
	Message        string   `json:"message"`
	Cancelled      []wireID `json:"cancelled_executions"`
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
		Reason: body.Reason, By: body.By, Cascade: body.Cascade == nil || *body.Cascade, Actor: actor(r.Context()),
	})
	if err != nil {
		return noExecution(err, id)
	}
	return respond(w, cancelAnswer{s.ids.of(id), stringIDs.of(id), a.Status, a.Message, s.ids.list(a.Cancelled)})
}

type finalizeBody struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	Reason string `json:"reason"`
}

type finalizeAnswer struct {
	ExecutionID    wireID `json:"execution_id"`
	ExecutionIDStr wireID `json:"execution_id_str"`
	Status         string `json:"status"`
	Outcome        string `json:"outcome"` // finalized, or already_completed
	Message        string `json:"message"`
}

// finalize ends an execution the way an operator says. Without a status it
// has failed: nobody ends by hand what is well.
func (s *Server) finalize(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	body := finalizeBody{Status: event.StatusFailed}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	a, err := s.opt.Plane.Finalize(r.Context(), id, control.FinalizeRequest{
		Status: strings.ToUpper(body.Status), Error: body.Error, Reason: body.Reason, Actor: actor(r.Context()),
	})
	if err != nil {
		return noExecution(err, id)
	}
	outcome := "finalized"
	if a.Before {
		outcome = "already_completed"
	}
	return respond(w, finalizeAnswer{s.ids.of(id), stringIDs.of(id), a.Status, outcome, a.Message})
}

type cleanupBody struct {
	Minutes float64 `json:"older_than_minutes"`
	DryRun  bool    `json:"dry_run"`
}

type cleanupAnswer struct {
	Count   int      `json:"cancelled_count"`
	IDs     []wireID `json:"execution_ids"`
	Message string   `json:"message"`
}

const (
	defaultSilence = 5               // minutes
	maxSilence     = 10 * 365 * 1440 // minutes
)

// cleanup cancels what has stood still for a while.
func (s *Server) cleanup(w http.ResponseWriter, r *http.Request) error {
	body := cleanupBody{Minutes: defaultSilence}
	if err := decode(r, &body, true); err != nil {
		return err
	}
	if body.Minutes < 1 || body.Minutes > maxSilence {
		return event.Errorf(event.Invalid, "older_than_minutes: want a number from 1 to %d, got %g", maxSilence, body.Minutes)
	}
	a, err := s.opt.Plane.Cleanup(r.Context(), control.CleanupRequest{
		Silence: time.Duration(body.Minutes * float64(time.Minute)), DryRun: body.DryRun,
	})
	if err != nil {
		return err
	}
	answer := cleanupAnswer{len(a.Executions), s.ids.list(a.Executions), a.Message}
	if body.DryRun {
		answer.Count = 0
	}
	return respond(w, answer)
}
