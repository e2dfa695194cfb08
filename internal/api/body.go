package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
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
		return malformed(body, v, err)
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
	if errors.Is(err, os.ErrDeadlineExceeded) {
		// Unlike the others this may go better the next time.
		return event.Errorf(event.Unavailable, "the request body took too long to arrive")
	}
	return event.Errorf(event.BadRequest, "read the request body: %w", err)
}

// malformed says what is wrong with a body that v could not be read from.
func malformed(body []byte, v any, err error) error {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		line, col := position(body, e.Offset)
		return event.Errorf(event.BadRequest, "malformed JSON at line %d, column %d (offset %d): %v", line, col, e.Offset, e)
	}
	place, err := blame(body, reflect.TypeOf(v).Elem())
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		place = cmp.Or(place, e.Field) // a key in other case, or sent twice
		want := kindName(e)
		if place == "" {
			want = "a JSON object"
		}
		err = fmt.Errorf("want %s, got %s", want, e.Value)
	}
	if place == "" {
		return event.Errorf(event.Invalid, "%w", err)
	}
	return event.Errorf(event.Invalid, "%s: %w", place, err)
}

var readsItself = reflect.TypeFor[json.Unmarshaler]()

// blame finds the first member a value of type t could not be read from, as in
// events[2].step, and why. encoding/json names no place when a type that reads
// itself refuses, and Go's names when a struct is embedded.
func blame(body []byte, t reflect.Type) (place string, err error) {
	if err = json.Unmarshal(body, reflect.New(t).Interface()); err == nil || reflect.PointerTo(t).Implements(readsItself) {
		return "", err
	}
	switch t.Kind() {
	case reflect.Pointer:
		return blame(body, t.Elem())
	case reflect.Struct:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(body, &members) // what is no object has no members
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			raw, sent := members[name]
			if name == "" || !sent {
				continue
			}
			if within, err := blame(raw, f.Type); err != nil {
				return below(name, within), err
			}
		}
	case reflect.Slice:
		var items []json.RawMessage
		_ = json.Unmarshal(body, &items)
		for i, raw := range items {
			if within, err := blame(raw, t.Elem()); err != nil {
				return below(fmt.Sprintf("[%d]", i), within), err
			}
		}
	}
	return "", err
}

func below(place, within string) string {
	if within == "" || within[0] == '[' {
		return place + within
	}
	return place + "." + within
}

func kindName(e *json.UnmarshalTypeError) string {
	switch k := e.Type.Kind().String(); k {
	case "int", "int64":
		return "an integer"
	case "float64":
		return "a number"
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
