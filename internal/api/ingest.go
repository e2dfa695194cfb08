package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) eventRoutes() []route {
	return []route{
		entry(http.MethodPost, "/api/events", Worker, s.event, "records one event", `{execution_id, step, event_type, payload?, meta?, worker_id?, event_id?, status?, created_at?, eager?}`, `{status, event_id, commands_generated, commands?}`).within(Permitted).noted(ofWorkers),
		entry(http.MethodPost, "/api/events/batch", Worker, s.events, "records events of one execution as a whole", `{execution_id, worker_id?, events, eager?}`, `{status, event_ids, commands_generated, commands?}`).within(Permitted).noted(ofWorkers),
	}
}

const (
	maxBatch = 1000 // events in one report
	maxEager = 256  // commands handed over in one answer
)

// incoming is an event as senders of several generations write it. Where two
// names mean the same, the first one counts.
type incoming struct {
	EventID     event.ID   `json:"event_id"`
	Step        *string    `json:"step"`
	NodeName    *string    `json:"node_name"`
	EventType   string     `json:"event_type"`
	Name        string     `json:"name"`
	Payload     value      `json:"payload"`
	Context     value      `json:"context"`
	Meta        note       `json:"meta"`
	Status      string     `json:"status"`
	ResultKind  string     `json:"result_kind"`
	ResultURI   string     `json:"result_uri"`
	EventIDs    []event.ID `json:"event_ids"`
	Actionable  *bool      `json:"actionable"`
	Informative *bool      `json:"informative"`
	CreatedAt   instant    `json:"created_at"`
}

// informative is what senders mean who do not say whether an event is worth
// showing.
var informative = true

// event checks and translates one item; actionable is what the route assumes
// when the sender does not say.
func (in *incoming) event(actionable bool) (event.Incoming, error) {
	step, kind, payload := in.Step, in.EventType, in.Payload
	if step == nil {
		step = in.NodeName
	}
	if kind == "" {
		kind = in.Name
	}
	if payload == nil {
		payload = in.Context
	}
	switch {
	case step == nil:
		return event.Incoming{}, event.Errorf(event.Invalid, "step is missing")
	case kind == "":
		return event.Incoming{}, event.Errorf(event.Invalid, "event_type is missing")
	}
	switch in.ResultKind {
	case "", "data", "ref", "refs":
	default:
		return event.Incoming{}, event.Errorf(event.Invalid, "result_kind: want data, ref or refs, got %q", in.ResultKind)
	}
	if in.Actionable == nil {
		in.Actionable = &actionable
	}
	if in.Informative == nil {
		in.Informative = &informative
	}
	return event.Incoming{
		EventID:     in.EventID,
		Step:        *step,
		Type:        event.Type(kind),
		Status:      in.Status,
		Payload:     boxed(json.RawMessage(payload)),
		Meta:        json.RawMessage(in.Meta),
		ResultKind:  in.ResultKind,
		ResultURI:   in.ResultURI,
		EventIDs:    in.EventIDs,
		Actionable:  in.Actionable,
		Informative: in.Informative,
		CreatedAt:   time.Time(in.CreatedAt),
	}, nil
}

type eventBody struct {
	incoming
	ExecutionID event.ID `json:"execution_id"`
	WorkerID    string   `json:"worker_id"`
	Eager       count    `json:"eager"`
}

func (s *Server) event(w http.ResponseWriter, r *http.Request) error {
	var body eventBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if body.ExecutionID == 0 {
		return event.Errorf(event.Invalid, "execution_id is missing")
	}
	in, err := body.incoming.event(true)
	if err != nil {
		return err
	}
	a, err := s.report(r, event.Report{
		ExecutionID: body.ExecutionID, WorkerID: body.WorkerID, Events: []event.Incoming{in}, Eager: int(body.Eager),
	})
	if err != nil {
		return err
	}
	var id event.ID
	if len(a.EventIDs) > 0 {
		id = a.EventIDs[0]
	}
	b := append(make([]byte, 0, 128), `{"status":"ok","event_id":`...)
	b = strconv.AppendInt(b, int64(id), 10)
	writeBody(w, http.StatusOK, closeReport(b, a))
	return nil
}

type batchBody struct {
	ExecutionID value      `json:"execution_id"`
	WorkerID    string     `json:"worker_id"`
	Events      []incoming `json:"events"`
	Eager       count      `json:"eager"`
	EagerNot    []string   `json:"eager_not"`
}

func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	var body batchBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	// An empty report is fine whatever the id looks like: there is nothing to
	// say about it. One that asks for commands still has to be looked at.
	if len(body.Events) == 0 && body.Eager == 0 {
		passageOf(r.Context()).permitted = true
		writeBody(w, http.StatusOK, []byte(`{"status":"ok","event_ids":[],"commands_generated":0}`))
		return nil
	}
	rep, err := body.report()
	if err != nil {
		return err
	}
	a, err := s.report(r, rep)
	if err != nil {
		return err
	}
	b := append(make([]byte, 0, 256), `{"status":"ok","event_ids":[`...)
	for i, id := range a.EventIDs {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(id), 10)
	}
	b = append(b, ']')
	writeBody(w, http.StatusOK, closeReport(b, a))
	return nil
}

func (b *batchBody) report() (event.Report, error) {
	rep := event.Report{WorkerID: b.WorkerID, Eager: int(b.Eager), EagerNot: b.EagerNot, Events: make([]event.Incoming, len(b.Events))}
	if len(b.Events) > maxBatch {
		return rep, &event.Error{
			Code: event.Invalid, Message: fmt.Sprintf("%d events in one batch: at most %d are accepted", len(b.Events), maxBatch),
			Remedy: "send them in several batches",
		}
	}
	if len(b.ExecutionID) == 0 {
		return rep, event.Errorf(event.Invalid, "execution_id is missing")
	}
	if err := rep.ExecutionID.UnmarshalJSON(b.ExecutionID); err != nil {
		return rep, event.Errorf(event.Invalid, "execution_id: %w", err)
	}
	for i := range b.Events {
		in, err := b.Events[i].event(false)
		if err != nil {
			return rep, event.Errorf(event.Invalid, "events[%d]: %w", i, err)
		}
		rep.Events[i] = in
	}
	return rep, nil
}

func (s *Server) report(r *http.Request, rep event.Report) (event.ReportAnswer, error) {
	if err := s.permitExecution(r.Context(), rep.ExecutionID); err != nil {
		return event.ReportAnswer{}, err
	}
	a, err := s.opt.Plane.Report(r.Context(), rep)
	return a, renamed(err, "Execution not found: %d", rep.ExecutionID)
}

// closeReport writes the part both routes answer with and ends the object.
func closeReport(b []byte, a event.ReportAnswer) []byte {
	b = append(b, `,"commands_generated":`...)
	b = strconv.AppendInt(b, int64(a.CommandsGenerated), 10)
	if len(a.Commands) > 0 {
		b = append(b, `,"commands":`...)
		b = appendCommands(b, a.Commands)
	}
	return append(b, '}')
}
