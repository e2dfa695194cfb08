package tooltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/tool"
)

// Shelf is a store for large data that keeps only so much of each value, so
// that a test can store more than it wants to hold.
type Shelf struct {
	Keep int // bytes of each value; 0 = 1 MiB

	mu   sync.Mutex
	kept map[string]*Shelved
}

// Shelved is one stored value.
type Shelved struct {
	Blob  tool.Blob
	Head  []byte
	Bytes int64
}

var _ tool.Blobs = (*Shelf)(nil)

// Put reads all of r.
func (s *Shelf) Put(_ context.Context, b tool.Blob, r io.Reader) (*tool.Stored, error) {
	keep := s.Keep
	if keep == 0 {
		keep = 1 << 20
	}
	v, sum := &Shelved{Blob: b}, sha256.New()
	head, err := io.ReadAll(io.TeeReader(io.LimitReader(r, int64(keep)), sum))
	if err != nil {
		return nil, err
	}
	rest, err := io.Copy(sum, r)
	if err != nil {
		return nil, err
	}
	v.Head, v.Bytes = head, int64(len(head))+rest
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]*Shelved{}
	}
	ref := fmt.Sprintf("noetl://execution/1/result/test/%d", len(s.kept)+1)
	s.kept[ref] = v
	return &tool.Stored{StoredResult: event.StoredResult{Ref: ref, Store: "db", Bytes: v.Bytes, SHA256: hex.EncodeToString(sum.Sum(nil)), MediaType: b.MediaType}}, nil
}

// Open gives what was kept.
func (s *Shelf) Open(_ context.Context, ref string, offset, length int64) (io.ReadCloser, error) {
	v := s.At(ref)
	if v == nil {
		return nil, errors.New("nothing is stored as " + ref)
	}
	text := string(v.Head[min(offset, int64(len(v.Head))):])
	if length > 0 && int64(len(text)) > length {
		text = text[:length]
	}
	return io.NopCloser(strings.NewReader(text)), nil
}

// At finds a value; nil when there is none.
func (s *Shelf) At(ref string) *Shelved {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[ref]
}
