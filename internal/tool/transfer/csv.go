package transfer

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// csvSource reads text with a line of names first. A field that is empty
// without quotes is null, "" is empty text, as PostgreSQL has it.
type csvSource struct {
	in    *bufio.Reader
	shut  io.Closer
	comma byte
	cols  []column
	line  int64
	row   []any
	cell  []byte
}

// maxCell bounds one field: an open quote must not take the whole file.
const maxCell = 64 << 20

func newCSVSource(r io.ReadCloser, e *end) (*csvSource, error) {
	s := &csvSource{in: bufio.NewReaderSize(r, 64<<10), shut: r}
	var err error
	if s.comma, err = delimiter(e); err != nil {
		return nil, err
	}
	if mark, err := s.in.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = s.in.Discard(3)
	}
	if err := s.read(); errors.Is(err, io.EOF) {
		return nil, &tool.Error{Kind: tool.KindParse, Code: "CSV", Message: "the CSV is empty; its first line must name the columns"}
	} else if err != nil {
		return nil, err
	}
	for i, v := range s.row {
		name, _ := v.(string)
		if name = strings.TrimSpace(name); name == "" {
			return nil, &tool.Error{Kind: tool.KindParse, Code: "CSV", Message: fmt.Sprintf("column %d of the CSV has no name in the first line", i+1)}
		}
		s.cols = append(s.cols, column{name: name, kind: text})
	}
	return s, nil
}

// delimiter is what stands between the fields of a CSV.
func delimiter(e *end) (byte, error) {
	text, err := e.String("delimiter")
	if err != nil {
		return 0, err
	}
	switch text {
	case "":
		return ',', nil
	case `\t`, "tab":
		return '\t', nil
	}
	if len(text) != 1 || strings.Contains("\"\r\n", text) {
		return 0, tool.ConfigErrorf("delimiter must be one character, such as , or ;")
	}
	return text[0], nil
}

func (s *csvSource) columns() []column { return s.cols }
func (s *csvSource) close() error      { return s.shut.Close() }

func (s *csvSource) next(context.Context) (record, error) {
	for {
		if err := s.read(); err != nil {
			return record{}, err
		}
		if len(s.row) == 1 && s.row[0] == nil && len(s.cols) > 1 {
			continue // an empty line
		}
		if len(s.row) != len(s.cols) {
			return record{}, s.complain("it has %d fields, the first line has %d", len(s.row), len(s.cols))
		}
		return record{values: s.row}, nil
	}
}

func (s *csvSource) complain(format string, args ...any) error {
	return &tool.Error{Kind: tool.KindParse, Code: "CSV", Message: fmt.Sprintf("line %d of the CSV: ", s.line) + fmt.Sprintf(format, args...)}
}

// read takes one line apart; a quoted field may go over several.
func (s *csvSource) read() error {
	s.row = s.row[:0]
	s.line++
	for first := true; ; first = false {
		v, end, err := s.field()
		if errors.Is(err, io.EOF) && first {
			return io.EOF
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		s.row = append(s.row, v)
		if end || err != nil {
			return nil
		}
	}
}

// field reads up to the next comma or the end of the line. io.EOF comes with
// the last field of a file, or alone when nothing is left.
func (s *csvSource) field() (v any, end bool, err error) {
	s.cell = s.cell[:0]
	quoted := false
	for {
		c, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			if len(s.cell) == 0 && !quoted && len(s.row) == 0 {
				return nil, true, io.EOF
			}
			return s.value(quoted), true, nil
		}
		switch {
		case err != nil:
			return nil, false, err
		case c == s.comma:
			return s.value(quoted), false, nil
		case c == '\n':
			if n := len(s.cell); n > 0 && s.cell[n-1] == '\r' && !quoted {
				s.cell = s.cell[:n-1]
			}
			return s.value(quoted), true, nil
		case c == '"' && len(s.cell) == 0 && !quoted:
			quoted = true
			if err := s.quoted(); err != nil {
				return nil, false, err
			}
		case quoted && c == '\r':
		case quoted:
			return nil, false, s.complain("text follows a closing quote")
		default:
			s.cell = append(s.cell, c)
			if len(s.cell) > maxCell {
				return nil, false, s.complain("a field is longer than %d MiB", maxCell>>20)
			}
		}
	}
}

// quoted reads to the closing quote; two quotes are one.
func (s *csvSource) quoted() error {
	for {
		c, err := s.in.ReadByte()
		if errors.Is(err, io.EOF) {
			return s.complain("a quote is not closed")
		}
		if err != nil {
			return err
		}
		if c == '"' {
			if after, err := s.in.Peek(1); err != nil || after[0] != '"' {
				return nil
			}
			_, _ = s.in.Discard(1)
		}
		if c == '\n' {
			s.line++
		}
		if s.cell = append(s.cell, c); len(s.cell) > maxCell {
			return s.complain("a field is longer than %d MiB; is a quote not closed?", maxCell>>20)
		}
	}
}

func (s *csvSource) value(quoted bool) any {
	if len(s.cell) == 0 && !quoted {
		return nil
	}
	return string(s.cell)
}

// csvWriter writes lines of fields.
type csvWriter struct {
	w     *bufio.Writer
	comma byte
	line  []byte
}

func (c *csvWriter) header(cols []column) error {
	row := make([]any, len(cols))
	for i, col := range cols {
		row[i] = col.name
	}
	return c.row(row, cols)
}

func (c *csvWriter) row(row []any, _ []column) error {
	c.line = c.line[:0]
	for i, v := range row {
		if i > 0 {
			c.line = append(c.line, c.comma)
		}
		if v == nil {
			continue
		}
		text := textOf(v)
		if text != "" && !strings.ContainsAny(text, "\"\r\n"+string(rune(c.comma))) && text[0] != ' ' {
			c.line = append(c.line, text...)
			continue
		}
		c.line = append(c.line, '"')
		c.line = append(c.line, strings.ReplaceAll(text, `"`, `""`)...)
		c.line = append(c.line, '"')
	}
	c.line = append(c.line, '\n')
	_, err := c.w.Write(c.line)
	return err
}

func (c *csvWriter) end() error { return c.w.Flush() }

// textOf writes a value out; bytes become base64.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case json.Number:
		return string(v)
	case json.RawMessage:
		return string(v)
	case []byte:
		return base64.StdEncoding.EncodeToString(v)
	}
	return fmt.Sprint(v)
}
