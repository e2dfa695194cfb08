package sqlite

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const commandColumns = `SELECT execution_id, event_id, coalesce(command_key, ''), catalog_id, coalesce(step_name, ''),
	coalesce(tool_kind, ''), coalesce(pool, ''), status, coalesce(worker_id, ''), attempt, max_attempts, iter_index,
	lease_until, created_at, claimed_at, completed_at, coalesce(error, '') `

const selectCommand = commandColumns + `FROM command `

const (
	commandSQL         = selectCommand + `WHERE event_id = ? AND execution_id = ?`
	commandAnywhereSQL = selectCommand + `WHERE event_id = ? LIMIT 1`
	pendingSQL         = selectCommand + `WHERE status = 'PENDING' AND created_at < ? ORDER BY created_at, event_id LIMIT ?`
	// Held commands are indexed by worker; those without one come last. What is
	// sorted is no history: only leases that ended and wait to be dealt with.
	expiredSQL = `WITH RECURSIVE holder(id) AS (
		SELECT min(worker_id) FROM command INDEXED BY command_held WHERE status IN ('CLAIMED', 'RUNNING')
		UNION ALL SELECT (SELECT min(worker_id) FROM command INDEXED BY command_held
			WHERE status IN ('CLAIMED', 'RUNNING') AND worker_id > holder.id) FROM holder WHERE holder.id IS NOT NULL)
	` + commandColumns + `FROM holder CROSS JOIN command INDEXED BY command_held ON worker_id IS holder.id
	WHERE status IN ('CLAIMED', 'RUNNING') AND lease_until < ? ORDER BY lease_until, event_id LIMIT ?`
	// The execution is a condition only when it is known.
	renewLeaseSQL = `UPDATE command SET lease_until = ? WHERE event_id = ? AND (? OR execution_id = ?)
	AND status IN ('CLAIMED', 'RUNNING') AND +worker_id IS ? AND attempt = ?`
	renewWorkerSQL = `UPDATE command INDEXED BY command_held SET lease_until = ?
	WHERE status IN ('CLAIMED', 'RUNNING') AND worker_id IS ? AND claimed_at > ?`
	// Comparing the head of the id instead of LIKE keeps % and _ ordinary
	// letters. The index holds held commands only, so this reads no history.
	expireLeasesSQL = `UPDATE command INDEXED BY command_held SET lease_until = ? WHERE status IN ('CLAIMED', 'RUNNING')
	AND substr(coalesce(worker_id, ''), 1, length(?)) = ? AND (lease_until IS NULL OR lease_until >= ?)`
)

func scanCommand(row scanner, c *store.Command) error {
	return row.Scan(&c.ExecutionID, &c.EventID, &c.CommandID, &c.CatalogID, &c.Step, &c.ToolKind, &c.Pool, &c.Status,
		&c.WorkerID, &c.Attempt, &c.MaxAttempts, &c.IterIndex, micros{&c.LeaseUntil}, micros{&c.CreatedAt},
		micros{&c.ClaimedAt}, micros{&c.EndedAt}, &c.Error)
}

// Command implements store.Commands.
func (s *Store) Command(ctx context.Context, execution, eventID event.ID) (store.Command, error) {
	row := s.reads.commandAnywhere.QueryRowContext
	args := []any{eventID}
	if execution != 0 {
		row, args = s.reads.command.QueryRowContext, append(args, execution)
	}
	return one("command "+eventID.String(), row(ctx, args...), scanCommand)
}

// PendingCommands implements store.Commands.
func (s *Store) PendingCommands(ctx context.Context, before time.Time, limit int) ([]store.Command, error) {
	rows, err := s.reader.QueryContext(ctx, pendingSQL, before.UnixMicro(), rowLimit(limit))
	return collect("find pending commands", rows, err, scanCommand)
}

const countPendingSQL = `SELECT pool, count(*) FROM (SELECT coalesce(pool, '') AS pool FROM command WHERE status = 'PENDING' LIMIT ?) GROUP BY pool`

// CountPending implements store.Commands.
func (s *Store) CountPending(ctx context.Context, limit int) (map[string]int64, error) {
	type count struct {
		pool string
		n    int64
	}
	rows, err := s.reader.QueryContext(ctx, countPendingSQL, rowLimit(limit))
	counts, err := collect("count pending commands", rows, err, func(row scanner, c *count) error { return row.Scan(&c.pool, &c.n) })
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(counts))
	for _, c := range counts {
		out[c.pool] = c.n
	}
	return out, nil
}

// ExpiredCommands implements store.Commands.
func (s *Store) ExpiredCommands(ctx context.Context, now time.Time, limit int) ([]store.Command, error) {
	rows, err := s.reader.QueryContext(ctx, expiredSQL, now.UnixMicro(), rowLimit(limit))
	return collect("find expired commands", rows, err, scanCommand)
}

// RenewLeases implements store.Commands.
func (s *Store) RenewLeases(ctx context.Context, beats []event.Heartbeat, until time.Time) ([]bool, error) {
	o := &renewOp{beats: beats, until: until, held: make([]bool, len(beats))}
	if err := s.queue.Submit(ctx, o); err != nil {
		return nil, err
	}
	return o.held, nil
}

type renewOp struct {
	beats []event.Heartbeat
	until time.Time
	held  []bool
}

func (o *renewOp) size() int { return 64 * len(o.beats) }

func (o *renewOp) apply(w *writer) error {
	if err := w.flush(); err != nil {
		return err
	}
	for i, beat := range o.beats {
		unknown := int64(0)
		if beat.ExecutionID == 0 {
			unknown = 1
		}
		n, err := w.renewLease.time(o.until).id(beat.EventID).int(unknown).id(beat.ExecutionID).
			text(beat.WorkerID).int(int64(beat.Attempt)).exec()
		if err != nil {
			return coded("renew lease", err)
		}
		o.held[i] = n > 0
	}
	return nil
}

// ExpireLeases implements store.Commands.
func (s *Store) ExpireLeases(ctx context.Context, workerPrefix string, now time.Time) (int, error) {
	o := &expireOp{prefix: workerPrefix, now: now}
	if err := s.queue.Submit(ctx, o); err != nil {
		return 0, err
	}
	return o.ended, nil
}

type expireOp struct {
	prefix string
	now    time.Time
	ended  int
}

func (o *expireOp) size() int { return 64 }

// apply sets the end just before now, so that a search for leases that ended
// before now finds them.
func (o *expireOp) apply(w *writer) error {
	if err := w.flush(); err != nil {
		return err
	}
	now := o.now.UnixMicro()
	n, err := w.expireLeases.int(now - 1).str(o.prefix).str(o.prefix).int(now).exec()
	o.ended = int(n)
	return coded("expire leases", err)
}

// RenewWorker implements store.Commands.
func (s *Store) RenewWorker(ctx context.Context, worker string, claimedAfter, until time.Time) (int, error) {
	return s.change(ctx, "renew leases of a worker", renewWorkerSQL, func(st *statement) {
		st.time(until).text(worker).int(claimedAfter.UnixMicro())
	})
}
