package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// outbox holds the rows in the order they were added.
type outbox struct {
	rows      []*outboxRow
	first     int // rows before it are done
	lastID    int64
	reclaimed int64
}

type outboxRow struct {
	id                   int64
	execution, event     event.ID
	status               string
	attempts             int
	token                string
	created, locked      time.Time
	available, published time.Time
}

func (o *outbox) add(events []event.Event) {
	for i := range events {
		o.lastID++
		o.rows = append(o.rows, &outboxRow{
			id: o.lastID, execution: events[i].ExecutionID, event: events[i].EventID,
			status: store.OutboxPending, created: normalTime(events[i].CreatedAt),
		})
	}
}

// open returns the rows without the oldest that are done, of which there may
// be very many.
func (o *outbox) open() []*outboxRow {
	for o.first < len(o.rows) && (o.rows[o.first].status == store.OutboxPublished || o.rows[o.first].status == store.OutboxDead) {
		o.first++
	}
	return o.rows[o.first:]
}

// find returns a row by id, or nil.
func (o *outbox) find(id int64) *outboxRow {
	i, found := slices.BinarySearchFunc(o.rows, id, func(r *outboxRow, id int64) int { return cmp.Compare(r.id, id) })
	if !found {
		return nil
	}
	return o.rows[i]
}

// state is what a row is at a time: expired claims are as good as none.
type outboxState int

const (
	outboxDone outboxState = iota
	outboxDue
	outboxWaiting
	outboxHeld
)

func (r *outboxRow) state(now time.Time, lease time.Duration) outboxState {
	now = normalTime(now)
	switch r.status {
	case store.OutboxPending:
		return outboxDue
	case store.OutboxFailed:
		if r.available.After(now) {
			return outboxWaiting
		}
		return outboxDue
	case store.OutboxInFlight:
		if r.locked.After(now.Add(-lease)) {
			return outboxHeld
		}
		return outboxDue
	}
	return outboxDone
}

// ClaimOutbox implements store.Outbox.
func (s *Store) ClaimOutbox(ctx context.Context, c store.OutboxClaim) ([]store.OutboxRow, error) {
	var out []store.OutboxRow
	err := s.do(ctx, "ClaimOutbox", func() error {
		blocked := map[event.ID]bool{}
		for _, r := range s.outbox.open() {
			if len(out) >= c.Limit {
				break
			}
			switch state := r.state(c.Now, c.Lease); {
			case state == outboxWaiting, state == outboxHeld && r.token != c.Token:
				blocked[r.execution] = true
			case state != outboxDue || blocked[r.execution]:
			case c.MaxAttempts > 0 && r.attempts >= c.MaxAttempts:
				r.status, r.token = store.OutboxDead, ""
			default:
				out = append(out, s.claimRow(r, c))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) claimRow(r *outboxRow, c store.OutboxClaim) store.OutboxRow {
	if r.status == store.OutboxInFlight {
		s.outbox.reclaimed++
	}
	r.status, r.token, r.locked = store.OutboxInFlight, c.Token, normalTime(c.Now)
	r.attempts++
	x := s.executions[r.execution]
	return store.OutboxRow{ID: r.id, Event: cloneEvent(x.events[x.seqs[r.event]-1]), Path: x.row.Path, Attempts: r.attempts}
}

// MarkPublished implements store.Outbox.
func (s *Store) MarkPublished(ctx context.Context, token string, ids []int64, now time.Time) (int, error) {
	return s.count(ctx, "MarkPublished", func() (n int) {
		for _, id := range ids {
			r := s.outbox.find(id)
			if r == nil || r.status == store.OutboxPublished || token != "" && !r.heldBy(token) {
				continue
			}
			r.status, r.token, r.published = store.OutboxPublished, "", normalTime(now)
			n++
		}
		return n
	})
}

func (r *outboxRow) heldBy(token string) bool {
	return r.status == store.OutboxInFlight && (token == "" || r.token == token)
}

// MarkFailed implements store.Outbox.
func (s *Store) MarkFailed(ctx context.Context, token string, id int64, _ string, until time.Time) (bool, error) {
	n, err := s.count(ctx, "MarkFailed", func() int {
		r := s.outbox.find(id)
		if r == nil || !r.heldBy(token) {
			return 0
		}
		r.status, r.token, r.available = store.OutboxFailed, "", normalTime(until)
		return 1
	})
	return n == 1, err
}

// ReleaseOutbox implements store.Outbox.
func (s *Store) ReleaseOutbox(ctx context.Context, token string, ids []int64) (int, error) {
	return s.count(ctx, "ReleaseOutbox", func() (n int) {
		for _, id := range ids {
			if r := s.outbox.find(id); r != nil && r.heldBy(token) {
				r.status, r.token = store.OutboxPending, ""
				r.attempts--
				n++
			}
		}
		return n
	})
}

// CountOutbox implements store.Outbox.
func (s *Store) CountOutbox(ctx context.Context, now time.Time, lease time.Duration) (store.OutboxCounts, error) {
	var out store.OutboxCounts
	err := s.do(ctx, "CountOutbox", func() error {
		out.Reclaimed = s.outbox.reclaimed
		for _, r := range s.outbox.rows {
			switch r.state(now, lease) {
			case outboxDue:
				out.Ready++
			case outboxWaiting:
				out.Waiting++
			case outboxHeld:
				out.InFlight++
			case outboxDone:
				if r.status == store.OutboxDead {
					out.Dead++
				} else {
					out.Published++
				}
				continue
			}
			if out.Oldest.IsZero() {
				out.Oldest = r.created
			}
		}
		return nil
	})
	return out, err
}

// PurgeOutbox implements store.Outbox.
func (s *Store) PurgeOutbox(ctx context.Context, before time.Time, limit int) (int, error) {
	return s.count(ctx, "PurgeOutbox", func() (n int) {
		s.outbox.first = 0
		s.outbox.rows = slices.DeleteFunc(s.outbox.rows, func(r *outboxRow) bool {
			gone := r.status == store.OutboxPublished && r.published.Before(normalTime(before)) && (limit <= 0 || n < limit)
			if gone {
				n++
			}
			return gone
		})
		return n
	})
}
