package playbook

import (
	"slices"
	"strings"
)

// reader collects what is wrong with one document while it is read. Reading
// goes on after a problem, so that the author sees all of them at once.
type reader struct {
	file     string
	lines    []string
	problems Problems
	step     string // the step being read, for the problems found in it
	workbook *workbook
	jumps    []jump         // of the step being read, checked when its labels are known
	outputs  []*node        // what the tasks of the step being read say about their results
	broken   map[*Arc]bool  // arcs whose condition did not compile
	arcAt    map[*Arc]place // for problems that only the whole workflow shows
	// wire tells that a command is read and not an author's text: spellings
	// are current already and the worker knows best which kinds it runs.
	wire bool
	// partial tells that a workbook entry is read: the steps that use it may
	// give it what it lacks.
	partial bool
	options Options
	count   map[Severity]int
	aliases aliases
	sets    []assigned // every assignment, for checks against the names of steps
}

// maxProblems bounds what is reported of each severity; nobody reads more.
const maxProblems = 500

func newReader(file string, src []byte) *reader {
	text := strings.ReplaceAll(string(src), "\r\n", "\n")
	return &reader{
		file: file, lines: strings.Split(text, "\n"), workbook: &workbook{}, broken: map[*Arc]bool{}, arcAt: map[*Arc]place{},
		count: map[Severity]int{},
	}
}

func (r *reader) fail(at place, code, msg, remedy string) {
	r.add(SeverityError, at, code, msg, remedy)
}

func (r *reader) warn(at place, code, msg, remedy string) {
	r.add(SeverityWarning, at, code, msg, remedy)
}

func (r *reader) add(sev Severity, at place, code, msg, remedy string) {
	if r.wire && sev == SeverityWarning {
		return
	}
	if r.count[sev]++; r.count[sev] > maxProblems {
		return
	}
	r.problems = append(r.problems, Problem{
		Severity: sev, Code: code, File: r.file, Line: at.pos.Line, Col: at.pos.Col,
		Step: r.step, Path: at.path, Message: msg, Remedy: remedy,
		Source: strings.TrimRight(r.line(at.pos.Line), " \t"),
	})
}

// line returns a line of the text, "" outside it.
func (r *reader) line(i int) string {
	if i < 1 || i > len(r.lines) {
		return ""
	}
	return r.lines[i-1]
}

// from returns what stands at a position, up to the end of the line.
func (r *reader) from(p Pos) string {
	line := []rune(r.line(p.Line))
	if p.Col < 1 || p.Col > len(line) {
		return ""
	}
	return string(line[p.Col-1:])
}

// sorted returns the problems by place, each once: what an alias repeats is
// one mistake.
func (r *reader) sorted() Problems {
	ps := r.problems
	for _, sev := range []Severity{SeverityError, SeverityWarning} {
		if r.count[sev] > maxProblems {
			end := r.clamp(Pos{len(r.lines) + 1, 1})
			ps = append(ps, Problem{
				Severity: sev, Code: "too_many", File: r.file, Line: end.Line, Col: end.Col,
				Message: "there are more " + string(sev) + "s than the " + itoa(maxProblems) + " shown", Remedy: "fix these first",
			})
		}
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Col - b.Col
	})
	type identity struct {
		line, col     int
		code, message string
	}
	seen := map[identity]bool{}
	unquoted := map[Pos]bool{}
	for _, p := range ps {
		unquoted[Pos{p.Line, p.Col}] = unquoted[Pos{p.Line, p.Col}] || p.Code == "unquoted_template"
	}
	return slices.DeleteFunc(ps, func(p Problem) bool {
		if p.Code == "wrong_type" && unquoted[Pos{p.Line, p.Col}] {
			return true // what YAML made of it is not what the author wrote
		}
		id := identity{p.Line, p.Col, p.Code, p.Message}
		dup := seen[id]
		seen[id] = true
		return dup
	})
}

// unknownKey warns about a key of a map that means nothing there.
func (r *reader) unknownKey(n *node, e entry, where string, known []string) {
	// A key that is there already cannot be what a misspelling means.
	free := slices.DeleteFunc(slices.Clone(known), func(k string) bool { return n.get(k) != nil })
	remedy := listing("known here:", known)
	if k, ok := nearest(e.key, free); ok {
		remedy = didYouMean(e.key, "", []string{k})
	}
	r.warn(n.keyAt(e), "unknown_key", "unknown key "+quote(e.key)+" in "+where, remedy)
}

// want checks the shape of an optional value.
func (r *reader) want(n *node, s shape, rule string) *node {
	if !n.given() {
		return nil
	}
	if n.shape != s {
		r.fail(n.at(), "wrong_type", rule+", this is "+n.describe(), "")
		return nil
	}
	return n
}
