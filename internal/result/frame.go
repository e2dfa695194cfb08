package result

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/noetl/noetl-go/internal/event"
)

// Outside of rows a value is a chain of zstd frames, each of a block of it, so
// that any tool for zstd reads it and a part of it is found without the rest.
// The block size of what is stored never changes.
const blockSize = 512 << 10

// zstd's coders are made when first used: they are not small.
var (
	coder = sync.OnceValue(func() *zstd.Encoder {
		return must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(blockSize), zstd.WithEncoderCRC(true), zstd.WithEncoderConcurrency(2)))
	})
	decoder = sync.OnceValue(func() *zstd.Decoder {
		return must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(16<<20), zstd.WithDecoderConcurrency(2)))
	})
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options are constants
	}
	return v
}

// frames are the lengths of a value's frames.
type frames []int64

func (f frames) bytes() []byte {
	var out []byte
	for _, n := range f {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return out
}

func readFrames(b []byte) (frames, error) {
	var out frames
	for len(b) > 0 {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 2*blockSize {
			return nil, event.Errorf(event.Internal, "the list of a stored result's frames is damaged")
		}
		out, b = append(out, int64(n)), b[size:]
	}
	return out, nil
}

func (f frames) size() (sum int64) {
	for _, n := range f {
		sum += n
	}
	return sum
}

// encoder turns a value into frames while it is read.
type encoder struct {
	r      io.Reader
	frames frames
	block  []byte
	frame  []byte
	rest   []byte // of the frame under way
	err    error
}

// Read implements io.Reader.
func (e *encoder) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.next()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *encoder) next() {
	if e.block == nil {
		e.block = make([]byte, blockSize)
	}
	n, err := io.ReadFull(e.r, e.block)
	if e.err = err; errors.Is(err, io.ErrUnexpectedEOF) {
		e.err = io.EOF
	}
	if n == 0 || e.err != nil && !errors.Is(e.err, io.EOF) {
		return
	}
	e.frame = coder().EncodeAll(e.block[:n], e.frame[:0])
	e.rest, e.frames = e.frame, append(e.frames, int64(len(e.frame)))
}

// frameReader reads frames and gives the blocks they hold.
type frameReader struct {
	r      io.ReadCloser
	frames frames
	frame  []byte
	block  []byte
}

// next is the next block; io.EOF behind the last.
func (d *frameReader) next() ([]byte, error) {
	if len(d.frames) == 0 {
		return nil, io.EOF
	}
	n := int(d.frames[0])
	d.frames = d.frames[1:]
	if cap(d.frame) < n {
		d.frame = make([]byte, max(n, blockSize/4))
	}
	d.frame = d.frame[:n]
	if _, err := io.ReadFull(d.r, d.frame); err != nil {
		return nil, fmt.Errorf("read a stored result: %w", err)
	}
	block, err := decoder().DecodeAll(d.frame, d.block[:0])
	if err != nil {
		return nil, event.Errorf(event.Internal, "a stored result is damaged: %w", err)
	}
	d.block = block
	return block, nil
}
