package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/noetl/noetl-go/internal/tool"
)

// MaxKept is how much of one output stream is kept in full.
const MaxKept = 1 << 30

// Output takes one stream of a process: its head and tail stay in memory, and
// once that is not all of it, the whole is kept in a file. It is safe for
// concurrent use.
type Output struct {
	*tool.Capture
	dir string // "" keeps no file

	mu    sync.Mutex
	early []byte // what came before there was a file
	file  *os.File
	size  int64
	err   error // of keeping the whole; the process never learns of it
}

// NewOutput keeps at most limit bytes in memory, and the whole in dir when that
// is not "".
func NewOutput(limit int, dir string) *Output {
	return &Output{Capture: tool.NewCapture(limit), dir: dir}
}

// Write never fails.
func (o *Output) Write(p []byte) (int, error) {
	_, _ = o.Capture.Write(p)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size += int64(len(p))
	if o.dir == "" || o.err != nil {
		return len(p), nil
	}
	if o.file == nil && o.size <= tool.OutputLimit {
		o.early = append(o.early, p...)
		return len(p), nil
	}
	o.err = o.keep(p)
	return len(p), nil
}

func (o *Output) keep(p []byte) error {
	if o.size > MaxKept {
		return fmt.Errorf("output is larger than %d MiB", MaxKept>>20)
	}
	if o.file == nil {
		f, err := os.CreateTemp(o.dir, "noetl-output-")
		if err != nil {
			return err
		}
		// Without a name it is gone when it is closed, whatever happens.
		if err := errors.Join(os.Remove(f.Name()), writeAll(f, o.early)); err != nil {
			f.Close()
			return err
		}
		o.file, o.early = f, nil
	}
	return writeAll(o.file, p)
}

func writeAll(w io.Writer, p []byte) error {
	_, err := w.Write(p)
	return err
}

// Store puts the whole stream aside when the capture does not hold all of it.
// It is nil when there was no need. Call it once the stream has ended.
func (o *Output) Store(ctx context.Context, call *tool.Call, name string) (*tool.Stored, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil, o.err
	}
	if o.file == nil || call.Blobs == nil {
		return nil, nil
	}
	if _, err := o.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return call.Blobs.Put(ctx, tool.Blob{Name: name, MediaType: "text/plain; charset=utf-8"}, o.file)
}

// Close forgets the file.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.early = nil
	if o.file == nil {
		return nil
	}
	f := o.file
	o.file, o.err = nil, os.ErrClosed
	return f.Close()
}
