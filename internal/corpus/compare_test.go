package corpus_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/noetl/noetl-go/internal/engine"
	"github.com/noetl/noetl-go/internal/event"
	"github.com/noetl/noetl-go/internal/playbook"
	"github.com/noetl/noetl-go/internal/testkit/testapi"
)

// Statuses of entries that are not those of an execution.
const (
	rejected   = "REJECTED"
	registered = "REGISTERED"
)

// history is what an entry came to.
type history struct {
	status   string
	err      string
	events   []event.Event
	steps    map[string]engine.StepOutcome
	playbook *playbook.Playbook // nil when it was refused
	children []childRun
	tables   map[string]tableRows // by query
	requests []testapi.Request
}

// entered are the steps in the order in which they were entered.
func (h *history) entered() (names []string) {
	for i := range h.events {
		if h.events[i].Type.Canonical() == event.StepEnter {
			names = append(names, h.events[i].NodeName)
		}
	}
	return names
}

// compare returns the first difference between what happened and what should
// have, or "". An uncertain entry may also end in one of its alternatives; then
// what kept it from the stated outcome is returned too.
func compare(e *entry, h *history) (diff, instead string) {
	diff = compareOne(&e.Expect, h)
	if diff == "" || !e.Uncertain {
		return diff, ""
	}
	all := diff
	for i := range e.Alternatives {
		other := compareOne(&e.Alternatives[i], h)
		if other == "" {
			return "", diff
		}
		all += "; or " + other
	}
	return all, ""
}

func compareOne(want *expectation, h *history) string {
	if !slices.Contains(want.Status, h.status) {
		return fmt.Sprintf("status: want %s, got %s: %s", strings.Join(want.Status, " or "), h.status, h.err)
	}
	if want.ErrorMatches != "" && !regexp.MustCompile("(?is)"+want.ErrorMatches).MatchString(h.err) {
		return fmt.Sprintf("error: want a match of %q, got %q", want.ErrorMatches, h.err)
	}
	if h.status != want.Status[0] {
		return compareOther(want, h)
	}
	for _, check := range []func(*expectation, *history) string{
		compareSteps, compareOrder, compareFailed, compareResults, compareLoops, compareStdout,
		compareChildren, compareTables, compareRequests,
	} {
		if diff := check(want, h); diff != "" {
			return diff
		}
	}
	return ""
}

// compareOther looks at an ending that is acceptable but not the one
// described: the execution must have gone a part of the way, and what it leaves in
// tables holds all the same.
func compareOther(want *expectation, h *history) string {
	if diff := compareTables(want, h); diff != "" || want.Steps == nil {
		return diff
	}
	got := h.entered()
	if len(got) > len(*want.Steps) || !slices.EqualFunc((*want.Steps)[:len(got)], got, isOneOf) {
		return fmt.Sprintf("steps: want a beginning of %v, got %v", *want.Steps, got)
	}
	return ""
}

// isOneOf compares a step with "a" or "a|b".
func isOneOf(want, got string) bool { return slices.Contains(strings.Split(want, "|"), got) }

func compareSteps(want *expectation, h *history) string {
	got := slices.DeleteFunc(h.entered(), func(name string) bool { return slices.Contains(want.Optional, name) })
	if want.Steps != nil {
		wanted, sorted := slices.Clone(*want.Steps), slices.Clone(got)
		if !want.OrderMatters {
			slices.Sort(wanted)
			slices.Sort(sorted)
		}
		if !slices.EqualFunc(wanted, sorted, isOneOf) {
			return fmt.Sprintf("steps: want %v, got %v", *want.Steps, got)
		}
	}
	for _, name := range slices.Concat(want.NotExecuted, want.AlsoNot) {
		if slices.Contains(got, name) {
			return fmt.Sprintf("steps: %s must not run, got %v", name, got)
		}
	}
	for _, name := range want.Once {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s != name })); n != 1 {
			return fmt.Sprintf("steps: %s must run once, got %v", name, got)
		}
	}
	return ""
}

// compareOrder checks lines such as "a < {b, c} < d": every step on the left
// has ended before one on the right is entered.
func compareOrder(want *expectation, h *history) string {
	entered, ended := map[string]int64{}, map[string]int64{}
	for i := range h.events {
		e := &h.events[i]
		switch {
		case e.Type.Canonical() == event.StepEnter:
			entered[e.NodeName] = e.Seq
		case e.Type.IsCommandEnd():
			ended[e.NodeName] = e.Seq
		}
	}
	for _, line := range want.PartialOrder {
		groups := strings.Split(line, "<")
		for i := 1; i < len(groups); i++ {
			for _, before := range stepsOf(groups[i-1]) {
				for _, after := range stepsOf(groups[i]) {
					if ended[before] == 0 || entered[after] == 0 || ended[before] > entered[after] {
						return fmt.Sprintf("order: %s must end before %s begins, got %v", before, after, h.entered())
					}
				}
			}
		}
	}
	return ""
}

func stepsOf(group string) []string {
	return strings.FieldsFunc(group, func(r rune) bool { return strings.ContainsRune("{}, ", r) })
}

func compareFailed(want *expectation, h *history) string {
	if want.FailedStep != "" && h.steps[want.FailedStep].Status != event.StatusFailed {
		return fmt.Sprintf("failed_step: %s is %q", want.FailedStep, h.steps[want.FailedStep].Status)
	}
	return ""
}

func compareResults(want *expectation, h *history) string {
	for _, name := range slices.Sorted(maps.Keys(want.Results)) {
		got, diff := h.result(name)
		if diff == "" {
			diff = compareResult(want.Results[name], got, name, h.labels(name))
		}
		if diff != "" {
			return diff
		}
	}
	return ""
}

// compareResult accepts the flattened view of a list of tools, or the entry of
// one of them.
func compareResult(want, got any, name string, labels []string) string {
	diff := partial(want, got, name)
	byLabel, _ := got.(map[string]any)
	for _, label := range labels {
		if diff == "" {
			break
		}
		if one, ok := byLabel[label]; ok && partial(want, one, name) == "" {
			return ""
		}
	}
	return diff
}

// labels are the names of a step's tasks when its tool is a list.
func (h *history) labels(name string) (labels []string) {
	for _, s := range h.playbook.Steps {
		if s.Name != name || s.Single {
			continue
		}
		for _, task := range s.Tasks {
			labels = append(labels, task.Label)
		}
	}
	return labels
}

func (h *history) result(name string) (v any, diff string) {
	raw := h.steps[name].Result
	if raw == nil {
		return nil, name + ": it has no result"
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Sprintf("%s: its result is not JSON: %v", name, err)
	}
	return v, ""
}

// compareStdout looks for a text in what the step's commands reported.
func compareStdout(want *expectation, h *history) string {
	for _, name := range slices.Sorted(maps.Keys(want.Stdout)) {
		if !slices.ContainsFunc(h.events, func(e event.Event) bool {
			if e.NodeName != name || !e.Type.IsCommandEnd() {
				return false
			}
			var report any
			return json.Unmarshal(e.Result, &report) == nil && printed(report, want.Stdout[name])
		}) {
			return fmt.Sprintf("%s: it did not print %q", name, want.Stdout[name])
		}
	}
	return ""
}

// printed looks below every key "stdout" of a report.
func printed(report any, text string) bool {
	switch report := report.(type) {
	case map[string]any:
		for key, v := range report {
			if s, ok := v.(string); ok && key == "stdout" && strings.Contains(s, text) || printed(v, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(report, func(v any) bool { return printed(v, text) })
	}
	return false
}

// partial compares deeply and ignores keys that want does not have. It returns
// the first difference.
func partial(want, got any, at string) string {
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: want a mapping, got %s", at, brief(got))
		}
		for _, k := range slices.Sorted(maps.Keys(want)) {
			v, ok := m[k]
			if !ok {
				return fmt.Sprintf("%s.%s: missing", at, k)
			}
			if diff := partial(want[k], v, at+"."+k); diff != "" {
				return diff
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s: want %d items, got %s", at, len(want), brief(got))
		}
		for i := range want {
			if diff := partial(want[i], list[i], fmt.Sprintf("%s[%d]", at, i)); diff != "" {
				return diff
			}
		}
		return ""
	}
	if !same(want, got) {
		return fmt.Sprintf("%s: want %s, got %s", at, brief(want), brief(got))
	}
	return ""
}

// same compares scalars: numbers with a tolerance, "len:N" with the length of a
// list, ">=N" with a number.
func same(want, got any) bool {
	if text, ok := want.(string); ok {
		if n, ok := strings.CutPrefix(text, "len:"); ok {
			list, isList := got.([]any)
			return isList && strconv.Itoa(len(list)) == n
		}
		if n, ok := strings.CutPrefix(text, ">="); ok {
			least, err := strconv.ParseFloat(strings.TrimSpace(n), 64)
			f, isNumber := got.(float64)
			return err == nil && isNumber && f >= least
		}
	}
	if w, ok := number(want); ok {
		g, ok := number(got)
		return ok && math.Abs(w-g) < 1e-6
	}
	return want == got
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

func brief(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(b) > 160 {
		return string(b[:160]) + "…"
	}
	return string(b)
}
