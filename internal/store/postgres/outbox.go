package postgres

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// outboxLock is the advisory lock under which rows of one database are
// claimed: two at a time could each take the row behind the other's.
const outboxLock = 705327043

const (
	// dueOutbox is what may be claimed as far as the row itself goes; $1 is
	// now, $2 the time since which claims hold.
	dueOutbox = `(o.status = 'PENDING' OR o.status = 'FAILED' AND o.available_at <= $1 OR o.status = 'IN_FLIGHT' AND o.locked_at <= $2)`

	// A row waits behind an older one of its execution that another claimed or
	// that is not yet due again. Rows claimed too often end here.
	claimOutboxSQL = `WITH due AS MATERIALIZED (
	SELECT o.outbox_id, o.status = 'IN_FLIGHT' AS late, $5::int4 > 0 AND o.attempts >= $5 AS dead FROM noetl.outbox o
	WHERE o.status IN ('PENDING', 'FAILED', 'IN_FLIGHT') AND ` + dueOutbox + ` AND NOT EXISTS (
		SELECT FROM noetl.outbox b WHERE b.execution_id = o.execution_id AND b.outbox_id < o.outbox_id
		AND b.status IN ('FAILED', 'IN_FLIGHT') AND (b.status = 'FAILED' AND b.available_at > $1
		OR b.status = 'IN_FLIGHT' AND b.locked_at > $2 AND b.lock_token IS DISTINCT FROM $3))
	ORDER BY o.outbox_id LIMIT $4
) UPDATE noetl.outbox o SET status = CASE WHEN dead THEN 'DEAD' ELSE 'IN_FLIGHT' END,
	attempts = o.attempts + CASE WHEN dead THEN 0 ELSE 1 END, locked_at = CASE WHEN NOT dead THEN $1 END,
	lock_token = CASE WHEN NOT dead THEN $3 END
	FROM due WHERE o.outbox_id = due.outbox_id RETURNING o.outbox_id, o.execution_id, o.event_id, o.attempts, late, dead`

	outboxEventsSQL = `SELECT coalesce(x.path, ''), ` + outboxEventColumns + ` FROM unnest($1::int8[], $2::int8[]) k(execution_id, event_id)
	JOIN noetl.event v ON v.execution_id = k.execution_id AND v.event_id = k.event_id
	LEFT JOIN noetl.execution x ON x.execution_id = k.execution_id`
	outboxEventColumns = `v.execution_id, v.seq, v.event_id, v.catalog_id, coalesce(v.parent_event_id, 0),
	coalesce(v.parent_execution_id, 0), coalesce(v.duration, 0), v.created_at, v.event_type, coalesce(v.node_name, ''),
	coalesce(v.node_type, ''), coalesce(v.status, ''), coalesce(v.worker_id, ''), coalesce(v.command_key, ''),
	coalesce(v.error, ''), v.meta, v.result, v.context`
	outboxGoneSQL = `UPDATE noetl.outbox SET status = 'DEAD', locked_at = NULL, lock_token = NULL,
	last_error = 'the log does not hold the event' WHERE outbox_id = ANY($1::int8[])`
)

// encodeOutbox adds a row for each event of a batch.
func encodeOutbox(r *records, b *store.Batch) {
	for i := range b.Events {
		e := &b.Events[i]
		at := cmp.Or(e.CreatedAt, b.Execution.UpdatedAt)
		if at.IsZero() {
			at = time.Unix(0, 0)
		}
		r.begin().id(e.ExecutionID).id(e.EventID).stamp(at)
		r.end()
	}
}

// outboxID is a row's number among all shards, and localID the way back.
func (s *Store) outboxID(shard int, local int64) int64 {
	return local*int64(len(s.shards)) + int64(shard)
}

func (s *Store) localID(id int64) (shard int, local int64) {
	n := int64(len(s.shards))
	return int(id % n), id / n
}

// ClaimOutbox implements store.Outbox. Shards share the limit; what some do
// not need the others get. Rows that one shard gave are not withheld because
// another failed: nobody else could publish them before the lease ends.
func (s *Store) ClaimOutbox(ctx context.Context, c store.OutboxClaim) ([]store.OutboxRow, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var (
		out      []store.OutboxRow
		failures []error
		asked    = make([]int, len(s.shards))
		open     = rotated(len(s.shards), int(s.turn.Add(1)))
	)
	for len(open) > 0 && len(out) < c.Limit {
		clear(asked)
		for i, left := 0, c.Limit-len(out); left > 0; i, left = i+1, left-1 {
			asked[open[i%len(open)]]++
		}
		rows, errs := s.claimRound(ctx, c, asked)
		open = slices.DeleteFunc(open, func(i int) bool {
			out = append(out, rows[i]...)
			if errs[i] != nil {
				failures = append(failures, errs[i])
			}
			return errs[i] != nil || len(rows[i]) < asked[i]
		})
	}
	if len(out) == 0 {
		return nil, errors.Join(failures...)
	}
	slices.SortFunc(out, func(a, b store.OutboxRow) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}

// rotated is 0 … n-1 from another start each turn, for limits too small to
// reach every shard.
func rotated(n, turn int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = (i + turn) % n
	}
	return out
}

// claimRound asks every shard for its part at once.
func (s *Store) claimRound(ctx context.Context, c store.OutboxClaim, asked []int) ([][]store.OutboxRow, []error) {
	rows, errs := make([][]store.OutboxRow, len(s.shards)), make([]error, len(s.shards))
	var wg sync.WaitGroup
	for i, sh := range s.shards {
		if asked[i] == 0 {
			continue
		}
		wg.Go(func() {
			c := c
			c.Limit = asked[i]
			rows[i], errs[i] = sh.claimOutbox(ctx, c)
			for j := range rows[i] {
				rows[i][j].ID = s.outboxID(i, rows[i][j].ID)
			}
		})
	}
	wg.Wait()
	return rows, errs
}

// claimOutbox takes rows of one database. Those that die on the way make room
// for others.
func (sh *shard) claimOutbox(ctx context.Context, c store.OutboxClaim) (rows []store.OutboxRow, err error) {
	var late int64
	err = repeated(func() error {
		rows, late = nil, 0
		return pgx.BeginFunc(ctx, sh.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(outboxLock)); err != nil {
				return err
			}
			for more := true; more && len(rows) < c.Limit; {
				taken, err := claimedRows(ctx, tx, c, c.Limit-len(rows))
				if err != nil {
					return err
				}
				more = slices.ContainsFunc(taken, func(t claimedRow) bool { return t.dead })
				taken = slices.DeleteFunc(taken, func(t claimedRow) bool { return t.dead })
				for _, t := range taken {
					if t.late {
						late++
					}
				}
				found, err := withEvents(ctx, tx, taken)
				if err != nil {
					return err
				}
				more = more || len(found) < len(taken)
				rows = append(rows, found...)
			}
			return nil
		})
	})
	if err != nil {
		return nil, coded("claim outbox rows", err)
	}
	sh.reclaimed.Add(late)
	return rows, nil
}

// claimedRow is a row as a claim leaves it.
type claimedRow struct {
	id               int64
	execution, event event.ID
	attempts         int
	late, dead       bool // was claimed before; is given up
}

func claimedRows(ctx context.Context, tx pgx.Tx, c store.OutboxClaim, limit int) ([]claimedRow, error) {
	rows, err := tx.Query(ctx, claimOutboxSQL, c.Now, c.Now.Add(-c.Lease), cleanText(c.Token), limit, c.MaxAttempts)
	if err != nil {
		return nil, err
	}
	taken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t claimedRow, err error) {
		return t, row.Scan(&t.id, &t.execution, &t.event, &t.attempts, &t.late, &t.dead)
	})
	slices.SortFunc(taken, func(a, b claimedRow) int { return cmp.Compare(a.id, b.id) })
	return taken, err
}

// withEvents reads what the rows stand for. Where the log does not hold it any
// more there is nothing to publish, now or later.
func withEvents(ctx context.Context, tx pgx.Tx, taken []claimedRow) ([]store.OutboxRow, error) {
	if len(taken) == 0 {
		return nil, nil
	}
	var executions, events []event.ID
	for _, t := range taken {
		executions, events = append(executions, t.execution), append(events, t.event)
	}
	rows, err := tx.Query(ctx, outboxEventsSQL, executions, events)
	if err != nil {
		return nil, err
	}
	type key struct{ execution, event event.ID }
	read := make(map[key]store.OutboxRow, len(taken))
	if _, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var o store.OutboxRow
		err := scanEvent(after{row, &o.Path}, &o.Event)
		read[key{o.Event.ExecutionID, o.Event.EventID}] = o
		return struct{}{}, err
	}); err != nil {
		return nil, err
	}
	var (
		out  []store.OutboxRow
		gone []int64
	)
	for _, t := range taken {
		o, ok := read[key{t.execution, t.event}]
		if !ok {
			gone = append(gone, t.id)
			continue
		}
		o.ID, o.Attempts = t.id, t.attempts
		out = append(out, o)
	}
	if len(gone) > 0 {
		_, err = tx.Exec(ctx, outboxGoneSQL, gone)
	}
	return out, err
}

// after scans a row whose first column is dest into the rest.
type after struct {
	row  scanner
	dest any
}

func (a after) Scan(dest ...any) error { return a.row.Scan(append([]any{a.dest}, dest...)...) }
