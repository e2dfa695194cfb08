package jinja

import (
	"strings"
	"unicode"
)

// moreStringMethods are the methods of Python's strings that lay text out or
// take it apart.
func moreStringMethods() map[string]*operation {
	return map[string]*operation{
		"center":     op(justifyMethod(centered), "width", "fillchar?"),
		"ljust":      op(justifyMethod(func(missing, _ int) int { return 0 }), "width", "fillchar?"),
		"rjust":      op(justifyMethod(func(missing, _ int) int { return missing }), "width", "fillchar?"),
		"zfill":      op(zfillMethod, "width"),
		"partition":  op(partitionMethod(strings.Index, false), "sep"),
		"rpartition": op(partitionMethod(strings.LastIndex, true), "sep"),
		"swapcase":   textMethod(swapcase),
		"casefold":   textMethod(strings.ToLower),
		"islower":    op(caseTest(unicode.IsUpper, unicode.IsLower)),
		"isupper":    op(caseTest(unicode.IsLower, unicode.IsUpper)),
		"isdecimal":  everyMethod(unicode.IsDigit),
		"isascii": op(func(e env, self any, _ args) (any, error) {
			s := self.(string)
			return strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) < 0, e.budget().scan(len(s))
		}),
	}
}

// centered is how much of the missing width goes to the left: Python's rule for
// the odd one.
func centered(missing, width int) int { return missing/2 + missing&width&1 }

// justifyMethod pads a text to a width; left says how much of it goes there.
func justifyMethod(left func(missing, width int) int) method {
	return func(e env, self any, a args) (any, error) {
		width, err := a.int(0, 0)
		if err != nil {
			return nil, err
		}
		fill, err := a.text(1, " ")
		if err != nil {
			return nil, err
		}
		if runeCount(fill) != 1 {
			return nil, valueError("the fill is a single character")
		}
		return justified(e, self.(string), fill, width, left)
	}
}

func justified(e env, s, fill string, width int64, left func(missing, width int) int) (any, error) {
	width = min(width, int64(e.budget().limits.Bytes)+1)
	if err := e.budget().grow(max(int(width), 0)*len(fill) + len(s)); err != nil {
		return nil, err
	}
	missing := int(width) - runeCount(s)
	if missing <= 0 {
		return s, nil
	}
	before := left(missing, int(width))
	return strings.Repeat(fill, before) + s + strings.Repeat(fill, missing-before), nil
}

// zfillMethod puts zeros between a sign and the digits.
func zfillMethod(e env, self any, a args) (any, error) {
	width, err := a.int(0, 0)
	if err != nil {
		return nil, err
	}
	sign, digits := cutSign(self.(string))
	padded, err := justified(e, digits, "0", width-int64(len(sign)), func(missing, _ int) int { return missing })
	if err != nil {
		return nil, err
	}
	return sign + padded.(string), nil
}

// partitionMethod cuts a text in three at a separator. Without it the text is
// the first part, or the last one when cutting from the right.
func partitionMethod(index func(s, sep string) int, fromRight bool) method {
	return func(e env, self any, a args) (any, error) {
		s := self.(string)
		sep, err := a.text(0, "")
		if err != nil {
			return nil, err
		}
		if sep == "" {
			return nil, valueError("the separator is empty")
		}
		if err := e.budget().scan(len(s)); err != nil {
			return nil, err
		}
		i := index(s, sep)
		switch {
		case i >= 0:
			return tuple{s[:i], sep, s[i+len(sep):]}, nil
		case fromRight:
			return tuple{"", "", s}, nil
		}
		return tuple{s, "", ""}, nil
	}
}

func swapcase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// window is the part of a text that the optional arguments start and end select,
// and how many characters come before it. ok is false when it lies beyond the
// text, where not even the empty text is found.
func window(e env, s string, a args, i int) (part string, before int, ok bool, err error) {
	if !a.given(i) && !a.given(i+1) {
		return s, 0, true, nil
	}
	if err := e.budget().grow(len(s)); err != nil {
		return "", 0, false, err
	}
	runes := []rune(s)
	size := int64(len(runes))
	bounds := [2]int64{0, size}
	for j := range bounds {
		v, err := base(a.or(i+j, nil))
		if err != nil {
			return "", 0, false, err
		}
		at, err := boundOr(v, bounds[j])
		if err != nil {
			return "", 0, false, err
		}
		if at < 0 {
			at = max(at+size, 0)
		}
		bounds[j] = at
	}
	start, end := bounds[0], min(bounds[1], size)
	if start > size || start > end {
		return "", 0, false, nil
	}
	return string(runes[start:end]), int(start), true, nil
}
