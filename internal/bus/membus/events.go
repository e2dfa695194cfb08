package membus

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

var _ bus.EventStream = (*Bus)(nil)

// maxEvent is what a broker allows unless told otherwise.
const maxEvent = 1 << 20

// events is the stream of events in memory: the newest, and the ids of those
// whose repetition is dropped.
type events struct {
	open       bool
	duplicates time.Duration
	kept       []bus.EventMessage
	recent     map[event.ID]time.Time
	order      []event.ID // the keys of recent, oldest first
}

// OpenEvents begins to take events.
func (b *Bus) OpenEvents(_ context.Context, o bus.EventOptions) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errClosed()
	}
	b.events.open, b.events.duplicates = true, o.Duplicates
	return nil
}

// MaxEvent is how many bytes a message may hold.
func (b *Bus) MaxEvent() int { return maxEvent }

// PublishEvents keeps messages, the newest MaxQueue of them.
func (b *Bus) PublishEvents(ctx context.Context, messages []bus.EventMessage) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(messages))
	failed := map[event.ID]error{}
	for i, m := range messages {
		err := failed[m.ExecutionID]
		if err == nil {
			err = b.takeEventLocked(ctx, m)
		}
		if err != nil {
			errs[i], failed[m.ExecutionID] = err, heldBack()
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return errs
}

// heldBack is the error of a message that was not sent because one before it failed.
func heldBack() error {
	return event.Errorf(event.Unavailable, "an earlier event of the execution was not taken")
}

func (b *Bus) takeEventLocked(ctx context.Context, m bus.EventMessage) error {
	switch {
	case b.closed:
		return errClosed()
	case ctx.Err() != nil:
		return event.Errorf(event.Unavailable, "publish event %s: %w", m.EventID, ctx.Err())
	case !b.events.open:
		return event.Errorf(event.Unavailable, "the stream of events is not open")
	case !strings.HasPrefix(m.Subject, bus.EventSubject+"."):
		return event.Errorf(event.Limit, "event %s: subject %q is not below %s", m.EventID, m.Subject, bus.EventSubject)
	case len(m.Payload) > maxEvent:
		return event.Errorf(event.Limit, "event %s has %d bytes, at most %d can be sent", m.EventID, len(m.Payload), maxEvent)
	case b.options.RefuseEvent != nil:
		if err := b.options.RefuseEvent(m); err != nil {
			return err
		}
	}
	b.events.add(m, time.Now(), b.options.MaxQueue)
	return nil
}

func (s *events) add(m bus.EventMessage, now time.Time, most int) {
	old := 0
	for old < len(s.order) && (now.Sub(s.recent[s.order[old]]) >= s.duplicates || len(s.order)-old > most) {
		delete(s.recent, s.order[old])
		old++
	}
	s.order = slices.Delete(s.order, 0, old)
	if _, seen := s.recent[m.EventID]; seen {
		return
	}
	if s.recent == nil {
		s.recent = make(map[event.ID]time.Time)
	}
	s.recent[m.EventID] = now
	s.order = append(s.order, m.EventID)
	s.kept = append(s.kept, m)
	if over := len(s.kept) - most; over > 0 {
		s.kept = slices.Delete(s.kept, 0, over)
	}
}

// Events are the messages kept, oldest first.
func (b *Bus) Events() []bus.EventMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events.kept)
}
