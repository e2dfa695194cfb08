package api

import (
	"net/http"

	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) commandRoutes() []route {
	return []route{
		entry(http.MethodGet, "/api/commands/{event_id}", Worker, s.command, "shows a command without claiming it", "?execution_id", `command`).within(Permitted),
		entry(http.MethodPost, "/api/commands/{event_id}/claim", Worker, s.claim, "gives a worker the right to run a command", `{worker_id, execution_id?}`, `command`).within(Permitted).noted(ofWorkers),
		entry(http.MethodPost, "/api/commands/claim", Worker, s.claims, "claims many commands at once", `{worker_id, heartbeats?, commands: [{event_id, execution_id?}]}`, `{results: [{event_id, status, command? | error}]}`).within(Permitted).noted(ofWorkers),
		entry(http.MethodPost, "/api/commands/{event_id}/heartbeat", Worker, s.heartbeat, "renews the lease of a claim; 409 when it was lost", `{worker_id, execution_id?, attempt?}`, `{lease_until, cancel}`).within(Permitted).noted(ofWorkers),
		entry(http.MethodPost, "/api/commands/{event_id}/release", Worker, s.release, "gives a claim back", `{worker_id, execution_id?, attempt?}`, `{status}`).within(Permitted).noted(ofWorkers),
		entry(http.MethodPost, "/api/commands/heartbeat", Worker, s.heartbeats, "renews many leases at once", `{worker_id, commands}`, `{answers}`).within(Permitted).noted(ofWorkers),
	}
}

// claimLost is what a worker hears whose lease went to somebody else. It must
// stop the tool and report nothing more about this attempt.
var claimLost = &event.Error{Code: event.Conflict, Message: "the claim was lost", Reason: "claim_lost"}

func noCommand(err error, id event.ID) error {
	return renamed(err, "command.issued event not found: %d", id)
}

func (s *Server) command(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "event_id")
	if err != nil {
		return err
	}
	q := queryOf(r)
	execution := q.id("execution_id")
	if q.err != nil {
		return q.err
	}
	if err := s.permitCommand(r.Context(), execution, id); err != nil {
		return err
	}
	c, err := s.opt.Plane.Command(r.Context(), execution, id)
	if err != nil {
		return noCommand(err, id)
	}
	writeBody(w, http.StatusOK, appendCommand(nil, c))
	return nil
}

func (s *Server) claim(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "event_id")
	if err != nil {
		return err
	}
	var req event.ClaimRequest
	if err := decode(r, &req, false); err != nil {
		return err
	}
	if req.WorkerID == "" {
		return event.Errorf(event.Invalid, "worker_id is missing")
	}
	req.EventID = id
	if err := s.permitCommand(r.Context(), req.ExecutionID, id); err != nil {
		return err
	}
	c, err := s.opt.Plane.Claim(r.Context(), req)
	if err != nil {
		return noCommand(err, id)
	}
	answer := *c
	answer.Status = "ok"
	writeBody(w, http.StatusOK, appendCommand(make([]byte, 0, 1024), &answer))
	return nil
}

// beat reads the body shared by the routes about one held command.
func beat(r *http.Request) (event.Heartbeat, error) {
	id, err := pathID(r, "event_id")
	if err != nil {
		return event.Heartbeat{}, err
	}
	var h event.Heartbeat
	if err := decode(r, &h, false); err != nil {
		return h, err
	}
	if h.WorkerID == "" {
		return h, event.Errorf(event.Invalid, "worker_id is missing")
	}
	h.EventID = id
	return h, nil
}

func (s *Server) heartbeat(w http.ResponseWriter, r *http.Request) error {
	h, err := beat(r)
	if err != nil {
		return err
	}
	if err := s.permitCommand(r.Context(), h.ExecutionID, h.EventID); err != nil {
		return err
	}
	answers, err := s.opt.Plane.Heartbeat(r.Context(), []event.Heartbeat{h})
	if err != nil {
		return noCommand(err, h.EventID)
	}
	if len(answers) != 1 || answers[0].LeaseUntil.IsZero() {
		return claimLost
	}
	return respond(w, answers[0])
}

type heartbeatsBody struct {
	WorkerID string            `json:"worker_id"`
	Commands []event.Heartbeat `json:"commands"`
}

// heartbeats renews many leases. An answer without lease_until means that the
// claim was lost.
func (s *Server) heartbeats(w http.ResponseWriter, r *http.Request) error {
	var body heartbeatsBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if len(body.Commands) > maxBatch {
		return event.Errorf(event.Limit, "%d commands in one heartbeat: at most %d are accepted", len(body.Commands), maxBatch)
	}
	for i := range body.Commands {
		c := &body.Commands[i]
		if c.WorkerID == "" {
			c.WorkerID = body.WorkerID
		}
		if c.EventID == 0 || c.WorkerID == "" {
			return event.Errorf(event.Invalid, "commands[%d]: event_id and worker_id are needed", i)
		}
		if err := s.permitCommand(r.Context(), c.ExecutionID, c.EventID); err != nil {
			return err
		}
	}
	passageOf(r.Context()).permitted = true
	answers := []event.HeartbeatAnswer{}
	if len(body.Commands) > 0 {
		var err error
		if answers, err = s.opt.Plane.Heartbeat(r.Context(), body.Commands); err != nil {
			return err
		}
	}
	return respond(w, struct {
		Answers []event.HeartbeatAnswer `json:"answers"`
	}{answers})
}

func (s *Server) release(w http.ResponseWriter, r *http.Request) error {
	h, err := beat(r)
	if err != nil {
		return err
	}
	if err := s.permitCommand(r.Context(), h.ExecutionID, h.EventID); err != nil {
		return err
	}
	if err := s.opt.Plane.Release(r.Context(), h); err != nil {
		return noCommand(err, h.EventID)
	}
	writeBody(w, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}
