package postgres

import (
	"context"
	"time"

	"github.com/noetl/noetl-go/internal/store"
)

const (
	// Rows are locked in the order of their ids, as claims do.
	lockOutbox       = `WITH held AS (SELECT o.outbox_id FROM noetl.outbox o WHERE o.outbox_id = ANY($1::int8[]) AND `
	updateOutbox     = ` ORDER BY o.outbox_id FOR UPDATE) UPDATE noetl.outbox o SET locked_at = NULL, lock_token = NULL, `
	claimedUnder     = `o.status = 'IN_FLIGHT' AND ($2 = '' OR o.lock_token = $2)`
	markPublishedSQL = lockOutbox + `CASE $2 WHEN '' THEN o.status <> 'PUBLISHED' ELSE o.status = 'IN_FLIGHT' AND o.lock_token = $2 END` +
		updateOutbox + `status = 'PUBLISHED', published_at = $3 FROM held WHERE o.outbox_id = held.outbox_id`
	markFailedSQL = lockOutbox + claimedUnder +
		updateOutbox + `status = 'FAILED', available_at = $3, last_error = $4 FROM held WHERE o.outbox_id = held.outbox_id`
	releaseOutboxSQL = lockOutbox + claimedUnder +
		updateOutbox + `status = 'PENDING', attempts = greatest(o.attempts - 1, 0) FROM held WHERE o.outbox_id = held.outbox_id`

	countOutboxSQL = `SELECT count(*) FILTER (WHERE ` + dueOutbox + `), count(*) FILTER (WHERE o.status = 'FAILED' AND o.available_at > $1),
	count(*) FILTER (WHERE o.status = 'IN_FLIGHT' AND o.locked_at > $2), min(o.created_at),
	(SELECT count(*) FROM noetl.outbox WHERE status = 'PUBLISHED'), (SELECT count(*) FROM noetl.outbox WHERE status = 'DEAD')
	FROM noetl.outbox o WHERE o.status IN ('PENDING', 'FAILED', 'IN_FLIGHT')`
	purgeOutboxSQL = `DELETE FROM noetl.outbox WHERE ctid = ANY (ARRAY(SELECT ctid FROM noetl.outbox
	WHERE status = 'PUBLISHED' AND published_at < $1 ORDER BY published_at LIMIT $2 FOR UPDATE SKIP LOCKED))`

	// longestReason bounds what a row keeps of a failure.
	longestReason = 4000
)

// MarkPublished implements store.Outbox.
func (s *Store) MarkPublished(ctx context.Context, token string, ids []int64, now time.Time) (int, error) {
	return s.report(ctx, "mark outbox rows published", markPublishedSQL, ids, cleanText(token), now)
}

// MarkFailed implements store.Outbox.
func (s *Store) MarkFailed(ctx context.Context, token string, id int64, reason string, until time.Time) (bool, error) {
	if len(reason) > longestReason {
		reason = reason[:longestReason]
	}
	n, err := s.report(ctx, "mark an outbox row failed", markFailedSQL, []int64{id}, cleanText(token), until, cleanText(reason))
	return n > 0, err
}

// ReleaseOutbox implements store.Outbox.
func (s *Store) ReleaseOutbox(ctx context.Context, token string, ids []int64) (int, error) {
	return s.report(ctx, "release outbox rows", releaseOutboxSQL, ids, cleanText(token))
}

// report changes rows on the shards their ids name and returns how many.
func (s *Store) report(ctx context.Context, doing, text string, ids []int64, args ...any) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	local := make(map[*shard][]int64, len(s.shards))
	for _, id := range ids {
		if id > 0 {
			i, row := s.localID(id)
			local[s.shards[i]] = append(local[s.shards[i]], row)
		}
	}
	return s.sum(ctx, func(ctx context.Context, sh *shard) (n int64, err error) {
		if len(local[sh]) == 0 {
			return 0, nil
		}
		err = repeated(func() error {
			tag, err := sh.pool.Exec(ctx, text, append([]any{local[sh]}, args...)...)
			n = tag.RowsAffected()
			return err
		})
		return n, coded(doing, err)
	})
}

// CountOutbox implements store.Outbox.
func (s *Store) CountOutbox(ctx context.Context, now time.Time, lease time.Duration) (store.OutboxCounts, error) {
	parts, err := gather(ctx, s, func(ctx context.Context, sh *shard) ([]store.OutboxCounts, error) {
		c, err := one(ctx, sh.pool, "count outbox rows", scanOutboxCounts, countOutboxSQL, now, now.Add(-lease))
		c.Reclaimed = sh.reclaimed.Load()
		return []store.OutboxCounts{c}, err
	})
	var sum store.OutboxCounts
	for _, p := range parts {
		sum.Ready, sum.Waiting, sum.InFlight = sum.Ready+p.Ready, sum.Waiting+p.Waiting, sum.InFlight+p.InFlight
		sum.Published, sum.Dead, sum.Reclaimed = sum.Published+p.Published, sum.Dead+p.Dead, sum.Reclaimed+p.Reclaimed
		if !p.Oldest.IsZero() && (sum.Oldest.IsZero() || p.Oldest.Before(sum.Oldest)) {
			sum.Oldest = p.Oldest
		}
	}
	return sum, err
}

func scanOutboxCounts(row scanner, c *store.OutboxCounts) error {
	return row.Scan(&c.Ready, &c.Waiting, &c.InFlight, stamp{&c.Oldest}, &c.Published, &c.Dead)
}

// PurgeOutbox implements store.Outbox.
func (s *Store) PurgeOutbox(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.purge(ctx, "purge the outbox", purgeOutboxSQL, before, limit)
}
