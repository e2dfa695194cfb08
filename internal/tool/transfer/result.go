package transfer

import (
	"bufio"
	"context"
	"errors"
	"io"

	"github.com/noetl/noetl-go/internal/tool"
)

// openResultSource reads a stored result: a list of objects, the rows of a
// database tool, or what data_path leads to.
func openResultSource(ctx context.Context, s *session, p *plan) (source, error) {
	ref, err := p.source.String("ref")
	if err != nil {
		return nil, err
	}
	if ref == "" {
		return nil, tool.ConfigErrorf("source.ref is missing; write ref: \"{{ step._ref }}\"")
	}
	path, err := p.source.String("data_path")
	if err != nil {
		return nil, err
	}
	r, err := openRef(ctx, s, ref)
	if err != nil {
		return nil, err
	}
	src := newJSONSource(r, path)
	src.rows = path == ""
	return src, nil
}

// resultTarget stores the rows as a list of objects.
type resultTarget struct {
	blobs  tool.Blobs
	label  string
	cols   []column
	pipe   *io.PipeWriter
	out    *bufio.Writer
	line   []byte
	rows   int64
	ended  chan struct{} // closed when Put has returned
	stored *tool.Stored
	err    error
}

func openResultTarget(_ context.Context, s *session, p *plan) (target, error) {
	if s.call.Blobs == nil {
		return nil, &tool.Error{Kind: tool.KindConfig, Code: "NO_STORE", Message: "rows cannot be stored here; use another target"}
	}
	if p.mode == "upsert" || p.checkpoint {
		return nil, tool.ConfigErrorf("a stored result is written once and as a whole; use neither mode upsert nor checkpoint")
	}
	label, err := p.target.String("name")
	return &resultTarget{blobs: s.call.Blobs, label: label}, err
}

func (*resultTarget) name() string           { return "a stored result" }
func (*resultTarget) columns() []column      { return nil }
func (t *resultTarget) result() *tool.Stored { return t.stored }

func (t *resultTarget) begin(ctx context.Context, cols []column) error {
	r, w := io.Pipe()
	t.cols, t.pipe, t.out, t.ended = cols, w, bufio.NewWriterSize(w, 64<<10), make(chan struct{})
	go func() {
		defer close(t.ended)
		t.stored, t.err = t.blobs.Put(ctx, tool.Blob{Name: t.label}, r)
		stop := t.err
		if stop == nil {
			stop = io.ErrClosedPipe
		}
		_ = r.CloseWithError(stop)
	}()
	return t.out.WriteByte('[')
}

func (t *resultTarget) write(_ context.Context, row []any) (err error) {
	t.line = t.line[:0]
	if t.rows++; t.rows > 1 {
		t.line = append(t.line, ',', '\n')
	}
	if t.line, err = jsonRow(t.line, row, t.cols); err != nil {
		return err
	}
	_, err = t.out.Write(t.line)
	return err
}

func (t *resultTarget) commit(context.Context) error {
	err := t.out.WriteByte(']')
	if err == nil {
		err = t.out.Flush()
	}
	return t.finish(err)
}

// finish ends the stream, with an error when it is not whole, and waits.
func (t *resultTarget) finish(err error) error {
	_ = t.pipe.CloseWithError(err)
	<-t.ended
	t.pipe = nil
	if t.err != nil {
		return t.err
	}
	return err
}

func (t *resultTarget) close() error {
	if t.pipe != nil {
		_ = t.finish(errors.New("the transfer did not end"))
	}
	return nil
}
