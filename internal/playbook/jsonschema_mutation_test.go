package playbook

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mutation makes one mistake, or what may be one, in a map of a document.
type mutation struct {
	name  string
	apply func(n *node, e entry) *node
}

var mutations = []mutation{
	{"misspelt", func(n *node, e entry) *node { return n.without(e.key).with(e.key+"zz", e.pos, e.value) }},
	{"removed", func(n *node, e entry) *node { return n.without(e.key) }},
	{"null", replacedBy(nil)},
	{"list", replacedBy([]any{int64(1)})},
	{"empty list", replacedBy([]any{})},
	{"map", replacedBy(map[string]any{"zz": int64(1)})},
	{"number", replacedBy(int64(7))},
	{"fraction", replacedBy(-0.5)},
	{"flag", replacedBy(true)},
	{"word", replacedBy("zz")},
	{"empty text", replacedBy("")},
	{"template", replacedBy("{{ zz }}")},
}

func replacedBy(v any) func(n *node, e entry) *node {
	return func(n *node, e entry) *node {
		x := nodeOf(v)
		x.parent, x.key = n, e.key
		return n.with(e.key, e.pos, x)
	}
}

// eachMutant calls f with every copy of the tree that has one mutation in it.
// The place names its key by the kind of map it is in and not by position, so
// that the same mistake is made once and not in every step.
func eachMutant(n *node, where string, rebuild func(*node) *node, f func(place, mutation string, mutant func() *node)) {
	for _, e := range n.entries {
		for _, m := range mutations {
			f(where+"."+e.key, m.name, func() *node { return rebuild(m.apply(n, e)) })
		}
		eachMutant(e.value, named(e.value, where+"."+e.key), func(c *node) *node { return rebuild(n.with(e.key, e.pos, c)) }, f)
	}
	for i, item := range n.items {
		eachMutant(item, named(item, where+"[]"), func(c *node) *node {
			list := *n
			list.items = append([]*node(nil), n.items...)
			list.items[i] = c
			return rebuild(&list)
		}, f)
	}
}

// free matches places whose keys are the author's own, or belong to what a
// reference names.
var free = regexp.MustCompile(`(workload|\.input|\.args|\.set|\.payload|\.code|\.headers|\.params|\.json|<workbook>)\.`)

// named adds to a place what kind of tool is there.
func named(n *node, where string) string {
	if kind := n.get("kind").str(); kind != "" {
		return where + "<" + kind + ">"
	}
	return where
}

// local is the end of a place: its key and the map that it is in, whether that
// is one of a list or not. Keys of the language are the same in every tool.
func local(place string) string {
	parts := strings.Split(strings.ReplaceAll(place, "[]", ""), ".")
	parts = parts[max(0, len(parts)-2):]
	if key := parts[len(parts)-1]; taskObject.field(key) != nil && key != "args" {
		parts[0], _, _ = strings.Cut(parts[0], "<")
	}
	return strings.Join(parts, ".")
}

// pieces cuts a document into small ones, each with one step: mistakes are
// found faster in those. The first keeps what is above the steps.
func pieces(root *node) []*node {
	flow := root.get("workflow")
	if flow == nil || flow.shape != listShape || len(flow.items) == 0 {
		return []*node{root}
	}
	e, _ := root.entry("workflow")
	bare := *root
	bare.entries = nil
	for _, e := range root.entries {
		if slices.Contains([]string{"apiVersion", "kind", "metadata", "workbook"}, e.key) {
			bare.entries = append(bare.entries, e)
		}
	}
	var out []*node
	for i, step := range flow.items {
		one := *flow
		one.items = []*node{step}
		whole := &bare
		if i == 0 {
			whole = root
		}
		out = append(out, whole.with("workflow", e.pos, &one))
	}
	return out
}

func TestSchemaAndParserAgreeOnMistakes(t *testing.T) {
	t.Parallel()
	s := compiledSchema(t)
	made := map[string]bool{}
	agreed, differ := map[bool]int{}, 0
	try := func(name, id string, root *node) {
		problem, err := verdict(t, root), s.Validate(plain(root))
		if (problem == nil) == (err == nil) {
			agreed[err == nil]++
		} else if differ++; differ <= 40 {
			t.Errorf("%s (%s): parser says %v\nschema says %v", id, name, problem, err)
		}
	}
	for _, d := range documents(t) {
		for _, piece := range pieces(d.root) {
			sound, asked := false, false
			eachMutant(piece, "", func(n *node) *node { return n }, func(place, mutation string, mutant func() *node) {
				id := local(place) + " " + mutation
				if made[id] || free.MatchString(place) {
					return
				}
				if !asked {
					asked, sound = true, verdict(t, piece) == nil && s.Validate(plain(piece)) == nil
				}
				if sound {
					made[id] = true
					try(d.name, id, mutant())
				}
			})
		}
	}
	t.Logf("%d valid and %d invalid mutants agreed on, %d not", agreed[true], agreed[false], differ)
	if agreed[true] < 100 || agreed[false] < 100 {
		t.Errorf("too few mutants to prove anything: %v", agreed)
	}
}
