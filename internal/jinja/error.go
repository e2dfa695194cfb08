package jinja

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// The kinds of Error.
const (
	kindSyntax    = "syntax"    // the source is not a template
	kindUndefined = "undefined" // a missing value was used where one is needed
	kindType      = "type"      // an operation does not apply to a value of this type
	kindLimit     = "limit"     // a budget of Limits is spent
	kindValue     = "value"     // the type is right, the value is not
	kindName      = "name"      // a filter, test or function that does not exist
)

// Error is a syntax or evaluation error with its place.
type Error struct {
	Kind      string // syntax, undefined, type, limit, value or name
	Message   string
	Line, Col int    // counted from 1; Col counts characters
	Source    string // the whole template
	Remedy    string // what the author can do about it; may be empty

	place int // byte offset in Source plus one; zero while unknown
}

// Error returns the message and its place on one line.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("%s (%d:%d)", e.Message, e.Line, e.Col)
}

// excerptWidth is how much of a very long source line an excerpt shows on
// either side of the column.
const excerptWidth = 60

// Excerpt returns the offending source line and, below it, a caret under the
// column. It is empty for an error without a place.
func (e *Error) Excerpt() string {
	if e.Line == 0 {
		return ""
	}
	lines := strings.Split(e.Source, "\n")
	if e.Line > len(lines) {
		return ""
	}
	line := []rune(strings.TrimSuffix(lines[e.Line-1], "\r"))
	col := min(max(e.Col-1, 0), len(line))
	head, tail := "", ""
	if col > excerptWidth {
		line, col, head = line[col-excerptWidth:], excerptWidth, "…"
	}
	if len(line) > col+excerptWidth {
		line, tail = line[:col+excerptWidth], "…"
	}
	var pad strings.Builder
	for _, r := range head + string(line[:col]) {
		if r != '\t' {
			r = ' ' // tabs are kept so that the caret lines up however they are shown
		}
		pad.WriteRune(r)
	}
	return head + string(line) + tail + "\n" + pad.String() + "^"
}

func newError(kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

func typeError(format string, args ...any) *Error  { return newError(kindType, format, args...) }
func valueError(format string, args ...any) *Error { return newError(kindValue, format, args...) }

// undefinedError is the error of computing with an undefined value.
func undefinedError(u Undefined) *Error {
	name := u.Name
	if name == "" {
		name = "the value"
	}
	e := newError(kindUndefined, "%s is undefined", quoteName(name))
	e.Remedy = "check the spelling, or give a fallback with | default(…)"
	return e
}

// quoteName quotes a name; a description in words stays as it is.
func quoteName(s string) string {
	if strings.Contains(s, " ") {
		return s
	}
	return "'" + s + "'"
}

// withRemedy says what the author can do.
func (e *Error) withRemedy(format string, args ...any) *Error {
	e.Remedy = fmt.Sprintf(format, args...)
	return e
}

// at gives an error the byte offset of the innermost node that met it.
func at(err error, offset int) error {
	var e *Error
	if !errors.As(err, &e) {
		e = valueError("%s", err.Error())
		err = e
	}
	if e.place == 0 {
		e.place = offset + 1
	}
	return err
}

// locate turns the byte offset of an error into a line and a column of src.
func locate(err error, src string) error {
	var e *Error
	if !errors.As(err, &e) || e.Line != 0 {
		return err
	}
	e.Source = src
	if e.place == 0 {
		return err
	}
	before := src[:min(e.place-1, len(src))]
	e.Line = strings.Count(before, "\n") + 1
	e.Col = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return err
}

// nearest returns the known name closest to a misspelt one, or "" when none is
// close enough to be worth suggesting. Ties go to the first in known.
func nearest(name string, known []string) string {
	best, bound := "", max(len(name)/3, 1)+1
	for _, k := range known {
		if d := distance(name, k, bound); d < bound {
			best, bound = k, d
		}
	}
	return best
}

// distance is the number of edits between two words (insertions, deletions,
// substitutions and swaps of neighbours), or bound if it is no less than that.
func distance(a, b string, bound int) int {
	if len(a)-len(b) >= bound || len(b)-len(a) >= bound {
		return bound
	}
	var before []int
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev = prev, row
	}
	return min(prev[len(b)], bound)
}
