package sqlite

import (
	"context"
	"errors"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

var errLater = errors.New("not implemented")

// PutResult implements store.Results.
func (s *Store) PutResult(context.Context, store.Result) error { return errLater }

// Result implements store.Results.
func (s *Store) Result(context.Context, event.ID, string) (store.Result, error) {
	return store.Result{}, errLater
}

// DueExecutions implements store.Executions.
func (s *Store) DueExecutions(context.Context, time.Time, int) ([]event.ID, error) { return nil, nil }
