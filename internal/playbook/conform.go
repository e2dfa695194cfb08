package playbook

import (
	"slices"
	"strings"
)

// conform checks the keys of a map against the grammar, and returns the map
// without those that cannot be read: who reads it may rely on the forms.
func (r *reader) conform(n *node, o *object) *node { return r.conformAs(n, o, o.title) }

// conformAs is conform with a better name for the map than the grammar has.
func (r *reader) conformAs(n *node, o *object, where string) *node {
	if n == nil {
		return nil
	}
	var unread []string
	for _, e := range n.entries {
		f := o.field(e.key)
		if f == nil {
			if !o.open {
				r.unknownKey(n, e, where, o.current())
			}
		} else if !r.conforms(n, e, o, f, where) {
			unread = append(unread, e.key)
		}
	}
	if unread == nil {
		return n
	}
	return n.without(unread...)
}

// part returns the map under a key of a map that conforms, itself checked; nil
// when there is none.
func (r *reader) part(n *node, key string, o *object) *node {
	if v := n.get(key); v.given() && v.shape == mapShape {
		return r.conform(v, o)
	}
	return nil
}

// conforms checks one key and its value.
func (r *reader) conforms(n *node, e entry, o *object, f *field, where string) bool {
	switch {
	case f.gone != "" && f.must != "":
		r.fail(n.keyAt(e), "misplaced_key", quote(e.key)+" "+f.must, f.gone)
		return false
	case f.gone != "":
		r.fail(n.keyAt(e), "removed_key", quote(e.key)+" is no longer part of the language ("+where+")",
			strings.Replace(f.gone, "…", e.value.str()+", …", 1))
		return false
	case !e.value.given():
		return true
	case !f.forms.has(e.value):
		r.wrongForm(e, o, f)
		return false
	case !r.wordOf(e.value, f):
		return false
	case f.modern != "" && e.value.shape == scalarShape && n.get("spec").get(e.key).given():
		r.warn(n.keyAt(e), "ignored_key", quote(e.key)+" in "+where+" has no effect beside spec."+e.key, "remove one of the two")
	case f.modern != "":
		r.warn(n.keyAt(e), "old_spelling", quote(e.key)+" in "+where+" is an older spelling", f.rewrite(e.value))
	case f.idle != "":
		r.warn(n.keyAt(e), "ignored_key", quote(e.key)+" in "+where+" has no effect", f.idle)
	}
	return r.eachConforms(e, f)
}

// rewrite is the remedy for an older spelling: the current one, with the
// author's own value where it fits on the line.
func (f *field) rewrite(v *node) string {
	form := f.modern
	if v.shape == scalarShape && len(v.text) <= 40 && !strings.Contains(v.text, "\n") && strings.Count(form, "…") == 1 {
		text := v.text
		if isTemplate(v) && !strings.Contains(form, `"`) {
			text = `"` + text + `"`
		}
		form = strings.Replace(form, "{{ … }}", "…", 1)
		if f.forms&asExpr != 0 && !isTemplate(v) {
			text = "{{ " + text + " }}"
		}
		form = strings.Replace(form, "…", text, 1)
	}
	return "write " + form
}

func (r *reader) wrongForm(e entry, o *object, f *field) {
	subject := e.key
	if o != rootObject {
		subject += " of " + o.title
	}
	must := f.must
	if must == "" {
		must = "must be " + f.forms.String()
	}
	r.fail(e.value.at(), "wrong_type", subject+" "+must+", this is "+e.value.sketch(f.forms), f.example())
}

// sketch names a value for messages: what it says where that matters, and
// otherwise what it is.
func (n *node) sketch(want forms) string {
	if n.shape == scalarShape && want&(asDict|asList|asText) == 0 {
		return quote(n.compact())
	}
	return n.describe()
}

// example shows how to write what authors most often get wrong.
func (f *field) example() string {
	switch {
	case f.items == stepObject:
		return "begin each step with - step: name"
	case f.forms == asExpr:
		return "write " + f.name + `: "{{ … }}"`
	}
	return ""
}

// wordOf checks a value that may be one of a few words.
func (r *reader) wordOf(v *node, f *field) bool {
	if f.words == nil || v.shape != scalarShape || slices.Contains(f.words, keyword(v)) {
		return true
	}
	noun := f.noun
	if noun == "" {
		noun = f.name
	}
	r.fail(v.at(), "unknown_word", quote(v.compact())+" is no "+noun, didYouMean(v.str(), "use one of:", f.words))
	return false
}

// keyword is the text of a value that is one of a few words; "" when absent.
func keyword(n *node) string { return strings.ToLower(strings.TrimSpace(n.str())) }

// eachConforms checks the items of a list and the values of a map that have to
// be of one form.
func (r *reader) eachConforms(e entry, f *field) bool {
	if f.each == 0 || f.items != nil {
		return true // those who read the items say it better
	}
	ok := true
	complain := func(v *node, what string) {
		if !f.each.has(v) {
			ok = false
			r.fail(v.at(), "wrong_type", what+" must be "+f.each.String()+", this is "+v.sketch(f.each), "")
		}
	}
	for i, item := range e.value.items {
		complain(item, e.key+"["+itoa(i)+"]")
	}
	for _, x := range e.value.entries {
		complain(x.value, e.key+"."+x.key)
	}
	return ok
}

// isTrue reads a flag of a map that conforms; absent is false.
func (n *node) isTrue() bool {
	b, _ := n.scalarValue().(bool)
	return b
}

// words reads a list of words of a map that conforms; a lone word is a list of
// one.
func (n *node) words() []string {
	switch {
	case !n.given():
		return nil
	case n.shape == scalarShape:
		return []string{n.text}
	}
	out := make([]string, 0, len(n.items))
	for _, item := range n.items {
		out = append(out, item.str())
	}
	return out
}
