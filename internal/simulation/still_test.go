package simulation

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// still stands behind a gate for what is not part of the simulation: nothing is
// old enough to be cleaned away, and no process makes itself known.
type still struct{ store.Store }

func (still) PurgeOutbox(context.Context, time.Time, int) (int, error) { return 0, nil }
func (still) PurgeClaims(context.Context, time.Time, int) (int, error) { return 0, nil }

func (still) Runtime(context.Context, string, string) (store.Runtime, error) {
	return store.Runtime{}, store.ErrNotFound
}

func (still) ListRuntimes(context.Context, store.RuntimeFilter) ([]store.Runtime, error) {
	return nil, nil
}

func (still) Colocated(event.ID, store.StartClaim) bool { return true }

func (still) ExpiredResults(context.Context, time.Time, int) ([]store.Result, error) { return nil, nil }

func (still) EndedResults(context.Context, time.Time, store.ResultPosition, int) ([]store.Result, error) {
	return nil, nil
}

func (still) PinResult(context.Context, event.ID, string, event.ID) error { return nil }
