package playbook

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Bounds of a document after aliases are expanded. They stop documents that
// are small as text and huge as data.
const (
	maxNodes = 200_000
	maxDepth = 200
)

// builder turns the YAML library's tree into nodes.
type builder struct {
	r     *reader
	count int
	open  map[*yaml.Node]bool // aliases being expanded, to find cycles
	full  bool                // the bound was hit and reported
}

// slot is where a node hangs in its parent.
type slot struct {
	parent *node
	key    string
	index  int
}

// build converts one library node. It always returns a node.
func (b *builder) build(y *yaml.Node, at slot, depth int) *node {
	n := &node{pos: Pos{y.Line, y.Column}, parent: at.parent, key: at.key, index: at.index}
	if b.count++; b.count > maxNodes || depth > maxDepth {
		if !b.full {
			b.full = true
			b.r.fail(n.at(), "too_large", "the document is too large or too deeply nested",
				"look for anchors that repeat each other")
		}
		return n
	}
	b.tag(n, y)
	switch y.Kind {
	case yaml.AliasNode:
		return b.alias(y, n, at, depth)
	case yaml.ScalarNode:
		b.scalar(n, y)
	case yaml.SequenceNode:
		n.shape = listShape
		for i, c := range y.Content {
			n.items = append(n.items, b.build(c, slot{parent: n, index: i}, depth+1))
		}
	case yaml.MappingNode:
		n.shape = mapShape
		b.mapping(n, y, depth)
	}
	return n
}

func (b *builder) alias(y *yaml.Node, n *node, at slot, depth int) *node {
	if y.Alias == nil || b.open[y.Alias] {
		b.r.fail(n.at(), "alias_cycle", "the anchor "+strconv.Quote(y.Value)+" contains itself", "")
		return n
	}
	b.open[y.Alias] = true
	defer delete(b.open, y.Alias)
	return b.build(y.Alias, at, depth+1)
}

// mapping reads keys in order. Keys of merged maps come where the merge stands
// and give way to keys written out.
func (b *builder) mapping(n *node, y *yaml.Node, depth int) {
	written := map[string]int{} // key -> line
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		if k.Kind == yaml.ScalarNode && !isMerge(k) {
			if _, dup := written[k.Value]; !dup {
				written[k.Value] = k.Line
			}
		}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		switch {
		case k.Kind == yaml.AliasNode && k.Alias != nil && k.Alias.Kind == yaml.ScalarNode:
			k = &yaml.Node{Kind: yaml.ScalarNode, Value: k.Alias.Value, Style: k.Alias.Style, Line: k.Line, Column: k.Column}
		case k.Kind != yaml.ScalarNode:
			b.badKey(n, k)
			continue
		case isMerge(k):
			b.merge(n, v, written, seen, depth)
			continue
		}
		if seen[k.Value] {
			e := entry{key: k.Value, pos: Pos{k.Line, k.Column}}
			b.r.fail(n.keyAt(e), "duplicate_key",
				"the key "+strconv.Quote(k.Value)+" is given twice; it is already in line "+strconv.Itoa(written[k.Value]),
				"keep one of the two")
			continue
		}
		seen[k.Value] = true
		val := b.build(v, slot{parent: n, key: k.Value}, depth+1)
		n.entries = append(n.entries, entry{k.Value, Pos{k.Line, k.Column}, val})
	}
}

func isMerge(k *yaml.Node) bool {
	return k.Value == "<<" && k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

// badKey reports a key that is not a word. The usual cause is a template that
// YAML took for a map because it is not quoted.
func (b *builder) badKey(n *node, k *yaml.Node) {
	at := place{Pos{k.Line, k.Column}, n.path()}
	if k.Kind == yaml.MappingNode && strings.HasPrefix(b.r.from(n.pos), "{{") {
		b.r.fail(n.at(), "unquoted_template", "a value that begins with {{ must be quoted, YAML reads it as a map",
			`write "{{ … }}"`)
		return
	}
	b.r.fail(at, "bad_key", "a key must be text, not a map or a list", "")
}

// merge takes in the map, or list of maps, behind a merge key.
func (b *builder) merge(n *node, v *yaml.Node, written map[string]int, seen map[string]bool, depth int) {
	from := b.build(v, slot{parent: n, key: "<<"}, depth+1)
	maps := []*node{from}
	if from.shape == listShape {
		maps = from.items
	}
	for _, m := range maps {
		if m.shape != mapShape {
			b.r.fail(m.at(), "bad_merge", "a merge key (<<) needs a map, this is "+m.describe(), "")
			continue
		}
		for _, e := range m.entries {
			if _, own := written[e.key]; own || seen[e.key] {
				continue
			}
			seen[e.key] = true
			val := *e.value
			val.parent, val.key = n, e.key
			n.entries = append(n.entries, entry{e.key, e.pos, &val})
		}
	}
}

// scalar gives a plain scalar the type that YAML 1.2 gives it. Words such as
// yes, no, on and off are text, and so are dates.
func (b *builder) scalar(n *node, y *yaml.Node) {
	n.shape, n.text, n.style = scalarShape, y.Value, y.Style
	n.scalar = y.Value
	quoted := y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0
	tagged := y.Style&yaml.TaggedStyle != 0
	switch {
	case tagged && (y.Tag == "!!int" || y.Tag == "!!float" || y.Tag == "!!bool" || y.Tag == "!!null"):
	case quoted || tagged:
		return
	}
	v, exact := plainScalar(y.Value)
	if !exact {
		b.r.warn(n.at(), "big_number", "the number "+y.Value+" does not fit into 64 bits and loses digits",
			"quote it to keep every digit")
	}
	if tagged {
		v = b.tagged(n, y, v)
	}
	if v == nil {
		n.shape, n.text = nullShape, ""
	}
	n.scalar = v
}

// plainTags are the YAML tags of values that JSON has too.
var plainTags = []string{"!!str", "!!int", "!!float", "!!bool", "!!null", "!!seq", "!!map", "!"}

// tag refuses types that values cannot have.
func (b *builder) tag(n *node, y *yaml.Node) {
	if y.Style&yaml.TaggedStyle != 0 && !slices.Contains(plainTags, y.Tag) {
		b.r.fail(n.at(), "bad_tag", "values of the type "+y.Tag+" do not exist here", "remove the tag")
	}
}

// tagged holds a scalar against the type that its tag demands.
func (b *builder) tagged(n *node, y *yaml.Node, v any) any {
	fits := false
	switch x := v.(type) {
	case nil:
		fits = y.Tag == "!!null"
	case bool:
		fits = y.Tag == "!!bool"
	case int64:
		fits = y.Tag == "!!int" || y.Tag == "!!float"
		if y.Tag == "!!float" {
			v = float64(x)
		}
	case float64:
		fits = y.Tag == "!!float"
	}
	if !fits {
		b.r.fail(n.at(), "bad_tag", strconv.Quote(y.Value)+" is not what its tag "+y.Tag+" says", "remove the tag, or change the value")
	}
	return v
}

var (
	intForm   = regexp.MustCompile(`^[-+]?[0-9]+$`)
	floatForm = regexp.MustCompile(`^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`)
)

// plainScalar types an unquoted word by the YAML 1.2 core schema. Infinity and
// NaN stay text, since JSON has no such numbers.
func plainScalar(s string) (v any, exact bool) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return nil, true
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	if c := s[0]; c != '-' && c != '+' && c != '.' && (c < '0' || c > '9') {
		return s, true
	}
	base, digits := 10, s
	switch {
	case strings.HasPrefix(s, "0x"):
		base, digits = 16, s[2:]
	case strings.HasPrefix(s, "0o"):
		base, digits = 8, s[2:]
	case !intForm.MatchString(s):
		return plainFloat(s)
	}
	i, err := strconv.ParseInt(digits, base, 64)
	if err == nil {
		return i, true
	}
	if base != 10 {
		return s, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return s, true
	}
	return f, false
}

func plainFloat(s string) (any, bool) {
	if !floatForm.MatchString(s) {
		return s, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return s, true
	}
	return f, true
}
