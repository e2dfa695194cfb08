package replay

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/noetl/noetl-go/internal/event"
)

// object is a decoded JSON object. Looking something up in a nil one finds
// nothing, so that whatever is no object simply has no members.
type object map[string]json.RawMessage

func objectOf(raw json.RawMessage) object {
	if raw = bytes.TrimSpace(raw); len(raw) < 2 || raw[0] != '{' {
		return nil
	}
	var o object
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

// value is a member that is there and not null.
func (o object) value(key string) (json.RawMessage, bool) {
	raw, ok := o[key]
	return raw, ok && string(raw) != "null"
}

func (o object) object(key string) object { return objectOf(o[key]) }

// text is a member as text: a string's content, anything else as JSON. What is
// null, empty or absent is "".
func (o object) text(key string) string {
	raw, ok := o.value(key)
	if !ok {
		return ""
	}
	return textOf(raw)
}

func textOf(raw json.RawMessage) string {
	if s := stringOf(raw); s != nil {
		return *s
	}
	return string(canonical(raw))
}

// firstText is the first of several members that has text.
func (o object) firstText(keys ...string) string {
	for _, k := range keys {
		if s := o.text(k); s != "" {
			return s
		}
	}
	return ""
}

// integer is a member that is written as an integer of 64 bits.
func (o object) integer(key string) (int64, bool) {
	raw := o[key]
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil && string(raw) != "-0" // which is a double
}

// string is a member that is a string.
func (o object) string(key string) *string { return stringOf(o[key]) }

func stringOf(raw json.RawMessage) *string {
	if len(raw) == 0 || raw[0] != '"' {
		return nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return &s
}

// valueRef is the reference an event carries, or nil.
func (r *Record) valueRef() *ValueRef {
	raw := r.PayloadRef
	if !given(raw) {
		if !mayRefer(r.Result) {
			return nil
		}
		var ok bool
		if raw, ok = objectOf(r.Result).value("reference"); !ok {
			return nil
		}
	}
	text := kept(raw)
	if text == nil {
		return nil
	}
	return &ValueRef{EventID: r.EventID, Reference: text, Summary: Summarize(text)}
}

// mayRefer tells whether a result can hold a reference. Most are plain data and
// not worth taking apart.
func mayRefer(result json.RawMessage) bool {
	return bytes.Contains(result, []byte("reference")) || bytes.Contains(result, []byte(`\u`))
}

// maxDepth is how deep a value may be nested that the state keeps. The state
// around it is nested, too, and must remain readable.
const maxDepth = 128

// kept is a value of an event in the form the state keeps it, or nil when it
// is no JSON or nested too deep.
func kept(raw json.RawMessage) json.RawMessage {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return nil
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	text, err := event.Canonical(raw)
	if err != nil {
		return nil
	}
	return text
}

func given(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && string(raw) != "null"
}

// Summarize picks out of a reference what it says of the value. A member of
// the wrong type is passed over.
func Summarize(reference json.RawMessage) Summary {
	ref := objectOf(reference)
	rows := ref.object("rows_ref")
	places := []object{ref, rows.object("meta"), rows.object("ipc")}
	var s Summary
	for _, o := range places {
		s.SHA256 = first(s.SHA256, o.string("sha256"))
		s.SchemaDigest = first(s.SchemaDigest, o.string("schema_digest"))
		s.MediaType = first(s.MediaType, o.string("media_type"))
		if n, ok := o.integer("row_count"); ok && s.RowCount == nil {
			s.RowCount = &n
		}
	}
	s.SHA256 = first(s.SHA256, ref.string("digest"))
	s.Ref = first(ref.string("ref"), rows.string("ref"), ref.string("uri"))
	return s
}

func first(candidates ...*string) *string {
	for _, c := range candidates {
		if c != nil {
			return c
		}
	}
	return nil
}
