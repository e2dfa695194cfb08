package jinja

import (
	"strings"
	"unicode"
)

// textFilters work on the printed form of a value.
func textFilters() map[string]*operation {
	return map[string]*operation{
		"lower":      op(onText(strings.ToLower)),
		"upper":      op(onText(strings.ToUpper)),
		"capitalize": op(onText(capitalize)),
		"title":      op(onText(jinjaTitle)),
		"trim":       op(textFirst(stripMethod(trimBoth)), "chars?"),
		"replace":    op(textFirst(replaceFilter), "old", "new", "count?"),
		"split":      op(textFirst(splitMethod(splitText)), "sep?", "maxsplit?"),
		"lines":      op(textFirst(splitlinesMethod), "keepends?"),
		"format":     op(textFirst(formatFilter), "*", "**"),
		"wordcount":  op(textFirst(wordcountFilter)),
	}
}

// onText makes a filter of a function on strings.
func onText(f func(string) string) method {
	plain := textFirst(func(e env, self any, _ args) (any, error) {
		return grown(e, f, self.(string))
	})
	return func(e env, self any, a args) (any, error) {
		if w, ok := self.(Word); ok {
			return w.spelled(f), nil
		}
		return plain(e, self, a)
	}
}

// grown applies a function that may make a text longer by a small factor.
func grown(e env, f func(string) string, s string) (any, error) {
	if err := e.budget().grow(len(s)); err != nil {
		return nil, err
	}
	out := f(s)
	return out, e.budget().grow(max(len(out)-len(s), 0))
}

// textFirst turns the value into a string before a filter that needs one.
func textFirst(m method) method {
	return func(e env, self any, a args) (any, error) {
		s, err := text(e.budget(), self)
		if err != nil {
			return nil, err
		}
		return m(e, s, a)
	}
}

// replaceFilter also takes arguments that are not strings: x | replace(1, 2).
func replaceFilter(e env, self any, a args) (any, error) {
	for i := range 2 {
		s, err := text(e.budget(), a.vals[i])
		if err != nil {
			return nil, err
		}
		a.vals[i] = s
	}
	if a.given(2) && a.vals[2] == nil {
		a.vals[2] = unset
	}
	return replaceMethod(e, self, a)
}

// formatFilter is printf-style; named values serve %(name)s.
func formatFilter(e env, self any, a args) (any, error) {
	if len(a.kw) == 0 {
		return percentFormat(e.budget(), self.(string), a.rest, nil)
	}
	if len(a.rest) > 0 {
		return nil, typeError("format takes either values or named values")
	}
	byName := NewDict(len(a.kw))
	for _, k := range a.kw {
		byName.Set(k.name, k.val)
	}
	return percentFormat(e.budget(), self.(string), nil, byName)
}

func wordcountFilter(e env, self any, _ args) (any, error) {
	n, inWord := int64(0), false
	for _, r := range self.(string) {
		isWord := r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
		if isWord && !inWord {
			n++
		}
		inWord = isWord
	}
	return n, e.budget().scan(len(self.(string)))
}
