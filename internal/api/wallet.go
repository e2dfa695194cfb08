package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/store"
)

func (s *Server) rotateKeys(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	var body secret.RotateRequest
	if err := decode(r, &body, true); err != nil {
		return err
	}
	return s.prove(w, r, func(ctx context.Context) (any, error) { return secrets.Rotate(ctx, body, s.use(r)) })
}

func (s *Server) keyStatus(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	status, err := secrets.KeyStatus(r.Context())
	if err != nil {
		return err
	}
	return respond(w, status)
}

type auditView struct {
	ID                string    `json:"audit_id"`
	At                time.Time `json:"occurred_at"`
	Credential        string    `json:"credential"`
	Operation         string    `json:"operation"`
	Outcome           string    `json:"outcome"`
	Actor             string    `json:"actor,omitempty"`
	RequestID         string    `json:"request_id,omitempty"`
	WorkerID          string    `json:"worker_id,omitempty"`
	ExecutionID       string    `json:"execution_id,omitempty"`
	ParentExecutionID string    `json:"parent_execution_id,omitempty"`
	Region            string    `json:"server_region,omitempty"`
	KeyVersion        string    `json:"kek_version,omitempty"`
	Notes             string    `json:"notes,omitempty"`
}

func viewAudit(l store.SecretAudit) auditView {
	v := auditView{
		ID: l.ID.String(), At: l.At.UTC(), Credential: l.Credential, Operation: l.Operation, Outcome: l.Outcome, Actor: l.Actor,
		RequestID: l.RequestID, WorkerID: l.WorkerID, Region: l.Region, KeyVersion: l.KeyVersion, Notes: l.Notes,
	}
	if l.ExecutionID != 0 {
		v.ExecutionID = l.ExecutionID.String()
	}
	if l.ParentExecutionID != 0 {
		v.ParentExecutionID = l.ParentExecutionID.String()
	}
	return v
}

func (s *Server) secretAudit(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	f, err := auditFilter(r)
	if err != nil {
		return err
	}
	lines, err := secrets.Audit(r.Context(), f)
	if err != nil {
		return err
	}
	views := make([]auditView, len(lines))
	for i, l := range lines {
		views[i] = viewAudit(l)
	}
	return respond(w, struct {
		Items []auditView `json:"items"`
		Count int         `json:"count"`
	}{views, len(views)})
}

func auditFilter(r *http.Request) (f store.AuditFilter, err error) {
	q := r.URL.Query()
	f.Credential = q.Get("credential")
	if f.ExecutionID, err = queryID(r, "execution_id"); err != nil {
		return f, err
	}
	for name, at := range map[string]*time.Time{"from": &f.From, "to": &f.To} {
		if v := q.Get(name); v != "" {
			if *at, err = time.Parse(time.RFC3339Nano, v); err != nil {
				return f, event.Errorf(event.Invalid, "%s: want a time such as 2026-01-31T12:00:00Z, got %q", name, v)
			}
		}
	}
	if v := q.Get("limit"); v != "" {
		if f.Limit, err = strconv.Atoi(v); err != nil || f.Limit < 1 {
			return f, event.Errorf(event.Invalid, "limit: want a number from 1, got %q", v)
		}
	}
	return f, nil
}
