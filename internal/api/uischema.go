package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
)

// uiSchemaPattern matches every path below the catalog that no other route
// does, because a catalog path holds slashes and must stand at the end of a
// pattern. Only those with the suffix mean something.
const uiSchemaPattern = "/api/catalog/{path...}"

// uiSchemaPath is the catalog path in that of a request for a form.
func uiSchemaPath(url string) (path string, ok bool) {
	path, ok = strings.CutSuffix(strings.TrimPrefix(url, "/api/catalog/"), "/ui_schema")
	return path, ok && path != ""
}

type uiSchemaAnswer struct {
	Path        string           `json:"path"`
	Version     int              `json:"version"`
	Kind        string           `json:"kind"`
	Title       string           `json:"title"`
	Description string           `json:"description_markdown"`
	Exposed     bool             `json:"exposed_in_ui"`
	Fields      []playbook.Field `json:"fields"`
	GeneratedAt time.Time        `json:"generated_at"`
}

func (s *Server) uiSchema(w http.ResponseWriter, r *http.Request) error {
	path, ok := uiSchemaPath(r.URL.Path)
	if !ok {
		return s.unrouted(w, r)
	}
	version, err := versionOf(r.URL.Query().Get("version"))
	if err != nil {
		return err
	}
	if err := s.permit(r.Context(), path); err != nil {
		return err
	}
	e, err := s.opt.Plane.Entry(r.Context(), control.EntryRef{Path: path, Version: version})
	if err != nil {
		return entryBody{Path: path}.missing(err)
	}
	form := playbook.FormOf([]byte(e.Content))
	if form.Title == "" {
		form.Title = e.Path
	}
	return respond(w, uiSchemaAnswer{
		Path: e.Path, Version: e.Version, Kind: e.Kind, Title: form.Title, Description: form.Description,
		Exposed: form.Exposed, Fields: form.Fields, GeneratedAt: s.opt.Clock().UTC(),
	})
}

// versionOf reads a version in the query as bodies write it.
func versionOf(text string) (int, error) {
	var v version
	if err := v.UnmarshalJSON([]byte(text)); err != nil {
		return 0, event.Errorf(event.Invalid, "version: %w", err)
	}
	return int(v), nil
}

type validateBody struct {
	Content string `json:"content"`
}

// validateAnswer lists complaints twice: as lines to show, and with their
// places for editors that mark them.
type validateAnswer struct {
	Valid    bool              `json:"valid"`
	Errors   []string          `json:"errors"`
	Warnings []string          `json:"warnings"`
	Problems playbook.Problems `json:"problems"`
}

func (s *Server) validate(w http.ResponseWriter, r *http.Request) error {
	var body validateBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	a := validateAnswer{Valid: true, Errors: []string{}, Warnings: []string{}, Problems: playbook.Problems{}}
	for _, p := range control.Validate(body.Content) {
		p.File = "" // a body has no file name
		a.Problems = append(a.Problems, p)
		short := p
		short.Source = ""
		if p.Severity == playbook.SeverityError {
			a.Valid, a.Errors = false, append(a.Errors, short.String())
		} else {
			a.Warnings = append(a.Warnings, short.String())
		}
	}
	return respond(w, a)
}
