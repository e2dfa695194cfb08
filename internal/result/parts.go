package result

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

const (
	// partSize is how the bytes of a value are cut up in the store. It never
	// changes for what is stored.
	partSize    = 256 << 10
	partsAtOnce = 64 // removed by one statement
)

// parts is the tier of the store itself: a value is a number of rows.
type parts struct{ store store.Results }

var _ Tier = (*parts)(nil)

func (p *parts) Name() string { return store.TierDB }

// executionOf is whose database the value is in.
func executionOf(key string) event.ID {
	id, _, _ := strings.Cut(key, "/")
	n, _ := event.ParseID(id)
	return n
}

func (p *parts) Put(ctx context.Context, key string, r io.Reader) error {
	buf := make([]byte, partSize)
	for part := 0; ; part++ {
		n, err := io.ReadFull(r, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if n > 0 {
			if err := p.store.PutPart(ctx, executionOf(key), key, part, buf[:n:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return nil
		}
		buf = make([]byte, partSize) // the store may still hold the other
	}
}

func (p *parts) Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	return &partReader{ctx: ctx, p: p, key: key, part: int(offset / partSize), skip: offset % partSize, left: length}, nil
}

func (p *parts) Delete(ctx context.Context, key string) error {
	for {
		n, err := p.store.DeleteParts(ctx, executionOf(key), key, partsAtOnce)
		if err != nil || n < partsAtOnce {
			return err
		}
	}
}

// partReader reads one part after the other.
type partReader struct {
	ctx  context.Context //nolint:containedctx // it lives as long as the reader
	p    *parts
	key  string
	part int
	skip int64
	left int64
	rest []byte
}

func (r *partReader) Read(b []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.left <= 0 {
			return 0, io.EOF
		}
		data, err := r.p.store.Part(r.ctx, executionOf(r.key), r.key, r.part)
		if errors.Is(err, store.ErrNotFound) || err == nil && int64(len(data)) <= r.skip {
			return 0, io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		data = data[r.skip:]
		r.rest, r.skip, r.part = data[:min(int64(len(data)), r.left)], 0, r.part+1
	}
	n := copy(b, r.rest)
	r.rest, r.left = r.rest[n:], r.left-int64(n)
	return n, nil
}

func (r *partReader) Close() error { return nil }
