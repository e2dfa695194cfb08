package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/noetl/noetl-go/internal/event"
)

// buffers holds scratch space of requests and answers. Big ones are dropped so
// that one large body does not occupy memory for good.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooled = 256 << 10

func scratch() *bytes.Buffer {
	b := buffers.Get().(*bytes.Buffer)
	b.Reset()
	return b
}

func done(b *bytes.Buffer) {
	if b.Cap() <= maxPooled {
		buffers.Put(b)
	}
}

// decode reads the JSON body into v. Unknown fields are ignored and the content
// type does not matter. The error says how unreadable the body is: BadRequest
// with the place of a syntax error, Invalid for values of the wrong type, Limit
// for too many bytes. With optional set an empty body leaves v untouched.
func decode(r *http.Request, v any, optional bool) error {
	buf := scratch()
	defer done(buf)
	if _, err := buf.ReadFrom(r.Body); err != nil {
		return unreadable(err)
	}
	body := bytes.TrimPrefix(buf.Bytes(), []byte("\ufeff"))
	if len(bytes.TrimSpace(body)) == 0 {
		if optional {
			return nil
		}
		return event.Errorf(event.BadRequest, "the request body is empty: want a JSON object")
	}
	if err := json.Unmarshal(body, v); err != nil {
		return malformed(body, err)
	}
	return nil
}

func unreadable(err error) error {
	if big, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return event.Errorf(event.Limit, "the request body is larger than %d bytes", big.Limit)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return event.Errorf(event.BadRequest, "the request body ended early")
	}
	return event.Errorf(event.BadRequest, "read the request body: %w", err)
}

func malformed(body []byte, err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, col := position(body, e.Offset)
		return event.Errorf(event.BadRequest, "malformed JSON at line %d, column %d (offset %d): %v", line, col, e.Offset, e)
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return event.Errorf(event.Invalid, "want a JSON object, got %s", e.Value)
		}
		return event.Errorf(event.Invalid, "%s: want %s, got %s", e.Field, kindName(e), e.Value)
	}
	return event.Errorf(event.Invalid, "%v", err)
}

func kindName(e *json.UnmarshalTypeError) string {
	switch k := e.Type.Kind().String(); k {
	case "int", "int64":
		return "an integer"
	case "bool":
		return "a boolean"
	case "slice":
		return "a list"
	case "struct", "map":
		return "an object"
	default:
		return "a " + k
	}
}

// position turns the offset of a syntax error, which counts the bytes read
// before it was noticed, into a line and column, both from 1.
func position(body []byte, offset int64) (line, col int) {
	before := body[:max(0, min(offset-1, int64(len(body))))]
	line = 1 + bytes.Count(before, []byte("\n"))
	return line, len(before) - bytes.LastIndexByte(before, '\n')
}

// respond sends v as a 200 answer.
func respond(w http.ResponseWriter, v any) error { return respondStatus(w, http.StatusOK, v) }

func respondStatus(w http.ResponseWriter, status int, v any) error {
	buf := scratch()
	defer done(buf)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	writeBody(w, status, buf.Bytes())
	return nil
}

// writeBody sends finished JSON. A client that went away is nobody's error.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
