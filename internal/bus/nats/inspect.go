package nats

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/bus"
)

// Inspect looks at a broker without making or changing anything there.
func Inspect(ctx context.Context, o Options, pools []string) (in bus.Inspection, err error) {
	o = o.withDefaults()
	if err := checkURLs(o.URL); err != nil {
		return in, err
	}
	b := &Bus{options: o, subs: map[*subscription]struct{}{}}
	in.Where = redact(o.URL)
	conn, err := nats.Connect(o.URL, append(b.connectOptions(ctx), nats.MaxReconnects(0))...)
	if err != nil {
		return in, b.unavailable("connect to NATS at "+in.Where, err)
	}
	defer conn.Close()
	in.Version = conn.ConnectedServerVersion()
	if in.RoundTrip, err = conn.RTT(); err != nil {
		return in, b.unavailable("ask NATS at "+in.Where, err)
	}
	b.conn = conn
	if b.js, err = jetstream.New(conn, jetstream.WithDefaultTimeout(callTimeout)); err != nil {
		return in, b.unavailable("use JetStream", err)
	}
	if _, err := b.js.AccountInfo(ctx); err != nil {
		in.JetStream = b.unavailable("use JetStream", err)
		return in, nil
	}
	return in, b.inspectStreams(ctx, pools, &in)
}

func (b *Bus) inspectStreams(ctx context.Context, pools []string, in *bus.Inspection) error {
	check := func(name string, check func(jetstream.StreamConfig) error) (bool, error) {
		stream, err := b.js.Stream(ctx, name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			in.Missing = append(in.Missing, name)
			return false, nil
		case err != nil:
			return false, b.unavailable("look at NATS stream "+name, err)
		}
		if at := stream.CachedInfo().TimeStamp; !at.IsZero() {
			in.Clock = at
		}
		if wrong := check(stream.CachedInfo().Config); wrong != nil {
			in.Wrong = append(in.Wrong, wrong)
		}
		return true, nil
	}
	there, err := check(b.options.Stream, b.checkStream)
	if err != nil {
		return err
	}
	if _, err := check(b.options.LogStream, b.checkLogs); err != nil {
		return err
	}
	if !there {
		return nil
	}
	for _, pool := range pools {
		want := b.consumerConfig(pool)
		consumer, err := b.js.Consumer(ctx, b.options.Stream, want.Durable)
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound):
		case err != nil:
			return b.unavailable("look at NATS consumer "+want.Durable, err)
		default:
			if wrong := b.checkConsumer(consumer.CachedInfo().Config, want); wrong != nil {
				in.Wrong = append(in.Wrong, wrong)
			}
		}
	}
	return nil
}
