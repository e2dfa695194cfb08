package playbook

import (
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// locate finds the place in the file of a line and column in a scalar's value.
// Quoting, folding and indentation make the two differ, but each only adds or
// takes white space and escapes. So it counts the visible characters before
// the place in the value, and walks over as many in the file.
func (r *reader) locate(n *node, line, col int) Pos {
	if n.shape != scalarShape || n.pos.Line == 0 {
		return n.pos
	}
	skip, inside := visibleBefore(n.text, line, col)
	c := r.scalarStart(n)
	for range skip {
		c.space()
		c.next()
	}
	if inside {
		c.space()
	}
	if c.line > len(r.lines) {
		return n.pos
	}
	return Pos{c.line, c.col}
}

// visibleBefore counts the characters before a place that are not white space,
// and tells whether any follow it.
func visibleBefore(text string, line, col int) (count int, inside bool) {
	l, k := 1, 1
	for i, ch := range text {
		if l > line || (l == line && k >= col) {
			return count, strings.TrimSpace(text[i:]) != ""
		}
		if ch == '\n' {
			l, k = l+1, 1
			continue
		}
		k++
		if !unicode.IsSpace(ch) {
			count++
		}
	}
	return count, false
}

// cursor walks over the characters of the file.
type cursor struct {
	lines     []string
	runes     []rune // of the current line
	line, col int
	style     yaml.Style
}

// scalarStart points at the first character of a scalar's content.
func (r *reader) scalarStart(n *node) *cursor {
	c := &cursor{lines: r.lines, style: n.style}
	if n.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		c.seek(n.pos.Line+1, 1)
		return c
	}
	c.seek(n.pos.Line, n.pos.Col)
	// Anchors and tags stand before the value.
	for c.peek() == '&' || c.peek() == '!' {
		for c.line == n.pos.Line && !unicode.IsSpace(c.peek()) {
			c.col++
		}
		c.space()
	}
	if n.style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
		c.col++
	}
	return c
}

func (c *cursor) seek(line, col int) {
	c.line, c.col = line, col
	c.runes = nil
	if line >= 1 && line <= len(c.lines) {
		c.runes = []rune(c.lines[line-1])
	}
}

// peek is the character under the cursor; a line ends in a newline.
func (c *cursor) peek() rune {
	if c.col-1 < len(c.runes) {
		return c.runes[c.col-1]
	}
	return '\n'
}

// space passes white space, ends of lines, and escapes that stand for either.
func (c *cursor) space() {
	for c.line <= len(c.lines) {
		switch ch := c.peek(); {
		case c.col > len(c.runes):
			c.seek(c.line+1, 1)
		case unicode.IsSpace(ch):
			c.col++
		case ch == '\\' && c.escapes() && c.escapedSpace():
			c.col += 2
		default:
			return
		}
	}
}

func (c *cursor) escapes() bool { return c.style&yaml.DoubleQuotedStyle != 0 }

// escapedSpace tells whether the backslash here begins white space or joins
// two lines.
func (c *cursor) escapedSpace() bool {
	return c.col == len(c.runes) || strings.ContainsRune("ntr f\tvNL_P", c.runes[c.col])
}

// next passes one character of the value, however it is escaped.
func (c *cursor) next() {
	switch ch := c.peek(); {
	case ch == '\\' && c.escapes() && c.col < len(c.runes):
		switch c.runes[c.col] {
		case 'x':
			c.col += 4
		case 'u':
			c.col += 6
		case 'U':
			c.col += 10
		default:
			c.col += 2
		}
	case ch == '\'' && c.style&yaml.SingleQuotedStyle != 0:
		c.col += 2
	default:
		c.col++
	}
}
