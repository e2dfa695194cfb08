package sqltext

import (
	"fmt"
	"strconv"
	"strings"
)

// Named turns parameters written :name into $1, $2, … and gives their values in
// that order; a name that is used twice is one parameter. Casts (a::int),
// slices (a[1:n]), quotes and comments are left alone.
//
// A name without a value and a $1 beside names are errors.
func Named(stmt string, names map[string]any) (text string, args []any, err error) {
	r := rewriter{stmt: stmt, at: map[string]int{}}
	err = r.run(func(piece string, what class) (string, error) {
		switch {
		case what == parameter:
			return "", fmt.Errorf("%s stands in SQL whose parameters have names; write :name for each", piece)
		case what != symbol || piece != ":":
			return piece, nil
		}
		name := r.name()
		if name == "" {
			return piece, nil
		}
		value, known := names[name]
		if !known {
			return "", fmt.Errorf("the parameter :%s has no value in params", name)
		}
		r.next += len(name)
		return r.place(name, value), nil
	})
	return r.out.String(), r.args, err
}

// Numbered gives the values that a statement uses by number. The numbers are
// made to run from $1 without a gap, so that several statements can share one
// list. A number beyond the list is an error.
func Numbered(stmt string, values []any) (text string, args []any, err error) {
	r := rewriter{stmt: stmt, at: map[string]int{}}
	err = r.run(func(piece string, what class) (string, error) {
		if what != parameter {
			return piece, nil
		}
		n, err := strconv.Atoi(piece[1:])
		if err != nil || n < 1 || n > len(values) {
			return "", fmt.Errorf("%s has no value: params has %d", piece, len(values))
		}
		return r.place(strconv.Itoa(n), values[n-1]), nil
	})
	return r.out.String(), r.args, err
}

// Highest is the largest number a statement uses as a parameter; 0 = none.
func Highest(stmt string) int {
	most := 0
	for i := 0; i < len(stmt); {
		end, what := scan(stmt, i)
		if what == parameter {
			if n, err := strconv.Atoi(stmt[i+1 : end]); err == nil {
				most = max(most, n)
			}
		}
		i = end
	}
	return most
}

// rewriter copies a statement and puts numbers where its parameters stand.
type rewriter struct {
	stmt string
	next int // where the piece after this one begins
	glue bool
	out  strings.Builder
	at   map[string]int
	args []any
}

func (r *rewriter) run(change func(piece string, what class) (string, error)) error {
	for i := 0; i < len(r.stmt); i = r.next {
		end, what := scan(r.stmt, i)
		piece := r.stmt[i:end]
		r.next = end
		text, err := change(piece, what)
		if err != nil {
			return err
		}
		r.out.WriteString(text)
		r.glue = what != space && what != comment &&
			(what != symbol || strings.Contains(":)]", piece))
	}
	return nil
}

// name is the name that follows a colon, "" when the colon means something else:
// the second of a cast, or what stands between the bounds of a slice.
func (r *rewriter) name() string {
	if r.glue || r.next >= len(r.stmt) || !isWordStart(r.stmt[r.next]) {
		return ""
	}
	end := r.next
	for end < len(r.stmt) && isWordPart(r.stmt[end]) {
		end++
	}
	return r.stmt[r.next:end]
}

func (r *rewriter) place(key string, value any) string {
	n, known := r.at[key]
	if !known {
		r.args = append(r.args, value)
		n = len(r.args)
		r.at[key] = n
	}
	return "$" + strconv.Itoa(n)
}
