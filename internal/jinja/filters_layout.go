package jinja

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// layoutFilters arrange text for people to read.
func layoutFilters() map[string]*operation {
	return map[string]*operation{
		"indent":         op(textFirst(indentFilter), "width?", "first?", "blank?"),
		"truncate":       op(textFirst(truncateFilter), "length?", "killwords?", "end?", "leeway?"),
		"center":         op(textFirst(centerFilter), "width?"),
		"wordwrap":       op(textFirst(wordwrapFilter), "width?", "break_long_words?", "wrapstring?"),
		"filesizeformat": op(filesizeFilter, "binary?"),
	}
}

// indentFilter indents every line but the first; blank lines only on request.
func indentFilter(e env, self any, a args) (any, error) {
	pad, err := indentation(a)
	if err != nil {
		return nil, err
	}
	if err := e.budget().list(lineBound(self.(string))); err != nil {
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

func centerFilter(e env, self any, a args) (any, error) {
	width, err := a.int(0, 80)
	if err != nil {
		return nil, err
	}
	return justified(e, self.(string), " ", width, centered)
}

// wordwrapFilter breaks lines between words so that none is longer than a width.
// A word that is longer is broken, unless that is not wanted.
func wordwrapFilter(e env, self any, a args) (any, error) {
	width, err := a.int(0, 79)
	if err != nil {
		return nil, err
	}
	if width < 1 {
		return nil, valueError("the width of wordwrap is at least 1")
	}
	end, err := a.text(2, "\n")
	if err != nil {
		return nil, err
	}
	s, b := self.(string), e.budget()
	if err := b.list(lineBound(s)); err != nil {
		return nil, err
	}
	w := wrapper{width: int(min(width, math.MaxInt32)), breakLong: a.flag(1, true), end: end, budget: b}
	for i, line := range splitLines(s, false) {
		if i > 0 {
			w.out = append(w.out, end...)
		}
		if err := w.line(line); err != nil {
			return nil, err
		}
	}
	return string(w.out), nil
}

// wrapper fills lines with words.
type wrapper struct {
	width     int
	breakLong bool
	end       string
	budget    *budget
	out       []byte

	row   []byte // the line that is being filled
	used  int    // its characters
	first bool   // no line of the current text line is written yet
}

// line wraps one line. Space at the begin and end of the lines that this makes
// is dropped, but not that at the begin of the text.
func (w *wrapper) line(s string) error {
	w.first = true
	for s != "" {
		chunk := firstChunk(s)
		s = s[len(chunk):]
		if err := w.chunk(chunk); err != nil {
			return err
		}
	}
	return w.flush(w.trimmed())
}

// chunk puts a word, or the space between two, into the row and begins as many
// new rows as that takes.
func (w *wrapper) chunk(chunk string) error {
	isSpace := strings.TrimSpace(chunk) == ""
	for size := runeCount(chunk); size > 0; {
		left := w.width - w.used
		switch {
		case isSpace && len(w.row) == 0 && !w.first:
			return nil
		case size <= left:
			w.row, w.used = append(w.row, chunk...), w.used+size
			return nil
		case size > w.width && w.breakLong:
			head := firstRunes(chunk, left)
			w.row, chunk, size = append(w.row, head...), chunk[len(head):], size-left
			if head == "" {
				// As in Python, a row that is full before a long word keeps its space.
				if err := w.flush(w.row); err != nil {
					return err
				}
				continue
			}
		case len(w.row) == 0:
			w.row, size = append(w.row, chunk...), 0
		}
		if err := w.flush(w.trimmed()); err != nil {
			return err
		}
	}
	return nil
}

func (w *wrapper) trimmed() []byte { return bytes.TrimRightFunc(w.row, unicode.IsSpace) }

// flush ends the row and writes it; an empty one vanishes.
func (w *wrapper) flush(row []byte) error {
	w.row, w.used = w.row[:0], 0
	if len(row) == 0 {
		return nil
	}
	if !w.first {
		w.out = append(w.out, w.end...)
	}
	w.out, w.first = append(w.out, row...), false
	if len(w.out) > w.budget.limits.Bytes {
		return w.budget.grow(-1)
	}
	if err := w.budget.step(1); err != nil {
		return err
	}
	return w.budget.grow(len(row) + len(w.end))
}

// firstChunk is the space or the word that a text begins with.
func firstChunk(s string) string {
	r, _ := utf8.DecodeRuneInString(s)
	space := unicode.IsSpace(r)
	if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) != space }); i >= 0 {
		return s[:i]
	}
	return s
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// filesizeFilter writes a number of bytes with a unit, in powers of 1000 or 1024.
func filesizeFilter(e env, self any, a args) (any, error) {
	v, err := floatFilter(e, self, args{vals: []any{unset}})
	if err != nil {
		return nil, err
	}
	size, step, units := v.(float64), 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if a.flag(0, false) {
		step, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case size == 1:
		return "1 Byte", nil
	case size < step:
		return fmt.Sprintf("%d Bytes", int64(size)), nil
	}
	unit := step
	for i, name := range units {
		unit *= step
		if size < unit || i == len(units)-1 {
			return fmt.Sprintf("%.1f %s", step*size/unit, name), nil
		}
	}
	return nil, nil
}
