// Package natstool is the nats tool: one operation on a key-value bucket, an
// object store or a stream of a NATS server. Connections are shared by those
// who log in alike. It must not touch what belongs to the platform itself.
package natstool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/tool"
)

const (
	// maxConnections bounds the servers and logins that are kept open.
	maxConnections = 32
	// dialTime bounds one attempt to connect.
	dialTime = 5 * time.Second
	// defaultTime bounds an operation that names no time of its own.
	defaultTime = 60 * time.Second
)

// Tool runs operations.
type Tool struct {
	mu    sync.Mutex // guards all below
	conns map[string]*nats.Conn
	order []string // of use, the latest last
}

// New makes the tool; Close ends its connections.
func New() *Tool { return &Tool{conns: map[string]*nats.Conn{}} }

// Kind implements tool.Tool.
func (*Tool) Kind() string { return "nats" }

// Close ends all connections.
func (t *Tool) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.conns {
		c.Close()
	}
	clear(t.conns)
	t.order = nil
	return nil
}

// Run implements tool.Tool.
func (t *Tool) Run(ctx context.Context, call *tool.Call) (*tool.Result, error) {
	ctx, cancel, limit, err := call.Bound(ctx, defaultTime)
	if err != nil {
		return nil, err
	}
	defer cancel()
	login, err := call.Login(ctx, call.Fields())
	if err != nil {
		return nil, err
	}
	return t.perform(ctx, call, call.Fields().With(login, tool.NATSNames), limit)
}

// perform runs the operation that f names, with the fields that a credential
// added.
func (t *Tool) perform(ctx context.Context, call *tool.Call, f tool.Fields, limit time.Duration) (*tool.Result, error) {
	name, err := f.String("operation")
	if err != nil {
		return nil, err
	}
	run, ok := operations[strings.ToLower(name)]
	if !ok {
		return nil, tool.ConfigErrorf("operation %q is unknown; write one of %s", name, strings.Join(tool.SortedKeys(operations), ", "))
	}
	if err := guard(f); err != nil {
		return nil, err
	}
	conn, err := t.connect(ctx, f)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	data, err := run(ctx, &operation{f: f, call: call, js: js})
	if err != nil {
		if ctx.Err() != nil {
			return nil, tool.Ended(ctx, "the nats tool", limit)
		}
		return nil, failure(err)
	}
	if stored, ok := data.(*tool.Stored); ok {
		return &tool.Result{Stored: stored}, nil
	}
	raw, err := tool.Encode(data)
	if err != nil {
		return nil, err
	}
	return &tool.Result{Data: raw}, nil
}

// connect finds a connection of the same login, or makes one.
func (t *Tool) connect(ctx context.Context, f tool.Fields) (*nats.Conn, error) {
	var words [4]string
	for i, name := range []string{"url", "user", "password", "token"} {
		var err error
		if words[i], err = f.String(name); err != nil {
			return nil, err
		}
	}
	address, user, password, token := words[0], words[1], words[2], words[3]
	if address == "" {
		return nil, tool.ConfigErrorf("no NATS server is named; write auth: <credential> with its url, or url")
	}
	sum := sha256.Sum256([]byte(strings.Join(words[:], "\x00")))
	key := hex.EncodeToString(sum[:])
	if c := t.known(key); c != nil {
		return c, nil
	}
	options := []nats.Option{nats.Name("noetl"), nats.Timeout(dialTime), nats.MaxReconnects(-1)}
	if user != "" {
		options = append(options, nats.UserInfo(user, password))
	}
	if token != "" {
		options = append(options, nats.Token(token))
	}
	c, err := nats.Connect(address, options...)
	if err != nil {
		return nil, connectFailure(err)
	}
	if ctx.Err() != nil {
		c.Close()
		return nil, ctx.Err()
	}
	return t.keep(key, c), nil
}

// known is an open connection of the same login, or nil.
func (t *Tool) known(key string) *nats.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.conns[key]
	if c == nil || c.IsClosed() {
		return nil
	}
	t.used(key)
	return c
}

// keep shares a connection; of two that were made at once the earlier one stays.
func (t *Tool) keep(key string, c *nats.Conn) *nats.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other := t.conns[key]; other != nil && !other.IsClosed() {
		c.Close()
		return other
	}
	t.conns[key] = c
	t.used(key)
	if len(t.order) > maxConnections {
		oldest := t.order[0]
		t.conns[oldest].Close()
		delete(t.conns, oldest)
		t.order = t.order[1:]
	}
	return c
}

func (t *Tool) used(key string) {
	for i, k := range t.order {
		if k == key {
			t.order = append(t.order[:i], t.order[i+1:]...)
			break
		}
	}
	t.order = append(t.order, key)
}

// guard keeps playbooks away from the streams and buckets of the platform.
func guard(f tool.Fields) error {
	for _, field := range []string{"stream", "bucket", "subject"} {
		name, err := f.String(field)
		if err != nil {
			return err
		}
		low := strings.ToLower(name)
		if strings.HasPrefix(low, "noetl.") || field != "subject" && (strings.HasPrefix(low, "noetl_commands") || strings.HasPrefix(low, "noetl_events") ||
			strings.HasPrefix(low, "noetl_logs") || strings.HasPrefix(low, "noetl_results")) {
			return &tool.Error{Kind: tool.KindAuth, Code: "NATS_RESERVED", Message: fmt.Sprintf("%s %q belongs to NoETL itself; use one of your own", field, name)}
		}
	}
	return nil
}

func connectFailure(err error) *tool.Error {
	e := &tool.Error{Kind: tool.KindConnection, Code: "CONN_ERROR", Retryable: true, Message: "the NATS server cannot be reached: " + err.Error()}
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		e.Kind, e.Code, e.Retryable = tool.KindAuth, "NATS_AUTH", false
	case errors.Is(err, nats.ErrNoServers):
		e.Code = "CONN_REFUSED"
	}
	return e
}

// failure brings errors of the client into the tools' terms.
func failure(err error) error {
	if e, ok := errors.AsType[*tool.Error](err); ok {
		return e
	}
	e := &tool.Error{Kind: tool.KindUnknown, Code: "NATS", Message: err.Error()}
	switch {
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrStreamNotFound), errors.Is(err, jetstream.ErrConsumerNotFound),
		errors.Is(err, jetstream.ErrMsgNotFound), errors.Is(err, jetstream.ErrObjectNotFound), errors.Is(err, jetstream.ErrNoStreamResponse):
		e.Kind, e.Code = tool.KindNotFound, "NATS_NOT_FOUND"
	case errors.Is(err, jetstream.ErrInvalidKey), errors.Is(err, jetstream.ErrInvalidBucketName), errors.Is(err, jetstream.ErrInvalidStoreName),
		errors.Is(err, jetstream.ErrInvalidStreamName), errors.Is(err, nats.ErrBadSubject), errors.Is(err, jetstream.ErrInvalidSubject):
		e.Kind, e.Code = tool.KindConfig, "CONFIG"
	case errors.Is(err, nats.ErrMaxPayload):
		e.Kind, e.Code = tool.KindResourceLimit, "NATS_TOO_LARGE"
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrTimeout),
		errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected):
		e.Kind, e.Code, e.Retryable = tool.KindConnection, "CONN_ERROR", true
	}
	return e
}
