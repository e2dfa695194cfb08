package nats

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

var _ bus.EventStream = (*Bus)(nil)

const (
	// EventStreamName is the stream of events, unless Options say otherwise.
	EventStreamName = "noetl_events"
	// eventsInFlight bounds the events that wait for the broker's word.
	eventsInFlight = 256
	// headerRoom is kept free in a message for its headers.
	headerRoom = 4 << 10
	// messageTooLarge and subjectsOverlap are the broker's codes for these.
	messageTooLarge jetstream.ErrorCode = 10054
	subjectsOverlap jetstream.ErrorCode = 10065
)

// OpenEvents makes sure that the stream of events is there. One that exists
// keeps messages longer when o asks for it, and never shorter: what is in it
// belongs to its readers.
func (b *Bus) OpenEvents(ctx context.Context, o bus.EventOptions) error {
	js, err := jetstream.New(b.conn,
		jetstream.WithPublishAsyncMaxPending(2*eventsInFlight), // the bound is ours; see window
		jetstream.WithPublishAsyncTimeout(callTimeout),
		jetstream.WithDefaultTimeout(callTimeout))
	if err != nil {
		return b.unavailable("use JetStream", err)
	}
	b.mu.Lock()
	b.events = &eventStream{js: js, options: o}
	b.mu.Unlock()
	return b.ensureEvents(ctx)
}

// eventStream is what publishing events needs beside the connection. It has a
// publisher of its own, so that events and notifications do not stall each other.
type eventStream struct {
	js      jetstream.JetStream
	options bus.EventOptions
}

func (b *Bus) openEvents() *eventStream {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.events
}

// MaxEvent is how many bytes a message may hold.
func (b *Bus) MaxEvent() int { return int(b.conn.MaxPayload()) - headerRoom }

func (b *Bus) eventConfig(o bus.EventOptions) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:       b.options.EventStream,
		Subjects:   []string{bus.EventSubject + ".>"},
		Retention:  jetstream.LimitsPolicy,
		Storage:    jetstream.FileStorage,
		Discard:    jetstream.DiscardOld,
		MaxAge:     o.MaxAge,
		Duplicates: o.Duplicates,
	}
	if b.options.maxEventBytes > 0 {
		c.MaxBytes = b.options.maxEventBytes
	}
	return c
}

// openStream finds a stream, or creates it when it is missing, and returns the
// settings it has. subject begins what it takes.
func (b *Bus) openStream(ctx context.Context, want jetstream.StreamConfig, subject string) (have jetstream.StreamConfig, err error) {
	stream, err := b.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = b.js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = b.js.Stream(ctx, want.Name)
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == subjectsOverlap {
		return have, &event.Error{
			Code:    event.Conflict,
			Message: "another NATS stream than " + want.Name + " takes subjects below " + subject,
			Remedy:  "find it with: nats stream ls --subject " + subject + ".x; remove it or narrow its subjects",
		}
	}
	if err != nil {
		return have, b.unavailable("prepare NATS stream "+want.Name, err)
	}
	return stream.CachedInfo().Config, nil
}

// ensureEvents creates or widens the stream.
func (b *Bus) ensureEvents(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	want := b.eventConfig(b.openEvents().options)
	have, err := b.openStream(ctx, want, bus.EventSubject)
	if err != nil {
		return err
	}
	if err := checkEvents(have, want); err != nil {
		return err
	}
	wider, changed := widen(have, want)
	if !changed {
		return nil
	}
	if _, err := b.js.UpdateStream(ctx, wider); err != nil {
		return b.unavailable("update NATS stream "+want.Name, err)
	}
	b.options.Logger.Info("NATS stream of events updated", "stream", want.Name,
		"subjects", wider.Subjects, "max_age", wider.MaxAge, "duplicate_window", wider.Duplicates)
	return nil
}

// checkEvents refuses what no update could change or nobody may decide for the
// others that use the stream.
func checkEvents(have, want jetstream.StreamConfig) error {
	var d diff
	d.want("retention", have.Retention, want.Retention)
	d.want("storage", have.Storage, want.Storage)
	d.want("discard", have.Discard, want.Discard)
	d.want("no_ack", have.NoAck, false)
	d.want("sealed", have.Sealed, false)
	err := d.err("stream "+want.Name, "nats stream edit or rm "+want.Name)
	if e, ok := errors.AsType[*event.Error](err); ok {
		e.Remedy = "change it with nats stream edit " + want.Name + ", or move its readers and remove it; events not yet published are kept in the outbox"
	}
	return err
}

// widen is have with the subjects and times that want has more of.
func widen(have, want jetstream.StreamConfig) (jetstream.StreamConfig, bool) {
	changed := false
	if !slices.Contains(have.Subjects, want.Subjects[0]) {
		narrow := func(s string) bool { return strings.HasPrefix(s, bus.EventSubject+".") } // within the new one
		have.Subjects, changed = append(slices.DeleteFunc(slices.Clone(have.Subjects), narrow), want.Subjects...), true
	}
	if have.MaxAge != 0 && have.MaxAge < want.MaxAge { // 0 is for ever
		have.MaxAge, changed = want.MaxAge, true
	}
	if have.Duplicates < want.Duplicates {
		have.Duplicates, changed = want.Duplicates, true
	}
	return have, changed
}

// PublishEvents sends messages in order without waiting for each other's
// acknowledgement, and awaits them all.
func (b *Bus) PublishEvents(ctx context.Context, messages []bus.EventMessage) []error {
	s := b.openEvents()
	if s == nil {
		return all(messages, event.Errorf(event.Unavailable, "the stream of events is not open"))
	}
	errs := b.sendEvents(ctx, s, messages)
	if !lostStream(errs) {
		return errs
	}
	// The broker lost the stream, perhaps with its disk. What was sent before is
	// sent again; duplicates are dropped by message id.
	if err := b.ensureEvents(ctx); err != nil {
		b.ailing(err)
		return all(messages, err)
	}
	return b.sendEvents(ctx, s, messages)
}

func all(messages []bus.EventMessage, err error) []error {
	return slices.Repeat([]error{err}, len(messages))
}

func lostStream(errs []error) bool {
	return slices.ContainsFunc(errs, func(err error) bool { return err == errNoStream })
}

// errNoStream tells that nobody took the message although the broker did.
var errNoStream = event.Errorf(event.Unavailable, "no NATS stream takes the subjects below %s", bus.EventSubject)

// sendEvents makes one attempt. It ends with the first connection that is lost:
// what was sent over it may be lost too, and must not be overtaken by what is
// sent over the next.
func (b *Bus) sendEvents(ctx context.Context, s *eventStream, messages []bus.EventMessage) []error {
	f := flight{bus: b, messages: messages, errs: make([]error, len(messages)), failed: map[event.ID]bool{}}
	connections := b.conn.Stats().Reconnects
	for i := range messages {
		for len(f.out) >= eventsInFlight {
			f.land(ctx)
		}
		switch m := &messages[i]; {
		case f.failed[m.ExecutionID]:
			f.errs[i] = event.Errorf(event.Unavailable, "an earlier event of execution %s was not taken", m.ExecutionID)
		case f.broken == nil && b.conn.Stats().Reconnects != connections:
			f.broken = b.unavailable("publish events", nats.ErrDisconnected)
			fallthrough
		case f.broken != nil:
			f.fail(i, f.broken)
		default:
			f.launch(s, i)
		}
	}
	for len(f.out) > 0 {
		f.land(ctx)
	}
	if f.bad == 0 {
		return nil
	}
	return f.errs
}

// flight is one run of messages on their way.
type flight struct {
	bus      *Bus
	messages []bus.EventMessage
	out      []launched // not yet acknowledged, in order
	errs     []error
	bad      int
	failed   map[event.ID]bool // executions that had an error
	broken   error             // why nothing more is sent
}

type launched struct {
	index  int
	future jetstream.PubAckFuture
}

func (f *flight) launch(s *eventStream, i int) {
	m := &f.messages[i]
	msg := nats.NewMsg(m.Subject)
	msg.Data = m.Payload
	msg.Header[jetstream.MsgIDHeader] = []string{m.EventID.String()}
	// A retry behind our back would let later events overtake.
	future, err := s.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		f.fail(i, err)
		return
	}
	f.out = append(f.out, launched{i, future})
}

// land awaits the oldest acknowledgement that is still out.
func (f *flight) land(ctx context.Context) {
	first := f.out[0]
	f.out = f.out[1:]
	select {
	case <-first.future.Ok():
	case err := <-first.future.Err():
		f.fail(first.index, err)
	case <-ctx.Done():
		f.fail(first.index, context.Cause(ctx))
	}
}

// fail notes the error of a message. One that is not about the message itself
// ends the sending.
func (f *flight) fail(i int, err error) {
	m := &f.messages[i]
	f.bad++
	f.failed[m.ExecutionID] = true
	api, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject), api != nil && api.ErrorCode == messageTooLarge:
		f.errs[i] = event.Errorf(event.Limit, "NATS does not take event %s of %d bytes under %s: %s",
			m.EventID, len(m.Payload), strings.ToValidUTF8(m.Subject, "?"), f.bus.scrub(err))
		return
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		f.errs[i] = errNoStream
	case f.broken != nil:
		f.errs[i] = f.broken
	default:
		f.errs[i] = f.bus.unavailable("publish event "+m.EventID.String(), err)
	}
	f.broken = f.errs[i]
}
