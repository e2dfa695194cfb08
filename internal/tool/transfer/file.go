package transfer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/noetl/noetl-go/internal/tool"
)

// openFileSource reads a file of this machine, or a stored value by its
// reference.
func openFileSource(ctx context.Context, s *session, p *plan) (source, error) {
	r, err := openData(ctx, s, p.source)
	if err != nil {
		return nil, err
	}
	src, err := readAs(p.source.kind, r, s, p.source)
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return src, nil
}

// readAs reads rows in a format.
func readAs(format string, r io.ReadCloser, s *session, e *end) (source, error) {
	switch format {
	case "csv":
		return newCSVSource(r, e)
	case "parquet":
		return newParquetSource(r, s.opts.Scratch)
	}
	path, err := e.String("data_path")
	if err != nil {
		return nil, err
	}
	return newJSONSource(r, path), nil
}

func openData(ctx context.Context, s *session, e *end) (io.ReadCloser, error) {
	path, err := e.String("path", "file")
	if err != nil {
		return nil, err
	}
	ref, err := e.String("ref")
	if err != nil {
		return nil, err
	}
	switch {
	case path != "":
		f, err := os.Open(path)
		if err != nil {
			return nil, fileFailure("open", path, err)
		}
		return f, nil
	case ref != "":
		return openRef(ctx, s, ref)
	}
	return nil, tool.ConfigErrorf("source.path is missing; it names the file, or ref a stored value")
}

func openRef(ctx context.Context, s *session, ref string) (io.ReadCloser, error) {
	if s.call.Blobs == nil {
		return nil, &tool.Error{Kind: tool.KindMissingRef, Code: "NO_STORE", Message: "stored values cannot be read here"}
	}
	return s.call.Blobs.Open(ctx, ref, 0, 0)
}

func fileFailure(what, path string, err error) error {
	kind := tool.KindStorageAccess
	if errors.Is(err, fs.ErrNotExist) {
		kind = tool.KindNotFound
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return &tool.Error{Kind: kind, Code: "FILE", Message: fmt.Sprintf("%s %s: %v", what, path, err)}
}

// rowWriter writes rows in a format.
type rowWriter interface {
	row(row []any, cols []column) error
	end() error
}

// fileTarget writes a new file beside the old one, which takes its place when
// all is in it. Append begins with a copy of the old one.
type fileTarget struct {
	path   string
	format string
	mode   string
	comma  byte
	file   *os.File // under another name, until the commit
	out    rowWriter
	cols   []column
	begun  bool
}

func openFileTarget(_ context.Context, _ *session, p *plan) (target, error) {
	path, err := p.target.String("path", "file")
	if err != nil {
		return nil, err
	}
	if path == "" {
		return nil, tool.ConfigErrorf("target.path is missing; it names the file")
	}
	if p.mode == "upsert" {
		return nil, tool.ConfigErrorf("a file cannot be upserted; use mode append or replace")
	}
	if p.target.kind == "parquet" && p.checkpoint {
		return nil, tool.ConfigErrorf("a parquet file is written as a whole; drop checkpoint")
	}
	t := &fileTarget{path: path, format: p.target.kind, mode: p.mode}
	t.comma, err = delimiter(p.target)
	return t, err
}

func (t *fileTarget) name() string    { return t.path }
func (*fileTarget) columns() []column { return nil }

func (t *fileTarget) begin(_ context.Context, cols []column) error {
	if err := os.MkdirAll(filepath.Dir(t.path), 0o755); err != nil {
		return fileFailure("make the directory of", t.path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(t.path), "."+filepath.Base(t.path)+".*.part")
	if err != nil {
		return fileFailure("write", t.path, err)
	}
	t.file, t.cols = f, cols
	fresh := true
	if t.mode == "append" || t.begun {
		if fresh, err = t.copyOld(); err != nil {
			return err
		}
	}
	t.begun = true
	return t.start(fresh)
}

// copyOld begins the new file with what the old one holds.
func (t *fileTarget) copyOld() (fresh bool, err error) {
	old, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fileFailure("read", t.path, err)
	}
	defer old.Close()
	if t.format == "parquet" {
		return false, tool.ConfigErrorf("%s is there, and rows cannot be added to a parquet file; use mode replace or another name", t.path)
	}
	n, err := io.Copy(t.file, old)
	if err != nil {
		return false, fileFailure("copy", t.path, err)
	}
	if t.format == "csv" && n > 0 {
		return false, t.checkHeader()
	}
	return n == 0, nil
}

// checkHeader holds the columns of an old CSV against the new ones.
func (t *fileTarget) checkHeader() error {
	old, err := os.Open(t.path)
	if err != nil {
		return fileFailure("read", t.path, err)
	}
	e := &end{Fields: tool.Fields{"delimiter": string(rune(t.comma))}}
	src, err := newCSVSource(old, e)
	if err != nil {
		return errors.Join(err, old.Close())
	}
	have, want := namesOf(src.cols), namesOf(t.cols)
	if err := src.close(); err != nil {
		return err
	}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		return tool.ConfigErrorf("%s has the columns %v and the rows have %v; write a mapping in that order, or use mode replace", t.path, have, want)
	}
	return nil
}

func (t *fileTarget) start(fresh bool) error {
	switch t.format {
	case "parquet":
		out, err := newParquetWriter(t.file, t.cols)
		t.out = out
		return err
	case "csv":
		out := &csvWriter{w: bufio.NewWriterSize(t.file, 64<<10), comma: t.comma}
		t.out = out
		if fresh && len(t.cols) > 0 {
			return out.header(t.cols)
		}
	default:
		t.out = &lineWriter{w: bufio.NewWriterSize(t.file, 64<<10)}
	}
	return nil
}

func (t *fileTarget) write(_ context.Context, row []any) error {
	if err := t.out.row(row, t.cols); err != nil {
		if _, known := errors.AsType[*tool.Error](err); known {
			return err
		}
		return fileFailure("write", t.path, err)
	}
	return nil
}

func (t *fileTarget) commit(context.Context) error {
	if err := t.out.end(); err != nil {
		return fileFailure("write", t.path, err)
	}
	mode := fs.FileMode(0o644)
	if old, err := os.Stat(t.path); err == nil {
		mode = old.Mode().Perm()
	}
	part := t.file.Name()
	err := errors.Join(t.file.Chmod(mode), t.file.Sync(), t.file.Close())
	t.file = nil
	if err == nil {
		err = os.Rename(part, t.path)
	}
	if err != nil {
		_ = os.Remove(part)
		return fileFailure("write", t.path, err)
	}
	return nil
}

func (t *fileTarget) close() error {
	if t.file == nil {
		return nil
	}
	return errors.Join(t.file.Close(), os.Remove(t.file.Name()))
}

// lineWriter writes an object per line.
type lineWriter struct {
	w    *bufio.Writer
	line []byte
}

func (l *lineWriter) row(row []any, cols []column) (err error) {
	if l.line, err = jsonRow(l.line[:0], row, cols); err != nil {
		return err
	}
	_, err = l.w.Write(append(l.line, '\n'))
	return err
}

func (l *lineWriter) end() error { return l.w.Flush() }
