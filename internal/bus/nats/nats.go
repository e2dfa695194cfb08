// Package nats is the bus on NATS JetStream: a server inside this process, or
// a cluster elsewhere. Its messages are hints, so losing the stream's store
// loses nothing. It must not know the store or what a command does.
package nats

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/bus"
	"github.com/noetl/noetl-go/internal/event"
)

var _ bus.Bus = (*Bus)(nil)

const (
	// DefaultStream, DefaultSubject and DefaultConsumer are the names all parts
	// of an installation share unless they are told otherwise.
	DefaultStream   = "NOETL_COMMANDS"
	DefaultSubject  = "noetl.commands"
	DefaultConsumer = "noetl_worker_pool"
	// DefaultPool takes the commands whose notification names none.
	DefaultPool = "shared"

	controlSubject = "noetl.control"
	// maxInFlight bounds the published messages that wait for the broker's word.
	maxInFlight = 1024
	// callTimeout bounds one request to the broker when ctx has no deadline.
	callTimeout = 5 * time.Second
)

// Options say how to reach an external NATS and what its streams are called.
type Options struct {
	URL      string // one or several, separated by commas
	User     string // these win over the URL's user information
	Password string
	Token    string

	Stream   string // default NOETL_COMMANDS
	Subject  string // prefix of notifications; default noetl.commands
	Consumer string // prefix of durable consumers; default noetl_worker_pool
	Name     string // of this connection, as the broker's monitoring shows it

	EventStream string // default noetl_events
	LogStream   string // of live output; default NOETL_LOGS
	MaxLogs     int64  // bytes of it that are kept; default 1 GiB, negative leaves it to the broker

	Logger *slog.Logger

	maxBytes      int64 // of the stream; 0 leaves it to the broker
	maxEventBytes int64 // the same of the stream of events
}

func (o Options) withDefaults() Options {
	def := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	def(&o.Stream, DefaultStream)
	def(&o.Subject, DefaultSubject)
	def(&o.Consumer, DefaultConsumer)
	def(&o.EventStream, EventStreamName)
	def(&o.LogStream, LogStreamName)
	if o.MaxLogs == 0 {
		o.MaxLogs = defaultMaxLogs
	}
	def(&o.Name, "noetl")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Bus is a connection to NATS. It reconnects by itself for as long as it takes.
type Bus struct {
	options Options
	conn    *nats.Conn
	js      jetstream.JetStream
	server  *server.Server // nil unless embedded
	mender  *mender
	tokens  chan struct{} // one per message in flight

	mu     sync.Mutex // guards subs, events and closed
	subs   map[*subscription]struct{}
	events *eventStream // nil until opened
	closed bool
}

// Connect joins an external NATS and makes sure that the stream is as the bus
// needs it. A broker that cannot be reached is an unavailable error; a stream
// with other settings is a conflict that lists the differences.
func Connect(ctx context.Context, o Options) (*Bus, error) {
	o = o.withDefaults()
	if err := checkURLs(o.URL); err != nil {
		return nil, err
	}
	return open(ctx, o, nil)
}

func open(ctx context.Context, o Options, embedded *server.Server) (*Bus, error) {
	b := &Bus{
		options: o, server: embedded, mender: newMender(embedded),
		tokens: make(chan struct{}, maxInFlight),
		subs:   map[*subscription]struct{}{},
	}
	conn, err := nats.Connect(o.URL, b.connectOptions(ctx)...)
	if err != nil {
		return nil, b.unavailable("connect to NATS at "+redact(o.URL), err)
	}
	b.conn = conn
	b.js, err = jetstream.New(conn,
		jetstream.WithPublishAsyncMaxPending(maxInFlight),
		jetstream.WithPublishAsyncTimeout(callTimeout),
		jetstream.WithDefaultTimeout(callTimeout))
	if err != nil {
		conn.Close()
		return nil, b.unavailable("use JetStream", err)
	}
	err = b.ensureStream(ctx)
	if err == nil {
		err = b.ensureLogs(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bus) connectOptions(ctx context.Context) []nats.Option {
	timeout := callTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(deadline)), time.Millisecond)
	}
	o := []nats.Option{
		nats.Name(b.options.Name),
		nats.Timeout(timeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond),
		// Publishing while disconnected fails at once: the caller keeps the
		// truth elsewhere and tries again, so a hidden buffer only adds delay.
		nats.ReconnectBufSize(-1),
		nats.PingInterval(20 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				b.options.Logger.Warn("NATS connection lost", "error", b.scrub(err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			b.options.Logger.Info("NATS connection restored")
			b.eachSubscription((*subscription).reset)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.options.Logger.Warn("NATS reported an error", "error", b.scrub(err))
		}),
	}
	if b.options.User != "" {
		o = append(o, nats.UserInfo(b.options.User, b.options.Password))
	}
	if b.options.Token != "" {
		o = append(o, nats.Token(b.options.Token))
	}
	if b.server != nil {
		o = append(o, nats.InProcessServer(b.server))
	}
	return o
}

// Connected tells whether the broker is reachable now.
func (b *Bus) Connected() bool { return b.conn.IsConnected() }

// Conn is the connection of the bus, for others that need one; it ends with the
// bus.
func (b *Bus) Conn() *nats.Conn { return b.conn }

// Close ends all subscriptions and the connection, and stops the embedded
// server. It may be called more than once.
func (b *Bus) Close() error {
	b.mu.Lock()
	done := b.closed
	b.closed = true
	b.mu.Unlock()
	if done {
		return nil
	}
	b.eachSubscription((*subscription).Stop)
	b.js.CleanupPublisher()
	if s := b.openEvents(); s != nil {
		s.js.CleanupPublisher()
	}
	b.conn.Close()
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	return nil
}

// eachSubscription calls f outside the lock, because f may end a subscription.
func (b *Bus) eachSubscription(f func(*subscription)) {
	b.mu.Lock()
	subs := make([]*subscription, 0, len(b.subs))
	for s := range b.subs {
		subs = append(subs, s)
	}
	b.mu.Unlock()
	for _, s := range subs {
		f(s)
	}
}

// PublishCancel tells all workers that an execution was cancelled.
func (b *Bus) PublishCancel(ctx context.Context, execution event.ID) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := b.conn.Publish(controlSubject+"."+execution.String(), []byte(`{"action":"cancel"}`)); err != nil {
		return b.unavailable("publish cancellation of execution "+execution.String(), err)
	}
	if err := b.conn.FlushWithContext(ctx); err != nil {
		return b.unavailable("publish cancellation of execution "+execution.String(), err)
	}
	return nil
}

// WatchCancel calls f, one call at a time, for each cancellation until stop is
// called. Cancellations published while the connection is down are not seen;
// heartbeats carry them too.
func (b *Bus) WatchCancel(f func(execution event.ID)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(controlSubject+".*", func(m *nats.Msg) {
		id, err := event.ParseID(strings.TrimPrefix(m.Subject, controlSubject+"."))
		if err != nil {
			b.options.Logger.Warn("unreadable cancellation", "subject", m.Subject)
			return
		}
		f(id)
	})
	if err != nil {
		return nil, b.unavailable("watch cancellations", err)
	}
	// From here on the broker knows of us, so nothing published later is missed.
	if err := b.conn.FlushTimeout(callTimeout); err != nil {
		sub.Unsubscribe()
		return nil, b.unavailable("watch cancellations", err)
	}
	return func() { sub.Unsubscribe() }, nil
}
