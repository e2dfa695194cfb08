package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	maxVariable     = 1 << 20 // bytes of one value
	maxVariableName = 255     // bytes
	maxVariables    = 1000    // in one request
)

// variableTypes are what a variable may say it is; the first is the default.
var variableTypes = []string{"user_defined", "step_result", "computed", "iterator_state"}

// SetVariables stores variables beside an execution and returns their names in
// order. Of two with one name the later counts. NotFound when there is no such
// execution; Invalid or Limit when one cannot be kept, and then none is stored.
func (p *Plane) SetVariables(ctx context.Context, execution event.ID, vars []store.Variable) ([]string, error) {
	if len(vars) > maxVariables {
		return nil, event.Errorf(event.Limit, "%d variables in one request: at most %d are accepted", len(vars), maxVariables)
	}
	byName, now := make(map[string]store.Variable, len(vars)), p.now()
	for i, v := range vars {
		if err := checkVariable(&v); err != nil {
			return nil, fmt.Errorf("variable %d: %w", i+1, err)
		}
		v.ExecutionID, v.CreatedAt = execution, now
		byName[v.Name] = v
	}
	if _, err := p.Execution(ctx, execution); err != nil {
		return nil, err
	}
	names, unique := make([]string, 0, len(byName)), make([]store.Variable, 0, len(byName))
	for _, v := range vars {
		if !slices.Contains(names, v.Name) {
			names, unique = append(names, v.Name), append(unique, byName[v.Name])
		}
	}
	if len(unique) == 0 {
		return names, nil
	}
	if err := p.store.SetVariables(ctx, execution, unique); err != nil {
		return nil, storeError("store variables", err)
	}
	return names, nil
}

func checkVariable(v *store.Variable) error {
	if v.Type == "" {
		v.Type = variableTypes[0]
	}
	switch {
	case v.Name == "":
		return event.Errorf(event.Invalid, "var_name: a variable needs a name")
	case len(v.Name) > maxVariableName || strings.ContainsRune(v.Name, 0):
		return event.Errorf(event.Invalid, "var_name: at most %d bytes of text, without a zero byte, are accepted", maxVariableName)
	case !slices.Contains(variableTypes, v.Type):
		return event.Errorf(event.Invalid, "var_type of %s: want one of %s, got %q", v.Name, strings.Join(variableTypes, ", "), v.Type)
	case len(v.Value) == 0:
		return event.Errorf(event.Invalid, "var_value of %s is missing", v.Name)
	case len(v.Value) > maxVariable:
		return &event.Error{
			Code: event.Limit, Message: fmt.Sprintf("the variable %s has %d bytes, at most %d are accepted", v.Name, len(v.Value), maxVariable),
			Remedy: "put the value aside with PUT /api/result/{execution_id} and keep the reference in the variable",
		}
	case !json.Valid(v.Value):
		return event.Errorf(event.Invalid, "var_value of %s is not JSON", v.Name)
	}
	return nil
}

// Variables returns the variables of an execution by name; an unknown one has none.
func (p *Plane) Variables(ctx context.Context, execution event.ID) ([]store.Variable, error) {
	vars, err := p.store.Variables(ctx, execution)
	if err != nil {
		return nil, storeError("read variables", err)
	}
	return vars, nil
}

// Variable returns one and counts the access. NotFound when there is none.
func (p *Plane) Variable(ctx context.Context, execution event.ID, name string) (store.Variable, error) {
	v, err := p.store.Variable(ctx, execution, name, p.now())
	if errors.Is(err, store.ErrNotFound) {
		return store.Variable{}, noVariable(execution, name)
	}
	if err != nil {
		return store.Variable{}, storeError("read variable", err)
	}
	return v, nil
}

// DeleteVariable removes one. NotFound when there is none.
func (p *Plane) DeleteVariable(ctx context.Context, execution event.ID, name string) error {
	if name == "" {
		return noVariable(execution, name)
	}
	n, err := p.store.DeleteVariables(ctx, execution, name)
	if err != nil {
		return storeError("delete variable", err)
	}
	if n == 0 {
		return noVariable(execution, name)
	}
	return nil
}

// DeleteVariables removes all variables of an execution and returns how many.
func (p *Plane) DeleteVariables(ctx context.Context, execution event.ID) (int, error) {
	n, err := p.store.DeleteVariables(ctx, execution, "")
	if err != nil {
		return 0, storeError("delete variables", err)
	}
	return n, nil
}

func noVariable(execution event.ID, name string) error {
	return event.Errorf(event.NotFound, "Variable not found: %s of execution %s", name, execution)
}
