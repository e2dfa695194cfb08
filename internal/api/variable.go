package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Variables keeps values beside executions.
type Variables interface {
	SetVariables(ctx context.Context, execution event.ID, vars []store.Variable) (names []string, err error)
	Variables(ctx context.Context, execution event.ID) ([]store.Variable, error)
	Variable(ctx context.Context, execution event.ID, name string) (store.Variable, error)
	DeleteVariable(ctx context.Context, execution event.ID, name string) error
	DeleteVariables(ctx context.Context, execution event.ID) (int, error)
}

func (s *Server) variableRoutes() []route {
	return []route{
		entry(http.MethodGet, "/api/vars/{execution_id}", Viewer, s.variables, "lists the variables kept beside an execution", "?format=list|map", `[variable] | {execution_id, variables, count}`).within(ByExecution),
		entry(http.MethodPost, "/api/vars/{execution_id}", Worker, s.setVariables, "stores variables; those that exist are replaced", `{variables: [{var_name, var_value, var_type?, source_step?}] | {name: value}, var_type?, source_step?} | {name: value}`, `{execution_id, variables_set, var_names, status}`).within(ByExecution).noted(ofWorkers),
		entry(http.MethodDelete, "/api/vars/{execution_id}", Operator, s.deleteVariables, "removes all variables of an execution", "", `{execution_id, variables_deleted, status}`).within(ByExecution).noted("variables.deleted"),
		entry(http.MethodGet, "/api/vars/{execution_id}/{name}", Viewer, s.variable, "returns one variable and counts the access", "", `variable`).within(ByExecution),
		entry(http.MethodDelete, "/api/vars/{execution_id}/{name}", Operator, s.deleteVariable, "removes one variable", "", `{execution_id, var_name, status}`).within(ByExecution).noted("variables.deleted"),
	}
}

type variableView struct {
	Name        string          `json:"var_name"`
	Type        string          `json:"var_type"`
	Value       json.RawMessage `json:"var_value"`
	SourceStep  *string         `json:"source_step"`
	CreatedAt   time.Time       `json:"created_at"`
	AccessedAt  *time.Time      `json:"accessed_at"`
	AccessCount int             `json:"access_count"`
}

func viewVariable(v store.Variable) variableView {
	return variableView{
		v.Name, v.Type, orNull(v.Value), textOrNull(v.SourceStep), v.CreatedAt.UTC(), timeOrNull(v.AccessedAt), v.AccessCount,
	}
}

// mappedVariable is the same under its name, in the words of older clients.
type mappedVariable struct {
	Value       json.RawMessage `json:"value"`
	Type        string          `json:"type"`
	SourceStep  *string         `json:"source_step"`
	CreatedAt   time.Time       `json:"created_at"`
	AccessedAt  *time.Time      `json:"accessed_at"`
	AccessCount int             `json:"access_count"`
}

func (s *Server) variables(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	format := r.URL.Query().Get("format")
	if !slices.Contains([]string{"", "list", "map"}, format) {
		return event.Errorf(event.Invalid, "format: want list or map, got %q", format)
	}
	vars, err := s.opt.Plane.Variables(r.Context(), id)
	if err != nil {
		return err
	}
	views, byName := make([]variableView, len(vars)), make(map[string]mappedVariable, len(vars))
	for i, v := range vars {
		views[i] = viewVariable(v)
		byName[v.Name] = mappedVariable{views[i].Value, v.Type, views[i].SourceStep, views[i].CreatedAt, views[i].AccessedAt, v.AccessCount}
	}
	if format != "map" {
		return respond(w, views)
	}
	return respond(w, struct {
		ExecutionID event.ID                  `json:"execution_id"`
		Variables   map[string]mappedVariable `json:"variables"`
		Count       int                       `json:"count"`
	}{id, byName, len(vars)})
}

func (s *Server) setVariables(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	var body variablesBody
	if err := decode(r, &body, false); err != nil {
		return err
	}
	names, err := s.opt.Plane.SetVariables(r.Context(), id, body.vars)
	if err != nil {
		return noExecution(err, id)
	}
	return respond(w, struct {
		ExecutionID event.ID `json:"execution_id"`
		Set         int      `json:"variables_set"`
		Names       []string `json:"var_names"`
		Status      string   `json:"status"`
	}{id, len(names), names, "ok"})
}

// variablesBody reads the three shapes in which clients send variables: a list
// of descriptions, values by name with one description for all, and values by
// name alone. A lone variable that is called variables and holds a list or an
// object cannot be told from the first two and is read as such.
type variablesBody struct{ vars []store.Variable }

func (b *variablesBody) UnmarshalJSON(raw []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || members == nil {
		return event.Errorf(event.Invalid, "want an object with the variables, got %s", jsonKind(raw))
	}
	switch inner := bytes.TrimSpace(members["variables"]); {
	case len(inner) > 0 && inner[0] == '[':
		return b.list(inner)
	case len(inner) > 0 && inner[0] == '{':
		return b.described(raw)
	}
	b.vars = named(members, "", "")
	return nil
}

func (b *variablesBody) list(raw []byte) error {
	var items []struct {
		Name       string          `json:"var_name"`
		Value      json.RawMessage `json:"var_value"`
		Type       string          `json:"var_type"`
		SourceStep string          `json:"source_step"`
	}
	if err := json.Unmarshal(raw, &items); err != nil {
		return event.Errorf(event.Invalid, "variables: %w", err)
	}
	for _, v := range items {
		b.vars = append(b.vars, store.Variable{Name: v.Name, Value: v.Value, Type: v.Type, SourceStep: v.SourceStep})
	}
	return nil
}

func (b *variablesBody) described(raw []byte) error {
	var d struct {
		Variables  map[string]json.RawMessage `json:"variables"`
		Type       string                     `json:"var_type"`
		SourceStep string                     `json:"source_step"`
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	b.vars = named(d.Variables, d.Type, d.SourceStep)
	return nil
}

func named(values map[string]json.RawMessage, typ, step string) []store.Variable {
	vars := make([]store.Variable, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		vars = append(vars, store.Variable{Name: name, Value: values[name], Type: typ, SourceStep: step})
	}
	return vars
}

func (s *Server) variable(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	v, err := s.opt.Plane.Variable(r.Context(), id, r.PathValue("name"))
	if err != nil {
		return err
	}
	return respond(w, viewVariable(v))
}

func (s *Server) deleteVariable(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	name := r.PathValue("name")
	if err := s.opt.Plane.DeleteVariable(r.Context(), id, name); err != nil {
		return err
	}
	return respond(w, struct {
		ExecutionID event.ID `json:"execution_id"`
		Name        string   `json:"var_name"`
		Status      string   `json:"status"`
	}{id, name, "deleted"})
}

func (s *Server) deleteVariables(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "execution_id")
	if err != nil {
		return err
	}
	n, err := s.opt.Plane.DeleteVariables(r.Context(), id)
	if err != nil {
		return err
	}
	return respond(w, struct {
		ExecutionID event.ID `json:"execution_id"`
		Deleted     int      `json:"variables_deleted"`
		Status      string   `json:"status"`
	}{id, n, "ok"})
}
