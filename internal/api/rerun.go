package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

type rerunBody struct {
	Payload      object   `json:"payload"`
	Workload     object   `json:"workload"` // older name of payload
	FromStep     string   `json:"from_step"`
	Version      *version `json:"version"` // nil is the one that ran, 0 the latest
	Trace        object   `json:"trace"`
	ResourceKind string   `json:"resource_kind"`
}

type rerunAnswer struct {
	executeAnswer
	RerunOf  event.StringID `json:"rerun_of"`
	FromStep string         `json:"from_step,omitempty"`
}

// rerun starts a new execution of what another one ran.
func (s *Server) rerun(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	var body rerunBody
	if err := decode(r, &body, true); err != nil {
		return err
	}
	if err := checkKind(body.ResourceKind); err != nil {
		return err
	}
	request := body.request(traceOf(r.Header))
	request.Actor = s.starter(r.Context())
	if err := s.permitRerun(r.Context(), id); err != nil {
		return err
	}
	a, err := s.opt.Plane.Rerun(r.Context(), id, request)
	if err != nil {
		return err
	}
	return respond(w, rerunAnswer{
		executeAnswer: executeAnswer{event.StringID(a.ExecutionID), a.Status, a.CommandsGenerated, a.Warnings},
		RerunOf:       event.StringID(id), FromStep: body.FromStep,
	})
}

// permitRerun keeps what runs the system to admins.
func (s *Server) permitRerun(ctx context.Context, id event.ID) error {
	if passageOf(ctx).who.May(auth.Admin) {
		return nil
	}
	x, err := s.opt.Plane.Execution(ctx, id)
	if err != nil {
		return noExecution(err, id)
	}
	return s.permitChange(ctx, x.Path)
}

func (b *rerunBody) request(trace json.RawMessage) control.RerunRequest {
	r := control.RerunRequest{Payload: json.RawMessage(b.Payload), FromStep: b.FromStep, Trace: json.RawMessage(b.Trace)}
	if b.Payload == nil {
		r.Payload = json.RawMessage(b.Workload)
	}
	if b.Trace == nil {
		r.Trace = trace
	}
	if b.Version != nil {
		r.Version, r.Latest = int(*b.Version), *b.Version == 0
	}
	return r
}
