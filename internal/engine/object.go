package engine

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/noetl/noetl-go/internal/jinja"
)

// object builds a JSON object by appending, without going through maps.
type object struct{ b []byte }

func newObject() *object { return &object{b: []byte{'{'}} }

func (o *object) key(k string) {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b, _ = jinja.AppendJSON(o.b, k)
	o.b = append(o.b, ':')
}

func (o *object) raw(k string, v json.RawMessage) {
	o.key(k)
	o.b = append(o.b, nonNil(v)...)
}

// value adds a native value. One that JSON cannot hold (an infinite number)
// becomes null.
func (o *object) value(k string, v any) {
	o.key(k)
	b, err := jinja.AppendJSON(o.b, v)
	if err != nil {
		b = append(o.b, "null"...)
	}
	o.b = b
}

func (o *object) int(k string, n int) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, int64(n), 10)
}

// merge adds all members of an encoded object.
func (o *object) merge(obj json.RawMessage) {
	if len(obj) <= 2 {
		return
	}
	members := bytes.TrimSpace(obj[1 : len(obj)-1])
	if len(members) == 0 {
		return
	}
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, members...)
}

func (o *object) bytes() json.RawMessage { return append(o.b, '}') }

// cutKey takes one member out of an encoded object and returns both.
func cutKey(obj json.RawMessage, key string) (rest, member json.RawMessage) {
	v, err := jinja.FromJSON(obj)
	if err != nil {
		return obj, nil
	}
	d, ok := v.(*jinja.Dict)
	if !ok {
		return obj, nil
	}
	m, ok := d.Get(key)
	if !ok {
		return obj, nil
	}
	member, err = jinja.ToJSON(m)
	if err != nil {
		return obj, nil
	}
	d.Delete(key)
	if rest, err = jinja.ToJSON(d); err != nil {
		return obj, nil
	}
	return rest, member
}
