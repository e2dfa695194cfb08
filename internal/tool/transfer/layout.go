package transfer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/tool"
)

// layout says which value of a row goes into which column.
type layout struct {
	picks []pick
	known map[string]bool // fields of documents that have a column; nil = a mapping chose
}

// pick is one column of the target and where its value is in a row.
type pick struct {
	column column
	index  int      // of a column of the source, -1 in documents
	field  string   // of documents
	path   []string // further down in JSON
}

func (l *layout) columns() []column {
	out := make([]column, len(l.picks))
	for i, p := range l.picks {
		out[i] = p.column
	}
	return out
}

// newLayout matches the source with the target. The first records of a source
// without columns show its fields.
func newLayout(p *plan, src, dst []column, first []record) (*layout, error) {
	l := &layout{}
	for _, m := range p.mapping {
		if err := l.add(m.column, m.field, src, dst); err != nil {
			return nil, err
		}
	}
	if p.mapping == nil {
		fields := namesOf(src)
		if src == nil {
			fields = fieldsOf(first)
			l.known = map[string]bool{}
		}
		for _, name := range fields {
			if err := l.add(name, name, src, dst); err != nil {
				return nil, err
			}
			if src == nil {
				l.known[name] = true
			}
		}
	}
	l.learnKinds(first)
	return l, p.checkKey(l)
}

func (l *layout) add(to, from string, src, dst []column) error {
	one := pick{index: -1, field: from, column: column{name: to}}
	if src != nil {
		if one.index, one.path = findColumn(src, from); one.index < 0 {
			return tool.ConfigErrorf("the source has no column %q; it has %s", from, strings.Join(namesOf(src), ", "))
		}
		if one.path == nil {
			one.column = src[one.index]
			one.column.name = to
		}
	}
	if dst != nil {
		i := find(dst, to)
		if i < 0 {
			return tool.ConfigErrorf("the target has no column %q for the source's %q; it has %s. A mapping says what goes where", to, from, strings.Join(namesOf(dst), ", "))
		}
		one.column = dst[i]
	}
	if slices.ContainsFunc(l.picks, func(p pick) bool { return p.column.name == one.column.name }) {
		return tool.ConfigErrorf("two fields of the source go into the column %q; a mapping says which", one.column.name)
	}
	l.picks = append(l.picks, one)
	return nil
}

// findColumn finds a column by its name, or the column that a path starts in.
func findColumn(cols []column, name string) (int, []string) {
	if i := find(cols, name); i >= 0 {
		return i, nil
	}
	parts := strings.Split(name, ".")
	for n := len(parts) - 1; n > 0; n-- {
		if i := find(cols, strings.Join(parts[:n], ".")); i >= 0 {
			return i, parts[n:]
		}
	}
	return -1, nil
}

// find looks a column up as it is written, then in any case.
func find(cols []column, name string) int {
	if i := slices.IndexFunc(cols, func(c column) bool { return c.name == name }); i >= 0 {
		return i
	}
	return slices.IndexFunc(cols, func(c column) bool { return strings.EqualFold(c.name, name) })
}

func namesOf(cols []column) []string {
	out := make([]string, len(cols))
	for i, c := range cols {
		out[i] = c.name
	}
	return out
}

// fieldsOf lists the fields of some documents in the order of their appearance.
func fieldsOf(records []record) []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range records {
		for _, m := range r.fields {
			if !seen[m.name] {
				seen[m.name] = true
				out = append(out, m.name)
			}
		}
	}
	return out
}

func (p *plan) checkKey(l *layout) error {
	for i, key := range p.key {
		at := find(l.columns(), key)
		if at < 0 && len(l.picks) > 0 {
			return tool.ConfigErrorf("key names the column %q, which the transfer does not fill", key)
		}
		if at >= 0 {
			p.key[i] = l.picks[at].column.name
		}
	}
	return nil
}

// learnKinds finds what columns of documents hold when no table says so.
func (l *layout) learnKinds(first []record) {
	for i := range l.picks {
		if l.picks[i].column.kind != undecided {
			continue
		}
		seen := undecided
		for _, r := range first {
			if v, err := l.picks[i].value(r); err == nil && v != nil {
				seen = join(seen, kindOf(v))
			}
		}
		if seen == undecided {
			seen = text
		}
		l.picks[i].column.kind = seen
	}
}

func kindOf(v any) kind {
	switch v.(type) {
	case bool:
		return boolean
	case int64:
		return integer
	case float64:
		return float
	case json.Number:
		return number
	case []byte:
		return binary
	case json.RawMessage:
		return jsonText
	}
	return text
}

// join is a kind that takes values of both.
func join(a, b kind) kind {
	switch {
	case a == undecided || a == b:
		return b
	case a == integer && b == float, a == float && b == integer:
		return float
	case a == jsonText || b == jsonText:
		return jsonText
	}
	return text
}

// row takes the values of a record.
func (l *layout) row(r record, out []any) error {
	if l.known != nil {
		for _, m := range r.fields {
			if !l.known[m.name] {
				return tool.ConfigErrorf("a row has the field %q, which no row of the first chunk had; write a mapping that names the columns, or raise chunk_size", m.name)
			}
		}
	}
	for i := range l.picks {
		v, err := l.picks[i].value(r)
		if err != nil {
			return err
		}
		out[i] = v
	}
	return nil
}

func (p *pick) value(r record) (any, error) {
	if p.index >= 0 {
		v := r.values[p.index]
		if p.path == nil || v == nil {
			return v, nil
		}
		raw, isJSON := v.(json.RawMessage)
		if s, isText := v.(string); isText && json.Valid([]byte(s)) {
			raw, isJSON = json.RawMessage(s), true
		}
		if !isJSON {
			return nil, nil
		}
		return p.plain(dig(raw, p.path))
	}
	for _, m := range r.fields {
		if m.name == p.field {
			return p.plain(m.value)
		}
	}
	name, rest, nested := strings.Cut(p.field, ".")
	for _, m := range r.fields {
		if nested && m.name == name {
			return p.plain(dig(m.value, strings.Split(rest, ".")))
		}
	}
	return nil, nil
}

// plain decodes JSON, unless the column takes JSON as it is.
func (p *pick) plain(raw json.RawMessage) (any, error) {
	if raw == nil || string(raw) == "null" {
		return nil, nil
	}
	if p.column.kind == jsonText {
		return raw, nil
	}
	return plain(raw)
}

// dig follows names and numbers into JSON; nil when nothing is there.
func dig(raw json.RawMessage, path []string) json.RawMessage {
	for _, name := range path {
		raw = bytes.TrimSpace(raw)
		switch {
		case len(raw) == 0:
			return nil
		case raw[0] == '{':
			var m map[string]json.RawMessage
			if json.Unmarshal(raw, &m) != nil {
				return nil
			}
			raw = m[name]
		case raw[0] == '[':
			var list []json.RawMessage
			i, err := strconv.Atoi(name)
			if err != nil || json.Unmarshal(raw, &list) != nil || i < 0 || i >= len(list) {
				return nil
			}
			raw = list[i]
		default:
			return nil
		}
	}
	return raw
}
