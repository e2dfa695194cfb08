package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/noetl/noetl-go/internal/event"
)

// EmbeddedOptions describe a NATS server inside this process.
type EmbeddedOptions struct {
	StoreDir string // required: where the stream lives
	// Listen is a "host:port" for workers on other machines; empty opens no
	// port at all. Port 0 chooses one.
	Listen string
	Token  string // what remote workers must present; empty asks for nothing

	Stream   string // as in Options
	Subject  string
	Consumer string

	MaxStore  int64 // bytes of notifications kept on disk; default 256 MiB
	MaxEvents int64 // bytes of events kept on disk; default 1 GiB
	MaxLogs   int64 // bytes of live output kept on disk; default 1 GiB
	Logger    *slog.Logger
}

const (
	defaultMaxStore  = 256 << 20
	defaultMaxEvents = 1 << 30
	maxMemory        = 64 << 20
	readyTimeout     = 10 * time.Second
)

// Embedded starts a NATS server in this process and connects to it without a
// network. Close stops the server. Old notifications are dropped when MaxStore
// is reached: the queue of record is elsewhere.
func Embedded(ctx context.Context, o EmbeddedOptions) (*Bus, error) {
	if o.MaxStore == 0 {
		o.MaxStore = defaultMaxStore
	}
	if o.MaxEvents == 0 {
		o.MaxEvents = defaultMaxEvents
	}
	if o.MaxLogs == 0 {
		o.MaxLogs = defaultMaxLogs
	}
	s, err := startServer(ctx, o)
	if err != nil {
		return nil, err
	}
	b, err := open(ctx, Options{
		Token: o.Token, Stream: o.Stream, Subject: o.Subject, Consumer: o.Consumer,
		Logger: o.Logger, Name: "noetl embedded", maxBytes: o.MaxStore, maxEventBytes: o.MaxEvents, MaxLogs: o.MaxLogs,
	}.withDefaults(), s)
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return nil, err
	}
	return b, nil
}

func startServer(ctx context.Context, o EmbeddedOptions) (*server.Server, error) {
	config, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(config)
	if err != nil {
		return nil, fmt.Errorf("configure embedded NATS: %w", err)
	}
	s.Start()
	timeout := readyTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	if !s.ReadyForConnections(timeout) {
		s.Shutdown()
		s.WaitForShutdown()
		e := event.Errorf(event.Unavailable, "the embedded NATS server does not start with its store in %s", o.StoreDir)
		e.Remedy = "check that the directory is writable and the listen address is free"
		return nil, e
	}
	return s, nil
}

func (o EmbeddedOptions) serverOptions() (*server.Options, error) {
	if o.StoreDir == "" {
		return nil, errors.New("configure embedded NATS: no store directory")
	}
	config := &server.Options{
		ServerName: "noetl", NoSigs: true, NoLog: true, DontListen: true,
		JetStream: true, StoreDir: o.StoreDir,
		JetStreamMaxMemory: maxMemory,
		// Twice the streams' limits leave room for blocks being compacted.
		JetStreamMaxStore: 2 * (o.MaxStore + o.MaxEvents + o.MaxLogs),
		Authorization:     o.Token,
	}
	if o.Listen == "" {
		return config, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, listenError(o.Listen)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, listenError(o.Listen)
	}
	config.DontListen, config.Host, config.Port = false, host, int(n)
	if n == 0 {
		config.Port = server.RANDOM_PORT
	}
	return config, nil
}

func listenError(listen string) error {
	e := event.Errorf(event.Invalid, "NATS listen address %q is not usable", listen)
	e.Remedy = "write it as host:port, for example 127.0.0.1:4222"
	return e
}

// URL is where remote workers reach an embedded server, without its token, or
// "" when it listens nowhere.
func (b *Bus) URL() string {
	if b.server == nil || b.server.Addr() == nil {
		return ""
	}
	return b.server.ClientURL()
}
