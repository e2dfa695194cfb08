package redact

import (
	"encoding/json"
	"io"
	"strings"
)

// hold bounds how much of a text without an end in sight is kept back to look
// for shapes in it.
const hold = 4 << 10

// Text is w behind a filter for plain text. What may be the beginning of a
// secret is kept back until more comes; Close writes the rest. It does not
// close w.
func (s *Secrets) Text(w io.Writer) io.WriteCloser {
	return &textFilter{s: s, w: w}
}

// textFilter lets lines through as soon as they are complete.
type textFilter struct {
	s       *Secrets
	w       io.Writer
	pending string
	inKey   bool // within the block of a private key
}

// Write takes everything or fails as w does.
func (f *textFilter) Write(p []byte) (int, error) {
	f.pending += string(p)
	if err := f.pass(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *textFilter) Close() error { return f.pass(true) }

func (f *textFilter) pass(all bool) error {
	n := f.s.needlesFor(false)
	cut := len(f.pending)
	if !all {
		cut = ready(f.pending, n)
	}
	if cut == 0 {
		return nil
	}
	text := n.replace(f.pending[:cut])
	f.pending = f.pending[cut:]
	if text = f.outsideKeys(text); text == "" {
		return nil
	}
	_, err := io.WriteString(f.w, shapeless(text))
	return err
}

// ready is how much of a text can be judged: up to the end of its last line, or
// when lines are long, up to a word that is likely to be complete. What may
// begin a needle is never part of it.
func ready(text string, n *needles) int {
	cut := strings.LastIndexByte(text, '\n') + 1
	if len(text)-cut > hold {
		if at := strings.LastIndexAny(text[:len(text)-hold/2], " \t,;"); at > cut {
			cut = at
		} else {
			cut = len(text) - hold/2
		}
	}
	return cut - n.open(text[:cut])
}

const (
	keyBegin = "-----BEGIN "
	keyEnd   = " PRIVATE KEY-----"
)

// outsideKeys drops the lines of private keys, which come one by one.
func (f *textFilter) outsideKeys(text string) string {
	if !f.inKey && !strings.Contains(text, keyBegin) {
		return text
	}
	var out strings.Builder
	for line := range strings.SplitAfterSeq(text, "\n") {
		begins := strings.Contains(line, keyBegin) && strings.Contains(line, keyEnd)
		ends := strings.Contains(line, "-----END ") && strings.Contains(line, keyEnd)
		switch {
		case f.inKey:
			f.inKey = !ends
		case begins && !ends:
			f.inKey = true
			before, _, _ := strings.Cut(line, keyBegin)
			out.WriteString(before + Mark + "\n")
		default:
			out.WriteString(line)
		}
	}
	return out.String()
}

// JSONText is w behind a filter for encoded JSON of any length, which stays
// valid. Close writes what was kept back; it does not close w.
func (s *Secrets) JSONText(w io.Writer) io.WriteCloser {
	return &jsonFilter{s: s, w: w}
}

// jsonFilter looks into the strings of a document, and at its numbers.
type jsonFilter struct {
	s        *Secrets
	w        io.Writer
	out      []byte // judged, not written yet
	text     []byte // of the string in hand, without its quotes
	number   []byte
	inString bool
	escaped  bool

	// byName looks at the names of fields, too. last is the string that ended
	// last, which is a name once a colon follows; key is the name whose value
	// comes next.
	byName    bool
	last, key []byte
}

const (
	maxString = 64 << 10 // of a string is held to be judged as one
	maxNumber = 64       // digits of a number likewise
)

func (f *jsonFilter) Write(p []byte) (int, error) {
	for _, c := range p {
		if f.inString {
			f.within(c)
		} else {
			f.between(c)
		}
	}
	return len(p), f.flush(maxString)
}

// Flush writes all that has been judged.
func (f *jsonFilter) Flush() error { return f.flush(0) }

func (f *jsonFilter) Close() error {
	f.endNumber()
	f.judge(true)
	return f.flush(0)
}

func (f *jsonFilter) within(c byte) {
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\':
		f.escaped = true
	case c == '"':
		f.endString()
		f.out = append(f.out, c)
		f.inString = false
		return
	}
	f.text = append(f.text, c)
	if len(f.text) >= maxString {
		f.judge(false)
	}
}

func (f *jsonFilter) between(c byte) {
	if c >= '0' && c <= '9' || c == '-' || c == '.' || c == 'e' || c == 'E' || c == '+' {
		if len(f.number) == maxNumber {
			f.endNumber()
		}
		f.number = append(f.number, c)
		return
	}
	f.endNumber()
	f.out = append(f.out, c)
	f.inString = c == '"'
	if f.byName {
		f.follow(c)
	}
}

// follow keeps track of what is a name.
func (f *jsonFilter) follow(c byte) {
	switch c {
	case ':':
		f.key = append(f.key[:0], f.last...)
	case ',', '{', '}', ']':
		f.key = f.key[:0]
	}
}

// maxName is the length of the longest text that is taken for a name.
const maxName = 64

// endString judges the string in hand, by what it is called if that matters.
func (f *jsonFilter) endString() {
	if f.byName {
		if len(f.key) > 0 && named(string(f.key), string(f.text)) {
			f.text = append(f.text[:0], Mark...)
		}
		f.last = f.last[:0]
		if len(f.text) <= maxName {
			f.last = append(f.last, f.text...)
		}
	}
	f.judge(true)
}

// endNumber writes a number, or the mark in quotes when it is a secret.
func (f *jsonFilter) endNumber() {
	if len(f.number) == 0 {
		return
	}
	if n := f.s.needlesFor(true); n != nil && n.replace(string(f.number)) == Mark {
		f.out = append(append(append(f.out, '"'), Mark...), '"')
	} else {
		f.out = append(f.out, f.number...)
	}
	f.number = f.number[:0]
}

// judge moves text of the string in hand to what can be written.
func (f *jsonFilter) judge(all bool) {
	if len(f.text) == 0 {
		return
	}
	n := f.s.needlesFor(true)
	text := string(f.text)
	cut := len(text)
	if !all {
		cut = unescaped(text, len(text)-hold)
		cut -= n.open(text[:cut])
		cut = unescaped(text, cut)
	}
	clean := shapeless(n.replace(text[:cut]))
	if clean != text[:cut] && !json.Valid([]byte(`"`+clean+`"`)) {
		clean = Mark // a secret began within an escape
	}
	f.out = append(f.out, clean...)
	f.text = append(f.text[:0], text[cut:]...)
}

// unescaped is the last place up to cut at which no escape sequence of a text is
// open. The text itself begins at such a place.
func unescaped(text string, cut int) int {
	at := 0
	for at < cut {
		next := at + 1
		if text[at] == '\\' {
			next = at + escapeLength(text[at:])
		}
		if next > cut {
			break
		}
		at = next
	}
	return at
}

// escapeLength is how long the escape sequence is that a text begins with. The two
// halves of a character that has two are one.
func escapeLength(text string) int {
	const single, double = len(`\u0000`), len(`\ud800\udc00`)
	switch {
	case len(text) < 2 || text[1] != 'u':
		return 2
	case len(text) > 3 && (text[2] == 'd' || text[2] == 'D') && strings.IndexByte("89abAB", text[3]) >= 0:
		return double
	}
	return single
}

func (f *jsonFilter) flush(above int) error {
	if len(f.out) <= above {
		return nil
	}
	_, err := f.w.Write(f.out)
	f.out = f.out[:0]
	return err
}
