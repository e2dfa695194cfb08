package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const selectCommand = `SELECT execution_id, event_id, coalesce(command_key, ''), catalog_id, coalesce(step_name, ''),
	coalesce(tool_kind, ''), coalesce(pool, ''), status, coalesce(worker_id, ''), attempt, max_attempts, iter_index,
	lease_until, created_at, claimed_at, completed_at, coalesce(error, '') FROM noetl.command `

const (
	commandSQL         = selectCommand + `WHERE event_id = $1 AND execution_id = $2`
	commandAnywhereSQL = selectCommand + `WHERE event_id = $1 LIMIT 1`
	pendingSQL         = selectCommand + `WHERE status = 'PENDING' AND created_at < $1 ORDER BY created_at, event_id LIMIT $2`
	expiredSQL         = selectCommand + `WHERE status IN ('CLAIMED', 'RUNNING') AND lease_until < $1
	ORDER BY lease_until, event_id LIMIT $2`
	// Rows are locked in the order of their ids, as appends do.
	renewSQL = `WITH held AS (
	SELECT c.event_id, c.execution_id FROM unnest($2::int8[], $3::int8[], $4::text[], $5::int4[]) AS b(event_id, execution_id, worker_id, attempt)
	JOIN noetl.command c ON c.event_id = b.event_id AND (b.execution_id = 0 OR c.execution_id = b.execution_id)
	AND coalesce(c.worker_id, '') = b.worker_id AND c.attempt = b.attempt
	WHERE c.status IN ('CLAIMED', 'RUNNING') ORDER BY c.event_id FOR UPDATE OF c
) UPDATE noetl.command c SET lease_until = $1 FROM held WHERE c.event_id = held.event_id AND c.execution_id = held.execution_id
	RETURNING c.execution_id, c.event_id, coalesce(c.worker_id, ''), c.attempt`
	renewWorkerSQL = `WITH held AS (
	SELECT event_id, execution_id FROM noetl.command WHERE status IN ('CLAIMED', 'RUNNING')
	AND worker_id = $2 AND claimed_at > $3 ORDER BY event_id FOR UPDATE
) UPDATE noetl.command c SET lease_until = $1 FROM held WHERE c.event_id = held.event_id AND c.execution_id = held.execution_id`
	// The index holds held commands only, so this reads no history.
	expireSQL = `UPDATE noetl.command SET lease_until = $1 WHERE status IN ('CLAIMED', 'RUNNING')
	AND starts_with(coalesce(worker_id, ''), $2) AND (lease_until IS NULL OR lease_until >= $3)`
)

func scanCommand(row scanner, c *store.Command) error {
	return row.Scan(&c.ExecutionID, &c.EventID, &c.CommandID, &c.CatalogID, &c.Step, &c.ToolKind, &c.Pool, &c.Status,
		&c.WorkerID, &c.Attempt, &c.MaxAttempts, &c.IterIndex, stamp{&c.LeaseUntil}, stamp{&c.CreatedAt},
		stamp{&c.ClaimedAt}, stamp{&c.EndedAt}, &c.Error)
}

// Command implements store.Commands.
func (s *Store) Command(ctx context.Context, execution, eventID event.ID) (store.Command, error) {
	doing := "command " + eventID.String()
	if execution != 0 {
		return one(ctx, s.shard(execution).pool, doing, scanCommand, commandSQL, eventID, execution)
	}
	return probe(ctx, s, func(ctx context.Context, sh *shard) (store.Command, error) {
		return one(ctx, sh.pool, doing, scanCommand, commandAnywhereSQL, eventID)
	})
}

// PendingCommands implements store.Commands.
func (s *Store) PendingCommands(ctx context.Context, before time.Time, limit int) ([]store.Command, error) {
	return present(ctx, s, limit, byAge(func(c store.Command) time.Time { return c.CreatedAt }),
		func(ctx context.Context, sh *shard, limit int) ([]store.Command, error) {
			return many(ctx, sh.pool, "find pending commands", scanCommand, pendingSQL, before, rowLimit(limit))
		})
}

const countPendingSQL = `SELECT pool, count(*) FROM (SELECT coalesce(pool, '') AS pool FROM noetl.command WHERE status = 'PENDING' LIMIT $1) p GROUP BY pool`

// CountPending implements store.Commands.
func (s *Store) CountPending(ctx context.Context, limit int) (map[string]int64, error) {
	parts, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]statusCount, error) {
		return many(ctx, sh.pool, "count pending commands", scanStatusCount, countPendingSQL, rowLimit(limit))
	})
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, p := range parts {
		counts[p.status] += p.n
	}
	return counts, nil
}

// ExpiredCommands implements store.Commands.
func (s *Store) ExpiredCommands(ctx context.Context, now time.Time, limit int) ([]store.Command, error) {
	return present(ctx, s, limit, byAge(func(c store.Command) time.Time { return c.LeaseUntil }),
		func(ctx context.Context, sh *shard, limit int) ([]store.Command, error) {
			return many(ctx, sh.pool, "find expired commands", scanCommand, expiredSQL, now, rowLimit(limit))
		})
}

func byAge(age func(store.Command) time.Time) func(a, b store.Command) int {
	return func(a, b store.Command) int {
		return cmp.Or(age(a).Compare(age(b)), cmp.Compare(a.EventID, b.EventID))
	}
}

// RenewLeases implements store.Commands.
func (s *Store) RenewLeases(ctx context.Context, beats []event.Heartbeat, until time.Time) ([]bool, error) {
	held := make([]bool, len(beats))
	if len(beats) == 0 {
		return held, ctx.Err()
	}
	renewed, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]event.Heartbeat, error) {
		var mine []event.Heartbeat
		for _, b := range beats {
			if b.ExecutionID == 0 || s.shard(b.ExecutionID) == sh {
				mine = append(mine, b)
			}
		}
		return sh.renew(ctx, mine, until)
	})
	if err != nil {
		return nil, err
	}
	// One row may answer several beats, with and without its execution.
	found := make(map[event.Heartbeat]bool, 2*len(renewed))
	for _, b := range renewed {
		found[b] = true
		b.ExecutionID = 0
		found[b] = true
	}
	for i, b := range beats {
		held[i] = found[b]
	}
	return held, nil
}

// renew extends the leases on one shard and returns the beats they answer.
func (sh *shard) renew(ctx context.Context, beats []event.Heartbeat, until time.Time) (renewed []event.Heartbeat, err error) {
	if len(beats) == 0 {
		return nil, nil
	}
	var (
		events, executions []event.ID
		workers            []string
		attempts           []int32
	)
	for _, b := range beats {
		events, executions = append(events, b.EventID), append(executions, b.ExecutionID)
		workers, attempts = append(workers, b.WorkerID), append(attempts, int32(b.Attempt))
	}
	scan := func(row scanner, b *event.Heartbeat) error {
		return row.Scan(&b.ExecutionID, &b.EventID, &b.WorkerID, &b.Attempt)
	}
	err = repeated(func() (err error) {
		renewed, err = many(ctx, sh.pool, "renew leases", scan, renewSQL, until, events, executions, workers, attempts)
		return err
	})
	return renewed, err
}

// repeated runs a statement again that was rolled back for concurrency.
func repeated(run func() error) (err error) {
	for range writeRetries {
		err = run()
		if state := sqlState(err); state != deadlockDetected && state != serializationFailure {
			return err
		}
	}
	return err
}

// ExpireLeases implements store.Commands. It sets the end just before now, so
// that a search for leases that ended before now finds them.
func (s *Store) ExpireLeases(ctx context.Context, workerPrefix string, now time.Time) (int, error) {
	return s.sum(ctx, func(ctx context.Context, sh *shard) (n int64, err error) {
		err = repeated(func() error {
			return pgx.BeginFunc(ctx, sh.pool, func(tx pgx.Tx) error {
				tag, err := tx.Exec(ctx, expireSQL, now.Truncate(time.Microsecond).Add(-time.Microsecond), cleanText(workerPrefix), now)
				n = tag.RowsAffected()
				return err
			})
		})
		return n, coded("expire leases", err)
	})
}

// RenewWorker implements store.Commands.
func (s *Store) RenewWorker(ctx context.Context, worker string, claimedAfter, until time.Time) (int, error) {
	return s.sum(ctx, func(ctx context.Context, sh *shard) (n int64, err error) {
		err = repeated(func() error {
			tag, err := sh.pool.Exec(ctx, renewWorkerSQL, until, cleanText(worker), claimedAfter)
			n = tag.RowsAffected()
			return err
		})
		return n, coded("renew the leases of a worker", err)
	})
}
