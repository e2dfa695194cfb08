package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Variable is a named value clients keep beside an execution. The engine does
// not read it.
type Variable struct {
	ExecutionID event.ID
	Name        string
	Type        string // user_defined, step_result, computed, iterator_state
	Value       []byte // JSON
	SourceStep  string
	CreatedAt   time.Time
	AccessedAt  time.Time // zero until read by name
	AccessCount int
}

// Variables keeps values by execution and name.
type Variables interface {
	// SetVariables stores variables of one execution together; one that exists is
	// replaced and keeps CreatedAt and its accesses.
	SetVariables(ctx context.Context, execution event.ID, vars []Variable) error
	// Variables returns all of an execution by name.
	Variables(ctx context.Context, execution event.ID) ([]Variable, error)
	// Variable returns one and counts the access. ErrNotFound when absent.
	Variable(ctx context.Context, execution event.ID, name string, now time.Time) (Variable, error)
	// DeleteVariables removes one, or all when name is empty, and returns how many.
	DeleteVariables(ctx context.Context, execution event.ID, name string) (int, error)
}
