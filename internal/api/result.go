package api

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/noetl/noetl-go/internal/event"
)

func (s *Server) resultRoutes() []route {
	put := entry(http.MethodPut, "/api/result/{execution_id}", Worker, s.putResult, "puts a value aside that is too large for the log", `{name, data, scope?}`, `{ref, store, scope, bytes, sha256, expires_at}`)
	put.maxBody = maxResultBody
	return []route{
		entry(http.MethodGet, "/api/result/resolve", Viewer, s.result, "returns a value that was put aside, as it was put", "?ref", `value`),
		put,
	}
}

// maxResultBody bounds the body that brings a result; other bodies carry
// references to such values and may be far smaller.
const maxResultBody = 64 << 20

// resultBody is a value to put aside. Senders also say where to keep it and for
// how long (store, ttl, correlation, compress, source_step); the answer tells
// what became of it.
type resultBody struct {
	Name  string          `json:"name"`
	Data  json.RawMessage `json:"data"` // null is a value, too
	Scope string          `json:"scope"`
}

var resultScopes = []string{"", "step", "execution", "workflow", "permanent"}

func (s *Server) putResult(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	var body resultBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	switch {
	case body.Name == "":
		return event.Errorf(event.Invalid, "name is missing")
	case body.Data == nil:
		return event.Errorf(event.Invalid, "data is missing")
	case !slices.Contains(resultScopes, body.Scope):
		return event.Errorf(event.Invalid, "scope: want step, execution, workflow or permanent, got %q", body.Scope)
	}
	stored, err := s.opt.Plane.PutResult(r.Context(), id, body.Name, body.Data)
	if err != nil {
		return renamed(err, "Execution not found: %d", id)
	}
	return respond(w, stored)
}

// result answers with the bare value.
func (s *Server) result(w http.ResponseWriter, r *http.Request) error {
	ref := r.URL.Query().Get("ref")
	if ref == "" {
		return event.Errorf(event.BadRequest, "ref is missing: which result?")
	}
	if _, err := event.ParseResultRef(ref); err != nil {
		return unreadableRef(err)
	}
	data, err := s.opt.Plane.Result(r.Context(), ref)
	if err != nil {
		return renamed(err, "result not found")
	}
	writeBody(w, http.StatusOK, data)
	return nil
}

// unreadableRef makes a bad request of a reference nobody can read: this
// route's clients do not expect anything else.
func unreadableRef(err error) error {
	f := failureOf(err)
	f.Status, f.Code = http.StatusBadRequest, string(event.BadRequest)
	return f
}
