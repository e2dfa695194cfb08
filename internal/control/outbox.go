package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/obs"
	"github.com/noetl/noetl-go/internal/store"
)

// OutboxOptions say whether events are published, and by whom.
type OutboxOptions struct {
	On     bool            // every append leaves rows to publish
	Stream bus.EventStream // where this plane publishes them; nil leaves it to others

	Lease       time.Duration // 60 s: how long a publisher may hold rows
	MaxAttempts int           // 50 claims of a row, then it is given up
	Keep        time.Duration // 24 h: how long published rows stay
	Batch       int           // 500 rows published at a time
	Poll        time.Duration // 1 s: how often the relay looks for rows nobody woke it for
}

func (o OutboxOptions) withDefaults() OutboxOptions {
	o.Lease = orDefault(o.Lease, time.Minute)
	o.MaxAttempts = orDefault(o.MaxAttempts, 50)
	o.Keep = orDefault(o.Keep, 24*time.Hour)
	o.Batch = orDefault(o.Batch, 500)
	o.Poll = orDefault(o.Poll, time.Second)
	return o
}

const (
	outboxClaimMost = 1000
	// outboxAnswer bounds the payloads of one claim, so that a thousand large
	// events do not become one answer of a gigabyte.
	outboxAnswer   = 32 << 20
	outboxErrorMax = 2000
	failureMost    = 300 * time.Second
	// systemPaths begin the paths of playbooks whose events are not published:
	// one that reads the stream would feed itself.
	systemPaths = "system/"
)

// publishes tells whether the events of an execution go to the outbox.
func (p *Plane) publishes(path string) bool {
	return p.o.Outbox.On && !strings.HasPrefix(strings.TrimPrefix(path, "/"), systemPaths)
}

// OutboxMessage is a row of the outbox as a publisher gets it.
type OutboxMessage struct {
	OutboxID    int64           `json:"outbox_id"`
	EventID     event.ID        `json:"event_id"`
	ExecutionID event.ID        `json:"execution_id"`
	Subject     string          `json:"subject"`
	Payload     json.RawMessage `json:"payload"`
	Codec       string          `json:"payload_codec"`
	Attempts    int             `json:"attempts"`
}

// OutboxBatch is what a publisher has claimed.
type OutboxBatch struct {
	Token string // to be named when its rows are marked
	Rows  []OutboxMessage
}

// ClaimOutbox gives a publisher the oldest rows that wait, each execution's in order.
func (p *Plane) ClaimOutbox(ctx context.Context, limit int) (OutboxBatch, error) {
	token := rand.Text()
	rows, err := p.claimOutbox(ctx, token, min(max(limit, 1), outboxClaimMost))
	if err != nil {
		return OutboxBatch{}, err
	}
	batch := OutboxBatch{Token: token, Rows: make([]OutboxMessage, 0, len(rows))}
	size := 0
	for i := range rows {
		m, err := encodeRow(&rows[i], maxEnvelope)
		if err != nil {
			return OutboxBatch{}, p.giveBack(ctx, token, rows, err)
		}
		if size += len(m.Payload); size > outboxAnswer && i > 0 {
			return batch, p.giveBack(ctx, token, rows[i:], nil)
		}
		batch.Rows = append(batch.Rows, m)
	}
	return batch, nil
}

// giveBack releases rows and returns why, or what went wrong on the way.
func (p *Plane) giveBack(ctx context.Context, token string, rows []store.OutboxRow, why error) error {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	if _, err := p.store.ReleaseOutbox(ctx, token, ids); err != nil && why == nil {
		return storeError("release outbox rows", err)
	}
	return why
}

func (p *Plane) claimOutbox(ctx context.Context, token string, limit int) ([]store.OutboxRow, error) {
	rows, err := p.store.ClaimOutbox(ctx, store.OutboxClaim{
		Token: token, Now: p.now(), Lease: p.o.Outbox.Lease, MaxAttempts: p.o.Outbox.MaxAttempts, Limit: limit,
	})
	if err != nil {
		return nil, storeError("claim outbox rows", err)
	}
	return rows, nil
}

func encodeRow(row *store.OutboxRow, limit int) (OutboxMessage, error) {
	payload, err := encodeEnvelope(&row.Event, row.Path, limit)
	if err != nil {
		return OutboxMessage{}, err
	}
	return OutboxMessage{
		OutboxID: row.ID, EventID: row.Event.EventID, ExecutionID: row.Event.ExecutionID, Subject: eventSubject(row.Event.Type),
		Payload: payload, Codec: "json", Attempts: row.Attempts,
	}, nil
}

// MarkPublished ends rows. With the token of a claim only those still held
// under it count. It returns how many changed.
func (p *Plane) MarkPublished(ctx context.Context, token string, ids []int64) (int, error) {
	if len(ids) == 0 {
		return 0, event.Errorf(event.BadRequest, "outbox_ids is empty: name the rows that were published")
	}
	n, err := p.store.MarkPublished(ctx, token, ids, p.now())
	if err != nil {
		return 0, storeError("mark outbox rows published", err)
	}
	return n, nil
}

// OutboxFailure tells that a row could not be published.
type OutboxFailure struct {
	OutboxID int64
	Token    string // of the claim; "" for any
	Error    string
	Attempts int
	MaxDelay time.Duration
}

// MarkFailed makes a row wait before it is claimed again: longer with each
// attempt, and a little more or less than that, so that rows which failed
// together do not come back together. It returns the wait without the jitter;
// marked is false when the row is not claimed, or not under the token.
func (p *Plane) MarkFailed(ctx context.Context, f OutboxFailure) (wait time.Duration, marked bool, err error) {
	if wait, marked, err = p.markFailed(ctx, f); marked {
		p.metrics.OutboxFailed.Inc(obs.OutboxPublisher)
	}
	return wait, marked, err
}

func (p *Plane) markFailed(ctx context.Context, f OutboxFailure) (wait time.Duration, marked bool, err error) {
	if strings.TrimSpace(f.Error) == "" {
		return 0, false, event.Errorf(event.BadRequest, "error is empty: say why the row was not published")
	}
	if f.MaxDelay < 0 {
		return 0, false, event.Errorf(event.Invalid, "max_delay_seconds: want a number from 0")
	}
	wait = failureDelay(f.Attempts, f.MaxDelay)
	marked, err = p.store.MarkFailed(ctx, f.Token, f.OutboxID, cutText(f.Error, outboxErrorMax), p.now().Add(jitter(wait)))
	if err != nil {
		return 0, false, storeError("mark outbox row failed", err)
	}
	return wait, marked, nil
}

// failureDelay doubles from one second with each attempt, eight times at most.
func failureDelay(attempts int, most time.Duration) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 8), most)
}

// OutboxState counts what waits to be published.
func (p *Plane) OutboxState(ctx context.Context) (store.OutboxCounts, error) {
	c, err := p.store.CountOutbox(ctx, p.now(), p.o.Outbox.Lease)
	if err != nil {
		return c, storeError("count outbox rows", err)
	}
	return c, nil
}
