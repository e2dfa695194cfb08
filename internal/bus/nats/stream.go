package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/event"
)

const (
	maxAge          = 24 * time.Hour
	duplicateWindow = 2 * time.Minute
	// ackWait is how long the broker waits for a worker that has gone silent.
	// There is no back-off list: the broker would use its first entry instead
	// of the ack wait and redeliver commands that still run.
	ackWait       = 60 * time.Second
	maxAckPending = 1 << 14
	maxWaiting    = 1 << 12
)

func (b *Bus) streamConfig() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:       b.options.Stream,
		Subjects:   b.streamSubjects(),
		Retention:  jetstream.LimitsPolicy,
		Storage:    jetstream.FileStorage,
		Discard:    jetstream.DiscardOld,
		MaxAge:     maxAge,
		Duplicates: duplicateWindow,
	}
	if b.options.maxBytes > 0 {
		c.MaxBytes = b.options.maxBytes
	}
	return c
}

func (b *Bus) streamSubjects() []string {
	return []string{b.options.Subject, b.options.Subject + ".>"}
}

// ensureStream creates the stream when it is missing and adds missing subjects
// to it. Any other difference in what we depend on is an error, because
// somebody chose it and changing it could drop messages of others.
func (b *Bus) ensureStream(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := b.js.Stream(ctx, b.options.Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// Another server may create it at the same time; equal settings make
		// that a success for both.
		stream, err = b.js.CreateStream(ctx, b.streamConfig())
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			stream, err = b.js.Stream(ctx, b.options.Stream)
		}
	}
	if err != nil {
		return b.unavailable("prepare NATS stream "+b.options.Stream, err)
	}
	have := stream.CachedInfo().Config
	if err := b.checkStream(have); err != nil {
		return err
	}
	missing := slices.DeleteFunc(b.streamSubjects(), func(s string) bool { return slices.Contains(have.Subjects, s) })
	if len(missing) == 0 {
		return nil
	}
	have.Subjects = append(have.Subjects, missing...)
	if _, err := b.js.UpdateStream(ctx, have); err != nil {
		return b.unavailable("add subjects "+strings.Join(missing, ", ")+" to NATS stream "+b.options.Stream, err)
	}
	return nil
}

func (b *Bus) checkStream(have jetstream.StreamConfig) error {
	var d diff
	d.want("retention", have.Retention, jetstream.LimitsPolicy)
	d.want("storage", have.Storage, jetstream.FileStorage)
	d.want("max_age", have.MaxAge, maxAge)
	d.want("duplicate_window", have.Duplicates, duplicateWindow)
	return d.err("stream "+b.options.Stream, "nats stream edit or rm "+b.options.Stream)
}

// ensureConsumer creates the durable consumer of a pool when it is missing.
func (b *Bus) ensureConsumer(ctx context.Context, pool string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	want := b.consumerConfig(pool)
	consumer, err := b.js.Consumer(ctx, b.options.Stream, want.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumer, err = b.js.CreateConsumer(ctx, b.options.Stream, want)
		if errors.Is(err, jetstream.ErrConsumerExists) {
			consumer, err = b.js.Consumer(ctx, b.options.Stream, want.Durable)
		}
	}
	if err != nil {
		return b.unavailable("prepare NATS consumer "+want.Durable, err)
	}
	return b.checkConsumer(consumer.CachedInfo().Config, want)
}

func (b *Bus) consumerName(pool string) string { return b.options.Consumer + "_" + pool }

func (b *Bus) consumerConfig(pool string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       b.consumerName(pool),
		FilterSubject: b.options.Subject + "." + pool + ".>",
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       ackWait,
		MaxDeliver:    -1,
		MaxAckPending: maxAckPending,
		MaxWaiting:    maxWaiting,
	}
}

func (b *Bus) checkConsumer(have, want jetstream.ConsumerConfig) error {
	var d diff
	d.want("filter_subject", have.FilterSubject, want.FilterSubject)
	d.want("deliver_policy", have.DeliverPolicy, want.DeliverPolicy)
	d.want("ack_policy", have.AckPolicy, want.AckPolicy)
	d.want("max_deliver", have.MaxDeliver, want.MaxDeliver)
	d.want("back_off", len(have.BackOff), 0)
	// A longer wait or a wider window does no harm.
	if have.AckWait < want.AckWait {
		d.want("ack_wait", have.AckWait, want.AckWait)
	}
	if have.MaxAckPending >= 0 && have.MaxAckPending < want.MaxAckPending {
		d.want("max_ack_pending", have.MaxAckPending, want.MaxAckPending)
	}
	return d.err("consumer "+want.Durable, "nats consumer rm "+b.options.Stream+" "+want.Durable)
}

// diff collects settings that are not as they must be.
type diff []string

func (d *diff) want(setting string, have, want any) {
	if have != want {
		*d = append(*d, fmt.Sprintf("%s is %v, must be %v", setting, have, want))
	}
}

func (d diff) err(what, command string) error {
	if len(d) == 0 {
		return nil
	}
	return &event.Error{
		Code:    event.Conflict,
		Message: "NATS " + what + " has other settings than we need: " + strings.Join(d, "; "),
		Remedy:  "change it (" + command + "), or give us another name; it holds hints only, so removing it loses nothing",
	}
}
