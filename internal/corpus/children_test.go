package corpus_test

import (
	"fmt"
	"slices"
)

// childWant is an execution that an entry starts.
type childWant struct {
	Path     string         `yaml:"path"` // in its own metadata, whatever the task calls it
	Workload map[string]any `yaml:"workload"`
	Status   string         `yaml:"status"`
	Count    int            `yaml:"count"` // of such executions; 0 = one
}

type childRun struct {
	path     string
	workload map[string]any
	status   string
}

func compareChildren(want *expectation, h *history) string {
	if want.Children == nil {
		return ""
	}
	var all []childWant
	for _, w := range want.Children {
		all = append(all, slices.Repeat([]childWant{w}, max(w.Count, 1))...)
	}
	if len(h.children) != len(all) {
		return fmt.Sprintf("child_executions: want %d, got %d", len(all), len(h.children))
	}
	for i, w := range all {
		got, at := h.children[i], fmt.Sprintf("child_executions[%d]", i)
		if got.path != w.Path || got.status != w.Status {
			return fmt.Sprintf("%s: want %s of %s, got %s of %s", at, w.Status, w.Path, got.status, got.path)
		}
		if diff := partial(w.Workload, got.workload, at+".workload"); diff != "" {
			return diff
		}
	}
	return ""
}
