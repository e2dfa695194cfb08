package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// member is a field of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// jsonSource reads objects out of JSON without holding more than one: the
// elements of a list, lines of objects, or a single object.
type jsonSource struct {
	in     *bufio.Reader
	dec    *json.Decoder
	path   []string
	shut   io.Closer
	state  jsonState
	number int64 // of objects so far
	// rows has a document with a list called rows stand for that list: the
	// shape in which tools for databases give theirs.
	rows bool
}

type jsonState int

const (
	unread   jsonState = iota
	inList             // between the elements of a list
	inLines            // between objects that follow each other
	finished           // nothing more
	oneLeft            // behind the { of a single object
)

func newJSONSource(r io.ReadCloser, dataPath string) *jsonSource {
	in := bufio.NewReaderSize(r, 64<<10)
	s := &jsonSource{in: in, dec: json.NewDecoder(in), shut: r}
	if dataPath != "" {
		s.path = strings.Split(dataPath, ".")
	}
	return s
}

func (*jsonSource) columns() []column { return nil }
func (s *jsonSource) close() error    { return s.shut.Close() }

func (s *jsonSource) next(context.Context) (record, error) {
	if s.state == unread {
		if err := s.start(); err != nil {
			return record{}, s.explain(err)
		}
	}
	switch s.state {
	case finished:
		return record{}, io.EOF
	case oneLeft:
		s.state = finished
		fields, err := restOfObject(s.dec)
		return record{fields: fields}, s.explain(err)
	case inList:
		if !s.dec.More() {
			if _, err := s.dec.Token(); err != nil { // the ] is there: the data is whole
				return record{}, s.explain(err)
			}
			s.state = finished
			return record{}, io.EOF
		}
	}
	fields, err := membersOf(s.dec)
	if s.state == inLines && errors.Is(err, io.EOF) {
		return record{}, io.EOF
	}
	if err != nil {
		return record{}, s.explain(err)
	}
	s.number++
	return record{fields: fields}, nil
}

// explain turns trouble with the JSON into an error for people. An end in the
// middle is never taken for the end of the rows.
func (s *jsonSource) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*tool.Error](err); ok {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	if isSyntax || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errNotObject) {
		at := ""
		if isSyntax {
			at = fmt.Sprintf(" at byte %d", syntax.Offset)
		}
		return &tool.Error{Kind: tool.KindParse, Code: "JSON", Message: fmt.Sprintf("row %d is not as expected%s: %v", s.number+1, at, err)}
	}
	return err
}

// start goes to where the rows begin.
func (s *jsonSource) start() error {
	first, err := s.peek()
	if errors.Is(err, io.EOF) {
		s.state = finished
		return nil
	}
	if err != nil {
		return err
	}
	if len(s.path) == 0 && !s.rows && first == '{' {
		s.state = inLines
		return nil
	}
	if first == '{' && len(s.path) == 0 {
		return s.startRows()
	}
	for _, name := range s.path {
		if found, err := s.descend(name); err != nil || !found {
			return errors.Join(err, notFoundIf(!found && err == nil, s.path))
		}
	}
	return s.startValue()
}

func notFoundIf(missing bool, path []string) error {
	if !missing {
		return nil
	}
	return tool.ConfigErrorf("data_path %s leads nowhere in the data", strings.Join(path, "."))
}

// peek is the first byte that is no space.
func (s *jsonSource) peek() (byte, error) {
	for {
		b, err := s.in.Peek(1)
		if err != nil {
			return 0, err
		}
		switch b[0] {
		case ' ', '\t', '\r', '\n', 0xEF, 0xBB, 0xBF: // a byte order mark is no data
			if _, err := s.in.Discard(1); err != nil {
				return 0, err
			}
		default:
			return b[0], nil
		}
	}
}

// startRows goes to the list called rows. An object without one is one row.
func (s *jsonSource) startRows() error {
	if _, err := s.dec.Token(); err != nil {
		return err
	}
	var before []member
	for s.dec.More() {
		name, err := s.dec.Token()
		if err != nil {
			return err
		}
		if name == "rows" {
			return s.startValue()
		}
		var value json.RawMessage
		if err := s.dec.Decode(&value); err != nil {
			return err
		}
		before = append(before, member{name.(string), value})
	}
	_, err := s.dec.Token()
	s.state = finished
	if len(before) > 0 && err == nil {
		return tool.ConfigErrorf("the stored result is an object without rows; data_path says where its list is. It has %s", strings.Join(fieldsOf([]record{{fields: before}}), ", "))
	}
	return err
}

// descend goes to the value of a field of the object that comes next.
func (s *jsonSource) descend(name string) (bool, error) {
	open, err := s.dec.Token()
	if err != nil {
		return false, err
	}
	if open != json.Delim('{') {
		return false, nil
	}
	for s.dec.More() {
		key, err := s.dec.Token()
		if err != nil {
			return false, err
		}
		if key == name {
			return true, nil
		}
		if err := skip(s.dec); err != nil {
			return false, err
		}
	}
	return false, nil
}

// startValue begins with the value that comes next.
func (s *jsonSource) startValue() error {
	open, err := s.dec.Token()
	if err != nil {
		return err
	}
	switch open {
	case json.Delim('['):
		s.state = inList
	case json.Delim('{'):
		s.state = oneLeft
	case nil:
		s.state = finished
	default:
		return errNotObject
	}
	return nil
}

// skip passes over a value without holding it.
func skip(dec *json.Decoder) error {
	for depth := 0; ; {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

var errNotObject = errors.New("rows must be objects")

// membersOf reads one object, fields in order.
func membersOf(dec *json.Decoder) ([]member, error) {
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, errNotObject
	}
	return restOfObject(dec)
}

func restOfObject(dec *json.Decoder) ([]member, error) {
	var out []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, noEnd(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, noEnd(err)
		}
		out = append(out, member{key.(string), value})
	}
	_, err := dec.Token()
	return out, noEnd(err)
}

// noEnd tells the end of the data within an object from the end of the rows.
func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// plain is the value of JSON; what is nested stays JSON.
func plain(raw json.RawMessage) (any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, nil
	}
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case 'n':
		return nil, nil
	case 't', 'f':
		return raw[0] == 't', nil
	case '{', '[':
		return raw, nil
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && exact(f, string(raw)) {
		return f, nil
	}
	return json.Number(raw), nil
}

// exact tells whether a float says the same as the digits it was read from.
func exact(f float64, digits string) bool {
	if strings.ContainsAny(digits, "eE") {
		return true // whoever writes so means a float
	}
	if !strings.Contains(digits, ".") {
		return false
	}
	return strconv.FormatFloat(f, 'f', -1, 64) == strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
}

// appendJSON writes a value as JSON.
func appendJSON(b []byte, v any, c column) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), nil
	case bool:
		return strconv.AppendBool(b, v), nil
	case int64:
		return strconv.AppendInt(b, v, 10), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return appendJSON(b, floatText(v), c)
		}
		return strconv.AppendFloat(b, v, 'g', -1, 64), nil
	case json.Number:
		if f, err := v.Float64(); err != nil || !exact(f, string(v)) && !isWhole(string(v)) {
			return appendJSON(b, string(v), c) // a reader would round it
		}
		return append(b, v...), nil
	case json.RawMessage:
		return append(b, v...), nil
	}
	encoded, err := tool.Encode(v) // text, and bytes as base64
	return append(b, encoded...), err
}

func isWhole(digits string) bool {
	_, err := strconv.ParseInt(digits, 10, 64)
	return err == nil
}

func floatText(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// jsonRow writes a row as an object.
func jsonRow(b []byte, row []any, cols []column) (_ []byte, err error) {
	b = append(b, '{')
	for i, v := range row {
		if i > 0 {
			b = append(b, ',')
		}
		name, err := tool.Encode(cols[i].name)
		if err != nil {
			return b, err
		}
		b = append(append(b, name...), ':')
		if b, err = appendJSON(b, v, cols[i]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}
