package api

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/noetl/noetl-go/internal/auth"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/secret"
	"github.com/noetl/noetl-go/internal/store"
)

// Secrets keeps credentials and tells who used them. *secret.Service does.
type Secrets interface {
	Put(ctx context.Context, r secret.Registration, use secret.Use) (c store.Credential, created bool, err error)
	Find(ctx context.Context, identifier string) (store.Credential, error)
	List(ctx context.Context, f store.CredentialFilter) ([]store.Credential, error)
	Open(ctx context.Context, identifier string, use secret.Use) (store.Credential, json.RawMessage, error)
	Check(ctx context.Context, identifier string, use secret.Use) (secret.Checked, error)
	Delete(ctx context.Context, identifier string, use secret.Use) (store.Credential, error)
	Record(ctx context.Context, use secret.Use, credential, outcome, keyVersion string) error
	Rotate(ctx context.Context, r secret.RotateRequest, use secret.Use) (secret.RotationReport, error)
	KeyStatus(ctx context.Context) (secret.KeyStatus, error)
	Audit(ctx context.Context, f store.AuditFilter) ([]store.SecretAudit, error)
}

func (s *Server) credentialRoutes() []route {
	const credential = `{id, name, type, meta?, tags?, description?, created_at, updated_at}`
	rotate := entry(http.MethodPost, "/api/internal/wallet/rotate-kek", Internal, s.rotateKeys, "wraps the keys of all secrets with the current encryption key",
		`{batch_size?, max_batches?}`, `{credential: {processed, rewrapped, skipped, failed, last_id?, more?}, keychain: {…}, key_version}`).within(Everywhere).noted("keys.rotated")
	rotate.stream = true
	return []route{
		entry(http.MethodPost, "/api/credentials", Operator, s.putCredential, "stores a credential by its name", `{name, type, data, meta?, tags?, description?}`, credential).within(Everywhere).noted("credential.stored"),
		entry(http.MethodGet, "/api/credentials", Viewer, s.listCredentials, "lists credentials without what is secret in them", "?type=&q=", `{items: [credential], filter?}`).within(Everywhere),
		entry(http.MethodGet, "/api/credentials/{identifier}", Viewer, s.credential, "shows a credential; what is secret in it only to the internal token", "?include_data=&execution_id=&parent_execution_id=", credential).within(Everywhere),
		entry(http.MethodGet, "/api/credentials/{identifier}/check", Operator, s.checkCredential, "tells whether a credential can be opened, without showing it", "", `{name, type, ok, fields, key_version}`).within(Everywhere),
		entry(http.MethodDelete, "/api/credentials/{identifier}", Operator, s.deleteCredential, "removes a credential", "", `{message, id}`).within(Everywhere).noted("credential.deleted"),
		rotate,
		entry(http.MethodGet, "/api/internal/wallet/key-status", Internal, s.keyStatus, "counts secrets by the encryption key they need", "", `{credential: {version: count}, keychain: {…}, current}`).within(Everywhere),
		entry(http.MethodGet, "/api/internal/secret-audit", Internal, s.secretAudit, "tells who used which secret, newest first", "?credential=&execution_id=&from=&to=&limit=", `{items: [{audit_id, occurred_at, credential, operation, outcome, actor?, request_id?, …}], count}`).within(Everywhere),
	}
}

func (s *Server) secrets() (Secrets, error) {
	if s.opt.Secrets == nil {
		return nil, &event.Error{Code: event.Unavailable, Message: "this server keeps no credentials", Reason: "no_secrets"}
	}
	return s.opt.Secrets, nil
}

type credentialView struct {
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Meta        json.RawMessage `json:"meta,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	Description string          `json:"description,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
}

func viewCredential(c store.Credential) credentialView {
	return credentialView{
		ID: c.ID.String(), Name: c.Name, Type: c.Type, Meta: c.Meta, Tags: c.Tags, Description: c.Description,
		CreatedAt: c.CreatedAt.UTC(), UpdatedAt: c.UpdatedAt.UTC(),
	}
}

// use is on whose behalf a request asks.
func (s *Server) use(r *http.Request) secret.Use {
	actor := "api"
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		actor = "api from " + host
	}
	p := passageOf(r.Context())
	switch {
	case s.opt.InternalToken != "" && s.hasInternalToken(r):
		actor = "internal token"
	case p.who.By != auth.ByNothing:
		actor = p.who.ID
	}
	return secret.Use{Actor: actor, RequestID: p.requestID}
}

func (s *Server) putCredential(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	var body secret.Registration
	if err := decodeSecret(r, &body); err != nil {
		return err
	}
	concerning(r.Context(), body.Name)
	c, _, err := secrets.Put(r.Context(), body, s.use(r))
	if err != nil {
		return err
	}
	return respond(w, viewCredential(c))
}

// decodeSecret reads a body whose text no error may repeat.
func decodeSecret(r *http.Request, body *secret.Registration) error {
	err := decode(r, body, false)
	if code := event.CodeOf(err); err == nil || code == event.Limit || code == event.Unavailable {
		return err
	} else if code == event.BadRequest {
		return &event.Error{Code: code, Message: "the request body is empty or not JSON", Remedy: "send {name, type, data} as a JSON object"}
	}
	return &event.Error{Code: event.Invalid, Message: "the request body has a field of the wrong type", Remedy: "name, type and description are text, data is an object, tags is a list of text"}
}

func (s *Server) listCredentials(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	q := r.URL.Query()
	f := store.CredentialFilter{Type: q.Get("type"), Query: q.Get("q")}
	found, err := secrets.List(r.Context(), f)
	if err != nil {
		return err
	}
	a := struct {
		Items  []credentialView  `json:"items"`
		Filter map[string]string `json:"filter,omitempty"`
	}{Items: make([]credentialView, len(found)), Filter: map[string]string{}}
	for i, c := range found {
		a.Items[i] = viewCredential(c)
	}
	for name, v := range map[string]string{"type": f.Type, "q": f.Query} {
		if v != "" {
			a.Filter[name] = v
		}
	}
	return respond(w, a)
}

func (s *Server) credential(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	name := r.PathValue("identifier")
	withData := false
	if v := r.URL.Query().Get("include_data"); v != "" {
		if withData, err = strconv.ParseBool(v); err != nil {
			return event.Errorf(event.Invalid, "include_data: want true or false, got %q", v)
		}
	}
	if withData {
		return s.breakGlass(w, r, secrets, name)
	}
	c, err := secrets.Find(r.Context(), name)
	if err != nil {
		return err
	}
	return respond(w, viewCredential(c))
}

// breakGlass shows a secret to whoever has the internal token. It is written
// down either way. Workers have a route of their own, bound to what they run.
func (s *Server) breakGlass(w http.ResponseWriter, r *http.Request, secrets Secrets, name string) error {
	use := s.use(r)
	use.Operation = secret.OpGet
	for at, id := range map[string]*event.ID{"execution_id": &use.ExecutionID, "parent_execution_id": &use.ParentExecutionID} {
		var err error
		if *id, err = queryID(r, at); err != nil {
			return err
		}
	}
	if s.authorizeInternal(r) != nil {
		denied := &event.Error{
			Code: event.Forbidden, Message: "the secrets of a credential are not shown",
			Remedy: "workers get them for the command they hold; in an emergency send the internal token as a bearer token", Reason: "include_data",
		}
		if err := secrets.Record(r.Context(), use, name, secret.OutcomeDenied, ""); err != nil {
			return err
		}
		return denied
	}
	c, data, err := secrets.Open(r.Context(), name, use)
	if err != nil {
		return err
	}
	defer clear(data)
	view := viewCredential(c)
	view.Data = data
	w.Header().Set("Cache-Control", "no-store")
	return respond(w, view)
}

// queryID is an id in the query, or 0.
func queryID(r *http.Request, name string) (event.ID, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(v, 10, 64)
	if err != nil || id < 0 {
		return 0, event.Errorf(event.Invalid, "%s: want an id, got %q", name, v)
	}
	return event.ID(id), nil
}

func (s *Server) checkCredential(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	c, err := secrets.Check(r.Context(), r.PathValue("identifier"), s.use(r))
	if err != nil {
		return err
	}
	return respond(w, struct {
		Name       string   `json:"name"`
		Type       string   `json:"type"`
		OK         bool     `json:"ok"`
		Fields     []string `json:"fields"`
		KeyVersion string   `json:"key_version"`
	}{c.Credential.Name, c.Credential.Type, true, c.Fields, c.KeyVersion})
}

func (s *Server) deleteCredential(w http.ResponseWriter, r *http.Request) error {
	secrets, err := s.secrets()
	if err != nil {
		return err
	}
	c, err := secrets.Delete(r.Context(), r.PathValue("identifier"), s.use(r))
	if err != nil {
		return err
	}
	return respond(w, struct {
		Message string `json:"message"`
		ID      string `json:"id"`
	}{"Credential deleted successfully", c.ID.String()})
}
