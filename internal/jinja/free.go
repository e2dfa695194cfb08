package jinja

import (
	"maps"
	"strconv"
	"strings"
)

// freePaths returns the paths that statements read from the caller's scope.
func freePaths(stmts []statement) [][]string {
	w := &freeWalker{seen: map[string]bool{}}
	w.push()
	w.body(stmts)
	return w.paths
}

// freeWalker walks the tree in the order of the source. A name is bound from
// where it is surely set to the end of its block: what only one branch of an if
// sets may still be read from the scope after it.
type freeWalker struct {
	// bound are the names of the blocks around, innermost last. A lasting name
	// has a value wherever it is seen; one that a set tag binds has it only
	// after the tag, so that a macro, which runs later or again, may miss it.
	bound []map[string]bool // whether the name is lasting
	home  int               // the first block inside the macro that is walked
	paths [][]string
	seen  map[string]bool
}

func (w *freeWalker) push() { w.bound = append(w.bound, map[string]bool{}) }
func (w *freeWalker) pop()  { w.bound = w.bound[:len(w.bound)-1] }

func (w *freeWalker) names() map[string]bool { return w.bound[len(w.bound)-1] }

func (w *freeWalker) bind(name string) { w.names()[name] = true }

func (w *freeWalker) set(name string) { w.names()[name] = w.names()[name] }

func (w *freeWalker) isBound(name string) bool {
	for i, names := range w.bound {
		if lasting, ok := names[name]; ok && (lasting || i >= w.home) {
			return true
		}
	}
	return false
}

func (w *freeWalker) add(path []string) {
	key := strings.Join(path, "\x00")
	if !w.seen[key] {
		w.seen[key] = true
		w.paths = append(w.paths, path)
	}
}

// scoped walks a block of its own in which names are bound.
func (w *freeWalker) scoped(stmts []statement, names ...string) {
	w.push()
	for _, name := range names {
		w.bind(name)
	}
	w.body(stmts)
	w.pop()
}

func (w *freeWalker) body(stmts []statement) {
	for _, s := range stmts {
		w.statement(s)
	}
}

func (w *freeWalker) statement(s statement) {
	switch s := s.(type) {
	case *outputStmt:
		w.expr(s.x)
	case *ifStmt:
		w.ifElse(s)
	case *forStmt:
		w.forLoop(s)
	case *setStmt:
		w.expr(s.val)
		w.target(s.target)
	case *captureStmt:
		w.push()
		w.body(s.body)
		w.expr(s.chain)
		w.pop()
		w.target(s.target)
	case *withStmt:
		w.exprs(s.vals)
		w.scoped(s.body, s.names...)
	case *macroStmt:
		w.macro(s)
	}
}

// ifElse keeps the names that every branch sets. Without an else none is sure.
func (w *freeWalker) ifElse(s *ifStmt) {
	before := w.names()
	var sure map[string]bool
	branch := func(body []statement) {
		w.bound[len(w.bound)-1] = maps.Clone(before)
		w.body(body)
		after := w.names()
		if sure == nil {
			sure = after
		}
		maps.DeleteFunc(sure, func(name string, _ bool) bool { _, ok := after[name]; return !ok })
		w.bound[len(w.bound)-1] = before
	}
	for _, b := range s.branches {
		w.expr(b.test)
		branch(b.body)
	}
	branch(s.otherwise)
	w.bound[len(w.bound)-1] = sure
}

// macro walks a macro. It knows itself and, of what is around it, the names that
// last. A default sees the parameters before its own.
func (w *freeWalker) macro(s *macroStmt) {
	w.bind(s.name)
	home := w.home
	w.push()
	w.home = len(w.bound) - 1
	for i, name := range s.params {
		w.expr(s.defaults[i])
		w.bind(name)
	}
	w.body(s.body)
	w.pop()
	w.home = home
}

// forLoop walks a loop. Its else branch does not see the loop variables.
func (w *freeWalker) forLoop(s *forStmt) {
	w.expr(s.iter)
	w.push()
	s.target.names(w.bind)
	w.expr(s.filter)
	w.bind("loop")
	w.body(s.body)
	w.pop()
	w.scoped(s.otherwise)
}

// target binds what a statement sets; an attribute is read from its namespace.
func (w *freeWalker) target(t target) {
	if t.attr != "" {
		w.expr(&nameNode{name: t.name})
	}
	for _, p := range t.parts {
		w.target(p)
	}
	if t.parts == nil && t.attr == "" && t.name != "" {
		w.set(t.name)
	}
}

func (w *freeWalker) exprs(ns []node) {
	for _, n := range ns {
		w.expr(n)
	}
}

func (w *freeWalker) args(a arguments) { w.exprs(a.nodes()) }

func (w *freeWalker) expr(n node) {
	switch n := n.(type) {
	case *nameNode, *attrNode, *indexNode:
		w.access(n, nil)
	case *callNode:
		w.call(n)
	case nil:
	default:
		w.exprs(children(n))
	}
}

// access follows a chain of attributes and constant indexes down to its name.
// tail is what is read of n, in order.
func (w *freeWalker) access(n node, tail []string) {
	switch n := n.(type) {
	case *nameNode:
		if !w.isBound(n.name) {
			w.add(append([]string{n.name}, tail...))
		}
	case *attrNode:
		w.access(n.of, append([]string{n.name}, tail...))
	case *indexNode:
		if step, ok := constantStep(n.key); ok {
			w.access(n.of, append([]string{step}, tail...))
			return
		}
		w.access(n.of, nil)
		w.expr(n.key)
	default:
		w.expr(n)
	}
}

// constantStep is the path element of a constant index.
func constantStep(key node) (string, bool) {
	v, ok := fold(key)
	if !ok {
		return "", false
	}
	switch v := v.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}

// call skips the name of a method and of a function that is built in.
func (w *freeWalker) call(n *callNode) {
	switch fn := n.fn.(type) {
	case *attrNode:
		w.expr(fn.of)
	case *nameNode:
		if _, known := functions[fn.name]; !known {
			w.expr(fn)
		}
	default:
		w.expr(fn)
	}
	w.args(n.args)
}
