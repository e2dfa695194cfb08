package scope

import (
	"strconv"

	"github.com/noetl/noetl-go/internal/jinja"
)

// partBytes is how many bytes of JSON are held of a selected part: escapes may
// make it that much longer than what counts.
const partBytes = 6 * selectedBytes

// part collects the value at one path while the text goes by.
type part struct {
	as      string
	path    []string
	labels  int  // levels above the path that may have any name
	on      int  // levels of the way to the value at hand that match
	seen    bool // the first name of the path was there
	taking  bool // the value under way is the one
	depth   int  // of that value
	data    []byte
	found   bool
	tooLong bool
	below   *part // the same path below the labels of a sequence
}

func newPart(sel Selection, labels int) *part {
	return &part{as: sel.As, path: sel.Path, labels: labels}
}

// enter is told that a value begins, below these nodes and under this name.
func (p *part) enter(nodes []*node, at name) {
	depth := len(nodes)
	if p.taking {
		return
	}
	p.on = min(p.on, depth-1)
	switch {
	case depth == 0:
		p.on = 0
	case p.on < depth-1 || depth > p.labels+len(p.path):
		return
	case depth <= p.labels:
		if nodes[depth-1].kind != '{' {
			return
		}
		p.on = depth
		return
	case !p.matches(nodes[depth-1], depth, at):
		return
	default:
		p.on = depth
	}
	if depth == p.labels+1 { // of equal names the last counts
		p.seen, p.found, p.tooLong, p.data = true, false, false, nil
	}
	if depth == p.labels+len(p.path) {
		p.taking, p.depth, p.found, p.tooLong, p.data = true, depth, false, false, nil
	}
}

// matches tells whether a name is the one the path has at that depth. Below a
// label only the keys of a map can be meant.
func (p *part) matches(around *node, depth int, at name) bool {
	want := p.path[depth-p.labels-1]
	if at.isKey {
		return at.length == int64(len(want)) && at.text == want
	}
	if p.labels > 0 && depth == p.labels+1 || around.kind != '[' {
		return false
	}
	i, err := strconv.Atoi(want)
	return err == nil && i == at.index
}

func (p *part) raw(b []byte) {
	switch {
	case !p.taking || p.tooLong:
	case len(p.data)+len(b) > partBytes:
		p.tooLong, p.data = true, nil
	default:
		p.data = append(p.data, b...)
	}
}

// leave is told that a value has ended that lies below so many nodes.
func (p *part) leave(depth int) {
	if p.taking && depth == p.depth {
		p.taking, p.found = false, !p.tooLong
	}
}

// raw implements listener.
func (s *Stream) raw(b []byte) {
	for _, p := range s.parts {
		p.raw(b)
		if p.below != nil {
			p.below.raw(b)
		}
	}
}

// ended tells the parts that a value has.
func (s *Stream) ended() {
	for _, p := range s.parts {
		p.leave(len(s.nodes))
		if p.below != nil {
			p.below.leave(len(s.nodes))
		}
	}
}

// chosen are the selected values that are there and not too large. A label wins
// over a key of the same name below one.
func (s *Stream) chosen() *jinja.Dict {
	out := jinja.NewDict(len(s.parts))
	for _, p := range s.parts {
		if p.below != nil && !p.seen {
			p = p.below
		}
		if !p.found {
			continue
		}
		v, err := jinja.FromJSON(p.data)
		if err != nil {
			continue
		}
		if b, err := jinja.ToJSON(v); err == nil && len(b) <= selectedBytes {
			out.Set(p.as, v)
		}
	}
	return out
}
