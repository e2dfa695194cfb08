package api

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) signalRoutes() []route {
	return []route{
		entry(http.MethodPost, "/api/executions/{id}/signals/{name}", Operator, s.signal, "sends a signal to an execution: whatever waits for it goes on", `{data?, step?, index?, sender?, event_id?}; Idempotency-Key`, `{status: delivered | buffered | duplicate, woken, event_id}`).within(ByExecution).noted(inLog),
		entry(http.MethodGet, "/api/executions/{id}/waits", Viewer, s.waits, "lists what an execution waits for that comes from outside", "", `{execution_id, waits: [{step, command_id, for, signal?, message?, form?, approval?, index?, since, until?}]}`).within(ByExecution),
	}
}

type signalBody struct {
	Data    json.RawMessage `json:"data"`
	Step    string          `json:"step"`
	Index   *int            `json:"index"`
	Sender  string          `json:"sender"`
	By      string          `json:"by"` // the same
	EventID event.ID        `json:"event_id"`
}

type signalAnswer struct {
	ExecutionID event.StringID `json:"execution_id"`
	Signal      string         `json:"signal"`
	Status      string         `json:"status"`
	Woken       int            `json:"woken"`
	EventID     event.StringID `json:"event_id"`
}

// signal sends something to an execution. What is kept for later is accepted
// with 202, what somebody waited for is answered with 200.
func (s *Server) signal(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	var body signalBody
	if err := decode(r, &body, true); err != nil {
		return err
	}
	request := control.SignalRequest{EventID: body.EventID, Actor: actor(r.Context()), SentSignal: event.SentSignal{
		Name: r.PathValue("name"), Data: body.Data, Step: body.Step, Index: body.Index, By: cmp.Or(body.Sender, body.By),
	}}
	if keys := r.Header.Values("Idempotency-Key"); len(keys) > 0 {
		if keys[0] == "" {
			return event.Errorf(event.Invalid, "Idempotency-Key: a key is needed")
		}
		request.Key = keys[0]
	}
	a, err := s.opt.Plane.Signal(r.Context(), id, request)
	if err != nil {
		return noExecution(err, id)
	}
	status := http.StatusOK
	if a.Status == "buffered" {
		status = http.StatusAccepted
	}
	return respondStatus(w, status, signalAnswer{event.StringID(id), request.Name, a.Status, a.Woken, event.StringID(a.EventID)})
}

func (s *Server) waits(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "id")
	if err != nil {
		return err
	}
	waits, err := s.opt.Plane.Waits(r.Context(), id)
	if err != nil {
		return noExecution(err, id)
	}
	return respond(w, struct {
		ExecutionID event.StringID     `json:"execution_id"`
		Waits       []event.SignalWait `json:"waits"`
	}{event.StringID(id), waits})
}
