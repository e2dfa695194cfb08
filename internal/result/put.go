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

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/scope"
	"github.com/noetl/noetl-go/internal/store"
)

// Put stores all that r gives, and returns the reference that stands for it.
// Every put makes another reference. An error of r comes back as it is; Invalid
// when the options are wrong or the data is no JSON though it should be, Limit
// when it is too large. A put that fails leaves nothing that can be read, and
// what it could not take back is removed in the course of time.
func (s *Service) Put(ctx context.Context, execution event.ID, o event.ResultOptions, r io.Reader) (event.StoredResult, error) {
	k, err := s.plan(execution, o)
	if err != nil {
		return event.StoredResult{}, err
	}
	in := newIntake(ctx, r, isJSON(k.row.MediaType), s.o.MaxBytes)
	head, err := in.head(s.headBytes(k))
	if err != nil {
		return event.StoredResult{}, err
	}
	k.row.Tier = s.choose(k, in)
	if k.row.Tier == store.TierDB && in.over && in.count <= inlineLimit && in.check != nil {
		k.row.Key, k.row.Data, k.row.SHA256 = "", bytes.Join(head, nil), in.sum()
		if err := s.o.Store.PutResult(ctx, k.row); err != nil {
			return event.StoredResult{}, failed("store result", err)
		}
		return about(&k.row), nil
	}
	return s.stream(ctx, k.row, in, io.MultiReader(append(readers(head), in)...))
}

// headBytes is how much of a value must be seen to know where it belongs.
func (s *Service) headBytes(k kept) int64 {
	switch {
	case k.tier == store.TierDB, k.tier == "" && s.o.Large == store.TierDB:
		return inlineLimit
	case k.tier == "":
		return s.o.DBLimit
	}
	return 0
}

// choose is the tier of a value whose beginning was read.
func (s *Service) choose(k kept, in *intake) string {
	switch {
	case k.tier != "":
		return k.tier
	case in.over && in.count <= s.o.DBLimit:
		return store.TierDB
	}
	return s.o.Large
}

// stream puts a value into a tier: its row names the place first, and makes it
// readable at last.
func (s *Service) stream(ctx context.Context, row store.Result, in *intake, r io.Reader) (event.StoredResult, error) {
	reserved := row
	reserved.Pending, reserved.ExpiresAt = true, row.CreatedAt.Add(abandonAfter)
	if err := s.o.Store.PutResult(ctx, reserved); err != nil {
		return event.StoredResult{}, failed("store result", err)
	}
	enc := &encoder{r: r}
	err := s.tiers[row.Tier].Put(ctx, row.Key, enc)
	if err == nil {
		err = in.finish()
	}
	if err == nil {
		row.Bytes, row.SHA256, row.Frames = in.count, in.sum(), enc.frames.bytes()
		err = s.o.Store.FinishResult(ctx, row)
	}
	if err == nil {
		return about(&row), nil
	}
	s.takeBack(ctx, reserved)
	if in.err != nil {
		err = in.err // what came was bad; the rest follows from it
	}
	return event.StoredResult{}, failed("store result", err)
}

// takeBack removes what a failed put left, whether or not its caller still
// waits. What cannot be removed now is found by the reservation.
func (s *Service) takeBack(ctx context.Context, reserved store.Result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_, _ = s.Remove(ctx, reserved)
}

// failed is an error of a put or an open, with a code.
func failed(doing string, err error) error {
	if _, coded := errors.AsType[*event.Error](err); coded {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return event.Errorf(event.Unavailable, "%s: %w", doing, err)
}

// intake reads a value, counts and hashes it and checks that it is JSON.
type intake struct {
	ctx   context.Context //nolint:containedctx // it lives as long as the call
	r     io.Reader
	hash  hash.Hash
	check *scope.Check // nil when it may be anything
	most  int64
	count int64
	over  bool  // r has ended
	err   error // what came is bad, or could not be read
}

func newIntake(ctx context.Context, r io.Reader, isJSON bool, most int64) *intake {
	in := &intake{ctx: ctx, r: r, hash: sha256.New(), most: most}
	if isJSON {
		in.check = scope.NewCheck()
	}
	return in
}

// Read implements io.Reader.
func (in *intake) Read(p []byte) (int, error) {
	switch {
	case in.err != nil:
		return 0, in.err
	case in.over:
		return 0, io.EOF
	case in.ctx.Err() != nil:
		in.err = in.ctx.Err()
		return 0, in.err
	}
	n, err := in.r.Read(p)
	_, _ = in.hash.Write(p[:n])
	if in.count += int64(n); in.count > in.most {
		in.err = &event.Error{
			Code: event.Limit, Message: fmt.Sprintf("data: the result is larger than %d bytes", in.most),
			Remedy: "raise NOETL_RESULT_MAX_BYTES, or keep it in a database or an object store and return where it is",
		}
		return 0, in.err
	}
	if in.check != nil {
		if _, bad := in.check.Write(p[:n]); bad != nil {
			in.err = event.Errorf(event.Invalid, "data: the result is not JSON: %w", bad)
			return 0, in.err
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		in.over = true
		if in.finish() != nil {
			return 0, in.err
		}
	case err != nil:
		in.err = err
		return n, err
	}
	return n, err
}

// finish finds out whether the end was the end of the value.
func (in *intake) finish() error {
	if in.err == nil && in.check != nil {
		if bad := in.check.Close(); bad != nil {
			in.err = event.Errorf(event.Invalid, "data: the result is not JSON: %w", bad)
		}
	}
	return in.err
}

func (in *intake) sum() string { return hex.EncodeToString(in.hash.Sum(nil)) }

// head reads the beginning, in blocks, and learns whether more follows.
func (in *intake) head(n int64) ([][]byte, error) {
	if n == 0 {
		return nil, nil
	}
	var out [][]byte
	for in.count <= n && !in.over {
		// Small values do not pay for a large block.
		block := make([]byte, min(blockSize, max(4<<10, in.count)))
		got, err := io.ReadFull(in, block)
		out = append(out, block[:got])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, err
		}
	}
	return out, nil
}

func readers(blocks [][]byte) []io.Reader {
	out := make([]io.Reader, len(blocks))
	for i, b := range blocks {
		out[i] = bytes.NewReader(b)
	}
	return out
}
