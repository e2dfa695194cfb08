package duckdb

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// report puts the outcomes together: the last statement's fields, one object
// for each statement, and what the call did. What is too large for a result is
// stored as a stream of the same object.
func (p *plan) report(ctx context.Context, call *tool.Call, done []*outcome, path string) (*tool.Result, error) {
	var doc document
	last := done[len(done)-1]
	doc.text("{")
	last.write(&doc)
	for i, o := range done {
		doc.text(`,"command_` + strconv.Itoa(i) + `":{`)
		o.write(&doc)
		doc.text("}")
	}
	doc.text(`,"executed_commands":` + strconv.Itoa(len(done)))
	doc.text(`,"database_path":` + string(appendString(nil, path)) + "}")

	limit := int64(maxBytes)
	if call.InlineLimit > 0 {
		limit = min(limit, int64(call.InlineLimit))
	}
	rows := int64(0)
	for _, o := range done {
		rows += o.count
	}
	if doc.size <= limit && rows <= maxRows {
		data, err := doc.read()
		return &tool.Result{Data: data}, err
	}
	if call.Blobs == nil {
		if doc.size > maxBytes || rows > maxRows {
			return nil, &tool.Error{
				Kind: tool.KindResourceLimit, Code: "RESULT_TOO_LARGE",
				Message: fmt.Sprintf("the result has %d rows and %d bytes, more than the %d rows and %d bytes that can be returned; use LIMIT, or COPY … TO a file", rows, doc.size, maxRows, maxBytes),
			}
		}
		data, err := doc.read() // whoever asked for less has nowhere to put it
		return &tool.Result{Data: data}, err
	}
	stream := doc.stream()
	stored, err := call.Blobs.Put(ctx, tool.Blob{}, stream)
	if err = errors.Join(err, stream.Close()); err != nil {
		return nil, err
	}
	return &tool.Result{Stored: stored}, nil
}

func (o *outcome) write(doc *document) {
	doc.text(`"columns":` + string(o.columns) + `,"rows":[`)
	doc.piece(o.rows)
	doc.text(`],"row_count":` + strconv.FormatInt(o.count, 10) + `,"affected_rows":` + strconv.FormatInt(o.affected, 10))
}

// document is JSON in pieces.
type document struct {
	pieces []func() (io.ReadCloser, error)
	size   int64
}

func (d *document) text(s string) {
	d.size += int64(len(s))
	d.pieces = append(d.pieces, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil })
}

func (d *document) piece(s *spool) {
	d.size += s.size
	d.pieces = append(d.pieces, s.open)
}

func (d *document) read() ([]byte, error) {
	r := d.stream()
	defer r.Close()
	b := bytes.NewBuffer(make([]byte, 0, d.size+512))
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

func (d *document) stream() io.ReadCloser { return &pieces{rest: d.pieces} }

// pieces reads one piece after the other.
type pieces struct {
	rest []func() (io.ReadCloser, error)
	now  io.ReadCloser
}

func (p *pieces) Read(b []byte) (int, error) {
	for {
		if p.now == nil {
			if len(p.rest) == 0 {
				return 0, io.EOF
			}
			next, err := p.rest[0]()
			if err != nil {
				return 0, err
			}
			p.now, p.rest = next, p.rest[1:]
		}
		n, err := p.now.Read(b)
		if errors.Is(err, io.EOF) {
			err = p.now.Close()
			p.now = nil
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

func (p *pieces) Close() error {
	if p.now == nil {
		return nil
	}
	return p.now.Close()
}

// budget bounds what the rows of all statements of a call may take.
type budget struct {
	memory, disk int64
	dir          string
}

func (b *budget) spool() *spool { return &spool{budget: b} }

// spool holds the rows of a statement, in memory as long as the budget allows,
// then in a file.
type spool struct {
	budget *budget
	mem    []byte
	file   *os.File
	w      *bufio.Writer // of file
	size   int64
}

func (s *spool) Write(b []byte) (int, error) {
	n := int64(len(b))
	if s.file == nil && s.budget.memory >= n {
		s.budget.memory -= n
		s.size += n
		s.mem = append(s.mem, b...)
		return len(b), nil
	}
	if s.budget.disk -= n; s.budget.disk < 0 {
		return 0, &tool.Error{
			Kind: tool.KindResourceLimit, Code: "RESULT_TOO_LARGE",
			Message: fmt.Sprintf("the rows are more than %d MiB; use LIMIT, or COPY … TO a file", maxSpill>>20),
		}
	}
	if s.file == nil {
		f, err := os.CreateTemp(s.budget.dir, "rows-*")
		if err != nil {
			return 0, spillFailure(err)
		}
		s.file, s.w = f, bufio.NewWriterSize(f, 64<<10)
	}
	if _, err := s.w.Write(b); err != nil {
		return 0, spillFailure(err)
	}
	s.size += n
	return len(b), nil
}

func spillFailure(err error) error {
	return &tool.Error{Kind: tool.KindStorageAccess, Code: "SPILL", Message: fmt.Sprintf("put rows aside that do not fit into memory: %v", err), Retryable: true}
}

// open reads what was written, any number of times.
func (s *spool) open() (io.ReadCloser, error) {
	if s.file == nil {
		return io.NopCloser(bytes.NewReader(s.mem)), nil
	}
	if err := s.w.Flush(); err != nil {
		return nil, spillFailure(err)
	}
	rest := io.NewSectionReader(s.file, 0, s.size-int64(len(s.mem)))
	return io.NopCloser(io.MultiReader(bytes.NewReader(s.mem), rest)), nil
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return errors.Join(s.file.Close(), os.Remove(s.file.Name()))
}
