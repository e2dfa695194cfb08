package jinja

import (
	"maps"
	"strings"
	"unicode"
)

var stringMethods, listMethods, dictMethods map[string]*operation

func init() {
	stringMethods = map[string]*operation{
		"upper":        textMethod(strings.ToUpper),
		"lower":        textMethod(strings.ToLower),
		"title":        textMethod(pythonTitle),
		"capitalize":   textMethod(capitalize),
		"strip":        op(stripMethod(trimBoth), "chars?"),
		"lstrip":       op(stripMethod(trimLeft), "chars?"),
		"rstrip":       op(stripMethod(trimRight), "chars?"),
		"split":        op(splitMethod(splitText), "sep?", "maxsplit?"),
		"rsplit":       op(splitMethod(splitTextRight), "sep?", "maxsplit?"),
		"splitlines":   op(splitlinesMethod, "keepends?"),
		"replace":      op(replaceMethod, "old", "new", "count?"),
		"startswith":   op(affixMethod(strings.HasPrefix), "prefix", "start?", "end?"),
		"endswith":     op(affixMethod(strings.HasSuffix), "suffix", "start?", "end?"),
		"removeprefix": op(removeMethod(strings.TrimPrefix), "prefix"),
		"removesuffix": op(removeMethod(strings.TrimSuffix), "suffix"),
		"join":         op(joinMethod, "items"),
		"find":         op(findMethod(strings.Index), "sub", "start?", "end?"),
		"rfind":        op(findMethod(strings.LastIndex), "sub", "start?", "end?"),
		"index":        op(indexOfMethod(strings.Index), "sub", "start?", "end?"),
		"rindex":       op(indexOfMethod(strings.LastIndex), "sub", "start?", "end?"),
		"count":        op(countMethod, "sub", "start?", "end?"),
		"isdigit":      everyMethod(unicode.IsDigit),
		"isnumeric":    everyMethod(unicode.IsNumber),
		"isalpha":      everyMethod(unicode.IsLetter),
		"isalnum":      everyMethod(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isspace":      everyMethod(unicode.IsSpace),
		"format":       op(formatMethod, "*", "**"),
	}
	maps.Copy(stringMethods, moreStringMethods())
	listMethods = map[string]*operation{
		"index": op(listIndex, "item"),
		"count": op(listCount, "item"),
		"copy":  op(sameMethod),
	}
	dictMethods = map[string]*operation{
		"get":    op(dictGet, "key", "default?"),
		"keys":   op(dictKeys),
		"values": op(dictValues),
		"items":  op(dictItems),
		"copy":   op(sameMethod),
	}
}

// spellings are the methods that a Word answers with a Word.
var spellings = map[string]func(string) string{
	"lower": strings.ToLower, "upper": strings.ToUpper, "strip": strings.TrimSpace,
}

// callBuiltin calls the method that values of this type have, as in Python.
func callBuiltin(e env, self any, name string, pos []any, kw []named[any]) (any, error) {
	if w, ok := self.(Word); ok && len(pos)+len(kw) == 0 {
		if f := spellings[name]; f != nil {
			return w.spelled(f), nil
		}
	}
	n, err := base(self)
	if err != nil {
		return nil, err
	}
	var table map[string]*operation
	switch n := n.(type) {
	case Undefined:
		return nil, undefinedError(n)
	case string:
		table = stringMethods
	case []any, tuple:
		table = listMethods
	case *Dict, map[string]any:
		table = dictMethods
	case *loopState:
		table = loopMethods
	}
	o, ok := table[name]
	if !ok {
		err := typeError("a value of type %s has no method '%s'", typeName(n), name)
		if n == nil {
			err.Remedy = "give a fallback, as in (x | default({})).get('k')"
		} else if remedy := refusedMethods[name]; remedy != "" {
			err.Remedy = remedy
		} else if near := nearest(name, knownNames(table)); near != "" {
			err.Remedy = "did you mean '" + near + "'?"
		}
		return nil, err
	}
	return o.apply(e, "the method "+name, n, pos, kw)
}

// textMethod makes a method of a function on strings.
func textMethod(f func(string) string) *operation {
	return op(func(e env, self any, _ args) (any, error) {
		return grown(e, f, self.(string))
	})
}

// everyMethod asks whether all characters are of a kind; of none, they are not.
func everyMethod(f func(rune) bool) *operation {
	return op(func(e env, self any, _ args) (any, error) {
		s := self.(string)
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !f(r) }) < 0, e.budget().scan(len(s))
	})
}

// sameMethod is copy: values never change, so one is as good as its copy.
func sameMethod(_ env, self any, _ args) (any, error) { return self, nil }

// trimBoth, trimLeft and trimRight drop characters at the ends of a text.
func trimBoth(s string, drop func(rune) bool) string  { return strings.TrimFunc(s, drop) }
func trimLeft(s string, drop func(rune) bool) string  { return strings.TrimLeftFunc(s, drop) }
func trimRight(s string, drop func(rune) bool) string { return strings.TrimRightFunc(s, drop) }

type method = func(e env, self any, a args) (any, error)

// stripMethod drops white space, or any of the characters that are given. They
// are made a set, so that many of them do not make the work quadratic.
func stripMethod(trim func(s string, drop func(rune) bool) string) method {
	return func(e env, self any, a args) (any, error) {
		drop, s := unicode.IsSpace, self.(string)
		if a.given(0) && a.vals[0] != nil {
			chars, err := a.text(0, "")
			if err != nil {
				return nil, err
			}
			if err := e.budget().step(len(chars) / 16); err != nil {
				return nil, err
			}
			set := make(map[rune]bool)
			for _, r := range chars {
				set[r] = true
			}
			drop = func(r rune) bool { return set[r] }
		}
		return trim(s, drop), e.budget().scan(len(s))
	}
}

// splitMethod charges for the parts before it makes them.
func splitMethod(split func(s, sep string, most int64) []string) method {
	return func(e env, self any, a args) (any, error) {
		s := self.(string)
		sep, most, err := splitArgs(a)
		if err != nil {
			return nil, err
		}
		if err := e.budget().list(splitBound(s, sep)); err != nil {
			return nil, err
		}
		return textList(split(s, sep, most)), nil
	}
}

func splitlinesMethod(e env, self any, a args) (any, error) {
	s := self.(string)
	if err := e.budget().list(lineBound(s)); err != nil {
		return nil, err
	}
	return textList(splitLines(s, a.flag(0, false))), nil
}

func replaceMethod(e env, self any, a args) (any, error) {
	from, err := a.text(0, "")
	if err != nil {
		return nil, err
	}
	to, err := a.text(1, "")
	if err != nil {
		return nil, err
	}
	count, err := a.int(2, -1)
	if err != nil {
		return nil, err
	}
	return replaceText(e.budget(), self.(string), from, to, count)
}

// replaceText replaces up to count occurrences; a negative count is all.
func replaceText(b *budget, s, from, to string, count int64) (any, error) {
	n := int64(strings.Count(s, from))
	if count >= 0 {
		n = min(n, count)
	}
	added, fits := mulInt(n, int64(len(to)-len(from)))
	if !fits {
		return nil, b.grow(-1)
	}
	if err := b.grow(len(s) + int(added)); err != nil {
		return nil, err
	}
	return strings.Replace(s, from, to, int(n)), b.scan(len(s))
}

// affixMethod is startswith or endswith; a list asks for any of several.
func affixMethod(has func(s, affix string) bool) method {
	return func(e env, self any, a args) (any, error) {
		v, err := base(a.vals[0])
		if err != nil {
			return nil, err
		}
		options, isList := sequence(v)
		if !isList {
			options = []any{v}
		}
		s, _, inside, err := window(e, self.(string), a, 1)
		if err != nil {
			return nil, err
		}
		for _, o := range options {
			affix, err := asText(o)
			if err != nil {
				return nil, err
			}
			if inside && has(s, affix) {
				return true, nil
			}
		}
		return false, e.budget().step(len(options))
	}
}

func removeMethod(remove func(s, affix string) string) method {
	return func(_ env, self any, a args) (any, error) {
		affix, err := a.text(0, "")
		return remove(self.(string), affix), err
	}
}

func joinMethod(e env, self any, a args) (any, error) {
	items, err := elements(e.budget(), a.vals[0])
	if err != nil {
		return nil, err
	}
	return joinText(e.budget(), items, self.(string))
}

// findMethod is find or rfind: a position in characters, or -1.
func findMethod(index func(s, sub string) int) method {
	return func(e env, self any, a args) (any, error) {
		s := self.(string)
		sub, err := a.text(0, "")
		if err != nil {
			return nil, err
		}
		s, before, inside, err := window(e, s, a, 1)
		if err != nil {
			return nil, err
		}
		i := index(s, sub)
		if i < 0 || !inside {
			return int64(-1), e.budget().scan(len(s))
		}
		return int64(before + runeCount(s[:i])), e.budget().scan(len(s))
	}
}

// indexOfMethod is findMethod for a text that must be there.
func indexOfMethod(index func(s, sub string) int) method {
	find := findMethod(index)
	return func(e env, self any, a args) (any, error) {
		i, err := find(e, self, a)
		if err == nil && i == any(int64(-1)) {
			return nil, valueError("the text is not there")
		}
		return i, err
	}
}

func countMethod(e env, self any, a args) (any, error) {
	s := self.(string)
	sub, err := a.text(0, "")
	if err != nil {
		return nil, err
	}
	s, _, inside, err := window(e, s, a, 1)
	if err != nil || !inside {
		return int64(0), err
	}
	return int64(strings.Count(s, sub)), e.budget().scan(len(s))
}

func formatMethod(e env, self any, a args) (any, error) {
	return braceFormat(e.budget(), self.(string), a.rest, a.kw)
}

func listIndex(e env, self any, a args) (any, error) {
	list, _ := sequence(self)
	for i, x := range list {
		if same, err := equal(e.budget(), x, a.vals[0]); same || err != nil {
			return int64(i), err
		}
	}
	return nil, valueError("the value is not in the list")
}

func listCount(e env, self any, a args) (any, error) {
	list, _ := sequence(self)
	n := int64(0)
	for _, x := range list {
		same, err := equal(e.budget(), x, a.vals[0])
		if err != nil {
			return nil, err
		}
		if same {
			n++
		}
	}
	return n, nil
}

// dictGet is d.get(key, default); without a default a missing key is none.
func dictGet(e env, self any, a args) (any, error) {
	return subscript(e.budget(), self, a.vals[0], a.or(1, nil))
}

func dictKeys(e env, self any, _ args) (any, error) {
	keys, err := elements(e.budget(), self)
	return keys, err
}

func dictValues(e env, self any, _ args) (any, error) {
	d, _ := mapping(self)
	if err := e.budget().list(d.Len()); err != nil {
		return nil, err
	}
	out := make([]any, d.Len())
	for i := range out {
		v, err := norm(d.entries[i].val)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func dictItems(e env, self any, _ args) (any, error) {
	d, _ := mapping(self)
	if err := e.budget().list(3 * d.Len()); err != nil {
		return nil, err
	}
	out := make([]any, d.Len())
	for i := range out {
		v, err := norm(d.entries[i].val)
		if err != nil {
			return nil, err
		}
		out[i] = tuple{d.entries[i].key, v}
	}
	return out, nil
}
