package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/event"
)

// Publish announces commands. Messages are sent without waiting for each
// other's acknowledgement; the call returns when all are acknowledged. One that
// cannot be sent at all does not keep the others back.
func (b *Bus) Publish(ctx context.Context, notes ...event.Notification) error {
	msgs := make([]*nats.Msg, 0, len(notes))
	var unfit error
	for _, n := range notes {
		m, err := b.message(n)
		if err != nil {
			unfit = errors.Join(unfit, err)
			continue
		}
		msgs = append(msgs, m)
	}
	at, err := b.publish(ctx, msgs)
	if errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) {
		// The broker lost the stream, perhaps with its disk. What was sent
		// before is sent again; duplicates are dropped by message id.
		if err := b.ensureStream(ctx); err != nil {
			b.ailing(err)
			return err
		}
		at, err = b.publish(ctx, msgs)
	}
	b.ailing(err)
	if err != nil {
		return b.unavailable("publish notification "+msgs[at].Header.Get(jetstream.MsgIDHeader), err)
	}
	return unfit
}

func (b *Bus) message(n event.Notification) (*nats.Msg, error) {
	pool := n.Pool
	if pool == "" {
		pool = DefaultPool
	}
	if err := event.CheckPool(pool); err != nil {
		return nil, err
	}
	data, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("encode notification of command %s: %w", n.CommandID, err)
	}
	m := nats.NewMsg(b.options.Subject + "." + pool + "." + n.ExecutionID.String())
	m.Data = data
	m.Header[jetstream.MsgIDHeader] = []string{messageID(n)}
	return m, nil
}

// messageID makes equal publications equal for the broker's duplicate check,
// and a deliberate re-publication different.
func messageID(n event.Notification) string {
	id := "cmd-" + n.EventID.String()
	if n.Attempt > 1 {
		id += "-a" + strconv.Itoa(n.Attempt)
	}
	return id
}

// publish sends all messages and awaits their acknowledgements. On error it
// returns the index of a message that was not acknowledged.
func (b *Bus) publish(ctx context.Context, msgs []*nats.Msg) (int, error) {
	w := window{tokens: b.tokens}
	defer w.leave()
	for i, m := range msgs {
		if err := w.enter(ctx); err != nil {
			return w.acked, err
		}
		future, err := b.js.PublishMsgAsync(m)
		if err != nil {
			<-b.tokens
			return i, err
		}
		w.sent = append(w.sent, future)
	}
	for w.acked < len(w.sent) {
		if err := w.settle(ctx); err != nil {
			return w.acked, err
		}
	}
	return 0, nil
}

// window is the part of the in-flight limit one publisher uses.
// Invariant: it holds a token for each of sent[acked:].
type window struct {
	tokens chan struct{}
	sent   []jetstream.PubAckFuture
	acked  int
}

// enter takes a token. When none is free it first gives back its own, because
// publishers that hold some and wait for more would wait for each other.
func (w *window) enter(ctx context.Context) error {
	for w.acked < len(w.sent) {
		select {
		case w.tokens <- struct{}{}:
			return nil
		default:
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
	}
	select {
	case w.tokens <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// settle awaits the oldest acknowledgement that is still out.
func (w *window) settle(ctx context.Context) error {
	f := w.sent[w.acked]
	select {
	case <-f.Ok():
	case err := <-f.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.acked++
	<-w.tokens
	return nil
}

func (w *window) leave() {
	for range w.sent[w.acked:] {
		<-w.tokens
	}
}
