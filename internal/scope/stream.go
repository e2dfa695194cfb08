package scope

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// Stream makes the summary of JSON that is written to it, of any size, and holds
// no more than the summary itself: what Close gives is what Summarise would. Of
// equal keys in one map all but the last count too where Summarise counts keys
// or bytes.
type Stream struct {
	text    jsonText
	summary summary
	nodes   []*node // open maps and lists
	parts   []*part
	root    any
	last    name // of the value that begins
}

// node is an open map or list.
type node struct {
	kind    byte // '{' or '['
	name    name // in the map or list around it
	skipped bool // it is nowhere in the summary
	as      treatment
	dict    *jinja.Dict
	list    []any
	count   int64    // of its values
	keys    []string // the first of them in order, when they are counted
	keySize int      // of keys
}

type treatment int

const (
	build   treatment = iota // it is in the summary
	tally                    // it is below the depth limit: a count and keys
	passing                  // the summary has no room for it
)

// name is a key or a position.
type name struct {
	text   string
	length int64 // of the key, of which text may be the beginning
	index  int
	isKey  bool
}

// NewStream makes a stream of a value, of which the selected parts are kept
// beside its summary.
func NewStream(selected []Selection) *Stream {
	s := &Stream{summary: summary{left: summaryBytes}}
	for _, sel := range selected {
		s.parts = append(s.parts, newPart(sel, 0))
	}
	return s.start()
}

// NewSequenceStream is NewStream for the data of a task sequence, {label: data},
// whose selections may name the keys below the labels.
func NewSequenceStream(selected []Selection) *Stream {
	s := NewStream(selected)
	for i, sel := range selected {
		if len(sel.Path) > 0 {
			s.parts[i].below = newPart(sel, 1)
		}
	}
	return s
}

func (s *Stream) start() *Stream {
	s.text = jsonText{l: s, keep: summaryBytes + 1}
	return s
}

// Write takes the next piece. The error says where the text is not JSON.
func (s *Stream) Write(p []byte) (int, error) {
	if err := s.text.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the text and returns the summary. Text that is not one JSON value
// is an error.
func (s *Stream) Close() (json.RawMessage, error) {
	if err := s.text.end(); err != nil {
		return nil, err
	}
	if d, ok := s.root.(*jinja.Dict); ok {
		if chosen := s.chosen(); chosen.Len() > 0 {
			d.Set(markSelected, chosen)
		}
	}
	return jinja.ToJSON(s.root)
}

// NewCheck makes a stream that only finds out whether the text is JSON; its
// Close gives no summary.
func NewCheck() *Check {
	c := &Check{}
	c.text = jsonText{l: nobody{}, keep: 0}
	return c
}

// Check tells whether what is written to it is one JSON value.
type Check struct{ text jsonText }

// Write takes the next piece. The error says where the text is not JSON.
func (c *Check) Write(p []byte) (int, error) {
	if err := c.text.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends the text.
func (c *Check) Close() error { return c.text.end() }

type nobody struct{}

func (nobody) value()            {}
func (nobody) open(byte)         {}
func (nobody) key(string, int64) {}
func (nobody) scalar(scalar)     {}
func (nobody) close()            {}
func (nobody) raw([]byte)        {}

func (s *Stream) top() *node {
	if len(s.nodes) == 0 {
		return nil
	}
	return s.nodes[len(s.nodes)-1]
}

func (s *Stream) key(text string, length int64) {
	s.last = name{text: text, length: length, isKey: true}
	if n := s.top(); n.as == tally {
		n.note(text)
	}
}

// note keeps the first keys in order, as many as a summary can name at most.
func (n *node) note(key string) {
	at, there := slices.BinarySearch(n.keys, key)
	if there || at == len(n.keys) && n.keySize > summaryBytes {
		return
	}
	n.keys = slices.Insert(n.keys, at, strings.Clone(key))
	n.keySize += len(key) + len(`"",`)
	for last := n.keys[len(n.keys)-1]; n.keySize-len(last)-len(`"",`) > summaryBytes; last = n.keys[len(n.keys)-1] {
		n.keys, n.keySize = n.keys[:len(n.keys)-1], n.keySize-len(last)-len(`"",`)
	}
}

func (s *Stream) value() {
	if n := s.top(); n != nil {
		if n.kind == '[' {
			s.last = name{index: int(n.count)}
		}
		n.count++
	}
	for _, p := range s.parts {
		p.enter(s.nodes, s.last)
		if p.below != nil {
			p.below.enter(s.nodes, s.last)
		}
	}
}

// admit tells whether the summary takes a value of the given size where the
// text is now, and accounts for its key.
func (s *Stream) admit(size int) bool {
	n := s.top()
	switch {
	case n == nil:
		return true
	case n.as != build:
		return false
	case n.kind == '[':
		if n.count > 1 {
			return false
		}
		if s.summary.left-size < reserve {
			n.dict, n.as = s.summary.mark(markTruncated, true), passing
			return false
		}
		return true
	}
	key := int(s.last.length) + len(`"":,`)
	if s.summary.left-key-size < reserve {
		s.summary.cut(n.dict)
		n.as = passing
		return false
	}
	s.summary.left -= key
	return true
}

func (s *Stream) open(kind byte) {
	n := &node{kind: kind, name: s.last, as: passing}
	n.name.text = strings.Clone(n.name.text)
	if n.skipped = !s.admit(len(`{"_truncated":true}`)); !n.skipped {
		if n.as = tally; len(s.nodes) < summaryDepth {
			n.as = build
			s.summary.left -= len(`{}`)
			if kind == '{' {
				n.dict = jinja.NewDict(4)
			}
		}
	}
	s.nodes = append(s.nodes, n)
}

func (s *Stream) scalar(v scalar) {
	s.ended()
	value, size, err := scalarOf(v)
	if err != nil {
		s.text.err = err
		return
	}
	if s.admit(size) {
		if length, long := value.(longText); long {
			s.place(s.summary.mark(markLength, int64(length)))
		} else {
			s.summary.spend(value)
			s.place(value)
		}
	}
}

// longText is a text that is given by its length.
type longText int64

func scalarOf(v scalar) (any, int, error) {
	if !v.literal {
		if v.length > summaryText {
			return longText(v.length), len(`{"_truncated":true}`), nil
		}
		return v.text, size(v.text), nil
	}
	value, err := jinja.FromJSON([]byte(v.text))
	return value, size(value), err
}

// place puts a value into the list or map it belongs to.
func (s *Stream) place(v any) {
	switch n := s.top(); {
	case n == nil:
		s.root = v
	case n.kind == '[':
		n.list = []any{v}
	default:
		n.dict.Set(strings.Clone(s.last.text), v)
	}
}

func (s *Stream) close() {
	n := s.top()
	s.nodes = s.nodes[:len(s.nodes)-1]
	s.ended()
	if n.skipped {
		return
	}
	s.last = n.name
	switch {
	case n.as == tally && n.kind == '{':
		s.place(s.summary.tooDeep(int(n.count), append([]string{}, n.keys...)))
	case n.as == tally:
		s.place(s.summary.tooDeep(int(n.count), nil))
	case n.kind == '{':
		s.place(n.dict)
	case n.dict != nil: // its first element found no room
		s.place(n.dict)
	case n.list == nil:
		s.place([]any{})
	default:
		s.place(n.list)
	}
}
