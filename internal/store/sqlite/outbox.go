package sqlite

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// outbox is what the process keeps beside the table.
type outbox struct {
	// turn is held while rows are chosen and claimed, and by what can make an
	// older row due in between. This process is the only one that writes.
	turn      chan struct{}
	reclaimed atomic.Int64
}

func newOutbox() outbox { return outbox{turn: make(chan struct{}, 1)} }

// inTurn runs an operation when no other that needs the turn is under way.
func (o *outbox) inTurn(ctx context.Context, run func() error) error {
	select {
	case o.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-o.turn }()
	return run()
}

const insertOutboxSQL = `INSERT OR FAIL INTO outbox (execution_id, event_id, created_at) VALUES (?, ?, ?)`

// putOutbox adds a row per event, in their order.
func (w *writer) putOutbox(events []*event.Event) error {
	for i, rows := range eventRows {
		s := w.insertOutbox[i]
		for len(events) >= rows {
			for _, e := range events[:rows] {
				s.id(e.ExecutionID).id(e.EventID).time(e.CreatedAt)
			}
			if _, err := s.exec(); err != nil {
				return coded("store outbox", err)
			}
			events = events[rows:]
		}
	}
	return nil
}

// The rows a claim may take, oldest first. ?1 is now, ?2 the time before which
// claims are expired, ?3 the token; rows come behind ?4. The indexes are named
// because the planner cannot know how few rows they hold.
const outboxDueSQL = `SELECT o.outbox_id, o.attempts, o.status FROM outbox o INDEXED BY outbox_open
	WHERE o.status <> 'PUBLISHED' AND o.status <> 'DEAD' AND o.outbox_id > ?4
	AND (o.status = 'PENDING' OR o.status = 'FAILED' AND o.available_at <= ?1 OR o.status = 'IN_FLIGHT' AND o.locked_at <= ?2)
	AND NOT EXISTS (SELECT 1 FROM outbox b INDEXED BY outbox_taken
		WHERE b.execution_id = o.execution_id AND b.outbox_id < o.outbox_id AND b.status IN ('FAILED', 'IN_FLIGHT')
		AND (b.status = 'FAILED' AND b.available_at > ?1 OR b.status = 'IN_FLIGHT' AND b.locked_at > ?2 AND b.lock_token <> ?3))
	ORDER BY o.outbox_id LIMIT ?5`

const (
	claimOutboxSQL = `UPDATE outbox SET status = 'IN_FLIGHT', attempts = attempts + 1, locked_at = ?, lock_token = ?
	WHERE outbox_id = ? AND status <> 'PUBLISHED' AND status <> 'DEAD'`
	buryOutboxSQL = `UPDATE outbox SET status = 'DEAD', lock_token = NULL
	WHERE outbox_id = ? AND status <> 'PUBLISHED' AND status <> 'DEAD'`
	claimedOutboxSQL = `SELECT o.outbox_id, o.attempts, coalesce(x.path, ''), e.* FROM json_each(?) j
	JOIN outbox o ON o.outbox_id = j.value JOIN (` + selectEvent + `) e ON e.execution_id = o.execution_id AND e.event_id = o.event_id
	LEFT JOIN execution x ON x.execution_id = o.execution_id WHERE o.lock_token = ? ORDER BY o.outbox_id`
)

// dueRow is a row that a claim may take.
type dueRow struct {
	id       int64
	attempts int
	status   string
}

func scanDue(row scanner, r *dueRow) error { return row.Scan(&r.id, &r.attempts, &r.status) }

// ClaimOutbox implements store.Outbox. Rows are chosen by a reader, because a
// long backlog that nobody may touch yet is nothing to keep the writer with.
func (s *Store) ClaimOutbox(ctx context.Context, c store.OutboxClaim) ([]store.OutboxRow, error) {
	var taken []int64
	err := s.outbox.inTurn(ctx, func() error {
		due, err := s.dueRows(ctx, c)
		if err == nil && len(due) > 0 {
			taken, err = s.claimRows(ctx, c, due)
		}
		return err
	})
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	list, err := json.Marshal(taken)
	if err != nil {
		return nil, err
	}
	rows, err := s.reader.QueryContext(ctx, claimedOutboxSQL, string(list), c.Token)
	return collect("read outbox", rows, err, scanOutbox)
}

// dueRows finds the rows a claim takes, and among them those it buries, which
// make room for others. All are found at one moment: an older row that becomes
// due between two looks would be overtaken by the younger ones behind it.
func (s *Store) dueRows(ctx context.Context, c store.OutboxClaim) (all []dueRow, err error) {
	err = s.reading(ctx, "look at outbox", func(q querier) error {
		for last, live := int64(0), 0; live < c.Limit; {
			rows, err := q.QueryContext(ctx, outboxDueSQL, c.Now.UnixMicro(), c.Now.Add(-c.Lease).UnixMicro(), c.Token, last, c.Limit-live)
			due, err := collect("look at outbox", rows, err, scanDue)
			if err != nil || len(due) == 0 {
				return err
			}
			for _, r := range due {
				if !r.triedTooOften(c) {
					live++
				}
			}
			all, last = append(all, due...), due[len(due)-1].id
		}
		return nil
	})
	return all, err
}

func (r dueRow) triedTooOften(c store.OutboxClaim) bool {
	return c.MaxAttempts > 0 && r.attempts >= c.MaxAttempts
}

// claimRows takes rows, or buries those that were tried too often.
func (s *Store) claimRows(ctx context.Context, c store.OutboxClaim, due []dueRow) ([]int64, error) {
	var (
		taken     []int64
		reclaimed int64
	)
	err := s.write(ctx, 64*len(due), func(w *writer) error {
		taken, reclaimed = nil, 0
		for _, r := range due {
			if r.triedTooOften(c) {
				if _, err := w.change(buryOutboxSQL, func(st *statement) { st.int(r.id) }); err != nil {
					return coded("bury outbox row", err)
				}
				continue
			}
			n, err := w.change(claimOutboxSQL, func(st *statement) { st.int(c.Now.UnixMicro()).str(c.Token).int(r.id) })
			if err != nil {
				return coded("claim outbox row", err)
			}
			if n == 1 {
				taken = append(taken, r.id)
			}
			if n == 1 && r.status == store.OutboxInFlight {
				reclaimed++
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.outbox.reclaimed.Add(reclaimed)
	return taken, nil
}

func scanOutbox(row scanner, r *store.OutboxRow) error {
	return scanEvent(prefixed{row, []any{&r.ID, &r.Attempts, &r.Path}}, &r.Event)
}

// prefixed is a row with columns before those its reader knows.
type prefixed struct {
	row  scanner
	head []any
}

func (p prefixed) Scan(dest ...any) error { return p.row.Scan(append(p.head, dest...)...) }

const (
	markPublishedSQL = `UPDATE outbox SET status = 'PUBLISHED', published_at = ?1, lock_token = NULL WHERE outbox_id = ?2
	AND status <> 'PUBLISHED' AND (?3 = '' OR status = 'IN_FLIGHT' AND lock_token = ?3)`
	markFailedSQL = `UPDATE outbox SET status = 'FAILED', available_at = ?1, last_error = ?2, lock_token = NULL
	WHERE outbox_id = ?3 AND status = 'IN_FLIGHT' AND (?4 = '' OR lock_token = ?4)`
	releaseOutboxSQL = `UPDATE outbox SET status = 'PENDING', attempts = attempts - 1, lock_token = NULL
	WHERE outbox_id = ?1 AND status = 'IN_FLIGHT' AND (?2 = '' OR lock_token = ?2)`
	recallOutboxSQL = `UPDATE outbox SET status = 'PENDING', attempts = attempts - 1, lock_token = NULL WHERE status = 'IN_FLIGHT'`

	countOpenOutboxSQL = `SELECT count(*),
	count(*) FILTER (WHERE status = 'FAILED' AND available_at > ?1),
	count(*) FILTER (WHERE status = 'IN_FLIGHT' AND locked_at > ?2)
	FROM outbox INDEXED BY outbox_open WHERE status <> 'PUBLISHED' AND status <> 'DEAD'`
	oldestOutboxSQL = `SELECT created_at FROM outbox INDEXED BY outbox_open
	WHERE status <> 'PUBLISHED' AND status <> 'DEAD' ORDER BY outbox_id LIMIT 1`
	countDoneOutboxSQL = `SELECT count(*) FILTER (WHERE status = 'PUBLISHED'), count(*) FILTER (WHERE status = 'DEAD')
	FROM outbox INDEXED BY outbox_done WHERE status IN ('PUBLISHED', 'DEAD')`
	purgeOutboxSQL = `DELETE FROM outbox WHERE outbox_id IN (SELECT outbox_id FROM outbox
	WHERE status = 'PUBLISHED' AND status IN ('PUBLISHED', 'DEAD') AND published_at < ? ORDER BY published_at LIMIT ?)`
)

// MarkPublished implements store.Outbox.
func (s *Store) MarkPublished(ctx context.Context, token string, ids []int64, now time.Time) (int, error) {
	return s.changeEach(ctx, "mark outbox rows published", markPublishedSQL, ids, func(st *statement, id int64) {
		st.int(now.UnixMicro()).int(id).str(token)
	})
}

// changeEach runs a statement for each id and tells how many rows changed.
func (s *Store) changeEach(ctx context.Context, doing, text string, ids []int64, bind func(*statement, int64)) (int, error) {
	changed := 0
	err := s.write(ctx, 64*len(ids), func(w *writer) error {
		changed = 0
		for _, id := range ids {
			n, err := w.change(text, func(st *statement) { bind(st, id) })
			if err != nil {
				return coded(doing, err)
			}
			changed += int(n)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return changed, nil
}

// MarkFailed implements store.Outbox.
func (s *Store) MarkFailed(ctx context.Context, token string, id int64, reason string, until time.Time) (bool, error) {
	n := 0
	err := s.outbox.inTurn(ctx, func() (err error) {
		n, err = s.changeEach(ctx, "mark outbox row failed", markFailedSQL, []int64{id}, func(st *statement, id int64) {
			st.int(until.UnixMicro()).text(reason).int(id).str(token)
		})
		return err
	})
	return n == 1, err
}

// ReleaseOutbox implements store.Outbox.
func (s *Store) ReleaseOutbox(ctx context.Context, token string, ids []int64) (int, error) {
	n := 0
	err := s.outbox.inTurn(ctx, func() (err error) {
		n, err = s.changeEach(ctx, "release outbox rows", releaseOutboxSQL, ids, func(st *statement, id int64) {
			st.int(id).str(token)
		})
		return err
	})
	return n, err
}

// RecallOutbox gives back every claimed row and returns how many there were: a
// process that has the file to itself and publishes itself knows that whoever
// claimed them is dead.
func (s *Store) RecallOutbox(ctx context.Context) (int, error) {
	return s.change(ctx, "recall outbox rows", recallOutboxSQL, func(*statement) {})
}

// CountOutbox implements store.Outbox.
func (s *Store) CountOutbox(ctx context.Context, now time.Time, lease time.Duration) (store.OutboxCounts, error) {
	out := store.OutboxCounts{Reclaimed: s.outbox.reclaimed.Load()}
	err := s.reading(ctx, "count outbox", func(q querier) error {
		var open int64
		row := q.QueryRowContext(ctx, countOpenOutboxSQL, now.UnixMicro(), now.Add(-lease).UnixMicro())
		if err := row.Scan(&open, &out.Waiting, &out.InFlight); err != nil {
			return err
		}
		out.Ready = open - out.Waiting - out.InFlight
		if err := q.QueryRowContext(ctx, countDoneOutboxSQL).Scan(&out.Published, &out.Dead); err != nil || open == 0 {
			return err
		}
		return q.QueryRowContext(ctx, oldestOutboxSQL).Scan(micros{&out.Oldest})
	})
	if err != nil {
		return store.OutboxCounts{}, err
	}
	return out, nil
}

// PurgeOutbox implements store.Outbox.
func (s *Store) PurgeOutbox(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.change(ctx, "purge outbox", purgeOutboxSQL, func(st *statement) {
		st.int(before.UnixMicro()).int(int64(rowLimit(limit)))
	})
}
