package api

import (
	"net/http"

	"github.com/noetl/noetl-go/internal/event"
)

// explain says how the steps of an execution stand and why; ?step= asks for one.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) error {
	x, err := s.row(r)
	if err != nil {
		return err
	}
	steps, err := s.opt.Plane.Explain(r.Context(), x.ExecutionID, r.URL.Query().Get("step"))
	if err != nil {
		return err
	}
	return respond(w, struct {
		ExecutionID event.StringID      `json:"execution_id"`
		Path        string              `json:"path"`
		Status      string              `json:"status"`
		Error       string              `json:"error,omitempty"`
		Steps       []event.Explanation `json:"steps"`
	}{event.StringID(x.ExecutionID), x.Path, x.Status, x.Error, steps})
}
