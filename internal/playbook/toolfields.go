package playbook

import (
	"slices"
	"strings"

	"github.com/noetl/noetl-go/internal/tool/schema"
)

// kinds lists the tool kinds a playbook may name.
var kinds = schema.Names()

// KnownKinds lists the tool kinds the language has, sorted. A worker may run
// fewer of them.
func KnownKinds() []string { return slices.Clone(kinds) }

// toolFields checks the settings of a task against what its kind declares.
// Older spellings are current ones by then, and a template may stand for any
// value.
func (r *reader) toolFields(n *node, kind string) {
	k, known := schema.Lookup(kind)
	if !known || r.wire {
		return
	}
	for _, e := range n.entries {
		f, declared := k.Field(e.key)
		switch {
		case declared:
			r.toolField(n, e, k, f)
			r.otherName(n, e, f)
		case e.key == "args" && e.value.shape == listShape:
			r.fail(e.value.at(), "wrong_type", "args of "+aTool(k)+" must be a map, this is a list", "write input: {name: value}")
		case taskObject.field(e.key) == nil && !k.Open:
			r.unknownKey(n, e, aTool(k), append(k.Names(), taskObject.current()...))
		}
	}
	if r.partial {
		return
	}
	for _, need := range k.Needs {
		r.toolNeed(n, k, need)
	}
}

func aTool(k *schema.Kind) string { return "a tool of kind " + k.Name }

// toolField checks one setting.
func (r *reader) toolField(n *node, e entry, k *schema.Kind, f *schema.Field) {
	if f.Unavailable != "" {
		r.warn(n.keyAt(e), "ignored_key", quote(e.key)+" of "+aTool(k)+" has no effect yet", f.Unavailable)
		return
	}
	v := e.value
	if !v.given() || v.shape == scalarShape && isTemplate(v) {
		return
	}
	if !takes(f.Shape, v) {
		got := v.describe()
		if v.shape == scalarShape {
			got += " (" + quote(v.text) + ")"
		}
		r.fail(v.at(), "wrong_type", e.key+" of "+aTool(k)+" must be "+f.Shape.String()+", this is "+got, "")
		return
	}
	if f.Words != nil {
		r.toolWordOf(v, e.key, f.Words)
	}
}

// otherName warns about a setting that is given under several of its names:
// the first of them is the one that counts.
func (r *reader) otherName(n *node, e entry, f *schema.Field) {
	names := f.Names()
	i := slices.IndexFunc(names, func(name string) bool { return n.get(name).given() })
	if i >= 0 && names[i] != e.key && e.value.given() {
		r.warn(n.keyAt(e), "ignored_key", quote(e.key)+" has no effect beside "+quote(names[i])+", which is the same setting",
			"remove one of the two")
	}
}

// takes tells whether a shape has a literal value.
func takes(s schema.Shape, v *node) bool {
	switch v.shape {
	case listShape:
		return s.Has(schema.List)
	case mapShape:
		return s.Has(schema.Map)
	}
	return s.Scalar(v.scalar)
}

// toolWordOf checks a setting that takes one of a few words, in any case.
func (r *reader) toolWordOf(v *node, key string, words []string) {
	given := strings.TrimSpace(v.text)
	if !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, given) }) {
		r.fail(v.at(), "unknown_word", quote(v.compact())+" is no value of "+key, didYouMean(given, "use one of:", words))
	}
}

// toolNeed complains when none of the settings of a need is there.
func (r *reader) toolNeed(n *node, k *schema.Kind, need schema.Need) {
	for _, name := range k.Needed(need) {
		if n.get(name).given() {
			return
		}
	}
	remedy := "add " + need[0] + ": …"
	if len(need) > 1 {
		remedy += " (or " + strings.Join(need[1:], ", ") + ")"
	}
	for _, e := range n.entries {
		if f, declared := k.Field(e.key); declared && slices.Contains(need, f.Name) {
			remedy = "give " + quote(e.key) + " a value"
		} else if near, ok := nearest(e.key, k.Needed(need)); ok && !declared && taskObject.field(e.key) == nil {
			remedy = "there is a key " + quote(e.key) + ": did you mean " + quote(near) + "?"
		}
	}
	r.fail(n.at(), "missing_field", aTool(k)+" needs "+strings.Join(need, " or "), remedy)
}
