package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
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
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if parsed, err := time.Parse(layout, strings.Replace(s, " ", "T", 1)); err == nil {
			*t = instant(parsed.UTC())
			return nil
		}
	}
	return fmt.Errorf("want an RFC 3339 time, got %q", s)
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
