package engine

import (
	"slices"

	"github.com/noetl/noetl-go/internal/jinja"
	"github.com/noetl/noetl-go/internal/playbook"
)

// needs is the static answer to "which values must a command of this step
// carry": a command event stores these and nothing else.
type needs struct {
	all         bool     // something reads the context by means analysis cannot see
	names       []string // root names, sorted
	workload    []string // keys below workload, sorted
	allWorkload bool
}

// suppliedElsewhere are roots the worker binds itself: they are facts of the
// command, of secrets, or of the running task.
var suppliedElsewhere = map[string]bool{
	"execution_id": true, "catalog_id": true, "keychain": true, "job": true,
	"iter": true, "loop": true, "_index": true, "_total": true,
}

func stepNeeds(s *playbook.Step) needs {
	var n needs
	if s.Input != nil {
		n.addPaths(s.Input.Free())
	}
	for _, t := range s.Tasks {
		n.addTask(t)
	}
	if s.Loop != nil {
		n.names = slices.DeleteFunc(n.names, func(name string) bool { return name == s.Loop.Iterator })
	}
	n.tidy()
	return n
}

func (n *needs) tidy() {
	slices.Sort(n.names)
	n.names = slices.Compact(n.names)
	slices.Sort(n.workload)
	n.workload = slices.Compact(n.workload)
}

func (n *needs) addTask(t *playbook.Task) {
	n.all = n.all || t.NeedsAll
	n.addTree(t.Config)
	n.addTree(t.Input)
	n.addSet(t.Set)
	if t.Policy == nil {
		return
	}
	for _, r := range t.Policy.Rules {
		if r.When != nil {
			n.addPaths(r.When.Free())
		}
		n.addSet(r.Then.Set)
	}
}

func (n *needs) addTree(t *jinja.Tree) {
	if t != nil {
		n.addPaths(t.Free())
	}
}

func (n *needs) addSet(set []playbook.Assignment) {
	for _, a := range set {
		n.addTree(a.Value)
	}
}

func (n *needs) addPaths(paths [][]string) {
	for _, p := range paths {
		switch root := p[0]; {
		case suppliedElsewhere[root]:
		case root == "workload" && len(p) == 1:
			n.allWorkload = true
		case root == "workload":
			n.workload = append(n.workload, p[1])
		case (root == "ctx" || root == "vars") && len(p) == 1:
			n.all = true
		case root == "ctx" || root == "vars":
			n.names = append(n.names, p[1])
		default:
			n.names = append(n.names, root)
		}
	}
}
