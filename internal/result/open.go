package result

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/store"
)

// Open reads a value from offset on, at most length bytes; 0 = to the end. A
// whole read is held against the checksum of the value, and its last block comes
// only when that is right. NotFound when there is none, or when it was collected;
// Invalid when the offset lies behind the end.
func (s *Service) Open(ctx context.Context, ref event.ResultRef, offset, length int64) (io.ReadCloser, event.StoredResult, error) {
	row, err := s.Row(ctx, ref)
	if err != nil {
		return nil, event.StoredResult{}, err
	}
	body, err := s.OpenRow(ctx, &row, offset, length)
	return body, about(&row), err
}

// Row finds what is known of a value.
func (s *Service) Row(ctx context.Context, ref event.ResultRef) (store.Result, error) {
	row, err := s.o.Store.Result(ctx, ref.Execution, ref.String())
	switch {
	case errors.Is(err, store.ErrCollected), err == nil && !row.ExpiresAt.IsZero() && !row.ExpiresAt.After(s.o.Now()):
		return row, &event.Error{
			Code: event.NotFound, Reason: "collected", Message: "the result " + ref.String() + " was collected: its time to be kept is over",
			Remedy: "run the step again; output.store.ttl and output.store.scope say how long results are kept", Err: store.ErrCollected,
		}
	case errors.Is(err, store.ErrNotFound):
		return row, event.Errorf(event.NotFound, "result not found")
	}
	return row, err
}

// OpenRow is Open for a value whose row is at hand.
func (s *Service) OpenRow(ctx context.Context, row *store.Result, offset, length int64) (io.ReadCloser, error) {
	if offset < 0 || length < 0 || offset > row.Bytes {
		return nil, event.Errorf(event.Invalid, "the range from byte %d on lies outside of the result, which has %d bytes", offset, row.Bytes)
	}
	if length == 0 || length > row.Bytes-offset {
		length = row.Bytes - offset
	}
	if row.Key == "" {
		if length == row.Bytes {
			if got := sumOf(row.Data); got != row.SHA256 && row.SHA256 != "" {
				return nil, damaged(row, got)
			}
		}
		return io.NopCloser(bytes.NewReader(row.Data[offset : offset+length])), nil
	}
	return s.openTier(ctx, row, offset, length)
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func damaged(row *store.Result, got string) error {
	return event.Errorf(event.Internal, "the result %s is damaged: its checksum is %s, not %s", row.Ref, got, row.SHA256)
}

func (s *Service) openTier(ctx context.Context, row *store.Result, offset, length int64) (io.ReadCloser, error) {
	tier, err := s.tierOf(row)
	if err != nil {
		return nil, err
	}
	all, err := readFrames(row.Frames)
	if err != nil {
		return nil, err
	}
	if want := (row.Bytes + blockSize - 1) / blockSize; int64(len(all)) != want {
		return nil, event.Errorf(event.Internal, "the result %s is damaged: it has %d frames, not %d", row.Ref, len(all), want)
	}
	if length == 0 {
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	first, last := offset/blockSize, (offset+length-1)/blockSize
	part := all[first : last+1]
	body, err := tier.Open(ctx, row.Key, all[:first].size(), part.size())
	if err != nil {
		return nil, failed("open result "+row.Ref, err)
	}
	r := &reader{frameReader: frameReader{r: body, frames: part}, row: row, skip: offset - first*blockSize, left: length}
	if length == row.Bytes {
		r.hash = sha256.New()
	}
	return r, nil
}

// Has tells whether values of a tier can be read here.
func (s *Service) Has(tier string) bool { return s.tiers[tier] != nil }

func (s *Service) tierOf(row *store.Result) (Tier, error) {
	if tier := s.tiers[row.Tier]; tier != nil {
		return tier, nil
	}
	return nil, &event.Error{
		Code: event.Unavailable, Message: fmt.Sprintf("the result %s is kept in %s, which this server is not configured for", row.Ref, row.Tier),
		Remedy: "give every server the same settings for results",
	}
}

// reader gives the bytes of a range.
type reader struct {
	frameReader
	row  *store.Result
	skip int64 // bytes of the next block before the range
	left int64
	rest []byte
	hash hash.Hash // nil unless the whole is read
	err  error
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.err == nil {
			r.err = r.advance()
		}
		if r.err != nil {
			return 0, r.err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *reader) advance() error {
	if r.left == 0 {
		return io.EOF
	}
	block, err := r.next()
	switch {
	case errors.Is(err, io.EOF) || err == nil && int64(len(block)) <= r.skip:
		return event.Errorf(event.Internal, "the result %s is damaged: it is shorter than %d bytes", r.row.Ref, r.row.Bytes)
	case err != nil:
		return failed("read result "+r.row.Ref, err)
	}
	block = block[r.skip:]
	block = block[:min(int64(len(block)), r.left)]
	r.skip, r.left = 0, r.left-int64(len(block))
	if r.hash != nil {
		_, _ = r.hash.Write(block)
		if got := r.hash.Sum(nil); r.left == 0 && hex.EncodeToString(got) != r.row.SHA256 {
			return damaged(r.row, hex.EncodeToString(got))
		}
	}
	r.rest = block
	return nil
}

// Close implements io.Closer.
func (r *reader) Close() error { return r.r.Close() }

// Remove removes a value, a reservation, or what is left of either, unless it
// was finished or another execution began to use it since r was read: then
// false.
func (s *Service) Remove(ctx context.Context, r store.Result) (bool, error) {
	if r.GoneAt.IsZero() {
		done, err := s.o.Store.RetireResult(ctx, r, s.o.Now().UTC().Truncate(time.Microsecond))
		if err != nil || !done {
			return false, err
		}
	}
	if r.Key == "" {
		return true, nil
	}
	tier, err := s.tierOf(&r)
	if err != nil {
		return true, err
	}
	if err := tier.Delete(ctx, r.Key); err != nil {
		return true, failed("remove result "+r.Ref, err)
	}
	return true, s.o.Store.ForgetResult(ctx, r.ExecutionID, r.Ref)
}
