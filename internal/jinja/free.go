package jinja

import (
	"slices"
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
// where it is set to the end of its block; a macro is bound in all of it.
type freeWalker struct {
	bound []map[string]bool
	paths [][]string
	seen  map[string]bool
}

func (w *freeWalker) push() { w.bound = append(w.bound, map[string]bool{}) }
func (w *freeWalker) pop()  { w.bound = w.bound[:len(w.bound)-1] }

func (w *freeWalker) bind(name string) { w.bound[len(w.bound)-1][name] = true }

func (w *freeWalker) isBound(name string) bool {
	return slices.ContainsFunc(w.bound, func(m map[string]bool) bool { return m[name] })
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

// body binds macros first: they may be called before they are written.
func (w *freeWalker) body(stmts []statement) {
	for _, s := range stmts {
		if m, ok := s.(*macroStmt); ok {
			w.bind(m.name)
		}
	}
	for _, s := range stmts {
		w.statement(s)
	}
}

func (w *freeWalker) statement(s statement) {
	switch s := s.(type) {
	case *outputStmt:
		w.expr(s.x)
	case *ifStmt:
		for _, b := range s.branches {
			w.expr(b.test)
			w.body(b.body)
		}
		w.body(s.otherwise)
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
		w.exprs(s.defaults)
		w.scoped(s.body, s.params...)
	}
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
		w.bind(t.name)
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
	case *sliceNode:
		w.expr(n.of)
		w.exprs([]node{n.start, n.stop, n.step})
	case *callNode:
		w.call(n)
	case *filterNode:
		w.expr(n.of)
		w.args(n.args)
	case *testNode:
		w.expr(n.of)
		w.args(n.args)
	case *unaryNode:
		w.expr(n.x)
	case *binaryNode:
		w.expr(n.x)
		w.expr(n.y)
	case *logicNode:
		w.expr(n.x)
		w.expr(n.y)
	case *concatNode:
		w.exprs(n.parts)
	case *compareNode:
		w.expr(n.first)
		for _, r := range n.rest {
			w.expr(r.y)
		}
	case *condNode:
		w.exprs([]node{n.test, n.then, n.otherwise})
	case *listNode:
		w.exprs(n.items)
	case *dictNode:
		for i := range n.keys {
			w.expr(n.keys[i])
			w.expr(n.vals[i])
		}
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
