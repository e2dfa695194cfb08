package postgres

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/noetl/noetl-go/internal/tool"
)

// spool holds what statements gave: in memory while that is little, in a file
// that nobody else sees once it is more.
type spool struct {
	dir    string
	memory int64
	most   int64
	size   int64
	buf    []byte
	file   *os.File
	out    *bufio.Writer
}

func newSpool(dir string, memory, most int64) *spool {
	return &spool{dir: dir, memory: memory, most: max(most, memory)}
}

func (s *spool) Write(p []byte) (int, error) {
	if s.size+int64(len(p)) > s.most {
		return 0, &tool.Error{
			Kind: tool.KindResourceLimit, Code: "RESULT_TOO_LARGE",
			Message: fmt.Sprintf("the rows are more than %d MiB; select fewer, or set max_rows", s.most>>20),
		}
	}
	if s.file == nil && s.size+int64(len(p)) > s.memory {
		if err := s.spill(); err != nil {
			return 0, err
		}
	}
	s.size += int64(len(p))
	if s.file == nil {
		s.buf = append(s.buf, p...)
		return len(p), nil
	}
	if _, err := s.out.Write(p); err != nil {
		return 0, spoolFailure(err)
	}
	return len(p), nil
}

func (s *spool) spill() error {
	file, err := os.CreateTemp(s.dir, "noetl-rows-")
	if err != nil {
		return spoolFailure(err)
	}
	_ = os.Remove(file.Name()) // it lives as long as it is open
	s.file, s.out = file, bufio.NewWriterSize(file, 64<<10)
	if _, err := s.out.Write(s.buf); err != nil {
		return spoolFailure(err)
	}
	s.buf = nil
	return nil
}

func spoolFailure(err error) error {
	return &tool.Error{
		Kind: tool.KindResourceLimit, Code: "NO_SPACE", Retryable: true,
		Message: "large rows cannot be put aside on this worker: " + err.Error(),
	}
}

// part is a piece of a spool.
type part struct{ from, to int64 }

// read gives a piece. Everything must have been written.
func (s *spool) read(p part) (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.buf[p.from:p.to]), nil
	}
	if err := s.out.Flush(); err != nil {
		return nil, spoolFailure(err)
	}
	return io.NewSectionReader(s.file, p.from, p.to-p.from), nil
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}
