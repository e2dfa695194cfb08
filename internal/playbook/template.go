package playbook

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/noetl/noetl-go/internal/jinja"
)

// condition compiles a `when`. Booleans and numbers may stand without quotes.
// It returns nil for an absent condition and after an error.
func (r *reader) condition(n *node) *jinja.Template {
	if !n.given() {
		return nil
	}
	if n.shape != scalarShape {
		r.fail(n.at(), "wrong_type", "a condition must be an expression, this is "+n.describe(),
			`write when: "{{ … }}"`)
		return nil
	}
	if strings.TrimSpace(n.text) == "" {
		r.fail(n.at(), "empty_condition", "the condition is empty", `leave "when" out to say always`)
		return nil
	}
	text := n.text
	if b, ok := n.scalar.(bool); ok {
		// YAML also writes True and TRUE, templates only know the one word.
		text = "false"
		if b {
			text = "true"
		}
	}
	t, err := jinja.CompileCondition(text)
	if err != nil {
		r.templateError(n, err)
		return nil
	}
	r.noteTemplate(n, t)
	r.alwaysTrue(n)
	return t
}

var printed = regexp.MustCompile(`(?s)\{\{.*?\}\}`)

// alwaysTrue warns about a condition that is text with values in it, such as
// "{{ a }} and {{ b }}": what it prints is never empty, so it always holds.
func (r *reader) alwaysTrue(n *node) {
	rest := printed.ReplaceAllString(n.text, "")
	if rest == n.text || strings.ContainsAny(rest, "{}") || strings.TrimSpace(rest) == "" {
		return
	}
	r.warn(n.at(), "always_true", "the condition always holds: it is text with values in it and not one expression",
		`put all of it between one pair of braces: "{{ a and b }}"`)
}

// tree compiles every template inside a value. It returns nil for an absent
// value; problems are reported at the strings that have them.
func (r *reader) tree(n *node, opts jinja.TreeOptions) *jinja.Tree {
	if n == nil {
		return nil
	}
	t, errs := jinja.CompileTree(n.native(), opts)
	for _, e := range errs {
		at := n.child(e.Path)
		if e.Key {
			at = r.keyNode(at.parent, at.key)
		}
		r.templateError(at, e.Err)
	}
	if t != nil && slices.ContainsFunc(t.Free(), func(path []string) bool { return path[0] == "keychain" }) {
		r.noteAliases(n)
	}
	return t
}

// keyNode is the key of a map as a value, for problems inside it.
func (r *reader) keyNode(n *node, key string) *node {
	e, _ := n.entry(key)
	k := &node{shape: scalarShape, pos: e.pos, scalar: key, text: key, parent: n, key: key}
	switch from := r.from(e.pos); {
	case strings.HasPrefix(from, `"`):
		k.style = yaml.DoubleQuotedStyle
	case strings.HasPrefix(from, "'"):
		k.style = yaml.SingleQuotedStyle
	}
	return k
}

// templateError reports a template that does not compile, at its place in the
// file.
func (r *reader) templateError(n *node, err error) {
	at := n.at()
	msg, remedy, part := err.Error(), "", n.text
	var je *jinja.Error
	if errors.As(err, &je) {
		msg, remedy = je.Message, je.Remedy
		if je.Line > 0 {
			at.pos = r.locate(n, je.Line, je.Col)
			part = excerpt(n.text, je.Line, je.Col)
		}
	}
	if part != "" {
		msg += " in " + part
	}
	r.fail(at, "template_syntax", "broken template: "+msg, remedy)
}

// excerpt returns the tag around a place of a template: the part of the text
// the author has to look at. Text without tags is one expression.
func excerpt(text string, line, col int) string {
	offset := 0
	for range line - 1 {
		i := strings.IndexByte(text[offset:], '\n')
		if i < 0 {
			break
		}
		offset += i + 1
	}
	for range col - 1 {
		if offset >= len(text) || text[offset] == '\n' {
			break
		}
		_, size := utf8.DecodeRuneInString(text[offset:])
		offset += size
	}
	offset = min(offset, len(text))
	start := max(strings.LastIndex(text[:offset], "{{"), strings.LastIndex(text[:offset], "{%"))
	if start < 0 && (strings.HasPrefix(text[offset:], "{{") || strings.HasPrefix(text[offset:], "{%")) {
		start = offset
	}
	if start < 0 {
		start = strings.LastIndexByte(text[:offset], '\n') + 1
	}
	end := len(text)
	for _, stop := range []string{"}}", "%}"} {
		if i := strings.Index(text[start:], stop); i >= 0 {
			end = min(end, start+i+2)
		}
	}
	return shorten(text[start:end])
}

// shorten keeps an excerpt on one line of readable length.
func shorten(s string) string {
	const limit = 80
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return string(runes)
}
