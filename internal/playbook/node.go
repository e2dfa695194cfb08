package playbook

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/jinja"
)

// shape is the coarse type of a node.
type shape uint8

const (
	nullShape shape = iota
	scalarShape
	listShape
	mapShape
)

// node is a value of the document with its place, aliases and merge keys
// already resolved. Playbooks and the wire form of commands both become nodes,
// so that one reader understands both. Nodes are not changed once made:
// rewriting makes new ones that share children and keep their places.
type node struct {
	shape   shape
	pos     Pos
	scalar  any    // bool, int64, float64 or string
	text    string // a scalar's value as text
	style   yaml.Style
	items   []*node
	entries []entry

	parent *node // where it was written, for paths
	key    string
	index  int
}

// entry is a key of a map node and its value.
type entry struct {
	key   string
	pos   Pos
	value *node
}

// place is where a problem is.
type place struct {
	pos  Pos
	path string
}

func (n *node) at() place { return place{n.pos, n.path()} }

// keyAt is the place of a key of the map n.
func (n *node) keyAt(e entry) place {
	return place{e.pos, joinPath(n.path(), e.key)}
}

// path names the node from the root: workflow[1].next.arcs[0].when.
func (n *node) path() string {
	if n.parent == nil {
		return ""
	}
	if n.parent.shape == listShape {
		return fmt.Sprintf("%s[%d]", n.parent.path(), n.index)
	}
	return joinPath(n.parent.path(), n.key)
}

func joinPath(parent, key string) string {
	if parent == "" {
		return key
	}
	return parent + "." + key
}

// get returns the value of a key, nil when there is none or n is not a map.
func (n *node) get(key string) *node {
	if n == nil {
		return nil
	}
	for i := range n.entries {
		if n.entries[i].key == key {
			return n.entries[i].value
		}
	}
	return nil
}

// entry returns a key with its place.
func (n *node) entry(key string) (entry, bool) {
	for _, e := range n.entries {
		if e.key == key {
			return e, true
		}
	}
	return entry{}, false
}

func (n *node) keys() []string {
	keys := make([]string, len(n.entries))
	for i, e := range n.entries {
		keys[i] = e.key
	}
	return keys
}

// given tells that the author wrote something: neither absent nor null.
func (n *node) given() bool { return n != nil && n.shape != nullShape }

// child follows keys and list indices down; it stops early at what is missing.
func (n *node) child(path []string) *node {
	for _, p := range path {
		var next *node
		if n.shape == listShape {
			if i, err := strconv.Atoi(p); err == nil && i >= 0 && i < len(n.items) {
				next = n.items[i]
			}
		} else {
			next = n.get(p)
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// str is the text of a scalar, "" for anything else.
func (n *node) str() string {
	if n == nil || n.shape != scalarShape {
		return ""
	}
	return n.text
}

// describe names the kind of value for messages.
func (n *node) describe() string {
	switch n.shape {
	case nullShape:
		return "nothing"
	case listShape:
		return "a list"
	case mapShape:
		return "a map"
	}
	switch n.scalar.(type) {
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	}
	return "text"
}

// native converts to the values templates work with: nil, bool, int64,
// float64, string, []any and *jinja.Dict.
func (n *node) native() any {
	switch n.shape {
	case scalarShape:
		return n.scalar
	case listShape:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.native()
		}
		return list
	case mapShape:
		return n.dict()
	}
	return nil
}

func (n *node) dict() *jinja.Dict {
	d := jinja.NewDict(len(n.entries))
	for _, e := range n.entries {
		d.Set(e.key, e.value.native())
	}
	return d
}

// compact prints the value on one line, for messages.
func (n *node) compact() string {
	if n.shape == scalarShape {
		return n.text
	}
	b, err := jinja.ToJSON(n.native())
	if err != nil {
		return n.describe()
	}
	return string(b)
}

// with returns the map with a key set; an existing key keeps its place.
func (n *node) with(key string, pos Pos, v *node) *node {
	c := *n
	c.entries = slices.Clone(n.entries)
	for i := range c.entries {
		if c.entries[i].key == key {
			c.entries[i] = entry{key, pos, v}
			return &c
		}
	}
	c.entries = append(c.entries, entry{key, pos, v})
	return &c
}

// without returns the map less some keys.
func (n *node) without(keys ...string) *node {
	c := *n
	c.entries = slices.DeleteFunc(slices.Clone(n.entries), func(e entry) bool {
		return slices.Contains(keys, e.key)
	})
	return &c
}

// merged returns the keys of under and over together; over wins.
func merged(under, over *node) *node {
	if under == nil || over == nil || under.shape != mapShape || over.shape != mapShape {
		if over != nil {
			return over
		}
		return under
	}
	m := *over
	m.entries = slices.Clone(under.entries)
	out := &m
	for _, e := range over.entries {
		out = out.with(e.key, e.pos, e.value)
	}
	return out
}

// textNode makes a node for text that the author did not write literally.
func textNode(at Pos, text string) *node {
	return &node{shape: scalarShape, pos: at, scalar: text, text: text}
}

// nodeOf makes a node without places from values off the wire.
func nodeOf(v any) *node {
	switch v := v.(type) {
	case nil:
		return &node{}
	case *jinja.Dict:
		n := &node{shape: mapShape}
		for k, x := range v.All() {
			n.add(k, nodeOf(x))
		}
		return n
	case map[string]any:
		n := &node{shape: mapShape}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			n.add(k, nodeOf(v[k]))
		}
		return n
	case []any:
		n := &node{shape: listShape}
		for i, x := range v {
			c := nodeOf(x)
			c.parent, c.index = n, i
			n.items = append(n.items, c)
		}
		return n
	case string:
		return textNode(Pos{}, v)
	}
	return scalarOf(v)
}

func (n *node) add(key string, v *node) {
	v.parent, v.key = n, key
	n.entries = append(n.entries, entry{key: key, value: v})
}

// scalarOf brings Go's number types down to the two that templates know.
func scalarOf(v any) *node {
	n := &node{shape: scalarShape, scalar: v, text: fmt.Sprint(v)}
	switch x := v.(type) {
	case int:
		n.scalar = int64(x)
	case json.Number:
		if i, err := x.Int64(); err == nil {
			n.scalar = i
		} else if f, err := x.Float64(); err == nil {
			n.scalar = f
		} else {
			n.scalar = x.String()
		}
	case float64:
		n.text = strconv.FormatFloat(x, 'g', -1, 64)
	case bool, int64:
	default:
		n.scalar = strings.TrimSpace(n.text)
	}
	return n
}
