// Package file keeps large values as files below a directory, for servers that
// have a disk to themselves or share one. It must not know what is in them.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/result"
)

// Tier is a directory.
type Tier struct{ dir string }

var _ result.Tier = (*Tier)(nil)

// Open makes the directory if it is not there. The error says why it cannot be
// written to.
func Open(dir string) (*Tier, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of results: %w", err)
	}
	probe, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return nil, fmt.Errorf("the directory of results cannot be written to: %w", err)
	}
	return &Tier{dir}, errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Name implements result.Tier.
func (t *Tier) Name() string { return "file" }

func (t *Tier) path(key string) (string, error) {
	if !filepath.IsLocal(key) || key == "." {
		return "", event.Errorf(event.Internal, "%q is no name of a stored result", key)
	}
	return filepath.Join(t.dir, key), nil
}

// unfinished is the end of the name of a file that is being written.
const unfinished = ".part"

// Put implements result.Tier: the file gets its name when it is complete and on
// disk.
func (t *Tier) Put(ctx context.Context, key string, r io.Reader) error {
	path, err := t.path(key)
	if err != nil {
		return err
	}
	f, err := create(path + unfinished)
	if err != nil {
		return fmt.Errorf("make file of a result: %w", err)
	}
	_, err = io.Copy(f, &interruptible{ctx, r})
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(path+unfinished, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(path + unfinished)
	}
	return err
}

// create makes a file and the directory it is in, which Delete may take away at
// the same time.
func create(path string) (f *os.File, err error) {
	for range 5 {
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return f, err
}

// syncDir makes a new name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// interruptible ends when its context does.
type interruptible struct {
	ctx context.Context //nolint:containedctx // it lives as long as the call
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.r.Read(p)
}

// Open implements result.Tier.
func (t *Tier) Open(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	path, err := t.path(key)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open file of a result: %w", err)
	}
	return &section{io.NewSectionReader(f, offset, length), f}, nil
}

type section struct {
	io.Reader
	io.Closer
}

// Delete implements result.Tier. The directory of an execution goes with its
// last file.
func (t *Tier) Delete(_ context.Context, key string) error {
	path, err := t.path(key)
	if err != nil {
		return err
	}
	for _, name := range []string{path + unfinished, path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if dir := filepath.Dir(path); dir != filepath.Clean(t.dir) {
		_ = os.Remove(dir) // not while there is more in it
	}
	return nil
}
