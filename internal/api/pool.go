package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

// Pools is the registry of workers and other processes.
type Pools interface {
	Enlist(ctx context.Context, r event.Registration) (event.Registered, error)
	Beat(ctx context.Context, b event.Pulse) (event.PulseAnswer, error)
	Leave(ctx context.Context, kind, name string) (known bool, err error)
	Registered(ctx context.Context, f control.RegisteredFilter) ([]event.Registered, error)
}

func (s *Server) poolRoutes() []route {
	return []route{
		entry(http.MethodPost, "/api/worker/pool/register", Worker, s.enlist, "makes a worker known", `{name, kind?, uri?, status?, labels?, capabilities?, capacity?, runtime?, hostname?}`, `runtime`).within(Pathless).noted(ofWorkers),
		entry(http.MethodPost, "/api/worker/pool/heartbeat", Worker, s.pulse, "tells that a worker is alive and renews the leases of its commands", `{name, kind?, commands?, registration?}`, `{status, message, cancel?}`).within(Pathless).noted(ofWorkers),
		entry(http.MethodPost, "/api/worker/pool/deregister", Worker, s.leave, "forgets a worker that ends", `{name, kind?}`, `{status, message, name, deleted}`).within(Pathless).noted(ofWorkers),
		entry(http.MethodDelete, "/api/worker/pool/deregister", Worker, s.leave, "the same", `{name, kind?}`, `{status, message, name, deleted}`).within(Pathless).noted(ofWorkers),
		entry(http.MethodGet, "/api/worker/pools", Viewer, s.pools, "lists workers; silent ones are offline", "?kind&status&name", `[runtime]`).within(Everywhere),
	}
}

// registrationBody is a registration as workers of several generations send
// it. Where two names mean the same, the first one counts.
type registrationBody struct {
	Name          string `json:"name"`
	Kind          string `json:"kind"`
	ComponentType string `json:"component_type"`
	URI           string `json:"uri"`
	BaseURL       string `json:"base_url"`
	Status        string `json:"status"`
	Labels        value  `json:"labels"`
	Capabilities  value  `json:"capabilities"`
	Capacity      int    `json:"capacity"`
	Runtime       value  `json:"runtime"`
	Hostname      string `json:"hostname"`
}

func (b registrationBody) registration() event.Registration {
	return event.Registration{
		Name: b.Name, Kind: first(b.Kind, b.ComponentType), URI: first(b.URI, b.BaseURL), Status: b.Status,
		Labels: json.RawMessage(b.Labels), Capabilities: json.RawMessage(b.Capabilities), Capacity: b.Capacity,
		Runtime: withHostname(b.Runtime, b.Hostname),
	}
}

// withHostname keeps the name of the machine with what else is known of the process.
func withHostname(runtime value, host string) json.RawMessage {
	known := map[string]json.RawMessage{}
	if host == "" || len(runtime) > 0 && json.Unmarshal(runtime, &known) != nil {
		return json.RawMessage(runtime)
	}
	if _, said := known["hostname"]; said {
		return json.RawMessage(runtime)
	}
	known["hostname"], _ = json.Marshal(host)
	raw, _ := json.Marshal(known) // values that were read can be written
	return raw
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s *Server) enlist(w http.ResponseWriter, r *http.Request) error {
	var body registrationBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	reg := body.registration()
	if err := s.permitName(r.Context(), &reg); err != nil {
		return err
	}
	row, err := s.opt.Plane.Enlist(r.Context(), reg)
	if err != nil {
		return err
	}
	return respond(w, row)
}

// heldCommand is a command a worker runs: its id, or more about it.
type heldCommand event.Heartbeat

func (c *heldCommand) UnmarshalJSON(raw []byte) error {
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '{' {
		return json.Unmarshal(raw, (*event.Heartbeat)(c))
	}
	return json.Unmarshal(raw, &c.EventID)
}

type pulseBody struct {
	registrationBody
	Commands     []heldCommand     `json:"commands"`
	Registration *registrationBody `json:"registration"`
}

type pulseAnswer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	event.PulseAnswer
}

func (s *Server) pulse(w http.ResponseWriter, r *http.Request) error {
	var body pulseBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	b := event.Pulse{Name: body.Name, Kind: first(body.Kind, body.ComponentType)}
	if body.Registration != nil {
		reg := body.Registration.registration()
		b.Registration, b.Name, b.Kind = &reg, first(b.Name, reg.Name), first(b.Kind, reg.Kind)
	}
	if b.Name == "" {
		return event.Errorf(event.Invalid, "name is missing: whose heartbeat is it?")
	}
	if body.Commands != nil {
		b.Commands = make([]event.Heartbeat, 0, len(body.Commands))
		for i, c := range body.Commands {
			if c.EventID == 0 {
				return event.Errorf(event.Invalid, "commands[%d]: event_id is missing", i)
			}
			if s.permitCommand(r.Context(), c.ExecutionID, c.EventID) == nil { // the lease of another's is not its to renew
				b.Commands = append(b.Commands, event.Heartbeat(c))
			}
		}
	}
	whose := &event.Registration{Name: b.Name}
	if b.Registration != nil {
		b.Registration.Name = b.Name
		whose = b.Registration
	}
	if err := s.permitName(r.Context(), whose); err != nil {
		return err
	}
	a, err := s.opt.Plane.Beat(r.Context(), b)
	if err != nil {
		return err
	}
	return respond(w, pulseAnswer{"ok", "Heartbeat recorded", a})
}

// leave answers the same whether or not the worker was known: it is gone.
func (s *Server) leave(w http.ResponseWriter, r *http.Request) error {
	var body registrationBody
	if err := decode(r, &body, true); err != nil {
		return err
	}
	q := r.URL.Query() // some clients cannot send a body with DELETE
	name, kind := first(body.Name, q.Get("name")), first(first(body.Kind, body.ComponentType), q.Get("kind"))
	if name == "" {
		return event.Errorf(event.Invalid, "name is missing: who leaves?")
	}
	if err := s.permitName(r.Context(), &event.Registration{Name: name}); err != nil {
		return err
	}
	known, err := s.opt.Plane.Leave(r.Context(), kind, name)
	if err != nil {
		return err
	}
	return respond(w, struct {
		Status  string `json:"status"`
		Message string `json:"message"`
		Name    string `json:"name"`
		Deleted bool   `json:"deleted"`
	}{"ok", "Deregistered " + name, name, known})
}

// registrantKey is where the registration of a narrowed worker says whose it is.
const registrantKey = "registered_by"

// permitName keeps narrowed workers from speaking for others: a name that is
// known is only theirs when they registered it. It marks r as the caller's.
func (s *Server) permitName(ctx context.Context, r *event.Registration) error {
	p := passageOf(ctx)
	if !p.narrowed() {
		return nil
	}
	f := control.RegisteredFilter{Name: r.Name}
	if strings.Contains(r.Name, `\`) { // patterns read it otherwise
		f.Name = ""
	}
	list, err := s.opt.Plane.Registered(ctx, f)
	if err != nil {
		return err
	}
	for i := range list {
		if list[i].Name == r.Name && registrant(list[i].Runtime) != p.who.ID {
			return p.forbidden("the name " + strconv.Quote(r.Name) + " belongs to another worker")
		}
	}
	runtime := map[string]json.RawMessage{}
	if len(r.Runtime) > 0 && json.Unmarshal(r.Runtime, &runtime) != nil || runtime == nil {
		return event.Errorf(event.Invalid, "runtime: want an object")
	}
	runtime[registrantKey], _ = json.Marshal(p.who.ID) // texts have a JSON form
	r.Runtime, err = json.Marshal(runtime)
	return err
}

func registrant(runtime json.RawMessage) string {
	var r map[string]json.RawMessage
	var id string
	if json.Unmarshal(runtime, &r) == nil {
		_ = json.Unmarshal(r[registrantKey], &id) // what is no text is nobody
	}
	return id
}

func (s *Server) pools(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	list, err := s.opt.Plane.Registered(r.Context(), control.RegisteredFilter{Kind: q.Get("kind"), Name: q.Get("name"), Status: q.Get("status")})
	if err != nil {
		return err
	}
	return respond(w, list)
}
