package jinja

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// splitArgs reads the arguments of split: no separator means white space, a
// negative limit means none.
func splitArgs(a args) (sep string, most int64, err error) {
	if a.given(0) && a.vals[0] != nil {
		if sep, err = a.text(0, ""); err != nil {
			return "", 0, err
		}
		if sep == "" {
			return "", 0, valueError("the separator is empty")
		}
	}
	most, err = a.int(1, -1)
	return sep, most, err
}

// splitBound is the most parts that splitting a text can give.
func splitBound(s, sep string) int {
	if sep == "" {
		return len(s)/2 + 1
	}
	return strings.Count(s, sep) + 1
}

func splitText(s, sep string, most int64) []string {
	if sep == "" {
		return splitSpace(s, most)
	}
	if most < 0 || most >= int64(len(s)) {
		return strings.Split(s, sep)
	}
	return strings.SplitN(s, sep, int(most)+1)
}

// splitSpace splits at runs of white space; what follows the last allowed split
// keeps the space inside it.
func splitSpace(s string, most int64) []string {
	if most < 0 {
		return strings.Fields(s)
	}
	var out []string
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	for s != "" {
		i := strings.IndexFunc(s, unicode.IsSpace)
		if i < 0 || int64(len(out)) == most {
			return append(out, s)
		}
		out = append(out, s[:i])
		s = strings.TrimLeftFunc(s[i:], unicode.IsSpace)
	}
	return out
}

// splitTextRight splits from the right, which matters only under a limit.
func splitTextRight(s, sep string, most int64) []string {
	if most < 0 {
		return splitText(s, sep, most)
	}
	var tail []string
	for int64(len(tail)) < most {
		head, part, found := cutLast(s, sep)
		if !found {
			break
		}
		s, tail = head, append(tail, part)
	}
	if sep == "" {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
		if int64(len(tail)) < most {
			s = strings.TrimLeftFunc(s, unicode.IsSpace)
		}
	}
	if s != "" || sep != "" {
		tail = append(tail, s)
	}
	slices.Reverse(tail)
	return tail
}

// cutLast cuts a text at its last separator, or at its last white space.
func cutLast(s, sep string) (head, part string, found bool) {
	if sep == "" {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
		i := strings.LastIndexFunc(s, unicode.IsSpace)
		if i < 0 {
			return s, "", false
		}
		return s[:i], strings.TrimLeftFunc(s[i:], unicode.IsSpace), true
	}
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// lineBound is the most lines that splitting a text can give.
func lineBound(s string) int { return strings.Count(s, "\n") + strings.Count(s, "\r") + 1 }

// splitLines cuts a text after \n, \r\n and \r.
func splitLines(s string, keepEnds bool) []string {
	var out []string
	for s != "" {
		end := strings.IndexAny(s, "\r\n")
		if end < 0 {
			return append(out, s)
		}
		after := end + 1
		if strings.HasPrefix(s[end:], "\r\n") {
			after++
		}
		if keepEnds {
			end = after
		}
		out = append(out, s[:end])
		s = s[after:]
	}
	return out
}

func textList(parts []string) []any {
	out := make([]any, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}

// joinText prints values with a separator between them.
func joinText(b *budget, items []any, sep string) (any, error) {
	var out []byte
	for i, item := range items {
		size := len(out)
		if i > 0 {
			out = append(out, sep...)
		}
		var err error
		if out, err = appendText(out, b, item); err != nil {
			return nil, err
		}
		if err := b.grow(len(out) - size); err != nil {
			return nil, err
		}
		if b != nil && len(out) > b.limits.Bytes {
			return nil, b.grow(-1)
		}
	}
	return string(out), nil
}

func capitalize(s string) string {
	_, first := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:first]) + strings.ToLower(s[first:])
}

// pythonTitle is str.title: a letter after anything else is a capital.
func pythonTitle(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		inWord = unicode.IsLetter(r)
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

// jinjaTitle is the title filter: words begin after space, dashes and opening
// brackets, so that "it's" keeps its small s.
func jinjaTitle(s string) string {
	inWord := false
	return strings.Map(func(r rune) rune {
		was := inWord
		inWord = !unicode.IsSpace(r) && !strings.ContainsRune("-({[<", r)
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}
