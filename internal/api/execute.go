package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) executeRoutes() []route {
	return []route{
		entry(http.MethodPost, "/api/execute", Operator, s.execute, "starts an execution", `{path | catalog_id, version?, payload?, parent_execution_id?, execution_pool?, trace?, resource_kind?}`, `{execution_id, status, commands_generated, warnings?}`),
	}
}

type executeBody struct {
	Path         string   `json:"path"`
	CatalogID    event.ID `json:"catalog_id"`
	Version      version  `json:"version"`
	Payload      object   `json:"payload"`
	Workload     object   `json:"workload"` // older name of payload
	ParentID     event.ID `json:"parent_execution_id"`
	Pool         string   `json:"execution_pool"`
	Trace        object   `json:"trace"`
	ResourceKind string   `json:"resource_kind"`
	Dedup        value    `json:"dedup"`
}

func (b executeBody) check() error {
	if b.Path == "" && b.CatalogID == 0 {
		return event.Errorf(event.Invalid, "either path or catalog_id is needed")
	}
	switch strings.ToLower(b.ResourceKind) {
	case "", "playbook", "agent":
	default:
		return event.Errorf(event.Invalid, "resource_kind: want playbook or agent, got %q", b.ResourceKind)
	}
	if e, bad := errors.AsType[*event.Error](event.CheckPool(b.Pool)); bad && b.Pool != "" {
		named := *e
		named.Message = "execution_pool: " + e.Message
		return &named
	}
	// Starting twice what was meant to start once is worse than not starting.
	if len(b.Dedup) > 0 {
		e := event.Errorf(event.Invalid, "dedup: this server does not de-duplicate starts")
		e.Remedy = "leave dedup out and make the playbook idempotent"
		return e
	}
	return nil
}

// missing says which version was asked for, since the path alone may exist.
func (b executeBody) missing(err error) error {
	if b.CatalogID != 0 || b.Version == 0 {
		return err
	}
	return renamed(err, "Playbook not found: %s version %d", b.Path, b.Version)
}

type executeAnswer struct {
	ExecutionID       event.StringID `json:"execution_id"`
	Status            string         `json:"status"`
	CommandsGenerated int            `json:"commands_generated"`
	Warnings          []string       `json:"warnings,omitempty"`
}

func (s *Server) execute(w http.ResponseWriter, r *http.Request) error {
	var body executeBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	payload := body.Payload
	if payload == nil {
		payload = body.Workload
	}
	a, err := s.opt.Plane.Execute(r.Context(), control.ExecuteRequest{
		Path:              body.Path,
		CatalogID:         body.CatalogID,
		Version:           int(body.Version),
		Payload:           json.RawMessage(payload),
		ParentExecutionID: body.ParentID,
		Pool:              body.Pool,
		Trace:             json.RawMessage(body.Trace),
	})
	if err != nil {
		return body.missing(err)
	}
	return respond(w, executeAnswer{event.StringID(a.ExecutionID), a.Status, a.CommandsGenerated, a.Warnings})
}
