package playbook

import "slices"

// workbook holds the reusable tools of a playbook by name.
type workbook struct {
	names []string
	tools map[string]*node
}

// maxWorkbookDepth bounds references from one workbook entry to another.
const maxWorkbookDepth = 10

// readWorkbook reads the list form and the map form ({tasks: {name: tool}}).
func (r *reader) readWorkbook(root *node) {
	n := root.get("workbook")
	r.workbook.tools = map[string]*node{}
	switch {
	case !n.given():
	case n.shape == listShape:
		for _, item := range n.items {
			if item.get("name").str() == "" {
				r.fail(item.at(), "bad_workbook", "a workbook entry is a map with a name and a tool", "write - {name: …, tool: {kind: …}}")
				continue
			}
			r.workbookEntry(item.get("name").str(), item)
		}
	default:
		tasks := n
		if t := n.get("tasks"); t != nil {
			for _, e := range n.without("tasks").entries {
				r.unknownKey(n, e, "workbook", []string{"tasks"})
			}
			tasks = r.want(t, mapShape, "workbook.tasks must be a map of tools by name")
		}
		if tasks != nil {
			for _, e := range tasks.entries {
				r.workbookEntry(e.key, e.value)
			}
		}
	}
	r.checkWorkbook()
}

// workbookEntry stores a tool, whether it is written under `tool` or directly.
func (r *reader) workbookEntry(name string, n *node) {
	tool := n.get("tool")
	switch {
	case tool == nil && n.get("kind") != nil:
		tool = n.without("name")
	case tool.given() && tool.shape == mapShape:
		for _, e := range r.conform(n, workbookObject).entries {
			if workbookObject.field(e.key) == nil {
				r.unknownKey(n, e, workbookObject.title, workbookObject.current())
			}
		}
		r.sinkMark(n)
	default:
		r.fail(n.at(), "bad_workbook", "the workbook entry "+quote(name)+" has no tool", "add tool: {kind: …}")
		return
	}
	if r.workbook.tools[name] != nil {
		r.fail(n.at(), "duplicate_name", "the workbook has two entries named "+quote(name), "rename one of them")
		return
	}
	r.workbook.names = append(r.workbook.names, name)
	r.workbook.tools[name] = tool
}

// checkWorkbook reads every entry once, so that one that no step uses is
// checked too. What a use finds again is reported once only.
func (r *reader) checkWorkbook() {
	r.partial = true
	for _, name := range r.workbook.names {
		r.task(r.workbook.tools[name], name)
	}
	r.partial = false
}

// inline replaces a reference to the workbook by the tool it names. Inputs are
// merged, and everything else that stands beside the reference wins.
func (r *reader) inline(n *node) (*node, bool) {
	for depth := 0; n.get("kind").str() == "workbook"; depth++ {
		ref := n.get("task")
		if !ref.given() {
			ref = n.get("name")
		}
		name := ref.str()
		tool := r.workbook.tools[name]
		switch {
		case name == "":
			r.fail(n.at(), "bad_workbook", "a tool of kind workbook needs the name of an entry",
				"add name: … (the workbook has: "+r.workbook.list()+")")
			return nil, false
		case tool == nil:
			r.fail(ref.at(), "unknown_workbook", "the workbook has no entry "+quote(name), r.workbook.remedy(name))
			return nil, false
		case depth == maxWorkbookDepth:
			r.fail(n.at(), "workbook_cycle", "the workbook entries refer to each other in a circle", "")
			return nil, false
		}
		over := r.mergeInput(n).without("kind", "name", "task")
		tool = r.mergeInput(tool)
		if in := tool.get("input"); in != nil && over.get("input") != nil {
			over = over.with("input", over.get("input").pos, merged(in, over.get("input")))
		}
		if tool.get("kind").str() != "workbook" {
			tool = tool.without("name")
		}
		n = merged(tool, over)
	}
	return n, true
}

func (w *workbook) list() string {
	if len(w.names) == 0 {
		return "nothing"
	}
	return join(w.names)
}

func (w *workbook) remedy(name string) string {
	available := "the workbook has: " + w.list()
	if c, ok := nearest(name, slices.Clone(w.names)); ok {
		return "did you mean " + quote(c) + "? " + available
	}
	return available
}
