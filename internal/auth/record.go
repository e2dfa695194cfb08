package auth

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// outcomeRefused marks actions that strangers can cause as they like.
	outcomeRefused = "refused"
	maxDenials     = 1024 // that wait to be written
	denialsAtOnce  = 30   // of one address
	denialEvery    = 2 * time.Second
	denialBatch    = 200
	maxDetail      = 16 << 10
	maxText        = 512
	maxActions     = 1000 // of one page
	recordEvery    = 500 * time.Millisecond
	drainTime      = 5 * time.Second
)

// recorder holds denials that are yet to be written.
type recorder struct {
	s       *Service
	allowed *limiter
	wake    chan struct{} // has room for one: there is something to write

	mu      sync.Mutex // guards pending
	pending []store.Action

	writing sync.Mutex // held by the one who writes
}

func newRecorder(s *Service) *recorder {
	return &recorder{s: s, allowed: newLimiter(denialsAtOnce, denialEvery), wake: make(chan struct{}, 1)}
}

// Record keeps an action. What somebody did is durable when it returns nil. What
// somebody was denied is written soon, as long as there is not too much of it:
// nobody fills the database by being refused.
func (s *Service) Record(ctx context.Context, a Action) error {
	row := s.row(a)
	if a.Outcome != outcomeRefused {
		return s.o.Store.AddActions(ctx, row)
	}
	if !s.record.add(row, s.o.Clock()) {
		s.meters.dropped.Inc()
	}
	return nil
}

func (s *Service) row(a Action) store.Action {
	if a.ID == 0 {
		a.ID = s.o.IDs()
	}
	if a.At.IsZero() {
		a.At = s.o.Clock()
	}
	detail := []byte(a.Detail)
	switch {
	case len(detail) > maxDetail:
		detail = []byte(`{"left_out":"too long"}`)
	case len(detail) > 0 && !json.Valid(detail):
		detail = []byte(`{"left_out":"not JSON"}`)
	}
	return store.Action{
		ID: a.ID, At: a.At.UTC(), Type: short(a.Type), Actor: short(a.Actor), ActorName: short(a.ActorName), By: short(a.By), Remote: short(a.Remote),
		RequestID: short(a.RequestID), Method: short(a.Method), Route: short(a.Route), Target: short(a.Target), Outcome: short(a.Outcome),
		Status: a.Status, Detail: detail,
	}
}

// short is what is kept of a text of somebody's choosing.
func short(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

func (r *recorder) add(a store.Action, now time.Time) bool {
	if !r.allowed.use(a.Remote, now) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= maxDenials {
		return false
	}
	r.pending = append(r.pending, a)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}

// flush writes what is pending. What cannot be written stays for the next time.
func (r *recorder) flush(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	for {
		r.mu.Lock()
		batch := r.pending[:min(len(r.pending), denialBatch):min(len(r.pending), denialBatch)]
		r.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		if err := r.s.o.Store.AddActions(ctx, batch...); err != nil {
			return err
		}
		r.mu.Lock()
		r.pending = r.pending[len(batch):]
		if len(r.pending) == 0 {
			r.pending = nil
		}
		r.mu.Unlock()
	}
}

// Actions lists what was recorded, newest first.
func (s *Service) Actions(ctx context.Context, f ActionFilter) ([]Action, error) {
	if f.Limit < 0 || f.Limit > maxActions {
		return nil, event.Errorf(event.Invalid, "limit: want 1 to %d, got %d", maxActions, f.Limit)
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return nil, event.Errorf(event.Invalid, "from must be before to")
	}
	if err := s.record.flush(ctx); err != nil {
		return nil, err
	}
	rows, err := s.o.Store.ListActions(ctx, store.ActionFilter(f))
	if err != nil {
		return nil, err
	}
	out := make([]Action, 0, len(rows))
	for _, row := range rows {
		a := Action{
			ID: row.ID, At: row.At, Type: row.Type, Actor: row.Actor, ActorName: row.ActorName, By: row.By, Remote: row.Remote, RequestID: row.RequestID,
			Method: row.Method, Route: row.Route, Target: row.Target, Outcome: row.Outcome, Status: row.Status, Detail: row.Detail,
		}
		out = append(out, a)
	}
	return out, nil
}
