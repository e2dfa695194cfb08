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
		"indent":     op(textFirst(indentFilter), "width?", "first?", "blank?"),
		"wordcount":  op(textFirst(wordcountFilter)),
		"truncate":   op(textFirst(truncateFilter), "length?", "killwords?", "end?", "leeway?"),
		"center":     op(textFirst(centerFilter), "width?"),
	}
}

// onText makes a filter of a function on strings.
func onText(f func(string) string) method {
	return textFirst(func(e env, self any, _ args) (any, error) {
		s := self.(string)
		return f(s), e.budget().grow(len(s))
	})
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

// indentFilter indents every line but the first; blank lines only on request.
func indentFilter(e env, self any, a args) (any, error) {
	pad, err := indentation(a)
	if err != nil {
		return nil, err
	}
	lines := splitLines(self.(string)+"\n", false)
	size, fits := mulInt(int64(len(pad)+1), int64(len(lines)))
	if !fits {
		return nil, e.budget().grow(-1)
	}
	if err := e.budget().grow(int(size) + len(self.(string))); err != nil {
		return nil, err
	}
	var out strings.Builder
	for i, line := range lines {
		if i > 0 {
			out.WriteByte('\n')
		}
		if i == 0 && a.flag(1, false) || i > 0 && (line != "" || a.flag(2, false)) {
			out.WriteString(pad)
		}
		out.WriteString(line)
	}
	return out.String(), nil
}

// indentation is a width or the text to indent with.
func indentation(a args) (string, error) {
	n, err := base(a.or(0, int64(4)))
	if err != nil {
		return "", err
	}
	if s, ok := n.(string); ok {
		return s, nil
	}
	width, err := asInt(n)
	if err != nil {
		return "", err
	}
	return strings.Repeat(" ", int(min(max(width, 0), maxFormatWidth))), nil
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

// truncateFilter shortens a text to a length, at a word unless killwords; a few
// characters more (leeway) are let through.
func truncateFilter(e env, self any, a args) (any, error) {
	length, err := a.int(0, 255)
	if err != nil {
		return nil, err
	}
	end, err := a.text(2, "...")
	if err != nil {
		return nil, err
	}
	leeway, err := a.int(3, 5)
	if err != nil {
		return nil, err
	}
	keep := length - int64(runeCount(end))
	if keep < 0 || leeway < 0 {
		return nil, valueError("the length of truncate is less than that of its end")
	}
	s := self.(string)
	runes := []rune(s)
	if int64(len(runes))-leeway <= length {
		return s, e.budget().scan(len(s))
	}
	cut := string(runes[:keep])
	if i := strings.LastIndexByte(cut, ' '); i >= 0 && !a.flag(1, false) {
		cut = cut[:i]
	}
	return cut + end, e.budget().grow(len(s))
}

// centerFilter puts the odd space where Python puts it.
func centerFilter(e env, self any, a args) (any, error) {
	width, err := a.int(0, 80)
	if err != nil {
		return nil, err
	}
	s := self.(string)
	width = min(width, int64(e.budget().limits.Bytes)+1)
	if err := e.budget().grow(max(int(width), len(s))); err != nil {
		return nil, err
	}
	missing := int(width) - runeCount(s)
	if missing <= 0 {
		return s, nil
	}
	left := missing/2 + missing&int(width)&1
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", missing-left), nil
}
