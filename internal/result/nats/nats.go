// Package nats keeps large values in an object store of JetStream. It must not
// know what is in them.
package nats

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/noetl/noetl-go/internal/result"
)

const (
	bucket = "noetl_results"
	// segment is how many bytes of a value are one object, so that a part of it is
	// found without the rest. It never changes for what is stored.
	segment = 4 << 20
)

// Tier is an object store, which is found or made when it is first used. The
// connection stays the caller's.
type Tier struct {
	conn *nats.Conn

	mu      sync.Mutex // guards objects
	objects jetstream.ObjectStore
}

var _ result.Tier = (*Tier)(nil)

// New makes a tier. It does not talk to the server.
func New(conn *nats.Conn) *Tier { return &Tier{conn: conn} }

// Ready finds the object store, or makes it, for those who want to know early
// that they cannot.
func (t *Tier) Ready(ctx context.Context) error {
	_, err := t.bucket(ctx)
	return err
}

func (t *Tier) bucket(ctx context.Context) (jetstream.ObjectStore, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.objects != nil {
		return t.objects, nil
	}
	js, err := jetstream.New(t.conn)
	if err != nil {
		return nil, fmt.Errorf("open the object store of results: %w", err)
	}
	objects, err := js.ObjectStore(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		objects, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: bucket, Description: "values too large for the event log of NoETL", Storage: jetstream.FileStorage,
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another replica was first
			objects, err = js.ObjectStore(ctx, bucket)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the object store of results: %w", err)
	}
	t.objects = objects
	return objects, nil
}

// Name implements result.Tier.
func (t *Tier) Name() string { return "nats" }

func name(key string, i int64) string { return fmt.Sprintf("%s/%d", key, i) }

// Put implements result.Tier.
func (t *Tier) Put(ctx context.Context, key string, r io.Reader) error {
	objects, err := t.bucket(ctx)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(r, 64<<10)
	for i := int64(0); ; i++ {
		if _, err := in.Peek(1); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := objects.Put(ctx, jetstream.ObjectMeta{Name: name(key, i)}, io.LimitReader(in, segment)); err != nil {
			return fmt.Errorf("put object: %w", err)
		}
	}
}

// Open implements result.Tier.
func (t *Tier) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	objects, err := t.bucket(ctx)
	if err != nil {
		return nil, err
	}
	r := &reader{objects: objects, ctx: ctx, key: key, next: offset / segment, left: length}
	if length == 0 {
		return r, nil
	}
	if err := r.advance(); err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r.at, offset%segment); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// reader reads one object after the other.
type reader struct {
	objects jetstream.ObjectStore
	ctx     context.Context //nolint:containedctx // it lives as long as the reader
	key     string
	next    int64
	left    int64
	at      jetstream.ObjectResult
}

func (r *reader) advance() error {
	at, err := r.objects.Get(r.ctx, name(r.key, r.next))
	if err != nil {
		return fmt.Errorf("get object: %w", err)
	}
	r.at, r.next = at, r.next+1
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		if r.left <= 0 {
			return 0, io.EOF
		}
		n, err := r.at.Read(p[:min(int64(len(p)), r.left)])
		r.left -= int64(n)
		if !errors.Is(err, io.EOF) || r.left <= 0 {
			return n, err
		}
		if err := errors.Join(r.at.Close(), r.advance()); err != nil {
			r.at = nil
			r.left = 0
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
}

func (r *reader) Close() error {
	if r.at == nil {
		return nil
	}
	return r.at.Close()
}

// Delete implements result.Tier. The last object goes first, so that a delete
// that is repeated finds all that is left.
func (t *Tier) Delete(ctx context.Context, key string) error {
	objects, err := t.bucket(ctx)
	if err != nil {
		return err
	}
	count := int64(0)
	for ; ; count++ {
		_, err := objects.GetInfo(ctx, name(key, count))
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			break
		}
		if err != nil {
			return fmt.Errorf("look for object: %w", err)
		}
	}
	for i := count - 1; i >= 0; i-- {
		if err := objects.Delete(ctx, name(key, i)); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("delete object: %w", err)
		}
	}
	return nil
}
