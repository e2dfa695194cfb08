package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/control"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/source/schedule"
	"github.com/noetl/noetl-go/internal/store"
)

func (s *Server) catalogRoutes() []route {
	return []route{
		entry(http.MethodPost, "/api/catalog/register", Operator, s.register, "stores a resource as the next version of its path", `{content, resource_type?}`, `{status, message, path, version, catalog_id, kind, warnings?}`).within(Permitted).noted("catalog.registered"),
		entry(http.MethodPost, "/api/catalog/list", Viewer, s.entries, "lists catalog entries, newest first", `{resource_type?, path?, include_archived?, agent_only?, capability?, capabilities?, limit?, offset?}`, `{entries}`).within(Filtered).noted(readsOnly),
		entry(http.MethodPost, "/api/catalog/agents/list", Viewer, s.agents, "lists the entries that call themselves agents", `{path?, capability?, capabilities?, limit?, offset?}`, `{entries}`).within(Filtered).noted(readsOnly),
		entry(http.MethodGet, "/api/catalog/versions", Viewer, s.versions, "lists the versions of a path, newest first", "?path&include_archived", `{path, versions}`).within(Permitted),
		entry(http.MethodGet, "/api/catalog/list/{kind}", Viewer, s.paths, "lists the paths of one kind of resource", "", `[path]`).within(Filtered),
		entry(http.MethodPost, "/api/catalog/resource", Viewer, s.entry, "returns one catalog entry", `{catalog_id | path, version?}`, `entry`).within(Permitted).noted(readsOnly),
		entry(http.MethodPost, "/api/catalog/playbooks/validate", Viewer, s.validate, "says what registering a document would complain about", `{content}`, `{valid, errors, warnings, problems}`).within(Pathless).noted(readsOnly),
		entry(http.MethodPost, "/api/catalog/delete", Internal, s.removeEntries, "takes a version, or all, out of the catalog; executions that began with it go on", `{path, version?}`, `{status, message, path, deleted, count}`).within(Everywhere).noted("catalog.deleted"),
		entry(http.MethodPost, "/api/catalog/restore", Internal, s.restoreEntries, "brings back what was taken out and is still needed by executions", `{path, version?}`, `{status, message, path, restored, count}`).within(Everywhere).noted("catalog.restored"),
		entry(http.MethodGet, uiSchemaPattern, Viewer, s.uiSchema, "describes the inputs of a playbook; the path ends in /ui_schema", "?version", `{path, version, kind, title, description_markdown, exposed_in_ui, fields, generated_at}`).within(Permitted),
	}
}

type registerBody struct {
	Content      string `json:"content"`
	ResourceType string `json:"resource_type"`
}

type registerAnswer struct {
	Status    string            `json:"status"`
	Message   string            `json:"message"`
	Path      string            `json:"path"`
	Version   int               `json:"version"`
	CatalogID event.StringID    `json:"catalog_id"`
	Kind      string            `json:"kind"`
	Warnings  playbook.Problems `json:"warnings,omitempty"`
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) error {
	body := registerBody{ResourceType: "Playbook"}
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if strings.TrimSpace(body.Content) == "" {
		return event.Errorf(event.Invalid, "content: want the YAML of the resource")
	}
	reg, err := s.opt.Plane.Register(schedule.By(r.Context(), s.starter(r.Context())), control.RegisterRequest{
		Content: body.Content, ResourceType: body.ResourceType,
		Permit: func(path string) error {
			concerning(r.Context(), path)
			if slices.Contains(strings.Split(path, "/"), "..") { // in addresses it leads elsewhere
				return event.Errorf(event.Invalid, "the path %q holds .., which leads nowhere in a catalog", path)
			}
			return s.permitChange(r.Context(), path)
		},
	})
	if err != nil {
		return err
	}
	e := reg.Entry
	detail(r.Context(), "version", e.Version)
	return respond(w, registerAnswer{
		Status:    "success",
		Message:   fmt.Sprintf("Resource '%s' version '%d' registered.", e.Path, e.Version),
		Path:      e.Path,
		Version:   e.Version,
		CatalogID: event.StringID(e.CatalogID),
		Kind:      e.Kind,
		Warnings:  reg.Problems,
	})
}

// entryView is a catalog entry on the wire: every key is always there.
type entryView struct {
	CatalogID event.StringID  `json:"catalog_id"`
	Path      string          `json:"path"`
	Kind      string          `json:"kind"`
	Version   int             `json:"version"`
	Content   string          `json:"content"`
	Layout    json.RawMessage `json:"layout"`
	Payload   json.RawMessage `json:"payload"`
	Meta      json.RawMessage `json:"meta"`
	CreatedAt time.Time       `json:"created_at"`
}

func viewEntry(e store.Entry) entryView {
	return entryView{
		CatalogID: event.StringID(e.CatalogID),
		Path:      e.Path,
		Kind:      e.Kind,
		Version:   e.Version,
		Content:   e.Content,
		Layout:    layoutOf(e.Payload),
		Payload:   orNull(e.Payload),
		Meta:      orNull(e.Meta),
		CreatedAt: e.CreatedAt.UTC(),
	}
}

// layoutOf is the workflow of a parsed document.
func layoutOf(payload []byte) json.RawMessage {
	var doc struct {
		Workflow json.RawMessage `json:"workflow"`
	}
	_ = json.Unmarshal(payload, &doc) // what is no document has no workflow
	return doc.Workflow
}

func orNull(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}

type entriesBody struct {
	ResourceType string   `json:"resource_type"`
	Path         string   `json:"path"`
	Archived     bool     `json:"include_archived"`
	AgentOnly    bool     `json:"agent_only"`
	Capability   string   `json:"capability"`
	Capabilities []string `json:"capabilities"`
	Limit        int      `json:"limit"`
	Offset       int      `json:"offset"`
}

func (s *Server) entries(w http.ResponseWriter, r *http.Request) error {
	var body entriesBody
	if err := decode(r, &body, true); err != nil {
		return err
	}
	return s.listEntries(w, r, body)
}

func (s *Server) agents(w http.ResponseWriter, r *http.Request) error {
	var body entriesBody
	if err := decode(r, &body, true); err != nil {
		return err
	}
	body.AgentOnly = true
	return s.listEntries(w, r, body)
}

func (s *Server) listEntries(w http.ResponseWriter, r *http.Request, body entriesBody) error {
	if body.Limit < 0 || body.Offset < 0 {
		return event.Errorf(event.Invalid, "limit and offset must not be negative")
	}
	agents := control.AgentFilter{Only: body.AgentOnly, Capabilities: body.Capabilities}
	if body.Capability != "" {
		agents.Capabilities = append(agents.Capabilities, body.Capability)
	}
	f := store.EntryFilter{Kind: strings.ToLower(body.ResourceType), Path: body.Path, Archived: body.Archived}
	re := s.reach(r.Context())
	choosy := agents.Only || len(agents.Capabilities) > 0 || !re.everywhere
	if !choosy {
		f.Limit, f.Offset = body.Limit, body.Offset
	}
	list, err := s.opt.Plane.Entries(r.Context(), f)
	if err != nil {
		return err
	}
	if choosy { // pages are those of what is left
		list = re.keep(agents.Keep(list))
		list = list[min(body.Offset, len(list)):]
		if body.Limit > 0 {
			list = list[:min(body.Limit, len(list))]
		}
	}
	views := make([]entryView, len(list))
	for i, e := range list {
		views[i] = viewEntry(e)
	}
	return respond(w, struct {
		Entries []entryView `json:"entries"`
	}{views})
}

// paths answers older clients that only want to offer names to choose from.
func (s *Server) paths(w http.ResponseWriter, r *http.Request) error {
	list, err := s.opt.Plane.Entries(r.Context(), store.EntryFilter{Kind: strings.ToLower(r.PathValue("kind"))})
	if err != nil {
		return err
	}
	paths, seen := []string{}, map[string]bool{}
	for _, e := range s.reach(r.Context()).keep(list) {
		if !seen[e.Path] {
			seen[e.Path] = true
			paths = append(paths, e.Path)
		}
	}
	return respond(w, paths)
}

type entryBody struct {
	CatalogID event.ID `json:"catalog_id"`
	Path      string   `json:"path"`
	Version   version  `json:"version"`
}

func (s *Server) entry(w http.ResponseWriter, r *http.Request) error {
	var body entryBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	if body.CatalogID == 0 && body.Path == "" {
		return event.Errorf(event.Invalid, "either catalog_id or path is needed")
	}
	ref := control.EntryRef{CatalogID: body.CatalogID, Path: body.Path, Version: int(body.Version)}
	if err := s.permitEntry(r.Context(), ref, false); err != nil {
		return err
	}
	e, err := s.opt.Plane.Entry(r.Context(), ref)
	if err != nil {
		return body.missing(err)
	}
	return respond(w, viewEntry(e))
}

func (b entryBody) missing(err error) error {
	if b.CatalogID != 0 {
		return renamed(err, "Catalog entry not found: %d", b.CatalogID)
	}
	if b.Version != 0 {
		return renamed(err, "Resource not found: %s version %d", b.Path, b.Version)
	}
	return renamed(err, "Resource not found: %s", b.Path)
}
