package playbook

import (
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// aliases are the credentials of a playbook: those it declares, and where it
// speaks of them.
type aliases struct {
	declared map[string]bool
	named    []mention // in templates
	used     []mention // as the word under `auth`
}

// mention is a place that names a credential.
type mention struct {
	alias string
	at    place
	step  string
}

func (r *reader) keychain(root *node) []any {
	n := root.get("keychain")
	if !n.given() {
		return nil
	}
	r.aliases.declared = map[string]bool{}
	entries := make([]any, 0, len(n.items))
	for _, item := range n.items {
		if item.shape != mapShape {
			r.fail(item.at(), "bad_keychain", "a keychain entry is a map with a name", "")
			continue
		}
		c := r.conform(item, keychainObject)
		name := c.get("name").str()
		switch {
		case name == "":
			r.fail(item.at(), "bad_keychain", "a keychain entry is a map with a name", "add name: …")
			continue
		case r.aliases.declared[name]:
			r.fail(item.at(), "duplicate_name", "the keychain has two entries named "+quote(name), "rename one of them")
		}
		r.aliases.declared[name] = true
		r.tree(c, jinja.TreeOptions{})
		entries = append(entries, c.native())
	}
	return entries
}

// noteAliases remembers the credentials that the templates of a value name.
// Only strings that mention the word are looked at twice.
func (r *reader) noteAliases(n *node) {
	switch n.shape {
	case listShape:
		for _, item := range n.items {
			r.noteAliases(item)
		}
	case mapShape:
		for _, e := range n.entries {
			r.noteAliases(e.value)
		}
	case scalarShape:
		if !strings.Contains(n.text, "keychain") || !isTemplate(n) {
			return
		}
		if t, err := jinja.Compile(n.text); err == nil {
			r.noteTemplate(n, t)
		}
	}
}

func (r *reader) noteTemplate(n *node, t *jinja.Template) {
	for _, path := range t.Free() {
		if path[0] == "keychain" && len(path) > 1 {
			r.aliases.named = append(r.aliases.named, mention{path[1], n.at(), r.step})
		}
	}
}

// noteAuth remembers the credential that a tool names by a plain word.
func (r *reader) noteAuth(n *node) {
	if n.given() && n.shape == scalarShape && !isTemplate(n) {
		r.aliases.used = append(r.aliases.used, mention{n.text, n.at(), r.step})
	}
}

// undeclaredAliases warns about credentials that the keychain does not have. A
// word under `auth` may also name a stored credential, and does in playbooks
// without a keychain.
func (r *reader) undeclaredAliases(root *node) {
	all := r.aliases.named
	if r.aliases.declared != nil {
		all = append(all, r.aliases.used...)
	}
	var names []string
	for _, item := range root.get("keychain").list() {
		names = append(names, item.get("name").str())
	}
	for _, m := range all {
		if r.aliases.declared[m.alias] {
			continue
		}
		r.step = m.step
		remedy := "add keychain: [{name: " + m.alias + ", …}]"
		if c, ok := nearest(m.alias, names); ok {
			remedy = "did you mean " + quote(c) + "?"
		}
		r.warn(m.at, "undeclared_alias", "the keychain declares no "+quote(m.alias), remedy)
	}
	r.step = ""
}

// list is the items of a node that may be absent.
func (n *node) list() []*node {
	if n == nil {
		return nil
	}
	return n.items
}
