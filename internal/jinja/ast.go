package jinja

// spot is where a node begins in the source and how deep the tree below it is.
type spot struct {
	pos  int
	deep int
}

func (s spot) where() int { return s.pos }
func (s spot) depth() int { return s.deep }

// node is an expression.
type node interface {
	where() int
	depth() int
}

type (
	// literalNode is a constant, or a list or mapping of constants.
	literalNode struct {
		spot
		val any
	}
	nameNode struct {
		spot
		name string
	}
	// attrNode is of.name.
	attrNode struct {
		spot
		of   node
		name string
	}
	// indexNode is of[key].
	indexNode struct {
		spot
		of, key node
	}
	// sliceNode is of[start:stop:step]; absent parts are nil.
	sliceNode struct {
		spot
		of, start, stop, step node
	}
	callNode struct {
		spot
		fn   node
		args arguments
	}
	filterNode struct {
		spot
		of   node
		name string
		args arguments
	}
	// testNode is of is name(args).
	testNode struct {
		spot
		of     node
		name   string
		args   arguments
		negate bool
	}
	// unaryNode is -x, +x or not x.
	unaryNode struct {
		spot
		op string
		x  node
	}
	// binaryNode is an arithmetic operator.
	binaryNode struct {
		spot
		op   string
		x, y node
	}
	// logicNode is and or or.
	logicNode struct {
		spot
		op   string
		x, y node
	}
	// concatNode is a ~ b ~ c.
	concatNode struct {
		spot
		parts []node
	}
	// compareNode is a < b, or a chain a < b < c.
	compareNode struct {
		spot
		first node
		rest  []comparison
	}
	// condNode is then if test else otherwise; otherwise may be nil.
	condNode struct {
		spot
		test, then, otherwise node
	}
	listNode struct {
		spot
		items   []node
		isTuple bool
	}
	dictNode struct {
		spot
		keys, vals []node
	}
	// capturedNode is the text of the block that a filter tag or a set tag
	// encloses, on which the filters of the tag are applied.
	capturedNode struct {
		spot
	}
)

type comparison struct {
	op  string
	y   node
	pos int
}

type arguments struct {
	pos []node
	kw  []keyword
}

type keyword struct {
	name string
	val  node
	pos  int
}

// statement is text or a tag.
type statement interface{}

type (
	textStmt struct {
		text string
	}
	outputStmt struct {
		x node
	}
	ifStmt struct {
		branches  []branch
		otherwise []statement
	}
	forStmt struct {
		pos       int
		target    target
		iter      node
		filter    node // may be nil
		body      []statement
		otherwise []statement
	}
	setStmt struct {
		target target
		val    node
	}
	// captureStmt is {% set name %}…{% endset %}, or with an empty name
	// {% filter … %}…{% endfilter %}. The chain ends in a capturedNode.
	captureStmt struct {
		target target
		chain  node
		body   []statement
	}
	withStmt struct {
		names []string
		vals  []node
		body  []statement
	}
	macroStmt struct {
		pos      int
		name     string
		params   []string
		defaults []node // nil where the parameter has none
		body     []statement
	}
)

type branch struct {
	test node
	body []statement
}

// target is what a value is assigned to: a name, an attribute of a namespace,
// or a list of targets.
type target struct {
	pos   int
	name  string
	attr  string
	parts []target
}

// names calls f for every name the target binds.
func (t target) names(f func(string)) {
	if t.name != "" && t.attr == "" {
		f(t.name)
	}
	for _, p := range t.parts {
		p.names(f)
	}
}
