package jinja

// children are the expressions right below one, in the order in which they are
// evaluated. Absent parts are nil.
func children(n node) []node {
	switch n := n.(type) {
	case *attrNode:
		return []node{n.of}
	case *indexNode:
		return []node{n.of, n.key}
	case *sliceNode:
		return []node{n.of, n.start, n.stop, n.step}
	case *callNode:
		return append([]node{n.fn}, n.args.nodes()...)
	case *filterNode:
		return append([]node{n.of}, n.args.nodes()...)
	case *testNode:
		return append([]node{n.of}, n.args.nodes()...)
	case *unaryNode:
		return []node{n.x}
	case *binaryNode:
		return []node{n.x, n.y}
	case *logicNode:
		return []node{n.x, n.y}
	case *concatNode:
		return n.parts
	case *compareNode:
		out := []node{n.first}
		for _, r := range n.rest {
			out = append(out, r.y)
		}
		return out
	case *condNode:
		return []node{n.test, n.then, n.otherwise}
	case *listNode:
		return n.items
	case *dictNode:
		out := make([]node, 0, 2*len(n.keys))
		for i := range n.keys {
			out = append(out, n.keys[i], n.vals[i])
		}
		return out
	}
	return nil
}

// weight is the work of evaluating expressions once, in steps. What one node
// does is charged by itself if it can be much, so that only very large
// expressions weigh anything.
func weight(ns ...node) int { return countNodes(ns) / 16 }

func countNodes(ns []node) int {
	total := 0
	for _, n := range ns {
		if n != nil {
			total += 1 + countNodes(children(n))
		}
	}
	return total
}

// bodyWeight is the work of running statements once, without the bodies of the
// tags among them, which charge for themselves.
func bodyWeight(stmts []statement) int {
	var direct []node
	for _, s := range stmts {
		switch s := s.(type) {
		case *outputStmt:
			direct = append(direct, s.x)
		case *ifStmt:
			for _, b := range s.branches {
				direct = append(direct, b.test)
			}
		case *forStmt:
			direct = append(direct, s.iter)
		case *setStmt:
			direct = append(direct, s.val)
		case *captureStmt:
			direct = append(direct, s.chain)
		case *withStmt:
			direct = append(direct, s.vals...)
		}
	}
	return len(stmts) + weight(direct...)
}
