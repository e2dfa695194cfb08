package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

type shelfBody struct {
	Path    string  `json:"path"`
	Version version `json:"version"`
}

// shelved names an entry that was taken out or brought back.
type shelved struct {
	CatalogID event.StringID `json:"catalog_id"`
	Version   int            `json:"version"`
	Archived  bool           `json:"archived,omitempty"` // it is kept for executions that use it
}

type shelfAnswer struct {
	Status   string    `json:"status"`
	Message  string    `json:"message"`
	Path     string    `json:"path"`
	Deleted  []shelved `json:"deleted,omitzero"`
	Restored []shelved `json:"restored,omitzero"`
	Count    int       `json:"count"`
}

// removeEntries and restoreEntries may be repeated: what is done is done.
func (s *Server) removeEntries(w http.ResponseWriter, r *http.Request) error {
	var body shelfBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	concerning(r.Context(), body.Path)
	list, err := s.opt.Plane.RemoveEntries(r.Context(), body.Path, int(body.Version))
	if err != nil {
		return err
	}
	return respond(w, shelfAnswer{
		Status: "success", Message: fmt.Sprintf("%d of '%s' removed.", len(list), body.Path), Path: body.Path,
		Deleted: shelve(list), Count: len(list),
	})
}

func (s *Server) restoreEntries(w http.ResponseWriter, r *http.Request) error {
	var body shelfBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	concerning(r.Context(), body.Path)
	list, err := s.opt.Plane.RestoreEntries(r.Context(), body.Path, int(body.Version))
	if err != nil {
		return err
	}
	return respond(w, shelfAnswer{
		Status: "success", Message: fmt.Sprintf("%d of '%s' restored.", len(list), body.Path), Path: body.Path,
		Restored: shelve(list), Count: len(list),
	})
}

func shelve(list []store.Entry) []shelved {
	out := make([]shelved, len(list))
	for i, e := range list {
		out[i] = shelved{event.StringID(e.CatalogID), e.Version, !e.ArchivedAt.IsZero()}
	}
	return out
}

// versionView is an entry without its content.
type versionView struct {
	CatalogID  event.StringID `json:"catalog_id"`
	Version    int            `json:"version"`
	Kind       string         `json:"kind"`
	CreatedAt  time.Time      `json:"created_at"`
	ArchivedAt *time.Time     `json:"archived_at"`
}

func (s *Server) versions(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	path, archived := q.Get("path"), q.flag("include_archived", false)
	switch {
	case q.err != nil:
		return q.err
	case path == "":
		return event.Errorf(event.Invalid, "path: which resource?")
	}
	if err := s.permit(r.Context(), path); err != nil {
		return err
	}
	list, err := s.opt.Plane.Entries(r.Context(), store.EntryFilter{Path: path, Archived: archived})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return event.Errorf(event.NotFound, "Resource not found: %s", path)
	}
	views := make([]versionView, len(list))
	for i, e := range list {
		views[i] = versionView{event.StringID(e.CatalogID), e.Version, e.Kind, e.CreatedAt.UTC(), timeOrNull(e.ArchivedAt)}
	}
	return respond(w, struct {
		Path     string        `json:"path"`
		Versions []versionView `json:"versions"`
	}{list[0].Path, views})
}
