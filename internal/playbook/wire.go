package playbook

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/jinja"
)

// ToolConfig is the form in which a step's tool travels in a command: an object
// for a single tool, a list of {label: spec} otherwise, nil without a tool. The
// value is shared and must not be changed.
func ToolConfig(s *Step) any {
	if len(s.Tasks) == 0 {
		return nil
	}
	if s.Single {
		return s.Tasks[0].Raw
	}
	list := make([]any, len(s.Tasks))
	for i, t := range s.Tasks {
		item := jinja.NewDict(1)
		item.Set(t.Label, t.Raw)
		list[i] = item
	}
	return list
}

// ClaimConfig is the form in which the claim of a cursor loop travels in a
// command: an object with its kind, nil for steps without a cursor. The value
// is shared and must not be changed.
func ClaimConfig(s *Step) any {
	if s.Loop == nil || s.Loop.Cursor == nil || s.Loop.Cursor.Task == nil {
		return nil
	}
	return s.Loop.Cursor.Task.Raw
}

// ParseTasks reads the tool configuration of a command. An object is a single
// tool, of the given kind unless it names its own; a list is a pipeline, of
// {label: spec} or {name, kind, …} items. The error lists everything that is
// wrong with it.
func ParseTasks(kind string, toolConfig any) (tasks []*Task, single bool, err error) {
	r := newReader("", nil)
	r.wire = true
	n := nodeOf(toolConfig)
	switch {
	case n.shape == mapShape:
		if !n.get("kind").given() {
			n = n.with("kind", Pos{}, textNode(Pos{}, kind))
		}
	case n.shape != listShape:
		return nil, false, fmt.Errorf("tool configuration must be an object or a list, got %s", n.describe())
	}
	tasks, single = r.tasks(n)
	if len(r.problems) == 0 {
		return tasks, single, nil
	}
	lines := make([]string, len(r.problems))
	for i, p := range r.problems {
		lines[i] = strings.TrimPrefix(p.Path+": "+p.Message, ": ")
	}
	return nil, single, fmt.Errorf("read tool configuration: %s", strings.Join(lines, "; "))
}

func itoa(i int) string { return strconv.Itoa(i) }
