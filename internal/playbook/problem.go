package playbook

import (
	"fmt"
	"strings"
)

// Severity ranks a problem.
type Severity string

// The severities. A document with an error cannot run.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem is one complaint about a document.
type Problem struct {
	Severity Severity `json:"severity"`
	Code     string   `json:"code"` // stable, e.g. unknown_key, missing_target, template_syntax
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line"`
	Col      int      `json:"col"`
	Step     string   `json:"step,omitempty"`
	Path     string   `json:"path,omitempty"` // e.g. workflow[1].next.arcs[0].when
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy,omitempty"`
	Source   string   `json:"source,omitempty"` // the offending line
}

// String is the problem in the form compilers use, with the line and a caret:
//
//	file.yaml:4:5: error: unknown key "tol" in step "start"
//	    tol: {kind: noop}
//	    ^ did you mean "tool"?
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		b.WriteByte(':')
	}
	fmt.Fprintf(&b, "%d:%d: %s: %s", p.Line, p.Col, p.Severity, p.Message)
	if p.Source == "" {
		if p.Remedy != "" {
			b.WriteString("\n    " + p.Remedy)
		}
		return b.String()
	}
	src := strings.ReplaceAll(p.Source, "\t", " ")
	trimmed := strings.TrimLeft(src, " ")
	cut := len(src) - len(trimmed)
	trimmed, caret := window(trimmed, max(0, p.Col-1-cut))
	fmt.Fprintf(&b, "\n    %s\n    %s^", trimmed, strings.Repeat(" ", caret))
	if p.Remedy != "" {
		b.WriteString(" " + p.Remedy)
	}
	return b.String()
}

// window cuts a line that is too long to show down to what surrounds a column.
func window(line string, col int) (string, int) {
	const width = 240
	runes := []rune(line)
	if len(runes) <= width {
		return line, col
	}
	start := min(max(0, col-width/2), len(runes))
	end := min(len(runes), start+width)
	cut := string(runes[start:end])
	if end < len(runes) {
		cut += "…"
	}
	if start > 0 {
		return "…" + cut, col - start + 1
	}
	return cut, col
}

// Problems is a list of complaints, sorted by place.
type Problems []Problem

// Err is nil when no problem is an error, and the list itself otherwise.
func (ps Problems) Err() error {
	for _, p := range ps {
		if p.Severity == SeverityError {
			return ps
		}
	}
	return nil
}

// Error lists all problems, one below the other.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
