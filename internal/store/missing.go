package store

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// Missing stands in for what a driver does not have yet.
type Missing struct{}

var errMissing = event.Errorf(event.Internal, "the store does not have this yet")

func (Missing) ClaimHolder(ctx context.Context, c StartClaim) (event.ID, error) { return 0, errMissing }

func (Missing) Colocated(id event.ID, c StartClaim) bool { return true }

func (Missing) PurgeClaims(ctx context.Context, before time.Time, limit int) (int, error) {
	return 0, errMissing
}

func (Missing) ClaimOutbox(ctx context.Context, c OutboxClaim) ([]OutboxRow, error) {
	return nil, errMissing
}

func (Missing) MarkPublished(ctx context.Context, token string, ids []int64, now time.Time) (int, error) {
	return 0, errMissing
}

func (Missing) MarkFailed(ctx context.Context, token string, id int64, reason string, until time.Time) (bool, error) {
	return false, errMissing
}

func (Missing) ReleaseOutbox(ctx context.Context, token string, ids []int64) (int, error) {
	return 0, errMissing
}

func (Missing) CountOutbox(ctx context.Context, now time.Time, lease time.Duration) (OutboxCounts, error) {
	return OutboxCounts{}, errMissing
}

func (Missing) PurgeOutbox(ctx context.Context, before time.Time, limit int) (int, error) {
	return 0, errMissing
}

func (Missing) SetVariables(ctx context.Context, execution event.ID, vars []Variable) error {
	return errMissing
}

func (Missing) Variables(ctx context.Context, execution event.ID) ([]Variable, error) {
	return nil, errMissing
}

func (Missing) Variable(ctx context.Context, execution event.ID, name string, now time.Time) (Variable, error) {
	return Variable{}, errMissing
}

func (Missing) DeleteVariables(ctx context.Context, execution event.ID, name string) (int, error) {
	return 0, errMissing
}

func (Missing) PutRuntime(ctx context.Context, r Runtime) (Runtime, error) {
	return Runtime{}, errMissing
}

func (Missing) BeatRuntime(ctx context.Context, kind, name string, now time.Time) (Runtime, error) {
	return Runtime{}, errMissing
}

func (Missing) Runtime(ctx context.Context, kind, name string) (Runtime, error) {
	return Runtime{}, errMissing
}

func (Missing) DeleteRuntime(ctx context.Context, kind, name string) (bool, error) {
	return false, errMissing
}

func (Missing) ListRuntimes(ctx context.Context, f RuntimeFilter) ([]Runtime, error) {
	return nil, errMissing
}

func (Missing) PurgeRuntimes(ctx context.Context, before time.Time) (int, error) {
	return 0, errMissing
}

func (Missing) PutSnapshot(ctx context.Context, s Snapshot) error { return errMissing }

func (Missing) Snapshot(ctx context.Context, execution event.ID, typ, id string) (Snapshot, error) {
	return Snapshot{}, errMissing
}

func (Missing) LoggedExecutions(ctx context.Context, after event.ID, limit int) ([]event.ID, error) {
	return nil, errMissing
}

func (Missing) ProjectedExecutions(ctx context.Context, after event.ID, limit int) ([]Execution, error) {
	return nil, errMissing
}

func (Missing) CommandsOf(ctx context.Context, execution event.ID) ([]Command, error) {
	return nil, errMissing
}

func (Missing) Reproject(ctx context.Context, x Execution, commands []Command) error {
	return errMissing
}

func (Missing) PurgeCommands(ctx context.Context, before time.Time, limit int) (int, error) {
	return 0, errMissing
}

func (Missing) Migrate(ctx context.Context) error { return errMissing }

func (Missing) SchemaState(ctx context.Context) (SchemaState, error) {
	return SchemaState{}, errMissing
}

func (Missing) PoolState() PoolState { return PoolState{} }

func (Missing) Shards() int { return 1 }

func (Missing) CountExecutions(ctx context.Context) (map[string]int64, error) { return nil, errMissing }

func (Missing) RenewWorker(ctx context.Context, worker string, claimedAfter, until time.Time) (int, error) {
	return 0, errMissing
}

func (Missing) RemoveEntries(ctx context.Context, path string, version int, now time.Time) ([]Entry, error) {
	return nil, errMissing
}

func (Missing) RestoreEntries(ctx context.Context, path string, version int) ([]Entry, error) {
	return nil, errMissing
}

func (Missing) CountEntries(ctx context.Context, kind string) (int64, error) { return 0, errMissing }
