package jinja

import (
	"errors"
	"strings"
)

// fold returns the value of a constant expression. Its value is shared by all
// evaluations, which is safe because templates never modify values.
func fold(n node) (any, bool) {
	switch n := n.(type) {
	case *literalNode:
		return n.val, true
	case *unaryNode:
		if x, ok := fold(n.x); ok && n.op == "-" {
			if _, isNumber := asNumeric(x); isNumber {
				v, err := negate(x)
				return v, err == nil
			}
		}
	case *listNode:
		if n.isTuple {
			return nil, false
		}
		items := make([]any, len(n.items))
		for i, item := range n.items {
			v, ok := fold(item)
			if !ok {
				return nil, false
			}
			items[i] = v
		}
		return items, true
	}
	return nil, false
}

// path is the written form of an attribute chain, which is what an undefined
// value is called in messages.
func path(n node) string {
	s := fullPath(n)
	if len(s) <= maxPath {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-maxPath:], "")
}

// maxPath bounds the text of a path in bytes: every step of a long chain has one.
const maxPath = 200

func fullPath(n node) string {
	switch n := n.(type) {
	case *nameNode:
		return n.name
	case *attrNode:
		return path(n.of) + "." + n.name
	case *indexNode:
		if v, ok := fold(n.key); ok {
			if s, err := text(nil, v); err == nil {
				return path(n.of) + "[" + s + "]"
			}
		}
		return path(n.of) + "[…]"
	case *sliceNode:
		return path(n.of) + "[:]"
	case *callNode:
		return path(n.fn) + "()"
	}
	return "(…)"
}

// culprit is the place to blame for a failed operation: the operand that is
// undefined, or else the operator at pos.
func culprit(x node, l any, y node, r any, pos int) int {
	switch {
	case IsUndefined(l):
		return start(x)
	case IsUndefined(r):
		return start(y)
	}
	return pos
}

// blame is the place to show for an error of an operation on a value: the value
// if that is what is undefined, or else the name of the operation at pos.
func blame(err error, of node, v any, pos int) int {
	var e *Error
	if of != nil && IsUndefined(v) && errors.As(err, &e) && e.Kind == kindUndefined {
		return start(of)
	}
	return pos
}

// start is where the leftmost name of an attribute chain is.
func start(n node) int {
	switch n := n.(type) {
	case *attrNode:
		return start(n.of)
	case *indexNode:
		return start(n.of)
	}
	return n.where()
}
