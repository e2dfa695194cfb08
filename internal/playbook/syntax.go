package playbook

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// minimal is what people are shown whose file is something else.
const minimal = `a playbook looks like this:

    apiVersion: noetl.io/v2
    kind: Playbook
    metadata:
      name: hello
    workflow:
      - step: start
        tool:
          kind: shell
          command: echo hello`

// load reads the text into nodes. It returns nil after reporting why the text
// is not a YAML map.
func (r *reader) load(src []byte) *node {
	top := place{pos: Pos{1, 1}}
	if !utf8.Valid(src) || bytes.IndexByte(src, 0) >= 0 {
		r.notText(src)
		return nil
	}
	doc, err := r.document(src)
	if err != nil {
		r.syntaxError(err)
		return nil
	}
	if doc == nil {
		r.notPlaybook(top, "the file is empty")
		return nil
	}
	b := &builder{r: r, open: map[*yaml.Node]bool{}}
	root := b.build(doc, slot{}, 0)
	switch {
	case b.full:
		return nil
	case root.shape == nullShape:
		r.notPlaybook(top, "the file is empty")
		return nil
	case root.shape != mapShape:
		r.notPlaybook(root.at(), "the file holds "+root.describe()+" and not a map")
		return nil
	}
	return root
}

// document reads the one document of the file; nil when there is none.
func (r *reader) document(src []byte) (*yaml.Node, error) {
	loader, err := yaml.NewLoader(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	var docs []*yaml.Node
	for {
		var d yaml.Node
		if err := loader.Load(&d); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if d.Kind == yaml.DocumentNode && len(d.Content) == 1 {
			docs = append(docs, d.Content[0])
		}
	}
	if len(docs) == 0 {
		return nil, nil
	}
	for _, d := range docs[1:] {
		if d.Kind != yaml.ScalarNode || d.Value != "" {
			r.fail(place{pos: Pos{d.Line, d.Column}}, "several_documents",
				"the file holds more than one YAML document", "write each playbook into a file of its own")
			break
		}
	}
	return docs[0], nil
}

// notText points at the first byte that is not text.
func (r *reader) notText(src []byte) {
	good := 0
	for good < len(src) && src[good] != 0 {
		c, size := utf8.DecodeRune(src[good:])
		if c == utf8.RuneError && size == 1 {
			break
		}
		good += size
	}
	before := src[:good]
	line := bytes.LastIndexByte(before, '\n') + 1
	at := place{pos: Pos{bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[line:]) + 1}}
	if !looksLikeYAML.Match(before) {
		r.notPlaybook(place{pos: Pos{1, 1}}, "the file is not text")
		return
	}
	r.fail(at, "not_text", "here is a byte that is not text in UTF-8", "save the file as UTF-8")
}

func (r *reader) notPlaybook(at place, why string) {
	r.fail(at, "not_a_playbook", "this is not a playbook: "+why, minimal)
}

// syntaxError reports what the YAML library refused.
func (r *reader) syntaxError(err error) {
	pos, msg := Pos{1, 1}, strings.TrimPrefix(err.Error(), "yaml: ")
	var le *yaml.LoadError
	if errors.As(err, &le) {
		msg = le.Message
		if le.Mark.Line > 0 {
			pos = Pos{le.Mark.Line, max(1, le.Mark.Column)}
		}
		if openQuote(le) && le.ContextMark.Line > 0 {
			pos = Pos{le.ContextMark.Line, max(1, le.ContextMark.Column)}
		}
	}
	pos = r.clamp(pos)
	if !looksLikeYAML.MatchString(strings.Join(r.lines, "\n")) {
		r.notPlaybook(place{pos: pos}, "it is not YAML ("+msg+")")
		return
	}
	r.fail(place{pos: pos}, "yaml_syntax", "the YAML is broken: "+plainWords(msg), r.yamlRemedy(pos, msg))
}

func openQuote(le *yaml.LoadError) bool {
	return strings.Contains(le.ContextMsg, "quoted scalar") && strings.Contains(le.Message, "end of stream")
}

// looksLikeYAML finds at least one key of a playbook at the left margin.
var looksLikeYAML = regexp.MustCompile(`(?m)^["']?[A-Za-z_]+["']?:(\s|$)`)

// plainWords puts the library's commonest messages into words for people who
// have never read the YAML grammar.
func plainWords(msg string) string {
	switch {
	case strings.Contains(msg, "mapping values are not allowed"):
		return "a ':' where no key can be"
	case strings.Contains(msg, "did not find expected key"):
		return "this line fits neither the map before it nor the text before it"
	case strings.Contains(msg, "did not find expected '-' indicator"):
		return "a key in the middle of a list"
	case strings.Contains(msg, "end of stream"):
		return "the file ends inside a quoted text or a bracket"
	}
	return msg
}

// yamlRemedy guesses what the author has to change, from the message and from
// the lines around it.
func (r *reader) yamlRemedy(pos Pos, msg string) string {
	line, before := r.line(pos.Line), r.line(pos.Line-1)
	switch {
	case indentTab(line) || strings.Contains(msg, "tab character"):
		return "YAML does not allow tabs for indentation: use spaces"
	case unquotedTemplate.MatchString(line) || unquotedTemplate.MatchString(before):
		return `a value that begins with {{ must be quoted: "{{ … }}"`
	case strings.Contains(msg, "unknown anchor"):
		return "a value that begins with * must be quoted"
	case strings.Contains(msg, "cannot start any token"):
		return "quote the value: @, `, % and some other characters cannot begin plain text"
	case strings.Contains(msg, "end of stream"):
		return "close the quote or bracket that is opened here"
	case strings.Contains(msg, "mapping values") && strings.Count(line, ": ") > 1:
		return "quote the value, since it contains ': '; or check the indentation"
	}
	return "check the indentation of this line and the one before it, and quotes that are not closed"
}

var unquotedTemplate = regexp.MustCompile(`:\s+\{\{`)

func indentTab(line string) bool {
	indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	return strings.Contains(indent, "\t")
}

// clamp moves a position behind the end of the file to the last line with text.
func (r *reader) clamp(p Pos) Pos {
	last := len(r.lines)
	for last > 1 && strings.TrimSpace(r.lines[last-1]) == "" {
		last--
	}
	if p.Line > last {
		return Pos{last, utf8.RuneCountInString(r.line(last)) + 1}
	}
	return p
}

func quote(s string) string { return strconv.Quote(s) }
