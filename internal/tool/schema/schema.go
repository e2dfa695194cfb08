// Package schema declares what each kind of tool takes and gives: its fields,
// their values, what must be there, and what comes back. The parser checks
// playbooks against it, the JSON Schema for editors and the reference are
// written from it, and a test holds the tools to it. It must not know how a
// tool works or how a playbook is read.
package schema

import (
	"slices"
	"strings"
)

// Kind declares one kind of tool.
type Kind struct {
	Name    string
	Doc     string // what it does, one sentence
	Returns string // the data of a successful call
	Fields  []Field
	Needs   []Need // what a call cannot do without

	// NoWorker tells that the language has the kind but no worker runs it; it
	// is the remedy an author gets.
	NoWorker string
	// Open tells that fields beyond the declared ones belong to something the
	// kind refers to, and are not ours to check.
	Open bool
}

// Field declares one setting of a tool. Text with a template in it is allowed
// wherever a field takes something else: only rendering shows what it gives.
type Field struct {
	Name    string
	Aliases []string // other names of the same field, the first present counts
	Shape   Shape
	Words   []string // the only values, in any case; nil = any of the shape
	Default string   // what an absent field means, as it would be written; "" = nothing
	Doc     string
	// Unavailable tells that the field is known and does nothing yet; it is the
	// remedy an author gets.
	Unavailable string
}

// Need is a group of fields of which a call has at least one.
type Need []string

// Names lists the field under all its names, its own first.
func (f *Field) Names() []string { return append([]string{f.Name}, f.Aliases...) }

// Field finds a field by its name or an alias.
func (k *Kind) Field(name string) (*Field, bool) {
	for i := range k.Fields {
		if f := &k.Fields[i]; f.Name == name || slices.Contains(f.Aliases, name) {
			return f, true
		}
	}
	return nil, false
}

// Names lists every name a field of the kind may be written under.
func (k *Kind) Names() []string {
	var names []string
	for i := range k.Fields {
		names = append(names, k.Fields[i].Names()...)
	}
	return names
}

// Needed lists the names under which a need can be met.
func (k *Kind) Needed(n Need) []string {
	var names []string
	for _, name := range n {
		if f, ok := k.Field(name); ok {
			names = append(names, f.Names()...)
		}
	}
	return names
}

// Lookup finds the declaration of a kind.
func Lookup(kind string) (*Kind, bool) {
	k, ok := byName[kind]
	return k, ok
}

// Kinds lists all declarations, by name.
func Kinds() []*Kind { return slices.Clone(all) }

// Names lists the names of all kinds, sorted.
func Names() []string {
	names := make([]string, len(all))
	for i, k := range all {
		names[i] = k.Name
	}
	return names
}

var (
	all    = declared()
	byName = index(all)
)

// declared gathers the declarations and gives each the fields that every tool
// has, unless it speaks of them itself.
func declared() []*Kind {
	kinds := slices.Concat(
		[]*Kind{noop, python, shell, http, playbook, workbook, taskSequence, wait},
		[]*Kind{postgres, duckdb, ducklake, snowflake, transfer, snowflakeTransfer},
		[]*Kind{nats, subscription, mcp, artifact, resultFetch, container, script},
		orphans,
	)
	for _, k := range kinds {
		for _, f := range everywhere {
			if _, own := k.Field(f.Name); !own && !k.Open {
				k.Fields = append(k.Fields, f)
			}
		}
	}
	slices.SortFunc(kinds, func(a, b *Kind) int { return strings.Compare(a.Name, b.Name) })
	return kinds
}

func index(kinds []*Kind) map[string]*Kind {
	m := make(map[string]*Kind, len(kinds))
	for _, k := range kinds {
		m[k.Name] = k
	}
	return m
}

// everywhere are the fields that a worker itself reads, whatever the kind.
var everywhere = []Field{
	{Name: "timeout", Aliases: []string{"timeout_seconds"}, Shape: Duration, Doc: "How long the call may take."},
}
