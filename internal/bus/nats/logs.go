package nats

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

var _ bus.Logs = (*Bus)(nil)

const (
	// LogStreamName is the stream of live output, unless Options say otherwise.
	LogStreamName  = "NOETL_LOGS"
	defaultMaxLogs = 1 << 30
	// logAge is how long live output is kept.
	logAge = 24 * time.Hour
	// logsPerCommand bounds the chunks kept of one command. With chunks of 8 KiB
	// that is 16 MiB at most.
	logsPerCommand = 2048
	// logDuplicates is the shortest window the broker allows in practice: chunks
	// carry no message id.
	logDuplicates = time.Minute
	// logPause is how long a reader waits before it asks a broker again that is
	// away or has lost the stream.
	logPause = time.Second
)

func (b *Bus) logConfig() jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              b.options.LogStream,
		Subjects:          []string{bus.LogSubject + ".>"},
		Retention:         jetstream.LimitsPolicy,
		Storage:           jetstream.FileStorage,
		Discard:           jetstream.DiscardOld,
		MaxAge:            logAge,
		MaxMsgsPerSubject: logsPerCommand,
		Duplicates:        logDuplicates,
		NoAck:             true, // nobody waits for the broker's word on output
	}
	if b.options.MaxLogs > 0 {
		c.MaxBytes = b.options.MaxLogs
	}
	return c
}

// ensureLogs creates the stream of live output when it is missing. How much an
// existing one keeps is up to whoever made it.
func (b *Bus) ensureLogs(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	want := b.logConfig()
	have, err := b.openStream(ctx, want, bus.LogSubject)
	if err != nil {
		return err
	}
	return b.checkLogs(have)
}

func (b *Bus) checkLogs(have jetstream.StreamConfig) error {
	want := b.logConfig()
	var d diff
	d.want("subjects", len(have.Subjects) == 1 && have.Subjects[0] == want.Subjects[0], true)
	d.want("retention", have.Retention, want.Retention)
	d.want("discard", have.Discard, want.Discard)
	d.want("sealed", have.Sealed, false)
	return d.err("stream "+want.Name, "nats stream edit or rm "+want.Name)
}

// PublishLog sends a chunk without waiting for the broker's word.
func (b *Bus) PublishLog(_ context.Context, c event.LogChunk) error {
	c.Seq = 0
	data, err := json.Marshal(&c)
	if err != nil {
		return err
	}
	if err := b.conn.Publish(logSubject(c.ExecutionID)+"."+c.EventID.String(), data); err != nil {
		return b.unavailable("publish output of execution "+c.ExecutionID.String(), err)
	}
	return nil
}

func logSubject(execution event.ID) string { return bus.LogSubject + "." + execution.String() }

// errAllRead ends a reading behind the last chunk that is kept.
var errAllRead = errors.New("all is read")

// ReadLogs calls f with what is kept.
func (b *Bus) ReadLogs(ctx context.Context, execution event.ID, after uint64, f func(event.LogChunk) error) error {
	flush, cancel := context.WithTimeout(ctx, callTimeout)
	err := b.conn.FlushWithContext(flush) // what this process sent counts as kept
	cancel()
	if err != nil {
		return b.unavailable("read output of execution "+execution.String(), err)
	}
	stream, err := b.js.Stream(ctx, b.options.LogStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return b.unavailable("read output of execution "+execution.String(), err)
	}
	last, err := stream.GetLastMsgForSubject(ctx, logSubject(execution)+".>")
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil
	case err != nil:
		return b.unavailable("read output of execution "+execution.String(), err)
	}
	if after = sane(after, stream.CachedInfo()); last.Sequence <= after {
		return nil
	}
	err = b.followLogs(ctx, stream, execution, &after, func(c event.LogChunk) error {
		if err := f(c); err != nil {
			return err
		}
		if c.Seq >= last.Sequence {
			return errAllRead
		}
		return nil
	})
	if errors.Is(err, errAllRead) {
		return nil
	}
	return err
}

// sane is a position in the stream; one behind its end is of a stream that is
// gone, and everything in this one is new.
func sane(after uint64, info *jetstream.StreamInfo) uint64 {
	if after > info.State.LastSeq {
		return 0
	}
	return after
}

// TailLogs calls f with what is kept and what comes. It outlasts a broker that
// goes away, and a stream that is made again.
func (b *Bus) TailLogs(ctx context.Context, execution event.ID, after uint64, f func(event.LogChunk) error) error {
	for {
		stream, err := b.js.Stream(ctx, b.options.LogStream)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = b.ensureLogs(ctx)
			after = 0
		} else if err == nil {
			after = sane(after, stream.CachedInfo())
			var own error
			err = b.followLogs(ctx, stream, execution, &after, func(c event.LogChunk) error {
				own = f(c)
				return own
			})
			if own != nil {
				return own
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.options.Logger.Debug("reading live output interrupted", "execution_id", execution, "error", err)
		pause := time.NewTimer(logPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return ctx.Err()
		}
	}
}

// followLogs reads from a position on until something fails, and notes where it is.
func (b *Bus) followLogs(ctx context.Context, stream jetstream.Stream, execution event.ID, at *uint64, f func(event.LogChunk) error) error {
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{logSubject(execution) + ".>"},
		DeliverPolicy:  jetstream.DeliverByStartSequencePolicy, OptStartSeq: *at + 1,
		InactiveThreshold: time.Minute, MaxResetAttempts: 1,
	})
	if err != nil {
		return b.unavailable("read output of execution "+execution.String(), err)
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessages(64))
	if err != nil {
		return b.unavailable("read output of execution "+execution.String(), err)
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return b.unavailable("read output of execution "+execution.String(), err)
		}
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Stream <= *at {
			continue
		}
		*at = meta.Sequence.Stream
		var c event.LogChunk
		if json.Unmarshal(m.Data(), &c) != nil || c.ExecutionID != execution {
			continue // somebody else's message
		}
		c.Seq = *at
		if err := f(c); err != nil {
			return err
		}
	}
}
