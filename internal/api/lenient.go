package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noetl/noetl-go/internal/event"
)

// version is a catalog version as clients write it: 3, "3", "latest" or
// nothing. 0 means the latest.
type version int

func (v *version) UnmarshalJSON(b []byte) error {
	s := strings.TrimSpace(strings.Trim(string(b), `"`))
	if s == "null" || s == "" || strings.EqualFold(s, "latest") {
		*v = 0
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("want a positive integer or \"latest\", got %s", b)
	}
	*v = version(n)
	return nil
}

// object is JSON that must be an object; null counts as absent.
type object json.RawMessage

func (o *object) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
		*o = nil
	case len(b) > 0 && b[0] == '{':
		*o = append((*o)[:0], b...)
	default:
		return fmt.Errorf("want a JSON object, got %s", jsonKind(b))
	}
	return nil
}

// note is JSON that should be an object. Of anything else one is made, so that
// what the sender meant to say is kept; null counts as absent.
type note json.RawMessage

func (n *note) UnmarshalJSON(b []byte) error {
	*n = nil
	if string(b) != "null" {
		*n = note(boxed(bytes.Clone(b)))
	}
	return nil
}

// boxed is raw itself when it is an object, and an object around it when not:
// the log keeps objects, and a bare value would be lost on the way.
func boxed(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] == '{' {
		return raw
	}
	return slices.Concat([]byte(`{"value":`), raw, []byte(`}`))
}

// value is any JSON; null counts as absent, so that an alias can stand in.
type value json.RawMessage

func (v *value) UnmarshalJSON(b []byte) error {
	*v = nil
	if string(b) != "null" {
		*v = append(value(nil), b...)
	}
	return nil
}

func jsonKind(b []byte) string {
	if len(b) == 0 {
		return "nothing"
	}
	switch b[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	default:
		return "a number"
	}
}

// instant is an RFC 3339 time. Older workers write a blank for the T, or no
// zone; a time without one is UTC.
type instant time.Time

func (t *instant) UnmarshalJSON(b []byte) error {
	var s string
	if string(b) == "null" || string(b) == `""` {
		return nil
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("want an RFC 3339 time, got %s", jsonKind(b))
	}
	parsed, err := parseInstant(s)
	if err != nil {
		return err
	}
	*t = instant(parsed)
	return nil
}

// instantLayouts are the ways clients write a moment; without a zone it is UTC.
var instantLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04:05.999999999Z07", "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04",
	time.DateOnly,
}

func parseInstant(s string) (time.Time, error) {
	for _, layout := range instantLayouts {
		if t, err := time.Parse(layout, strings.Replace(strings.TrimSpace(s), " ", "T", 1)); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("want an RFC 3339 time, got %q", s)
}

// count is a number of commands asked for; true means one.
type count int

func (c *count) UnmarshalJSON(b []byte) error {
	switch s := string(b); s {
	case "null", "false":
		*c = 0
	case "true":
		*c = 1
	default:
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 {
			return fmt.Errorf("want a number of commands, got %s", b)
		}
		*c = count(min(n, maxEager))
	}
	return nil
}

// pathID reads an id that is part of the path.
func pathID(r *http.Request, name string) (event.ID, error) {
	id, err := event.ParseID(r.PathValue(name))
	if err != nil {
		return 0, event.Errorf(event.BadRequest, "the path holds %q where a decimal id belongs", r.PathValue(name))
	}
	return id, nil
}

// query reads typed query parameters; the first bad one is kept as the error.
type query struct {
	url.Values
	err error
}

func queryOf(r *http.Request) *query { return &query{Values: r.URL.Query()} }

func (q *query) fail(name, want string) {
	if q.err == nil {
		q.err = event.Errorf(event.Invalid, "%s: want %s, got %q", name, want, q.Get(name))
	}
}

func (q *query) id(name string) event.ID {
	s := q.Get(name)
	if s == "" {
		return 0
	}
	id, err := event.ParseID(s)
	if err != nil {
		q.fail(name, "a decimal id")
	}
	return id
}

// number reads an integer within [low, high]; larger ones are cut to high.
func (q *query) number(name string, def, low, high int64) int64 {
	s := q.Get(name)
	if s == "" {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low {
		q.fail(name, fmt.Sprintf("an integer from %d", low))
		return def
	}
	return min(n, high)
}

// clamped reads an integer and cuts it to [low, high].
func (q *query) clamped(name string, def, low, high int64) int64 {
	s := q.Get(name)
	if s == "" {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // of a number out of range the nearest one is returned
		q.fail(name, "an integer")
		return def
	}
	return max(low, min(n, high))
}

// either reads the parameter that goes by two names; the first counts.
func (q *query) either(name, alias string) string {
	if v := q.Get(name); v != "" {
		return v
	}
	return q.Get(alias)
}

// instant reads a moment. The plus of a zone that was not escaped arrives as a
// blank and is put back.
func (q *query) instant(name string) time.Time {
	s := strings.TrimSpace(q.Get(name))
	if s == "" {
		return time.Time{}
	}
	if i := strings.LastIndexByte(s, ' '); i > len(time.DateOnly) {
		s = s[:i] + "+" + s[i+1:]
	}
	t, err := parseInstant(s)
	if err != nil {
		q.fail(name, "an RFC 3339 time")
	}
	return t
}

func (q *query) flag(name string, def bool) bool {
	s := q.Get(name)
	if s == "" {
		return def
	}
	b, err := strconv.ParseBool(strings.ToLower(s))
	if err != nil {
		q.fail(name, "true or false")
		return def
	}
	return b
}
